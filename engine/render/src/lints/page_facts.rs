//! Collects the facts about a finished page that the lints need.

use std::collections::BTreeSet;

/// The facts about a finished page.
#[derive(Debug, Default)]
pub(super) struct PageFacts {
    /// Every `id`.
    pub(super) ids: BTreeSet<String>,
    /// The ids of more than one element.
    pub(super) repeated: BTreeSet<String>,
    /// The levels of its headings, in order.
    pub(super) headings: Vec<u8>,
    /// The sources of images without an `alt` attribute.
    pub(super) silent: Vec<String>,
    /// The targets of its links, without queries and fragments.
    pub(super) links: BTreeSet<String>,
    /// The names of islands that are hydrated.
    pub(super) islands: BTreeSet<String>,
}

/// Collects the facts from a page's HTML.
pub(super) fn collect(html: &str) -> PageFacts {
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
    // If the HTML cannot be parsed, the facts found so far count.
    let _ = lol_html::rewrite_str(html, settings);
    PageFacts {
        ids,
        repeated,
        headings,
        silent,
        links,
        islands,
    }
}
