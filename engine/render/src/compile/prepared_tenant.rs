//! The parts of a tenant that are prepared once and shared by all its pages and addresses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tera::Value;

use crate::compile::site_card::colours;
use crate::resources::asset::Asset;
use crate::theme::language::Language;
use content::tenant::check_with_theme::ThemedContent;
use content::theme::Theme;

/// A tenant checked against the schemas of its theme.
#[derive(Debug)]
pub struct PreparedTenant {
    /// Its files by key.
    pub(crate) assets: Arc<BTreeMap<String, Asset>>,
    /// Its content, checked against the schemas of the theme.
    pub(crate) content: ThemedContent,
    /// The languages of its pages, with its own UI strings, in the order of the manifest.
    pub(crate) languages: Vec<Arc<Language>>,
    /// The pages that search engines may index, sorted by path.
    pub(crate) pages: Vec<ListedPage>,
    /// The listed pages as template values, by language and address. The value is shared because many pages may list all pages.
    pub(crate) listed: Mutex<BTreeMap<(usize, String), Value>>,
}

/// A page in a list of all pages.
#[derive(Debug)]
pub(crate) struct ListedPage {
    /// Its label.
    pub(crate) label: String,
    /// Its path within the tenant.
    pub(crate) path: String,
    /// The name of its layout.
    pub(crate) layout: String,
    /// Its language, as an index into the languages of the tenant.
    pub(crate) language: usize,
    /// The number of segments of its path below the landing page of its language.
    pub(crate) depth: usize,
}

impl PreparedTenant {
    /// Returns the day and night colours of a role: the tenant's own, else the theme's.
    pub(crate) fn role<'a>(&'a self, name: &str, theme: &'a Theme) -> Option<(&'a str, &'a str)> {
        let own = self.content.settings(0).value.get(name).and_then(colours);
        let role = || theme.manifest.roles.get(name);
        own.or_else(|| role().map(|role| (role.day.as_str(), role.night.as_str())))
    }
}
