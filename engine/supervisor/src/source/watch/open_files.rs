//! The files that programs have written to and have not closed, as notifications tell.
//!
//! Only Linux reports that a file was closed after a write. Elsewhere, and on network file systems, no file is known to be open.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit on known files. Beyond the limit, all files count as closed.
const MAX_FILES: usize = 4096;

/// The paths of open files. Clones share the paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenFiles(Arc<Mutex<BTreeSet<PathBuf>>>);

impl OpenFiles {
    /// Notes a write to a file.
    pub(super) fn open(&self, path: &Path) {
        if !cfg!(any(target_os = "linux", target_os = "android")) {
            return;
        }
        let mut files = self.lock();
        if !files.contains(path) {
            if files.len() >= MAX_FILES {
                files.clear();
            }
            files.insert(path.to_owned());
        }
    }

    /// Notes that a file was closed, moved or removed. Returns whether the file was open.
    pub(super) fn close(&self, path: &Path) -> bool {
        self.lock().remove(path)
    }

    /// Forgets all files, because notifications may be lost.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Returns whether a file is open.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.lock().contains(path)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
