//! Looks at the times and sizes of all files again and again, where the system does not tell of changes.
//!
//! It sees the files that are read, and no others: what it costs does not depend on what links lead to.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::notice::{Notice, NoticeSender};
use super::probe::PathProbe;
use content::source::{self, Activity, FolderLimits};

/// How often polling looks.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How much longer than one look the pause after it is at least: looking takes no more than a fifth of one processor.
const MIN_PAUSE_RATIO: u32 = 4;

/// How far the times of files may be behind: a step of Linux's clock for them.
const CLOCK_STEP: Duration = Duration::from_millis(10);

/// A digest of what can be seen of each directory without reading its files.
pub(super) type Stamps = BTreeMap<PathBuf, u64>;

/// The same of one look, in which some directories may not have responded.
pub(super) type PolledStamps = BTreeMap<PathBuf, Option<u64>>;

/// The time within which the files of a directory can be looked at.
const RESPONSE_TIME: Duration = Duration::from_secs(10);

/// Looks again and again on a thread of its own, and tells of what is not as it was `before`. The thread ends with the watch.
///
/// The library's own poller keeps times in whole seconds and misses the second of two quick writes.
pub(super) fn poll(
    sender: NoticeSender,
    mut before: Stamps,
    look: impl Fn() -> PolledStamps + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut pause = POLL_INTERVAL;
        loop {
            thread::sleep(pause);
            if !sender.is_open() {
                return;
            }
            let begin = Instant::now();
            let now: Stamps = look()
                .into_iter()
                // A directory that does not respond counts as it was.
                .filter_map(|(path, stamp)| {
                    let stamp = stamp.or_else(|| before.get(&path).copied());
                    Some((path, stamp?))
                })
                .collect();
            let gone = before.keys().filter(|path| !now.contains_key(*path));
            let changed = now
                .iter()
                .filter(|(path, stamp)| before.get(*path) != Some(stamp));
            for path in gone.chain(changed.map(|(path, _)| path)) {
                if sender.send(Notice::Path(path.clone())).is_err() {
                    return;
                }
            }
            before = now;
            pause = POLL_INTERVAL.max(begin.elapsed() * MIN_PAUSE_RATIO);
        }
    })
}

/// The stamps of everything directly below the roots, with all that is in it.
pub(super) fn below(roots: &[PathBuf], probe: &PathProbe) -> PolledStamps {
    stamps(entries(roots), probe)
}

/// The stamps of directories, each with all that is in it.
pub(super) fn stamps(
    directories: impl IntoIterator<Item = PathBuf>,
    probe: &PathProbe,
) -> PolledStamps {
    probe.each(directories, RESPONSE_TIME, stamp)
}

/// The stamps of those directories that responded.
pub(super) fn known(looked: PolledStamps) -> Stamps {
    let looked = looked.into_iter();
    looked
        .filter_map(|(path, stamp)| Some((path, stamp?)))
        .collect()
}

/// Everything directly below the roots that is not hidden.
pub(super) fn entries(roots: &[PathBuf]) -> Vec<PathBuf> {
    let entries = roots.iter().filter_map(|root| fs::read_dir(root).ok());
    entries
        .flatten()
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .collect()
}

/// The stamp of a directory with all that is read of it, or of a file.
pub(super) fn stamp(path: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    look(path, |path, metadata| {
        let seen = metadata.map(|it| {
            let (changed, written) = ((it.ctime(), it.ctime_nsec()), (it.mtime(), it.mtime_nsec()));
            (it.dev(), it.ino(), it.len(), changed, written)
        });
        (path, seen).hash(&mut hash);
    });
    hash.finish()
}

/// Whether a directory, or anything that is read of it, is not as it was at a moment.
pub(super) fn is_changed(path: &Path, since: SystemTime) -> bool {
    let mut is_changed = false;
    look(path, |_, metadata| {
        is_changed |= metadata.is_some_and(|metadata| is_later(metadata, since));
    });
    is_changed
}

/// The same of a directory or file alone. What is not there is no change.
pub(super) fn is_changed_itself(path: &Path, since: SystemTime) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|metadata| is_later(&metadata, since))
}

/// Whether something was last changed after a moment, as far as the file system's clock tells.
fn is_later(metadata: &Metadata, since: SystemTime) -> bool {
    let nanoseconds = match metadata.ctime_nsec() {
        // It may tell whole seconds only.
        0 => 999_999_999,
        nanoseconds => u32::try_from(nanoseconds).unwrap_or(0),
    };
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    UNIX_EPOCH + Duration::new(seconds, nanoseconds) + CLOCK_STEP > since
}

/// Shows a path with all that is read of it, and what the system says of each.
fn look(path: &Path, mut show: impl FnMut(&Path, Option<&Metadata>)) {
    let mut look_at = |path: &Path| show(path, fs::metadata(path).ok().as_ref());
    look_at(path);
    if source::is_folder(path) {
        let tree = source::walk(path, "", FolderLimits::default(), &Activity::default());
        let folders = tree.folders.iter().map(|(folder, _)| folder);
        for inner in folders.chain(&tree.files) {
            look_at(&path.join(inner));
        }
    }
}
