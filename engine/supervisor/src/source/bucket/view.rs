//! The content that the follower of a bucket has on the disk, as the jobs see it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bucket::follow::SharedFolder;

use crate::model::agenda::ReloadScope;

/// The tenants as the follower last saw them.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The tenants with their folders; `None` if the tenants are not known.
    pub(super) tenants: Option<BTreeMap<String, Option<PathBuf>>>,
    /// When the awake tenants were published, by their publishers' clocks.
    pub(super) published: BTreeMap<String, SystemTime>,
    /// The published folder of themes.
    pub(super) themes: SharedFolder,
    /// The published folder with `deployment.yaml`.
    pub(super) deployment: SharedFolder,
    /// The reasons that the newest versions cannot be used.
    pub(super) problems: BTreeMap<String, String>,
    /// The reason that the tenants are not known.
    pub(super) silence: String,
    /// The sequence number of the head.
    pub(super) sequence: u64,
}

impl View {
    /// Returns the reason that the newest version of a shared folder is not on the disk.
    pub(super) fn reason(&self, name: &str) -> String {
        let problem = self.problems.get(name).unwrap_or(&self.silence);
        match problem.is_empty() {
            true => "it was not downloaded yet".to_owned(),
            false => problem.clone(),
        }
    }

    /// Returns the parts of the content other than single tenants that have changed.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<ReloadScope> {
        if self.tenants.is_some() && before.tenants.is_none() {
            return vec![ReloadScope::Everything];
        }
        let themes = (self.themes != before.themes).then_some(ReloadScope::Themes);
        let deployment = (self.deployment != before.deployment).then_some(ReloadScope::List);
        themes.into_iter().chain(deployment).collect()
    }
}

/// The view that the follower writes and the source reads.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedView(Arc<Mutex<View>>);

impl SharedView {
    pub(super) fn lock(&self) -> MutexGuard<'_, View> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
