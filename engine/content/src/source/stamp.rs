//! Tells a folder that is as it was without opening its files: by what the system says of them, as git's index does, and within the same limit: who writes through a memory map may leave the times as they are.
//!
//! **Invariant:** opens no file.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::Tree;

/// A SHA-256 of the names, sizes, times, numbers and devices of a folder's files.
pub type Stamp = [u8; 32];

/// What was written so short a time before may be written again within one tick of the file system's clock, and look the same. Some file systems tell times in steps of two seconds.
const TICK: Duration = Duration::from_secs(3);

impl Tree {
    /// The stamp of what was found. None where anything cannot be taken, or was written a moment before `now`. To be taken before the files are read: what is written afterwards has another one.
    #[must_use]
    pub fn stamp(&self, now: SystemTime) -> Option<Stamp> {
        let beneath = self.beneath.as_ref()?;
        if self.is_cut || self.report.iter().len() > 0 {
            return None;
        }
        // A clock that was set back gives none until it has caught up.
        let now = now.duration_since(UNIX_EPOCH).ok()?;
        let settled = i64::try_from(now.checked_sub(TICK)?.as_secs()).ok()?;
        let mut hash = Sha256::new();
        for path in &self.files {
            // Links are followed: all of them lead to files within the folder.
            let metadata = fs::metadata(beneath.path().join(path)).ok()?;
            // The time of modification can be set to anything; that of the last change cannot.
            if !metadata.is_file() || metadata.ctime() >= settled {
                return None;
            }
            hash.update((path.len() as u64).to_le_bytes());
            hash.update(path);
            let times = [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ];
            times
                .iter()
                .for_each(|part| hash.update(part.to_le_bytes()));
            let numbers = [metadata.len(), metadata.ino(), metadata.dev()];
            numbers
                .iter()
                .for_each(|part| hash.update(part.to_le_bytes()));
        }
        Some(hash.finalize().into())
    }
}
