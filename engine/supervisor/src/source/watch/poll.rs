//! Polls the times and sizes of files where the system sends no notifications.
//!
//! Polling visits only files that are read, so that its cost does not depend on the targets of links.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::mailbox::{Notice, NoticeSender};
use super::probe::PathProbe;
use content::source::{self, Activity, FolderLimits};

/// The interval of polling.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest pause after a pass, in durations of that pass: polling takes at most a fifth of one processor.
const MIN_PAUSE_RATIO: u32 = 4;

/// The delay of file times: one step of the clock that Linux uses for them.
const CLOCK_STEP: Duration = Duration::from_millis(10);

/// A digest of the metadata in each directory, without the contents of its files.
pub(super) type DirectoryStamps = BTreeMap<PathBuf, u64>;

/// The stamps of one pass; `None` for a directory that did not respond.
pub(super) type PolledStamps = BTreeMap<PathBuf, Option<u64>>;

/// The limit on the time for reading the metadata in a directory.
const RESPONSE_TIME: Duration = Duration::from_secs(10);

/// Starts a thread that polls with `read_stamps`, and sends a notice for each path whose stamp differs from `before`. The thread ends with the watch.
///
/// The poller of `notify` compares times in whole seconds and misses the second of two quick writes.
pub(super) fn poll(
    sender: NoticeSender,
    mut before: DirectoryStamps,
    read_stamps: impl Fn() -> PolledStamps + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut pause = POLL_INTERVAL;
        loop {
            thread::sleep(pause);
            if !sender.is_open() {
                return;
            }
            let begin = Instant::now();
            let now: DirectoryStamps = read_stamps()
                .into_iter()
                // A directory that does not respond counts as unchanged.
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

/// Returns the stamps of the entries directly below the roots, including their contents.
pub(super) fn below(roots: &[PathBuf], probe: &PathProbe) -> PolledStamps {
    stamps(entries(roots), probe)
}

/// Returns the stamps of directories, including their contents.
pub(super) fn stamps(
    directories: impl IntoIterator<Item = PathBuf>,
    probe: &PathProbe,
) -> PolledStamps {
    probe.each(directories, RESPONSE_TIME, stamp)
}

/// Returns the stamps of the directories that responded.
pub(super) fn responding(polled: PolledStamps) -> DirectoryStamps {
    let polled = polled.into_iter();
    polled
        .filter_map(|(path, stamp)| Some((path, stamp?)))
        .collect()
}

/// Returns the entries directly below the roots, without hidden entries.
pub(super) fn entries(roots: &[PathBuf]) -> Vec<PathBuf> {
    let entries = roots.iter().filter_map(|root| fs::read_dir(root).ok());
    entries
        .flatten()
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .collect()
}

/// Returns the stamp of a file, or of a directory with all files that are read.
pub(super) fn stamp(path: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    visit(path, |path, metadata| {
        let seen = metadata.map(|file| {
            let (changed, written) = (
                (file.ctime(), file.ctime_nsec()),
                (file.mtime(), file.mtime_nsec()),
            );
            (file.dev(), file.ino(), file.len(), changed, written)
        });
        (path, seen).hash(&mut hash);
    });
    hash.finish()
}

/// Returns whether a directory, or a file in it that is read, has changed since `since`.
pub(super) fn is_changed(path: &Path, since: SystemTime) -> bool {
    let mut is_changed = false;
    visit(path, |_, metadata| {
        is_changed |= metadata.is_some_and(|metadata| is_later(metadata, since));
    });
    is_changed
}

/// Returns whether a directory or file itself has changed since `since`; `false` if it does not exist.
pub(super) fn is_changed_itself(path: &Path, since: SystemTime) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|metadata| is_later(&metadata, since))
}

/// Returns whether the change time (ctime) is later than `since`, within the precision of the file system's clock.
fn is_later(metadata: &Metadata, since: SystemTime) -> bool {
    let nanoseconds = match metadata.ctime_nsec() {
        // The file system may store whole seconds only.
        0 => 999_999_999,
        nanoseconds => u32::try_from(nanoseconds).unwrap_or(0),
    };
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    UNIX_EPOCH + Duration::new(seconds, nanoseconds) + CLOCK_STEP > since
}

/// Calls `show` with a path and all paths in it that are read, each with its metadata.
fn visit(path: &Path, mut show: impl FnMut(&Path, Option<&Metadata>)) {
    let mut visit_path = |path: &Path| show(path, fs::metadata(path).ok().as_ref());
    visit_path(path);
    if source::is_folder(path) {
        let tree = source::walk(path, "", FolderLimits::default(), &Activity::default());
        let folders = tree.folders.iter().map(|(folder, _)| folder);
        for inner in folders.chain(&tree.files) {
            visit_path(&path.join(inner));
        }
    }
}
