//! What is made of a tenant once, for all its pages at all its addresses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tera::Value;

use crate::compile::site_card::colours;
use crate::resources::asset::Asset;
use crate::theme::language::Language;
use content::tenant::conform::Conformed;
use content::theme::Theme;

/// A tenant in the shapes of its theme.
#[derive(Debug)]
pub struct PreparedTenant {
    /// Its files by their keys.
    pub(crate) assets: Arc<BTreeMap<String, Asset>>,
    /// What it says, by the schemas of its theme.
    pub(crate) content: Conformed,
    /// The language of its pages, with its own words.
    pub(crate) language: Arc<Language>,
    /// The pages that are to be found, in the order of their paths.
    pub(crate) pages: Vec<ListedPage>,
    /// The same as templates see them, by the address that they are at: a page that lists all pages is as much work as all of them.
    pub(crate) listed: Mutex<BTreeMap<String, Value>>,
}

/// A page in a list of all pages.
#[derive(Debug)]
pub(crate) struct ListedPage {
    /// Its name.
    pub(crate) label: String,
    /// Its path within the tenant.
    pub(crate) path: String,
    /// Its layout.
    pub(crate) layout: String,
}

impl PreparedTenant {
    /// The colours of a role by day and by night: the tenant's, else the theme's.
    pub(crate) fn role<'a>(&'a self, name: &str, theme: &'a Theme) -> Option<(&'a str, &'a str)> {
        let own = self.content.settings.value.get(name).and_then(colours);
        let role = || theme.manifest.roles.get(name);
        own.or_else(|| role().map(|role| (role.day.as_str(), role.night.as_str())))
    }
}
