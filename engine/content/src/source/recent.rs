//! Finds files that changed a short time ago, by their metadata.
//!
//! **Invariant:** decides nothing. The caller compares two looks at a folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::FolderTree;

/// The metadata of a file that changed a short time ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecentFile {
    /// The length in bytes.
    pub length: u64,
    /// The inode number.
    pub inode: u64,
    /// The time of the last change. Programs cannot set this time (`ctime`).
    pub changed: SystemTime,
}

impl FolderTree {
    /// Returns the files that changed less than `window` before `now`, by path. Opens no file.
    #[must_use]
    pub fn recent_files(&self, now: SystemTime, window: Duration) -> BTreeMap<String, RecentFile> {
        let mut recent = BTreeMap::new();
        for path in &self.files {
            self.activity.begin();
            let place = self.root.as_ref().map(|folder| folder.path().join(path));
            let Some(Ok(metadata)) = place.map(fs::metadata) else {
                continue;
            };
            let seconds = metadata.ctime().try_into().unwrap_or_default();
            let nanos = metadata.ctime_nsec().try_into().unwrap_or_default();
            let changed = UNIX_EPOCH + Duration::new(seconds, nanos);
            // A clock that was set back must not make every file recent.
            let age = now.duration_since(changed);
            if age.unwrap_or_else(|error| error.duration()) < window {
                let file = RecentFile {
                    length: metadata.len(),
                    inode: metadata.ino(),
                    changed,
                };
                recent.insert(path.clone(), file);
            }
        }
        self.activity.end();
        recent
    }

    /// Returns the last byte of a file. Returns `None` if the file is empty or cannot be read.
    #[must_use]
    pub fn last_byte(&self, path: &str) -> Option<u8> {
        let file = self.root.as_ref()?.open(Path::new(path)).ok()?;
        let last = file.metadata().ok()?.len().checked_sub(1)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, last).ok()?;
        Some(byte[0])
    }

    /// Returns the paths that notifications may have for a file: by the resolved folder, and by the folder as given.
    pub fn absolute_paths(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let names = self.root.iter().flat_map(|root| root.names());
        names.map(move |name| name.join(path))
    }
}
