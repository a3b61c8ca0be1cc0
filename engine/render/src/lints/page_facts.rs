//! What the lints see of a finished page.

use std::collections::BTreeSet;

/// What was seen of a page.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Every `id`.
    pub(super) ids: BTreeSet<String>,
    /// Those that more than one element has.
    pub(super) repeated: BTreeSet<String>,
    /// The levels of its headings, in order.
    pub(super) headings: Vec<u8>,
    /// Pictures without an `alt` attribute.
    pub(super) silent: Vec<String>,
    /// Where its links lead, without fragments.
    pub(super) links: BTreeSet<String>,
    /// Islands that come to life.
    pub(super) islands: BTreeSet<String>,
}

/// Looks at a page's HTML.
pub(super) fn look(html: &str) -> Seen {
    use lol_html::{RewriteStrSettings, element};
    let (mut ids, mut headings, mut silent) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut repeated = BTreeSet::new();
    let (mut links, mut islands) = (BTreeSet::new(), BTreeSet::new());
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!("[id]", |element| {
            let id = element.get_attribute("id");
            if let Some(id) = id.filter(|id| !ids.insert(id.clone())) {
                repeated.insert(id);
            }
            Ok(())
        }))
        .append_element_content_handler(element!("h1, h2, h3, h4, h5, h6", |element| {
            headings.extend(element.tag_name().bytes().last().map(|digit| digit - b'0'));
            Ok(())
        }))
        .append_element_content_handler(element!("img:not([alt])", |element| {
            silent.push(element.get_attribute("src").unwrap_or_default());
            Ok(())
        }))
        .append_element_content_handler(element!("a[href]", |element| {
            let href = element.get_attribute("href").unwrap_or_default();
            links.insert(href.split(['#', '?']).next().unwrap_or_default().to_owned());
            Ok(())
        }))
        .append_element_content_handler(element!("row-island[name]", |element| {
            islands.extend(element.get_attribute("name"));
            Ok(())
        }));
    // Markup that cannot be read has nothing to look at.
    let _ = lol_html::rewrite_str(html, settings);
    Seen {
        ids,
        repeated,
        headings,
        silent,
        links,
        islands,
    }
}
