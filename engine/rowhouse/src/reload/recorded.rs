//! What is known of the releases of a tenant: what was recorded last, what changed since, and which one is pinned.
//!
//! **Invariant:** plain values; knows neither the disk nor other tenants.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use bytes::Bytes;

use content::source::Folder;
use release::snapshot::ResourceTable;
use render::link::Deployment;
use render::template::Templates;
use render::{Compiled, Inputs};

/// What is known of the releases of a tenant.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// What the last one was made from, other than the folder, and the key of what it answers.
    pub(super) last: Option<(Arc<Templates>, Arc<Deployment>, [u8; 32])>,
    /// The files that changed since.
    pub(super) changed: BTreeSet<String>,
    /// Whether something was rendered that is not recorded.
    pub(super) is_due: bool,
    /// The release that is served, whatever the folder says.
    pub(super) pinned: Option<Pinned>,
}

impl Recorded {
    /// Says what was recorded last.
    pub(super) fn set_last(&mut self, inputs: &Inputs, answers: [u8; 32]) {
        let parts = (&inputs.templates, &inputs.deployment);
        self.last = Some((Arc::clone(parts.0), Arc::clone(parts.1), answers));
    }
}

/// A release that is served in the place of what the folder says.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) number: u64,
    pub(super) compiled: Arc<Compiled>,
    /// The files that all tenants shared at the time.
    pub(super) shared: ResourceTable,
}

/// Hashes of a folder's files by their names, to tell which of them changed.
pub(super) type Files = BTreeMap<String, u64>;

/// Those of a folder.
pub(super) fn files_of(folder: &Folder) -> Files {
    let hash = |bytes: &Bytes| {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        hasher.finish()
    };
    let files = folder.files.iter();
    files
        .map(|(name, bytes)| (name.clone(), hash(bytes)))
        .collect()
}

/// The names of the files that are not the same in both.
pub(super) fn changed<'a>(before: &'a Files, now: &'a Files) -> impl Iterator<Item = &'a String> {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let other = now
        .iter()
        .filter(|(name, hash)| before.get(*name) != Some(*hash));
    gone.chain(other.map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_went_or_is_another_one_has_changed() {
        let files = |files: &[(&str, &str)]| {
            let files = files.iter();
            files_of(&Folder {
                files: files
                    .map(|(name, text)| ((*name).to_owned(), Bytes::from((*text).to_owned())))
                    .collect(),
                ..Folder::default()
            })
        };
        let before = files(&[("gone", "1"), ("other", "1"), ("same", "1")]);
        let now = files(&[("new", "1"), ("other", "2"), ("same", "1")]);
        let names: Vec<&String> = changed(&before, &now).collect();
        assert_eq!(names, ["gone", "new", "other"]);
    }
}
