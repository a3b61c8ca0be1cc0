//! Notices changes below folders, and collects them for a few milliseconds.
//!
//! There are two methods. Notifications of the system are fast, but do not cover network file systems and have a limited number of watches. Polling covers everything else.
//! Neither method says *what* changed: a notification names a path, and the reader of the folder compares contents.
//! Both methods visit the folders that are read, within the same limits: no hidden folder, no folder twice, and nothing outside a tenant or theme.
//! A tenant or theme that cannot be watched is polled, and all other tenants and themes keep their notifications.
//!
//! A watch runs on its own thread, since it lists folders: a file system that does not respond delays only the detection of changes.
//!
//! **Invariant:** reads no content. A watch knows paths and times, and no tenants.

mod folders;
mod mailbox;
mod notifications;
mod open_files;
mod poll;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use notify::{Config, ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use rayon::prelude::*;
use tracing::warn;

use self::folders::{DirectoryListing, FolderDifference, WatchedFolders, WatchedPath};
use self::mailbox::{Mailbox, PendingNotices};
pub use self::mailbox::{Notice, NoticeSender, WatchDropped};
use self::notifications::{is_limit, notify_of_changes};
pub(crate) use self::open_files::OpenFiles;
pub use self::poll::POLL_INTERVAL;
use self::probe::PathProbe;
use content::report::guard::inject;
use content::source::{self, FolderIdentity};

/// The method of noticing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetectionMethod {
    /// Notifications of the system, or polling if notifications are not available.
    Notifications,
    /// Comparing the metadata of every file once per [`POLL_INTERVAL`], for network file systems.
    Polling,
    /// No detection: only a signal reloads.
    Off,
}

/// The time for which changes are collected before they are passed on.
const COALESCE_TIME: Duration = Duration::from_millis(10);
/// The interval at which the roots are checked for other folders or files at their paths.
const ROOTS_INTERVAL: Duration = Duration::from_secs(1);
/// The limit on the time for listing a folder. A folder that takes longer is polled, too.
const RESPONSE_TIME: Duration = Duration::from_millis(250);
/// The limit on the time for listing a folder while all folders are listed.
const STARTUP_RESPONSE_TIME: Duration = Duration::from_secs(5);
/// The number of directories that are listed before their watches are set, while all folders are listed: a limit on the memory for listings.
const DIRECTORIES_AT_ONCE: usize = 1024;
/// The limit on consecutive listings of a growing folder. The next notification lists the folder again.
const MAX_LISTINGS: usize = 16;

/// The changes that a watch has noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderChanges {
    /// The changed paths below the watched folders.
    pub paths: BTreeSet<PathBuf>,
    /// Whether anything may have changed: notifications were lost, or a complete reload was requested.
    pub affects_all: bool,
}

/// The status of a watch, for other threads. Clones share the status.
#[derive(Debug, Clone)]
pub(crate) struct WatchStatus(Arc<(AtomicBool, Mutex<Instant>)>);

impl WatchStatus {
    fn new() -> Self {
        Self(Arc::new((
            AtomicBool::new(false),
            Mutex::new(Instant::now()),
        )))
    }

    /// Returns whether the changes of all or some tenants are noticed by polling, although notifications were requested.
    pub(crate) fn is_polling(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Returns the time since the watch last made progress. A watch without changes makes progress once a second.
    pub(crate) fn silence(&self) -> Duration {
        self.lock_beat().elapsed()
    }

    fn set_polling(&self, is_polling: bool) {
        self.0.0.store(is_polling, Ordering::Relaxed);
    }

    fn beat(&self) {
        *self.lock_beat() = Instant::now();
    }

    fn lock_beat(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch over folders, which ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    /// The method, and the start of the time without detection; `None` once the watch has begun.
    since: Option<(DetectionMethod, SystemTime)>,
    watcher: Option<RecommendedWatcher>,
    roots: Vec<PathBuf>,
    roots_check: RootsCheck,
    folders: WatchedFolders,
    /// The directories of tenants or themes that cannot be watched, and are polled.
    polled: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// The directories of tenants or themes that are polled because the system's limit of watches was reached.
    beyond_limit: BTreeSet<PathBuf>,
    /// Whether polling replaces all notifications, because they are not available.
    has_fallen_back: bool,
    mailbox: Mailbox,
    probe: PathProbe,
    open_files: OpenFiles,
    status: WatchStatus,
}

impl Watch {
    /// Creates a watch over files, and over folders with everything below them. Changes from now on are reported once the watch has [begun](Self::begin).
    #[must_use]
    pub fn new(method: DetectionMethod, roots: Vec<PathBuf>) -> Self {
        // Notifications have absolute paths.
        let absolute = |root: PathBuf| std::path::absolute(&root).unwrap_or(root);
        let roots: Vec<PathBuf> = roots.into_iter().map(absolute).collect();
        Self {
            since: Some((method, SystemTime::now())),
            watcher: None,
            roots_check: RootsCheck {
                identities: identities(&roots),
                at: Instant::now(),
            },
            roots,
            folders: WatchedFolders::default(),
            polled: Arc::default(),
            beyond_limit: BTreeSet::new(),
            has_fallen_back: false,
            mailbox: Mailbox::default(),
            probe: PathProbe::default(),
            open_files: OpenFiles::default(),
            status: WatchStatus::new(),
        }
    }

    /// Begins to watch, unless the watch has begun. The call takes a second with 10,000 folders.
    pub fn begin(&mut self) {
        let Some((method, since)) = self.since else {
            return;
        };
        inject("watch", "begin");
        match method {
            DetectionMethod::Off => {}
            DetectionMethod::Polling => {
                self.poll_all();
                self.catch_up(since);
            }
            DetectionMethod::Notifications => {
                self.open_notifications();
                match self.watcher {
                    Some(_) => self.watch_since(since),
                    None => self.catch_up(since),
                }
                self.poll_unwatched();
            }
        }
        self.since = None;
    }

    /// Reports the changes since `since`, when nothing was watched.
    fn catch_up(&self, since: SystemTime) {
        self.report_changed_roots(since);
        let below = poll::entries(&self.roots);
        let below: Vec<PathBuf> = below
            .into_par_iter()
            .filter(|path| poll::is_changed(path, since))
            .collect();
        self.report_changed(below);
    }

    /// Reports the roots that have changed since `since`: entries were added or removed, or a file was written.
    fn report_changed_roots(&self, since: SystemTime) {
        let roots = self.roots.iter();
        let roots = roots.filter(|root| poll::is_changed_itself(root, since));
        self.report_changed(roots.cloned());
    }

    fn report_changed(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let sender = self.sender();
        for path in paths {
            // The mailbox exists as long as `self`.
            let _ = sender.send(Notice::Path(path));
        }
    }

    /// Watches the folders of all tenants and themes, and reports the changes since `since`, when nothing was watched.
    ///
    /// Each directory is listed once, before its watches are set. Its entries are compared with `since` afterwards: an entry that the listing lacks has changed its folder.
    fn watch_since(&mut self, since: SystemTime) {
        self.report_changed_roots(since);
        let directories = self.directories(&FolderChanges::all());
        for directories in directories.chunks(DIRECTORIES_AT_ONCE) {
            let updated =
                self.update_directories(directories.to_vec(), STARTUP_RESPONSE_TIME, false);
            // A directory without a listing is polled, and the first poll reports it.
            let listed: Vec<PathBuf> = updated.keys().cloned().collect();
            let has_changed = move |directory: &Path| {
                let listing = updated.get(directory);
                listing.is_some_and(|(listing, _)| listing.has_changed(directory, since))
            };
            let compared = self.probe.each(listed, STARTUP_RESPONSE_TIME, has_changed);
            // A directory that does not respond any longer may have changed.
            let changed = compared.into_iter().filter(|(_, is)| is.unwrap_or(true));
            self.report_changed(changed.map(|(directory, _)| directory));
        }
        self.report_limit(true);
    }

    /// Returns whether a root has changed: the path has another folder now (mounted, moved or linked), or a file was written.
    ///
    /// In that case all folders are watched again, because notifications still come from the former folder.
    fn update_identities(&mut self) -> bool {
        let roots = self.roots.iter().cloned();
        let mut probed = self.probe.each(roots, RESPONSE_TIME, identity);
        let known = self.roots.iter().zip(&self.roots_check.identities);
        // A root that does not respond counts as unchanged.
        let identities: Vec<_> = known
            .map(|(root, known)| probed.remove(root).flatten().unwrap_or(*known))
            .collect();
        if identities == self.roots_check.identities {
            return false;
        }
        self.roots_check.identities = identities;
        if self.watcher.is_some() {
            self.listen();
        }
        true
    }

    /// Polls all folders from now on, because notifications are not available.
    fn fall_back(&mut self, reason: &dyn std::fmt::Display) {
        if self.has_fallen_back {
            return;
        }
        warn!(%reason, "no notifications from the system; polling instead; changes are noticed up to a second later");
        self.watcher = None;
        self.open_files.clear();
        self.has_fallen_back = true;
        self.folders = WatchedFolders::default();
        self.beyond_limit.clear();
        self.lock_polled().clear();
        self.status.set_polling(true);
        self.poll_all();
    }

    /// Returns a sender of notices to the watch.
    #[must_use]
    pub fn sender(&self) -> NoticeSender {
        self.mailbox.sender()
    }

    /// Returns the status of the watch.
    pub(crate) fn status(&self) -> WatchStatus {
        self.status.clone()
    }

    /// Returns the files that programs are writing to.
    pub(crate) fn open_files(&self) -> OpenFiles {
        self.open_files.clone()
    }

    /// Waits for changes for at most `timeout`, and returns the changes of a few milliseconds, settled or not.
    pub fn next(&mut self, timeout: Duration) -> Option<FolderChanges> {
        self.status.beat();
        let has_changes = self.mailbox.wait(timeout);
        if has_changes {
            // Copying a folder changes many files.
            std::thread::sleep(COALESCE_TIME);
        }
        if self.roots_check.at.elapsed() >= ROOTS_INTERVAL {
            self.roots_check.at = Instant::now();
            if self.update_identities() {
                // `FolderChanges::all` includes the pending changes.
                let pending = self.mailbox.drain();
                self.changes(pending);
                return Some(FolderChanges::all());
            }
        }
        has_changes.then(|| {
            let pending = self.mailbox.drain();
            self.changes(pending)
        })
    }

    /// Updates the watches of changed folders.
    ///
    /// Returns the tenants and themes with new folders as changed: a file that was written before the watch of its folder was set caused no notification.
    pub fn refresh(&mut self, changes: &FolderChanges) -> FolderChanges {
        self.watch_changed(changes)
    }

    /// Returns the changes by the paths that tenants and themes have for them.
    fn changes(&mut self, pending: PendingNotices) -> FolderChanges {
        let mut changes = FolderChanges {
            affects_all: pending.affects_all,
            ..FolderChanges::default()
        };
        for path in pending.paths {
            changes.paths.extend(self.folders.shown(path));
        }
        for folder in pending.folders {
            let is_above = |root: &PathBuf| *root != folder && root.starts_with(&folder);
            changes.affects_all |= self.roots.iter().any(is_above);
            changes.paths.extend(self.folders.shown_below(&folder));
        }
        changes
    }

    /// Watches all folders by notifications, or falls back to polling.
    fn listen(&mut self) {
        self.open_notifications();
        let _ = self.watch_changed(&FolderChanges::all());
    }

    /// Opens the notifications of the system and watches the roots, or falls back to polling.
    fn open_notifications(&mut self) {
        self.folders = WatchedFolders::default();
        // Each folder has its own watch: a recursive watch of `notify` stops at the first folder that cannot be watched, and has no limits.
        let config = Config::default().with_follow_symlinks(false);
        self.open_files.clear();
        let handler = notify_of_changes(self.sender(), self.open_files.clone());
        let listened = RecommendedWatcher::new(handler, config).and_then(|mut watcher| {
            for root in self.roots.iter().filter(|root| root.is_dir()) {
                watcher.watch(root, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        match listened {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => self.fall_back(&error),
        }
    }

    /// Updates the watches of changed folders, and logs if the limit of watches is reached. Returns the directories with new folders.
    fn watch_changed(&mut self, changes: &FolderChanges) -> FolderChanges {
        let directories = self.directories(changes);
        let was_within_limit = self.beyond_limit.is_empty();
        for directory in &directories {
            self.beyond_limit.remove(directory);
        }
        let paths = self.watch_directories(directories, changes.affects_all);
        self.report_limit(was_within_limit);
        FolderChanges {
            paths,
            affects_all: false,
        }
    }

    /// Updates the status, and logs if the limit of watches is reached.
    fn report_limit(&self, was_within_limit: bool) {
        if was_within_limit && !self.beyond_limit.is_empty() {
            warn!(
                polled = self.beyond_limit.len(),
                "limit of watches reached; polling some tenants, so changes are noticed up to a second later; raise `fs.inotify.max_user_watches`"
            );
        }
        let is_polling = self.has_fallen_back || !self.beyond_limit.is_empty();
        self.status.set_polling(is_polling);
    }

    /// Sets and removes the watches of directories. Returns the directories with new folders.
    fn watch_directories(
        &mut self,
        mut directories: Vec<PathBuf>,
        affects_all: bool,
    ) -> BTreeSet<PathBuf> {
        // At startup, all folders are read at the same time.
        let limit = match affects_all {
            true => STARTUP_RESPONSE_TIME,
            false => RESPONSE_TIME,
        };
        let mut grown = BTreeSet::new();
        for round in 0..MAX_LISTINGS {
            if self.watcher.is_none() || directories.is_empty() {
                break;
            }
            let updated = self.update_directories(directories, limit, round > 0);
            let updated = updated.into_iter();
            let changed = updated.filter_map(|(directory, (_, difference))| {
                (difference != FolderDifference::Same).then_some((directory, difference))
            });
            // An entry that was created between the listing and the watch caused no notification, so the folder is listed again.
            directories = Vec::new();
            for (directory, difference) in changed {
                if difference == FolderDifference::Added {
                    grown.insert(directory.clone());
                }
                directories.push(directory);
            }
        }
        grown
    }

    /// Lists directories, and sets and removes their watches. Returns each listing with its difference to the last listing.
    ///
    /// `is_repeated`: the directories were just listed, so that only changed directories need watches.
    fn update_directories(
        &mut self,
        directories: Vec<PathBuf>,
        limit: Duration,
        is_repeated: bool,
    ) -> BTreeMap<PathBuf, (DirectoryListing, FolderDifference)> {
        self.status.beat();
        let list = |directory: &Path| folders::list(directory);
        let found = self.probe.each(directories, limit, list);
        let mut updated = BTreeMap::new();
        let mut touched = BTreeSet::new();
        for (directory, found) in found {
            let Some(found) = found else {
                // The directory keeps its watches: it may only be slow on a busy machine.
                self.lock_polled().insert(directory);
                continue;
            };
            match found {
                Some(_) => self.lock_polled().remove(&directory),
                None => self.lock_polled().insert(directory.clone()),
            };
            let listing = found.unwrap_or_default();
            let mut own = BTreeSet::new();
            let folders = listing.folders.clone();
            let difference = self.folders.replace(directory.clone(), folders, &mut own);
            if difference != FolderDifference::Same || !is_repeated {
                touched.extend(own);
            }
            updated.insert(directory, (listing, difference));
        }
        self.set_watches(touched);
        updated
    }

    /// Sets and removes the watches of the touched folders.
    fn set_watches(&mut self, touched: BTreeSet<FolderIdentity>) {
        let steps = self.folders.steps(touched);
        for gone in steps.gone {
            if let Some(watcher) = &mut self.watcher {
                // The watch of a removed folder may have ended, so a failure is expected.
                let _ = watcher.unwatch(&gone);
            }
        }
        for place in steps.wanted {
            let Some(watcher) = &mut self.watcher else {
                break;
            };
            self.status.beat();
            if let Err(error) = watcher.watch(&place.at, RecursiveMode::NonRecursive) {
                self.poll_unwatchable(&place, &error);
            }
        }
    }

    /// Returns the directories of the changed tenants and themes.
    fn directories(&self, changes: &FolderChanges) -> Vec<PathBuf> {
        let mut directories = BTreeSet::new();
        for root in &self.roots {
            let names = match changes.affects_all {
                true => None,
                false => changes.below(root),
            };
            if let Some(names) = names {
                let shown = names.iter().filter(|name| !name.starts_with('.'));
                directories.extend(shown.map(|name| root.join(name)));
                continue;
            }
            // A survey reports a root that cannot be listed.
            let listed = source::list(root).unwrap_or_default();
            directories.extend(listed.into_values());
            let known = self.folders.directories();
            directories.extend(known.filter(|known| known.starts_with(root)).cloned());
        }
        directories.into_iter().collect()
    }

    /// Polls the tenant or theme of a folder that cannot be watched.
    fn poll_unwatchable(&mut self, place: &WatchedPath, error: &notify::Error) {
        // The folder was removed after the listing, which the watch of its parent reports.
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
            self.status.set_polling(true);
        } else if is_new {
            warn!(path = %place.at.display(), %error, "folder cannot be watched; polling its tenant or theme");
        }
    }

    fn lock_polled(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.polled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread that polls all folders.
    fn poll_all(&self) {
        let (roots, probe) = (self.roots.clone(), PathProbe::default());
        let before = poll::below(&roots, &probe);
        // The thread ends with this watch.
        drop(poll::poll(
            self.sender(),
            poll::responding(before),
            move || poll::below(&roots, &probe),
        ));
    }

    /// Starts a thread that polls the directories that cannot be watched.
    fn poll_unwatched(&self) {
        let polled = Arc::clone(&self.polled);
        let probe = PathProbe::default();
        let read_stamps = move || {
            let polled = polled.lock().unwrap_or_else(PoisonError::into_inner);
            let directories = polled.clone();
            drop(polled);
            poll::stamps(directories, &probe)
        };
        // The thread ends with this watch.
        drop(poll::poll(
            self.sender(),
            poll::DirectoryStamps::new(),
            read_stamps,
        ));
    }
}

impl FolderChanges {
    fn all() -> Self {
        Self {
            affects_all: true,
            ..Self::default()
        }
    }

    /// Returns the changed names directly below `root`, or `None` if the root itself changed.
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

    /// Returns whether a path outside all `roots` changed, such as the target of a link.
    #[must_use]
    pub fn has_outside_paths(&self, roots: &[&Path]) -> bool {
        let roots: Vec<WatchedRoot<'_>> = roots.iter().map(|root| WatchedRoot::new(root)).collect();
        let is_within = |path: &PathBuf| roots.iter().any(|root| root.inner(path).is_some());
        !self.paths.iter().all(is_within)
    }
}

/// A watched folder by its given, its resolved and its absolute path. Notifications may use each of these paths.
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

/// The last check of the roots.
#[derive(Debug)]
struct RootsCheck {
    identities: Vec<Option<RootIdentity>>,
    at: Instant,
}

/// The identity of a root: device and inode. Notifications do not cover a root that is a file, so its identity includes modification time and size.
type RootIdentity = (FolderIdentity, Option<SystemTime>, u64);

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
