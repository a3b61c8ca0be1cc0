//! The translations of a page, for search engines.

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
