//! What a text is rendered with: where its links lead, where its pictures come from, and the language that it speaks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::asset::Asset;
use super::ids::PageIds;
use super::language::Language;
use super::link::Resolver;

/// Where pictures come from, where links lead, and how their anchors are named.
pub(super) struct LinkContext<'a> {
    /// The language of the text.
    pub(super) language: &'a Language,
    /// Makes links right, and knows the tenant's files.
    pub(super) resolver: &'a Resolver,
    /// The theme's files by name, where the tenant has none of that name.
    pub(super) themed: &'a BTreeMap<String, Asset>,
    /// The ids of the page that the text is a part of.
    pub(super) ids: &'a Mutex<PageIds>,
}

impl LinkContext<'_> {
    /// Assigns an id of the page.
    pub(super) fn assign(&self, wanted: &str) -> String {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.assign(wanted)
    }
}
