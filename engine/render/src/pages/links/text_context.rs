//! What a text is rendered with: where its links lead, where its pictures come from, and the language that it speaks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::markdown::element_ids::PageIds;
use crate::pages::links::resolver::Resolver;
use crate::resources::asset::Asset;
use crate::theme::language::Language;

/// Where pictures come from, where links lead, and how their anchors are named.
pub(crate) struct LinkContext<'a> {
    /// The language of the text.
    pub(crate) language: &'a Language,
    /// Makes links right, and knows the tenant's files.
    pub(crate) resolver: &'a Resolver,
    /// The theme's files by name, where the tenant has none of that name.
    pub(crate) themed: &'a BTreeMap<String, Asset>,
    /// The ids of the page that the text is a part of.
    pub(crate) ids: &'a Mutex<PageIds>,
}

impl LinkContext<'_> {
    /// Assigns an id of the page.
    pub(crate) fn assign(&self, wanted: &str) -> String {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.assign(wanted)
    }
}
