//! Looks at the times and sizes of all files again and again, where the system does not tell of changes.
//!
//! It sees the files that are read, and no others: what it costs does not depend on what links lead to.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::notice::Notice;
use content::source::{self, Limits};

/// How often polling looks.
pub const POLL: Duration = Duration::from_secs(1);
/// How much longer than one look the pause after it is at least: looking takes no more than a fifth of one processor.
const PAUSE: u32 = 4;

/// A digest of what can be seen of each directory without reading its files.
pub(super) type Stamps = BTreeMap<PathBuf, u64>;

/// Looks again and again on a thread of its own, and tells of what is not as it was `before`.
///
/// The library's own poller keeps times in whole seconds and misses the second of two quick writes.
pub(super) fn poll(
    sender: Sender<Notice>,
    mut before: Stamps,
    look: impl Fn() -> Stamps + Send + 'static,
) {
    thread::spawn(move || {
        let mut pause = POLL;
        loop {
            thread::sleep(pause);
            let begin = Instant::now();
            let now = look();
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
            pause = POLL.max(begin.elapsed() * PAUSE);
        }
    });
}

/// The stamps of everything directly below the roots, with all that is in it.
pub(super) fn below(roots: &[PathBuf]) -> Stamps {
    let entries = roots.iter().filter_map(|root| fs::read_dir(root).ok());
    entries
        .flatten()
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| (entry.path(), stamp(&entry.path())))
        .collect()
}

/// The stamp of a directory with all that is read of it, or of a file.
pub(super) fn stamp(path: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut add = |path: &Path| {
        let seen = fs::metadata(path).ok().map(|it| {
            let (changed, written) = ((it.ctime(), it.ctime_nsec()), (it.mtime(), it.mtime_nsec()));
            (it.dev(), it.ino(), it.len(), changed, written)
        });
        (path, seen).hash(&mut hash);
    };
    add(path);
    if source::is_folder(path) {
        let tree = source::walk(path, "", Limits::default());
        let folders = tree.folders.iter().map(|(folder, _)| folder);
        for inner in folders.chain(&tree.files) {
            add(&path.join(inner));
        }
    }
    hash.finish()
}
