//! Tells a folder that is as it was without opening its files: by what the system says of them, as git's index does, and within the same limit: who writes through a memory map may leave the times as they are.
//!
//! **Invariant:** opens no file.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::Tree;

/// A SHA-256 of the names, sizes, times, numbers and devices of a folder's files.
pub type Stamp = [u8; 32];

/// The limit on one tick of a file system's clock: a file that changes twice within a tick looks the same. Most clocks tick every ten milliseconds or sooner.
const TICK: Duration = Duration::from_millis(50);

/// The same where a time has no part below a millisecond: some file systems tell times in steps of two seconds.
const COARSE_TICK: Duration = Duration::from_secs(3);

/// The times and numbers that change with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    times: [i64; 4],
    numbers: [u64; 3],
}

impl FileStamp {
    /// Returns the stamp of a regular file. None where it was written a moment before `now`.
    pub(super) fn of(metadata: &Metadata, now: SystemTime) -> Option<Self> {
        // The time of modification can be set to anything; that of the last change cannot.
        let nanos = u32::try_from(metadata.ctime_nsec()).ok()?;
        let changed = Duration::new(metadata.ctime().try_into().ok()?, nanos);
        let tick = match nanos.is_multiple_of(1_000_000) {
            true => COARSE_TICK,
            false => TICK,
        };
        // A clock that was set back gives none until it has caught up.
        let settled = now.duration_since(UNIX_EPOCH).ok()?.checked_sub(tick)?;
        (metadata.is_file() && changed < settled).then(|| Self {
            times: [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ],
            numbers: [metadata.len(), metadata.ino(), metadata.dev()],
        })
    }
}

impl Tree {
    /// The stamp of what was found. None where anything cannot be taken, or was written a moment before `now`. To be taken before the files are read: what is written afterwards has another one.
    #[must_use]
    pub fn stamp(&self, now: SystemTime) -> Option<Stamp> {
        let beneath = self.beneath.as_ref()?;
        if self.is_cut || self.report.iter().len() > 0 {
            return None;
        }
        let mut hash = Sha256::new();
        for path in &self.files {
            self.activity.begin();
            // Links are followed: all of them lead to files within the folder.
            let metadata = fs::metadata(beneath.path().join(path)).ok()?;
            let FileStamp { times, numbers } = FileStamp::of(&metadata, now)?;
            hash.update((path.len() as u64).to_le_bytes());
            hash.update(path);
            times
                .iter()
                .for_each(|part| hash.update(part.to_le_bytes()));
            numbers
                .iter()
                .for_each(|part| hash.update(part.to_le_bytes()));
        }
        self.activity.end();
        Some(hash.finalize().into())
    }
}
