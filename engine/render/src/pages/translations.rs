//! The translations of a page, for search engines and for the language switcher of themes.

use crate::pages::page::Renderer;
use crate::pages::view::TranslationView;
use content::tenant::{Page, Site};

/// The language of the link for visitors in none of the languages (RFC 8288; Google, localized versions).
const ANY_LANGUAGE: &str = "x-default";

/// Returns the languages and paths of a page and its translations, then `x-default`. Empty if the page has no translation.
pub(crate) fn translations<'a>(site: &'a Site, page: &Page) -> Vec<(&'a str, &'a str)> {
    let languages = site.manifest.languages();
    if languages.len() < 2 || page.front.noindex {
        return Vec::new();
    }
    let found = languages.iter().enumerate();
    let found = found.filter_map(|(index, language)| {
        let page = site.translation(&page.path, index)?;
        (!page.front.noindex).then_some((language.as_str(), page.path.as_str()))
    });
    let mut found: Vec<(&str, &str)> = found.collect();
    match found.first() {
        // The default language comes first. A page without a page in the default language falls back to its first language.
        Some((_, path)) if found.len() > 1 => {
            found.push((ANY_LANGUAGE, path));
            found
        }
        _ => Vec::new(),
    }
}

impl Renderer<'_> {
    /// Returns the language switcher of the page at a path; empty for a tenant with one language.
    pub(crate) fn switcher(&self, path: &str, current: usize) -> Vec<TranslationView<'_>> {
        let site = self.site;
        let languages = site.manifest.languages();
        if languages.len() < 2 {
            return Vec::new();
        }
        let all = languages.iter().zip(self.languages()).enumerate();
        let view = all.map(|(index, (tag, language))| {
            let page = site.translation(path, index);
            let page = page.or_else(|| site.translation("/", index));
            let target = page.map_or("/", |page| page.path.as_str());
            TranslationView {
                language: tag.as_str(),
                name: language.own_name(),
                dir: match language.is_right_to_left() {
                    true => "rtl",
                    false => "ltr",
                },
                url: self.resolver.own(target),
                is_current: index == current,
            }
        });
        view.collect()
    }
}
