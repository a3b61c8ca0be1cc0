//! The language switcher of a page: its translations for the theme.

use crate::pages::page::Renderer;
use crate::pages::values::view::TranslationView;

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
                dir: language.direction(),
                url: self.resolver.own(target),
                is_current: index == current,
            }
        });
        view.collect()
    }
}
