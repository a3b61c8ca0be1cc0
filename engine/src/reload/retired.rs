//! Files with hashed names that a page opened before a change may still ask for.
//!
//! A visitor who loaded a page yesterday asks for yesterday's chunk when a menu opens today. So what a change replaces lives on for a few more changes.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::compile::asset::ASSETS;
use crate::snapshot::{Resource, ResourceTable};

/// For how many changes a replaced file stays.
const KEPT: usize = 3;

/// The replaced files of one place, the latest first.
#[derive(Debug, Default)]
pub(super) struct Retired(VecDeque<Vec<(Box<str>, Arc<Resource>)>>);

impl Retired {
    /// `before` gives way to `now`: what only `before` had is put into `now`, for as long as it is kept.
    pub(super) fn turn(&mut self, before: &ResourceTable, now: &mut ResourceTable) {
        let is_kept = |path: &str| {
            self.0
                .iter()
                .flatten()
                .any(|(kept, _)| kept.as_ref() == path)
        };
        let gone = before
            .iter()
            .filter(|(path, _)| {
                path.starts_with(ASSETS) && !now.contains_key(*path) && !is_kept(path)
            })
            .map(|(path, resource)| (path.clone(), Arc::clone(resource)))
            .collect();
        self.0.push_front(gone);
        self.0.truncate(KEPT);
        for (path, resource) in self.0.iter().flatten() {
            now.entry(path.clone())
                .or_insert_with(|| Arc::clone(resource));
        }
    }
}
