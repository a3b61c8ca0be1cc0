//! The context that a text is rendered in: its links, its images, its language and its page's ids.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::markdown::element_ids::PageIds;
use crate::pages::links::resolver::Resolver;
use crate::resources::asset::Asset;
use crate::theme::language::Language;

/// The context that a text is rendered in.
pub(crate) struct LinkContext<'a> {
    /// The language of the text.
    pub(crate) language: &'a Language,
    /// Resolves links, and holds the tenant's files.
    pub(crate) resolver: &'a Resolver,
    /// The theme's files by name, used if the tenant has no file of that name.
    pub(crate) themed: &'a BTreeMap<String, Asset>,
    /// The ids of the page that contains the text.
    pub(crate) ids: &'a Mutex<PageIds>,
}

impl LinkContext<'_> {
    /// Assigns an id that is unique on the page.
    pub(crate) fn assign(&self, wanted: &str) -> String {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.assign(wanted)
    }
}
