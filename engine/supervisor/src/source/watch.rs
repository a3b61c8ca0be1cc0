//! Says when something below a folder changed, and waits until it has settled.
//!
//! Two ways of noticing stand side by side, because the quick one (the system's notifications) is silent on network file systems and runs out of watches on large trees.
//! Neither is believed about *what* changed: a notification only names a path, and whoever reads the folder compares contents.
//! Both look at the folders that are read, found in the same way and within the same limits: at nothing hidden, at no folder twice, and at nothing outside of a tenant or theme. What cannot be watched is polled, and costs nobody else the notifications.
//!
//! **Invariant:** reads no content. It knows paths and moments, not tenants.

mod folders;
mod notice;
mod poll;
mod probe;

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use rayon::prelude::*;
use tracing::warn;

use self::folders::{WatchedFolders, WatchedPath};
pub(crate) use self::notice::Mailbox;
use self::notice::PendingNotices;
pub use self::notice::{Notice, NoticeSender, WatchDropped};
pub use self::poll::POLL_INTERVAL;
use self::probe::PathProbe;
use content::source::{self, Identity};

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetectionMethod {
    /// By the system's notifications; by polling where these cannot be had.
    Notifications,
    /// By looking at every file once in [`POLL_INTERVAL`]: for network file systems.
    Polling,
    /// Not at all: only a signal reloads.
    Off,
}

/// The time for which changes are collected before they are passed on.
const COALESCE_TIME: Duration = Duration::from_millis(10);
/// How often it is checked whether the roots are other folders or files.
const ROOTS_INTERVAL: Duration = Duration::from_secs(1);
/// The time within which a folder can be listed. A folder that takes longer is polled, too.
const RESPONSE_TIME: Duration = Duration::from_millis(250);
/// The same where all folders are listed.
const STARTUP_RESPONSE_TIME: Duration = Duration::from_secs(5);
/// How often a folder that grows is looked at again before it is left to the next notification.
const MAX_ROUNDS: usize = 16;

/// What was noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderChanges {
    /// Paths below the watched folders.
    pub paths: BTreeSet<PathBuf>,
    /// Anything may have changed: notifications were lost, or somebody asked.
    pub everything: bool,
}

/// Watches folders for as long as it lives.
#[derive(Debug)]
pub struct Watch {
    /// How it is to watch, and from when on nobody has: until it has begun.
    since: Option<(DetectionMethod, SystemTime)>,
    watcher: Option<RecommendedWatcher>,
    roots: Vec<PathBuf>,
    /// Which folders, and which versions of files, the roots were when they were last looked at.
    identities: Vec<Option<RootIdentity>>,
    folders: WatchedFolders,
    /// Directories of tenants or themes that cannot be watched, and are polled.
    polled: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// The directories of tenants or themes that are polled since the system's limit of watches was reached.
    beyond_limit: BTreeSet<PathBuf>,
    /// Polling stands in for notifications that were wanted.
    fell_back: bool,
    mailbox: Mailbox,
    /// When the roots were last looked at.
    looked: Instant,
    probe: PathProbe,
}

impl Watch {
    /// A watch over folders with everything below them, and single files. What changes from now on is told once it has [begun](Self::begin).
    #[must_use]
    pub fn new(method: DetectionMethod, roots: Vec<PathBuf>) -> Self {
        // Notifications tell absolute paths.
        let absolute = |root: PathBuf| std::path::absolute(&root).unwrap_or(root);
        let roots: Vec<PathBuf> = roots.into_iter().map(absolute).collect();
        Self {
            since: Some((method, SystemTime::now())),
            watcher: None,
            identities: identities(&roots),
            roots,
            folders: WatchedFolders::default(),
            polled: Arc::default(),
            beyond_limit: BTreeSet::new(),
            fell_back: false,
            mailbox: Mailbox::default(),
            looked: Instant::now(),
            probe: PathProbe::default(),
        }
    }

    /// Begins to watch, unless it has. Of ten thousand folders that takes a second.
    pub fn begin(&mut self) {
        let Some((method, since)) = self.since else {
            return;
        };
        match method {
            DetectionMethod::Off => {}
            DetectionMethod::Polling => self.poll_all(),
            DetectionMethod::Notifications => {
                self.listen();
                self.poll_some();
            }
        }
        if method != DetectionMethod::Off {
            self.catch_up(since);
        }
        self.since = None;
    }

    /// Tells what changed before anything was watched.
    fn catch_up(&self, since: SystemTime) {
        let roots = self.roots.iter();
        let roots = roots.filter(|root| poll::is_changed_itself(root, since));
        let below = poll::entries(&self.roots);
        let below: Vec<PathBuf> = below
            .into_par_iter()
            .filter(|path| poll::is_changed(path, since))
            .collect();
        for path in roots.cloned().chain(below) {
            // We have the mailbox.
            let _ = self.sender().send(Notice::Path(path));
        }
    }

    /// Returns whether changes, or those of some tenants, are noticed by polling, although notifications were wanted.
    #[must_use]
    pub fn is_polling(&self) -> bool {
        self.fell_back || !self.beyond_limit.is_empty()
    }

    /// Whether a root is another folder or file now: it was mounted, unmounted, moved or written, or a link to it was flipped. Notifications come from the folder that it was.
    fn looks_elsewhere(&mut self) -> bool {
        let roots = self.roots.iter().cloned();
        let mut looked = self.probe.each(roots, RESPONSE_TIME, identity);
        let known = self.roots.iter().zip(&self.identities);
        // A root that does not respond counts as it was.
        let identities: Vec<_> = known
            .map(|(root, known)| looked.remove(root).flatten().unwrap_or(*known))
            .collect();
        if identities == self.identities {
            return false;
        }
        self.identities = identities;
        if self.watcher.is_some() {
            self.listen();
        }
        true
    }

    fn fall_back(&mut self, reason: &dyn std::fmt::Display) {
        if self.fell_back {
            return;
        }
        warn!(%reason, "no notifications from the system: polling instead, which takes up to a second longer");
        self.watcher = None;
        self.fell_back = true;
        self.folders = WatchedFolders::default();
        self.beyond_limit.clear();
        self.lock_polled().clear();
        self.poll_all();
    }

    /// For others to say that something may have changed.
    #[must_use]
    pub fn sender(&self) -> NoticeSender {
        self.mailbox.sender()
    }

    /// Waits for changes, for `timeout` at most. Returns those of a few milliseconds, settled or not; `None` where there are none, or other work is [ready](Notice::Ready).
    pub fn next(&mut self, timeout: Duration) -> Option<FolderChanges> {
        self.mailbox.wait(timeout);
        if self.mailbox.has_changes() {
            // One copy changes many files. Other work does not wait.
            self.mailbox.wait_for_ready(COALESCE_TIME);
        }
        self.mailbox.take_ready();
        if self.looked.elapsed() >= ROOTS_INTERVAL {
            self.looked = Instant::now();
            if self.looks_elsewhere() {
                // What is pending is a part of everything.
                let pending = self.mailbox.take();
                self.changes(pending);
                return Some(FolderChanges::all());
            }
        }
        let has_changes = self.mailbox.has_changes();
        has_changes.then(|| {
            let pending = self.mailbox.take();
            self.changes(pending)
        })
    }

    /// Watches the folders of what has changed, as they are now. To be called before these are read, so that later changes are noticed.
    pub fn refresh(&mut self, changes: &FolderChanges) {
        self.watch_changed(changes);
    }

    /// Returns what changed, by the paths of tenants and themes.
    fn changes(&mut self, pending: PendingNotices) -> FolderChanges {
        let mut changes = FolderChanges {
            everything: pending.everything,
            ..FolderChanges::default()
        };
        for path in pending.paths {
            changes.paths.extend(self.folders.shown(path));
        }
        for folder in pending.folders {
            let is_above = |root: &PathBuf| *root != folder && root.starts_with(&folder);
            changes.everything |= self.roots.iter().any(is_above);
            changes.paths.extend(self.folders.shown_below(&folder));
        }
        changes
    }

    fn listen(&mut self) {
        self.folders = WatchedFolders::default();
        // Each folder is watched by itself: the library would end at the first that cannot be, and knows no limits.
        let config = Config::default().with_follow_symlinks(false);
        let listened = RecommendedWatcher::new(self.handler(), config).and_then(|mut watcher| {
            for root in self.roots.iter().filter(|root| root.is_dir()) {
                watcher.watch(root, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        match listened {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => self.fall_back(&error),
        }
        self.watch_changed(&FolderChanges::all());
    }

    /// Watches the folders of everything that changed, as they are now.
    fn watch_changed(&mut self, changes: &FolderChanges) {
        let directories = self.directories(changes);
        let was_within_limit = self.beyond_limit.is_empty();
        for directory in &directories {
            self.beyond_limit.remove(directory);
        }
        self.watch_directories(directories, changes.everything);
        if was_within_limit && !self.beyond_limit.is_empty() {
            warn!(
                polled = self.beyond_limit.len(),
                "the system's limit of watches is reached: the changes of some tenants are noticed up to a second later; raise `fs.inotify.max_user_watches`"
            );
        }
    }

    fn watch_directories(&mut self, mut directories: Vec<PathBuf>, everything: bool) {
        for round in 0..MAX_ROUNDS {
            if self.watcher.is_none() || directories.is_empty() {
                return;
            }
            let find = |directory: &Path| folders::find(directory);
            // At startup everything else is read at the same time.
            let limit = match everything {
                true => STARTUP_RESPONSE_TIME,
                false => RESPONSE_TIME,
            };
            let found = self.probe.each(directories, limit, find);
            directories = Vec::new();
            let mut touched = BTreeSet::new();
            for (directory, found) in found {
                let Some(found) = found else {
                    // The watches that it has stay: on a busy machine it may only be slow.
                    self.lock_polled().insert(directory);
                    continue;
                };
                match found {
                    Some(_) => self.lock_polled().remove(&directory),
                    None => self.lock_polled().insert(directory.clone()),
                };
                let mut own = BTreeSet::new();
                let found = found.unwrap_or_default();
                let is_changed = self.folders.replace(directory.clone(), found, &mut own);
                if is_changed {
                    // What came into a folder after it was listed and before it was watched was told by nobody.
                    directories.push(directory);
                }
                if is_changed || round == 0 {
                    touched.extend(own);
                }
            }
            let steps = self.folders.steps(touched);
            for gone in steps.gone {
                if let Some(watcher) = &mut self.watcher {
                    // What is gone cannot be watched any longer; that it failed changes nothing.
                    let _ = watcher.unwatch(&gone);
                }
            }
            for place in steps.wanted {
                let Some(watcher) = &mut self.watcher else {
                    return;
                };
                if let Err(error) = watcher.watch(&place.at, RecursiveMode::NonRecursive) {
                    self.unwatchable(&place, &error);
                }
            }
        }
    }

    /// The directories of tenants and themes in which something changed.
    fn directories(&self, changes: &FolderChanges) -> Vec<PathBuf> {
        let mut directories = BTreeSet::new();
        for root in &self.roots {
            let names = match changes.everything {
                true => None,
                false => changes.below(root),
            };
            if let Some(names) = names {
                let shown = names.iter().filter(|name| !name.starts_with('.'));
                directories.extend(shown.map(|name| root.join(name)));
                continue;
            }
            // A root that cannot be listed is told by who reads it.
            let listed = source::list(root).unwrap_or_default();
            directories.extend(listed.into_values());
            let known = self.folders.directories();
            directories.extend(known.filter(|known| known.starts_with(root)).cloned());
        }
        directories.into_iter().collect()
    }

    /// Takes that a folder cannot be watched: only its own tenant or theme is polled.
    fn unwatchable(&mut self, place: &WatchedPath, error: &notify::Error) {
        // It has gone since it was found, which is told by the folder above it.
        if matches!(error.kind, ErrorKind::PathNotFound) {
            return;
        }
        let directory = self.roots.iter().find_map(|root| {
            let inner = place.shown.strip_prefix(root).ok()?;
            Some(root.join(inner.components().next()?))
        });
        let Some(directory) = directory else {
            return;
        };
        let is_new = self.lock_polled().insert(directory.clone());
        if is_limit(error) {
            self.beyond_limit.insert(directory);
        } else if is_new {
            warn!(path = %place.at.display(), %error, "a folder cannot be watched: what it belongs to is polled");
        }
    }

    fn lock_polled(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.polled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_all(&self) {
        let (roots, probe) = (self.roots.clone(), PathProbe::default());
        let before = poll::below(&roots, &probe);
        // The thread ends with this watch.
        drop(poll::poll(self.sender(), poll::known(before), move || {
            poll::below(&roots, &probe)
        }));
    }

    /// Polls what cannot be watched.
    fn poll_some(&self) {
        let polled = Arc::clone(&self.polled);
        let probe = PathProbe::default();
        let look = move || {
            let polled = polled.lock().unwrap_or_else(PoisonError::into_inner);
            let directories = polled.clone();
            drop(polled);
            poll::stamps(directories, &probe)
        };
        // The thread ends with this watch.
        drop(poll::poll(self.sender(), poll::Stamps::new(), look));
    }

    fn handler(&self) -> impl Fn(notify::Result<Event>) + Send + 'static {
        let sender = self.sender();
        move |event| {
            // The watch drops this with itself.
            let _ = match event {
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => Ok(()),
                Ok(event) if event.need_rescan() => sender.send(Notice::Everything),
                Ok(event) => event
                    .paths
                    .into_iter()
                    .try_for_each(|path| sender.send(Notice::Path(path))),
                Err(_) => sender.send(Notice::Everything),
            };
        }
    }
}

impl FolderChanges {
    fn all() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// The names directly below `root` that changed; `None` when the root itself did.
    #[must_use]
    pub fn below(&self, root: &Path) -> Option<BTreeSet<String>> {
        let root = WatchedRoot::new(root);
        let within = self.paths.iter().filter_map(|path| root.inner(path));
        within
            .map(|inner| {
                let first = inner.components().next()?;
                Some(first.as_os_str().to_string_lossy().into_owned())
            })
            .collect()
    }

    /// Whether anything below none of `roots` changed: a place that a link leads to.
    #[must_use]
    pub fn elsewhere(&self, roots: &[&Path]) -> bool {
        let roots: Vec<WatchedRoot<'_>> = roots.iter().map(|root| WatchedRoot::new(root)).collect();
        let is_within = |path: &PathBuf| roots.iter().any(|root| root.inner(path).is_some());
        !self.paths.iter().all(is_within)
    }
}

/// A watched folder by the name it was given and by its own: notifications may use either.
struct WatchedRoot<'a> {
    given: &'a Path,
    resolved: Option<PathBuf>,
    absolute: Option<PathBuf>,
}

impl<'a> WatchedRoot<'a> {
    fn new(given: &'a Path) -> Self {
        Self {
            given,
            resolved: given.canonicalize().ok(),
            absolute: std::path::absolute(given).ok(),
        }
    }

    fn inner<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let names = [&self.resolved, &self.absolute].into_iter().flatten();
        std::iter::once(self.given)
            .chain(names.map(PathBuf::as_path))
            .find_map(|root| path.strip_prefix(root).ok())
    }
}

/// Whether the system has no more watches (`ENOSPC`) or descriptors (`EMFILE`) to give.
fn is_limit(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => {
            matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ) || error.raw_os_error() == Some(EMFILE)
        }
        _ => false,
    }
}

/// Too many open descriptors (POSIX, `errno.h`; the same on all that we know).
const EMFILE: i32 = 24;

/// What tells a folder from every other that may stand at its path: its device and its number there. A root that is a file is not watched by notifications, so that its time and size tell.
type RootIdentity = (Identity, Option<SystemTime>, u64);

fn identities(roots: &[PathBuf]) -> Vec<Option<RootIdentity>> {
    roots.iter().map(|root| identity(root)).collect()
}

fn identity(root: &Path) -> Option<RootIdentity> {
    let metadata = std::fs::metadata(root).ok()?;
    let file = Some(&metadata).filter(|metadata| metadata.is_file());
    Some((
        (metadata.dev(), metadata.ino()),
        file.and_then(|metadata| metadata.modified().ok()),
        file.map_or(0, |metadata| metadata.len()),
    ))
}

#[cfg(test)]
mod tests;
