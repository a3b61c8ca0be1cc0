//! The languages of links: a link to a page in another language than its own page has `hreflang` (WHATWG HTML, section 4.6.1).
//!
//! Templates, Markdown and islands write links without it. One pass over the finished page adds it, so that no theme has to.

use std::collections::BTreeMap;
use std::sync::Arc;

use lol_html::{RewriteStrSettings, element, rewrite_str};

use crate::compile::inputs::CompileInputs;
use crate::pages::links::resolver::{DeploymentFacts, Resolver};
use content::tenant::Site;

/// The languages of the pages that a tenant's pages may link to.
pub(crate) struct PageLanguages {
    /// The language of each path of the tenant, as an index.
    own: BTreeMap<String, usize>,
    /// The tags of the tenant's languages.
    tags: Vec<String>,
    deployment: Arc<DeploymentFacts>,
}

impl PageLanguages {
    /// Collects the languages of a tenant's paths; none for a tenant with one language.
    pub(crate) fn of(site: &Site, inputs: &CompileInputs) -> Self {
        let languages = site.manifest.languages();
        let pages = site.pages.values().filter(|_| languages.len() > 1);
        let own = pages.flat_map(|page| {
            let language = site.manifest.language_of(&page.path);
            page.paths().map(move |path| (path.to_owned(), language))
        });
        Self {
            own: own.collect(),
            tags: languages
                .iter()
                .map(|tag| tag.as_str().to_owned())
                .collect(),
            deployment: Arc::clone(&inputs.deployment),
        }
    }

    /// Adds `hreflang` to the links of a page to pages in another language.
    pub(crate) fn mark_links(&self, html: String, language: usize, resolver: &Resolver) -> String {
        let own = self.tags[language].as_str();
        let has_others = self.own.values().any(|other| *other != language);
        let mut linked = self.deployment.linked_pages.values();
        if !has_others && linked.all(|tag| tag == own) {
            return html;
        }
        let mark = element!("a[href]:not([hreflang])", |link| {
            let tag = link.get_attribute("href");
            let tag = tag.and_then(|href| self.language_of(&href, resolver));
            if let Some(tag) = tag.filter(|tag| *tag != own) {
                link.set_attribute("hreflang", tag)?;
            }
            Ok(())
        });
        let settings = RewriteStrSettings::new().append_element_content_handler(mark);
        rewrite_str(&html, settings).unwrap_or(html)
    }

    /// Returns the language of the page that a link of a page for all addresses leads to.
    fn language_of(&self, href: &str, resolver: &Resolver) -> Option<&str> {
        let path = &href[..href.find(['?', '#']).unwrap_or(href.len())];
        if let Some(own) = path.strip_prefix(&*resolver.place.prefix) {
            let own = if own.is_empty() { "/" } else { own };
            let language = self.own.get(own)?;
            return self.tags.get(*language).map(String::as_str);
        }
        let company = path.strip_prefix(&*resolver.place.domain)?;
        let tag = self.deployment.linked_pages.get(company)?;
        Some(tag)
    }
}
