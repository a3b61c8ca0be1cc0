//! The one thread that changes what is on disk, so that nobody else waits for it.
//!
//! Blobs come before the release that names them, and go after it: whenever the process ends, each release has all its blobs.
//!
//! **Invariant:** holds the lock of the folder for as long as it runs; no two of it run in one folder.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::fs::OFlags;
use tracing::{error, warn};

use super::blobs::{Blobs, Name, Named};
use super::disk::{self, readable};
use super::pages::{self, PlacedPages};
use super::releases::{Entry, OpenRelease, Releases};
use super::tables::{Mark, Rows, Tables};

/// A table that is to be written: its mark, and what makes its rows on the writing thread.
pub(super) type Version = (Option<Mark>, Box<dyn FnOnce() -> Rows + Send>);

/// The newest version of each table that is to be written, or that it is to be removed.
#[derive(Default)]
pub(super) struct Waiting(Mutex<HashMap<String, Option<Version>>>);

impl Waiting {
    /// Adds a version in the place of an older one. Whether no other waits.
    pub(super) fn add(&self, name: String, make: Option<Version>) -> bool {
        self.locked().insert(name, make).is_none()
    }

    fn take(&self, name: &str) -> Option<Option<Version>> {
        self.locked().remove(name)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Option<Version>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.locked().keys()).finish()
    }
}

/// The tenants that there are, once somebody has said it.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<BTreeSet<String>>>);

impl Known {
    pub(super) fn set(&self, tenants: BTreeSet<String>) {
        *self.locked() = Some(tenants);
    }

    fn is_gone(&self, tenant: &str) -> bool {
        let known = self.locked();
        known.as_ref().is_some_and(|known| !known.contains(tenant))
    }

    fn locked(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After so many records the blobs are looked through, or after a quarter of all releases, if that is more: looking takes as long as there are releases.
const COLLECT_AFTER: usize = 64;

/// Blobs are looked through, too, when there are more bytes than the budget has and this part of the budget is new.
const COLLECTION_STEP: u64 = 16;

/// The limit on jobs of which nothing else limits the number: checks, pins, removals, collections.
pub(super) const MAX_WAITING_JOBS: usize = 256;

/// How many such jobs wait.
#[derive(Debug, Default)]
pub(super) struct WaitingJobs(AtomicUsize);

impl WaitingJobs {
    /// Adds a job. Returns whether there was room for it.
    pub(super) fn add(&self) -> bool {
        let add = |waiting| (waiting < MAX_WAITING_JOBS).then_some(waiting + 1);
        self.0.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    fn remove(&self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A release that is to be recorded.
#[derive(Debug, Clone)]
pub struct New {
    /// Since when the tenant answers so. Parts of a second are dropped.
    pub at: SystemTime,
    /// Which files changed.
    pub cause: Vec<String>,
    /// How many pages the tenant has, each counted once however many places it has.
    pub pages: usize,
    /// The hash of all inputs: releases with the same key answer the same.
    pub key: [u8; 32],
    /// What the tenant answers, by place.
    pub places: Vec<PlacedPages>,
}

/// Something to do, for the tenant of that name.
pub(super) enum Job {
    Record(String, New),
    Forget(String),
    /// The table of that name is to be written, or removed: what waits says which.
    Table(String),
    /// Pins a release, or none; says how that went. `Ok(false)`: there is no such release.
    Pin(String, Option<u64>, Sender<io::Result<bool>>),
    /// Looks at a blob that could not be read, so that it can be written again.
    Check(Name),
    Collect,
    /// Says when everything before it is done.
    Done(Sender<()>),
}

impl Job {
    /// Returns whether the job counts against [`MAX_WAITING_JOBS`].
    ///
    /// The other jobs have limits of their own: a recorder looks at [`queued`](super::Store::queued), a table is queued once however often it changes, and a caller that waits for all jobs has one.
    pub(super) const fn is_counted(&self) -> bool {
        match self {
            Self::Forget(_) | Self::Pin(..) | Self::Check(_) | Self::Collect => true,
            Self::Record(..) | Self::Table(_) | Self::Done(_) => false,
        }
    }

    /// Returns what names the job in alarms and in the log.
    fn name(&self) -> String {
        match self {
            Self::Record(tenant, _) => format!("release of {tenant}"),
            Self::Forget(tenant) => format!("releases of {tenant}"),
            Self::Table(name) => format!("table {name}"),
            Self::Pin(tenant, ..) => format!("pin of {tenant}"),
            Self::Check(_) | Self::Done(_) => "check".to_owned(),
            Self::Collect => "collect".to_owned(),
        }
    }
}

/// What is on the disk, as far as it counts: counted anew whenever it is collected, and added to in between.
#[derive(Debug, Default)]
pub(super) struct Usage {
    pub(super) blobs: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Usage {
    fn add(&self, (blobs, bytes): (u64, u64)) {
        self.blobs.fetch_add(blobs, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }
}

/// The jobs that panicked: how often that happened, and which of them did not succeed since.
#[derive(Debug, Default)]
pub(super) struct Failures {
    panics: AtomicU64,
    failing: Mutex<BTreeSet<String>>,
}

impl Failures {
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    pub(super) fn first(&self) -> Option<String> {
        self.locked().first().cloned()
    }

    fn panicked(&self, job: String) {
        self.panics.fetch_add(1, Relaxed);
        self.locked().insert(job);
    }

    fn succeeded(&self, job: &str) {
        self.locked().remove(job);
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread works with.
pub(super) struct Writer {
    pub(super) folder: PathBuf,
    pub(super) releases: Releases,
    pub(super) tables: Tables,
    pub(super) blobs: Blobs,
    pub(super) waiting: Arc<Waiting>,
    pub(super) known: Arc<Known>,
    /// How many releases of a tenant are kept.
    pub(super) keep: usize,
    /// How many bytes of blobs are kept.
    pub(super) budget: u64,
    /// Whether nobody waits for anything but what is handed over.
    pub(super) is_closing: Arc<AtomicBool>,
    /// How many releases are to be recorded.
    pub(super) queued: Arc<AtomicUsize>,
    /// How many other jobs are to be done.
    pub(super) waiting_jobs: Arc<WaitingJobs>,
    /// What is on the disk.
    pub(super) usage: Arc<Usage>,
    /// The jobs that panicked.
    pub(super) failures: Arc<Failures>,
    /// Held until the thread ends.
    pub(super) lock: File,
}

/// How the thread is getting on.
#[derive(Default)]
struct Progress {
    /// Whether the last job failed, and that was said.
    has_failed: bool,
    /// Whether anything was collected since the thread began.
    has_begun: bool,
    /// So many records until the next collection.
    until_collect: usize,
    /// The bytes that the last collection left.
    bytes_left: u64,
}

impl Writer {
    /// Works until the last sender is gone. A job that panics is given up alone.
    pub(super) fn run(self, jobs: &Receiver<Job>) {
        let mut progress = Progress::default();
        for job in jobs {
            // Not before: whoever starts reads, and waits for the disk.
            if !std::mem::replace(&mut progress.has_begun, true) {
                self.guarded("collect", &mut progress, Self::collect);
            }
            let job = match job {
                Job::Done(done) => {
                    // Who asked may be gone.
                    let _ = done.send(());
                    continue;
                }
                job => job,
            };
            let is_record = matches!(job, Job::Record(..));
            if job.is_counted() {
                self.waiting_jobs.remove();
            }
            let name = job.name();
            self.guarded(&name, &mut progress, |writer, progress| {
                writer.run_job(job, progress)
            });
            if is_record {
                self.queued.fetch_sub(1, Relaxed);
                progress.until_collect = progress.until_collect.saturating_sub(1);
            }
            let is_due = is_record && progress.until_collect == 0 && !progress.has_failed;
            if is_due || self.is_over_budget(&progress) {
                self.guarded("collect", &mut progress, Self::collect);
            }
        }
        drop(self.lock);
    }

    /// Runs a job. A panic in it is counted, and is an alarm until the job succeeds.
    fn guarded(
        &self,
        name: &str,
        progress: &mut Progress,
        job: impl FnOnce(&Self, &mut Progress) -> io::Result<()>,
    ) {
        let done = catch_unwind(AssertUnwindSafe(|| job(self, &mut *progress)));
        let done = match done {
            Ok(done) => {
                self.failures.succeeded(name);
                done
            }
            Err(_) => {
                error!(
                    job = name,
                    "writing the state panicked; the job is given up"
                );
                self.failures.panicked(name.to_owned());
                Err(io::Error::other("the program itself failed"))
            }
        };
        // Said once: a full disk would fill the log, too.
        if let Err(error) = &done
            && !progress.has_failed
        {
            warn!(folder = %self.folder.display(), %error, "what was to be kept for the next start was not; nothing more is said until this works again");
        }
        progress.has_failed = done.is_err();
    }

    fn run_job(&self, job: Job, progress: &mut Progress) -> io::Result<()> {
        match job {
            Job::Record(tenant, new) => self.record(&tenant, new),
            Job::Table(name) => self.table(&name),
            Job::Forget(tenant) => self.releases.forget(&tenant),
            Job::Check(name) => self.blobs.check(&name),
            Job::Collect => self.collect(progress),
            Job::Pin(tenant, number, done) => {
                let pinned = self.pin(&tenant, number);
                let copy = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
                let result = pinned.as_ref().map(drop).map_err(copy);
                drop(done.send(pinned));
                result
            }
            // Nothing is left to do: everything before it is done.
            Job::Done(_) => Ok(()),
        }
    }

    /// Whether there are more bytes than the budget has, and enough of them are new for another collection to be worth it.
    fn is_over_budget(&self, progress: &Progress) -> bool {
        let bytes = self.usage.bytes.load(Relaxed);
        let step = self.budget / COLLECTION_STEP;
        bytes > self.budget && bytes > progress.bytes_left.saturating_add(step)
    }

    fn record(&self, tenant: &str, new: New) -> io::Result<()> {
        let newest = self.releases.numbers(tenant)?.first().copied();
        if let Some(newest) = newest
            && readable(self.releases.entry(tenant, newest))?.is_some_and(|it| it.key == new.key)
        {
            return Ok(());
        }
        let (pages, blobs) = pages::write(&new.places)?;
        self.usage.add(self.blobs.put(&blobs)?);
        let entry = Entry {
            number: newest.unwrap_or(0) + 1,
            at: new.at,
            cause: new.cause,
            pages: new.pages,
            key: new.key,
        };
        self.releases.write(tenant, &entry, &blobs, &pages)?;
        self.usage.add((0, pages.len() as u64));
        self.trim(tenant)
    }

    fn table(&self, name: &str) -> io::Result<()> {
        match self.waiting.take(name) {
            Some(Some((mark, make))) => {
                let new = self
                    .tables
                    .write(name, mark.as_ref(), &make(), &self.blobs)?;
                self.usage.add(new);
                Ok(())
            }
            Some(None) => self.tables.remove(name),
            None => Ok(()),
        }
    }

    /// Drops the oldest releases of a tenant.
    fn trim(&self, tenant: &str) -> io::Result<()> {
        let numbers = self.releases.numbers(tenant)?;
        let pinned = readable(self.releases.pinned(tenant))?;
        for number in numbers.into_iter().skip(self.keep.max(1)) {
            if may_go(pinned, number) {
                self.releases.remove(tenant, number)?;
            }
        }
        Ok(())
    }

    fn pin(&self, tenant: &str, number: Option<u64>) -> io::Result<bool> {
        if let Some(number) = number
            && readable(self.releases.entry(tenant, number))?.is_none()
        {
            return Ok(false);
        }
        self.releases.pin(tenant, number)?;
        Ok(true)
    }

    /// Drops releases until the others and the tables fit the budget, with the blobs that they name, and removes the blobs that nothing names.
    fn collect(&self, progress: &mut Progress) -> io::Result<()> {
        // Set first: what fails is not tried again with each job.
        progress.until_collect = COLLECT_AFTER;
        progress.bytes_left = self.usage.bytes.load(Relaxed);
        let mut used = Used::default();
        let mut droppable = Vec::new();
        let mut files = 0;
        self.tables.clean()?;
        self.tables.size(|size, blobs| used.add(size, blobs))?;
        for tenant in self.releases.tenants()? {
            self.releases.clean(&tenant)?;
            let pinned = readable(self.releases.pinned(&tenant))?;
            let mut is_newest = !self.known.is_gone(&tenant);
            for number in self.releases.numbers(&tenant)? {
                if self.is_closing.load(Relaxed) {
                    return Ok(());
                }
                // What is damaged has no use for its blobs. When nobody can tell, nothing may be removed: that is an error.
                let Some(OpenRelease {
                    entry,
                    blobs,
                    pages,
                    ..
                }) = readable(self.releases.open(&tenant, number))?
                else {
                    continue;
                };
                used.add(pages.head.size, blobs);
                files += 1;
                if !is_newest && may_go(pinned, number) {
                    droppable.push((entry.at, tenant.clone(), number));
                }
                is_newest = false;
            }
        }
        droppable.sort_unstable();
        for (_, tenant, number) in droppable {
            if used.bytes <= self.budget {
                break;
            }
            if let Some(release) = readable(self.releases.open(&tenant, number))? {
                self.releases.remove(&tenant, number)?;
                used.subtract(release.pages.head.size, release.blobs);
            }
        }
        self.blobs.sweep(|name| used.counts.contains_key(name))?;
        self.usage.blobs.store(used.counts.len() as u64, Relaxed);
        self.usage.bytes.store(used.bytes, Relaxed);
        progress.bytes_left = used.bytes;
        progress.until_collect = COLLECT_AFTER.max(files / 4);
        Ok(())
    }
}

/// The blobs that have a use.
#[derive(Default)]
struct Used {
    /// How many releases and tables name each.
    counts: HashMap<Name, usize>,
    /// All of them together, and the files that name them.
    bytes: u64,
}

impl Used {
    fn add(&mut self, size: u64, blobs: Named) {
        self.bytes = self.bytes.saturating_add(size);
        for (name, length) in blobs {
            let count = self.counts.entry(name).or_default();
            *count += 1;
            if *count == 1 {
                self.bytes = self.bytes.saturating_add(length);
            }
        }
    }

    fn subtract(&mut self, size: u64, blobs: Named) {
        self.bytes = self.bytes.saturating_sub(size);
        for (name, length) in blobs {
            match self.counts.get_mut(&name) {
                Some(count) if *count > 1 => *count -= 1,
                Some(_) => {
                    self.counts.remove(&name);
                    self.bytes = self.bytes.saturating_sub(length);
                }
                None => {}
            }
        }
    }
}

/// Whether a release is not the pinned one. When nobody can tell (`None`), it may be that.
fn may_go(pinned: Option<Option<u64>>, number: u64) -> bool {
    pinned.is_some_and(|pinned| pinned != Some(number))
}

/// Makes the folders, and takes the lock of the outer one. It is given back when the file is closed, also by a process that is killed.
pub(super) fn lock(folder: &Path, inner: &[&Path]) -> io::Result<File> {
    for folder in std::iter::once(folder).chain(inner.iter().copied()) {
        disk::make_folder(folder)?;
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        // A FIFO of this name is an error, and is not waited for.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another process writes here")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
