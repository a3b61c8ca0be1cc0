//! Detects unchanged folders by file metadata, without opening files, like git's index.
//!
//! Limitation, as in git: a write through a memory map may leave the times unchanged.
//!
//! **Invariant:** opens no file.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::FolderTree;

/// A SHA-256 of the paths, sizes, times, inode numbers and devices of a folder's files.
pub type FolderStamp = [u8; 32];

/// The assumed longest clock tick of a file system. Two changes within one tick look the same. Most clocks tick at least every ten milliseconds.
const MAX_CLOCK_TICK: Duration = Duration::from_millis(50);

/// The assumed tick for times without a part below a millisecond. Some file systems record times in steps of two seconds.
const MAX_COARSE_CLOCK_TICK: Duration = Duration::from_secs(3);

/// The times and numbers that change when a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    times: [i64; 4],
    numbers: [u64; 3],
}

impl FileStamp {
    /// Returns the stamp of a regular file. Returns `None` if the file changed within one clock tick before `now`.
    pub(super) fn of(metadata: &Metadata, now: SystemTime) -> Option<Self> {
        // Programs can set the modification time, but not the change time.
        let nanos = u32::try_from(metadata.ctime_nsec()).ok()?;
        let changed = Duration::new(metadata.ctime().try_into().ok()?, nanos);
        let tick = match nanos.is_multiple_of(1_000_000) {
            true => MAX_COARSE_CLOCK_TICK,
            false => MAX_CLOCK_TICK,
        };
        // After the clock was set back, there is no stamp until it catches up.
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

/// Returns the time of the last change of a file or folder, which programs cannot set. `None` before 1970.
fn changed(metadata: &Metadata) -> Option<SystemTime> {
    let nanos = u32::try_from(metadata.ctime_nsec()).ok()?;
    UNIX_EPOCH.checked_add(Duration::new(metadata.ctime().try_into().ok()?, nanos))
}

impl FolderTree {
    /// Returns the time of the last change of the folder: of its newest file or folder, or of the link to it. `None` if nothing can be read.
    ///
    /// A copied or moved file counts as changed, even if its modification time is older.
    #[must_use]
    pub fn last_change(&self) -> Option<SystemTime> {
        let root = self.root.as_ref()?;
        let folders = self.folders.iter().map(|(path, _)| path);
        let entries = folders.chain(&self.files).map(|path| {
            self.activity.begin();
            fs::metadata(root.path().join(path))
        });
        let link = fs::symlink_metadata(root.given_path());
        let times = entries
            .chain([link])
            .filter_map(|entry| changed(&entry.ok()?));
        let newest = times.max();
        self.activity.end();
        newest
    }

    /// Returns the stamp of the folder. Call it before reading the files, so that a later write changes the stamp.
    ///
    /// Returns `None` if any file cannot be read, or changed within one clock tick before `now`.
    #[must_use]
    pub fn stamp(&self, now: SystemTime) -> Option<FolderStamp> {
        let root = self.root.as_ref()?;
        if self.is_cut || self.report.iter().len() > 0 {
            return None;
        }
        let mut hash = Sha256::new();
        for path in &self.files {
            self.activity.begin();
            // Follows links: all of them point to files within the folder.
            let metadata = fs::metadata(root.path().join(path)).ok()?;
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
