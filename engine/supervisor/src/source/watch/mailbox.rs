//! Notices, and the mailbox that collects them for the [`Watch`](super::Watch).
//!
//! Senders never block, since the system's notifications arrive on a thread that must not wait.
//! The size of the mailbox is limited: [`PendingNotices`] holds changed paths instead of notices, and folders instead of too many paths.
//! Senders do not keep a mailbox alive. Once the watch is dropped, sending fails and the threads of the senders end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The limit on paths in a mailbox. Beyond the limit, folders replace the paths below them.
const MAX_PATHS: usize = 4096;

/// A notice to a watch.
#[derive(Debug)]
pub enum Notice {
    /// A path has changed.
    Path(PathBuf),
    /// Anything may have changed.
    Everything,
}

/// The notices since the mailbox was last emptied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PendingNotices {
    /// The changed paths.
    pub(super) paths: BTreeSet<PathBuf>,
    /// The folders that replace too many changed paths below them.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Whether anything may have changed.
    pub(super) affects_all: bool,
}

impl PendingNotices {
    /// Adds a notice. Beyond [`MAX_PATHS`] paths, folders replace the deepest paths.
    pub(super) fn add(&mut self, notice: Notice) {
        self.add_within(notice, MAX_PATHS);
    }

    fn add_within(&mut self, notice: Notice, max_paths: usize) {
        match notice {
            Notice::Everything => self.affects_all = true,
            Notice::Path(path) => {
                if !is_below(&path, &self.folders) {
                    self.paths.insert(path);
                }
            }
        }
        if self.affects_all {
            self.paths.clear();
            self.folders.clear();
        }
        // Afterwards half of the limit is free, so that few notices cause this work.
        if self.len() > max_paths {
            while self.len() > max_paths / 2 {
                self.fold_deepest();
            }
        }
    }

    /// Returns whether there are changes.
    pub(super) fn has_changes(&self) -> bool {
        self.affects_all || self.len() > 0
    }

    fn len(&self) -> usize {
        self.paths.len() + self.folders.len()
    }

    /// Replaces the deepest paths with their folders.
    fn fold_deepest(&mut self) {
        let depth = |path: &PathBuf| path.components().count();
        let deepest = self.paths.iter().chain(&self.folders).map(depth).max();
        let is_deepest = |path: &PathBuf| Some(depth(path)) == deepest;
        let mut deep = Vec::new();
        for set in [&mut self.paths, &mut self.folders] {
            set.retain(|path| {
                let is_deep = is_deepest(path);
                if is_deep {
                    deep.push(path.clone());
                }
                !is_deep
            });
        }
        for path in deep {
            match path.parent() {
                Some(parent) => self.folders.insert(parent.to_owned()),
                // The path is the root of the file system.
                None => {
                    self.affects_all = true;
                    false
                }
            };
        }
        let folders = &self.folders;
        self.paths.retain(|path| !is_below(path, folders));
    }
}

/// Returns whether a path is one of these folders, or below one of them.
fn is_below(path: &Path, folders: &BTreeSet<PathBuf>) -> bool {
    !folders.is_empty() && path.ancestors().any(|above| folders.contains(above))
}

/// The mailbox of a watch.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Arc<MailboxState>);

#[derive(Debug, Default)]
struct MailboxState {
    state: Mutex<PendingNotices>,
    arrived: Condvar,
}

impl MailboxState {
    fn lock(&self) -> MutexGuard<'_, PendingNotices> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mailbox {
    /// Returns a sender, which does not keep the mailbox alive.
    pub(crate) fn sender(&self) -> NoticeSender {
        NoticeSender(Arc::downgrade(&self.0))
    }

    /// Waits for a notice, for at most `timeout`. Returns whether there are changes.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let is_empty = |state: &mut PendingNotices| !state.has_changes();
        let waited = (self.0.arrived).wait_timeout_while(self.0.lock(), timeout, is_empty);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.has_changes()
    }

    /// Empties the mailbox, and returns its notices.
    pub(super) fn drain(&self) -> PendingNotices {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A sender of notices to a watch.
#[derive(Debug, Clone, Default)]
pub struct NoticeSender(Weak<MailboxState>);

/// The error of sending a notice to a dropped watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reload loop has ended")]
pub struct WatchDropped;

impl NoticeSender {
    /// Sends a notice. Never blocks.
    ///
    /// # Errors
    /// Returns an error if the watch was dropped, because the reload loop has ended.
    pub fn send(&self, notice: Notice) -> Result<(), WatchDropped> {
        let shared = self.0.upgrade().ok_or(WatchDropped)?;
        let mut state = shared.lock();
        state.add(notice);
        drop(state);
        shared.arrived.notify_all();
        Ok(())
    }

    /// Returns whether the watch is alive.
    pub(super) fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path() -> impl Strategy<Value = PathBuf> {
        let name = prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
        prop::collection::vec(name, 1..6)
            .prop_map(|names| Path::new("/tenants").join(names.join("/")))
    }

    proptest! {
        #[test]
        fn pending_notices_are_limited_and_lose_no_path(
            paths in prop::collection::vec(path(), 0..200),
            max_paths in 1_usize..20,
            at in prop::option::of(0_usize..200),
        ) {
            let mut pending = PendingNotices::default();
            for (number, path) in paths.iter().enumerate() {
                if Some(number) == at {
                    pending.add(Notice::Everything);
                }
                pending.add_within(Notice::Path(path.clone()), max_paths);
                prop_assert!(pending.len() <= max_paths, "{pending:?}");
                prop_assert!(pending.has_changes());
            }
            for path in &paths {
                let is_named = pending.paths.contains(path) || is_below(path, &pending.folders);
                prop_assert!(pending.affects_all || is_named, "{path:?} is lost: {pending:?}");
            }
            for path in &pending.paths {
                prop_assert!(paths.contains(path) && !is_below(path, &pending.folders));
            }
            for folder in &pending.folders {
                prop_assert!(paths.iter().any(|path| path.starts_with(folder)), "{folder:?}");
            }
        }
    }

    #[test]
    fn many_changes_of_one_tenant_keep_paths_of_other_tenants() {
        let mut pending = PendingNotices::default();
        pending.add(Notice::Path("/tenants/quiet/tenant.yaml".into()));
        for number in 0..100_000 {
            let path = format!("/tenants/loud/assets/{}/{number}.png", number % 100);
            pending.add(Notice::Path(path.into()));
        }
        assert!(!pending.affects_all);
        assert!(
            pending
                .paths
                .contains(Path::new("/tenants/quiet/tenant.yaml"))
        );
        let mut folders = pending.folders.iter();
        assert!(folders.all(|folder| folder.starts_with("/tenants/loud/assets")));
    }

    #[test]
    fn notice_of_everything_replaces_paths() {
        let mut pending = PendingNotices::default();
        assert!(!pending.has_changes());
        pending.add(Notice::Path("/tenants/app".into()));
        pending.add(Notice::Everything);
        let all = PendingNotices {
            affects_all: true,
            ..PendingNotices::default()
        };
        assert_eq!(pending, all);
    }

    #[test]
    fn senders_do_not_keep_mailbox_alive() {
        let mailbox = Mailbox::default();
        let sender = mailbox.sender();
        assert_eq!(sender.send(Notice::Everything), Ok(()));
        drop(mailbox);
        assert!(!sender.is_open());
        assert_eq!(sender.send(Notice::Everything), Err(WatchDropped));
    }
}
