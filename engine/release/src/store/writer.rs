//! The thread that changes the state on disk, so that no other thread waits for the disk.
//!
//! Blobs are written before the release that refers to them and removed after it. Every release thus has all its blobs, whenever the process ends.
//!
//! **Invariant:** holds the folder's lock while it runs, so a folder has at most one writer.

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

use super::blobs::{BlobId, BlobRefs, Blobs};
use super::disk::{self, readable};
use super::pages::{self, PlacedPages};
use super::releases::{OpenRelease, ReleaseInfo, Releases};
use super::tables::{Rows, TableMark, Tables};

/// A table to be written: its mark, and a function that produces its rows on the writing thread.
pub(super) type TableVersion = (Option<TableMark>, Box<dyn FnOnce() -> Rows + Send>);

/// The tables to be written or removed, each with its newest version. `None` means removal.
#[derive(Default)]
pub(super) struct PendingTables(Mutex<HashMap<String, Option<TableVersion>>>);

impl PendingTables {
    /// Replaces the queued version of a table. Returns whether none was queued before.
    pub(super) fn add(&self, name: String, make: Option<TableVersion>) -> bool {
        self.locked().insert(name, make).is_none()
    }

    fn remove(&self, name: &str) -> Option<Option<TableVersion>> {
        self.locked().remove(name)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Option<TableVersion>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PendingTables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.locked().keys()).finish()
    }
}

/// The tenants that exist, once they are set. Until then, no tenant counts as gone.
#[derive(Debug, Default)]
pub(super) struct KnownTenants(Mutex<Option<BTreeSet<String>>>);

impl KnownTenants {
    pub(super) fn set(&self, tenants: BTreeSet<String>) {
        *self.locked() = Some(tenants);
    }

    fn is_gone(&self, tenant: &str) -> bool {
        let tenants = self.locked();
        tenants
            .as_ref()
            .is_some_and(|tenants| !tenants.contains(tenant))
    }

    fn locked(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The minimum number of recorded releases between two collections. A quarter of all releases applies if larger, because the cost of a collection grows with their number.
const MIN_RECORDS_BETWEEN_COLLECTIONS: usize = 64;

/// Divides the budget into steps. Beyond the budget, a collection runs after each step of newly written bytes.
const COLLECTION_BUDGET_DIVISOR: u64 = 16;

/// The limit on queued jobs that nothing else limits: checks, pins, removals, collections.
pub(super) const MAX_WAITING_JOBS: usize = 256;

/// The number of queued jobs that count against the limit.
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

/// A release to be recorded.
#[derive(Debug, Clone)]
pub struct NewRelease {
    /// When the tenant began to serve this release. Fractions of a second are dropped.
    pub at: SystemTime,
    /// The files that changed.
    pub cause: Vec<String>,
    /// The number of pages of the tenant, each counted once regardless of its addresses.
    pub pages: usize,
    /// The hash of all inputs. Releases with the same key have the same responses.
    pub key: [u8; 32],
    /// The tenant's responses, by address.
    pub places: Vec<PlacedPages>,
}

/// A job for the writing thread. The first field is the name of the tenant or table.
pub(super) enum StoreJob {
    Record(String, NewRelease),
    Forget(String),
    /// Writes or removes a table, as its queued version says.
    Table(String),
    /// Pins a release, or unpins for `None`, and sends the result. `Ok(false)`: there is no such release.
    Pin(String, Option<u64>, Sender<io::Result<bool>>),
    /// Checks a blob that could not be read and removes it if damaged, so that it can be written again.
    Check(BlobId),
    Collect,
    /// Sends a message when all earlier jobs are done.
    Done(Sender<()>),
}

impl StoreJob {
    /// Returns whether the job counts against [`MAX_WAITING_JOBS`].
    ///
    /// Other jobs are limited elsewhere: callers of `record` check [`queued`](super::Store::queued), a table is queued once at a time, and a caller waits for its own [`Self::Done`].
    pub(super) const fn is_counted(&self) -> bool {
        match self {
            Self::Forget(_) | Self::Pin(..) | Self::Check(_) | Self::Collect => true,
            Self::Record(..) | Self::Table(_) | Self::Done(_) => false,
        }
    }

    /// Returns the name of the job in alerts and in the log.
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

/// The disk use of blobs and the files that refer to them. Each collection recounts it; writes in between are added.
#[derive(Debug, Default)]
pub(super) struct DiskUsage {
    pub(super) blobs: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl DiskUsage {
    fn add(&self, (blobs, bytes): (u64, u64)) {
        self.blobs.fetch_add(blobs, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }
}

/// The number of panics in jobs, and the jobs that panicked and have not succeeded since.
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

    fn record_panic(&self, job: String) {
        self.panics.fetch_add(1, Relaxed);
        self.locked().insert(job);
    }

    fn record_success(&self, job: &str) {
        self.locked().remove(job);
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of the writing thread.
pub(super) struct StoreWriter {
    pub(super) folder: PathBuf,
    pub(super) releases: Releases,
    pub(super) tables: Tables,
    pub(super) blobs: Blobs,
    pub(super) pending_tables: Arc<PendingTables>,
    pub(super) known_tenants: Arc<KnownTenants>,
    /// The largest number of releases per tenant.
    pub(super) max_releases: usize,
    /// The disk budget in bytes.
    pub(super) budget: u64,
    /// Whether the store is being dropped: the thread then only finishes the queued jobs.
    pub(super) is_closing: Arc<AtomicBool>,
    /// The number of queued releases.
    pub(super) queued: Arc<AtomicUsize>,
    /// The number of other queued jobs.
    pub(super) waiting_jobs: Arc<WaitingJobs>,
    /// The disk use.
    pub(super) usage: Arc<DiskUsage>,
    /// The jobs that panicked.
    pub(super) failures: Arc<Failures>,
    /// The lock file, held until the thread ends.
    pub(super) lock: File,
}

/// The state of the thread between two jobs.
#[derive(Default)]
struct WriterState {
    /// Whether the last job failed. The first failure in a row is logged.
    has_failed: bool,
    /// Whether the first collection has run.
    has_begun: bool,
    /// Recorded releases left until the next collection.
    until_collect: usize,
    /// The bytes on disk after the last collection.
    bytes_left: u64,
}

impl StoreWriter {
    /// Runs until the last sender is dropped. A job that panics does not stop the thread.
    pub(super) fn run(self, jobs: &Receiver<StoreJob>) {
        let mut progress = WriterState::default();
        for job in jobs {
            // Runs before the first job and not at startup, because startup reads the state and would wait.
            if !std::mem::replace(&mut progress.has_begun, true) {
                self.run_guarded("collect", &mut progress, Self::collect);
            }
            let job = match job {
                StoreJob::Done(done) => {
                    // The caller may have given up.
                    let _ = done.send(());
                    continue;
                }
                job => job,
            };
            let is_record = matches!(job, StoreJob::Record(..));
            if job.is_counted() {
                self.waiting_jobs.remove();
            }
            let name = job.name();
            self.run_guarded(&name, &mut progress, |writer, progress| {
                writer.run_job(job, progress)
            });
            if is_record {
                self.queued.fetch_sub(1, Relaxed);
                progress.until_collect = progress.until_collect.saturating_sub(1);
            }
            let is_due = is_record && progress.until_collect == 0 && !progress.has_failed;
            if is_due || self.is_over_budget(&progress) {
                self.run_guarded("collect", &mut progress, Self::collect);
            }
        }
        drop(self.lock);
    }

    /// Runs a job. A panic is counted, and raises an alert until the job succeeds.
    fn run_guarded(
        &self,
        name: &str,
        progress: &mut WriterState,
        job: impl FnOnce(&Self, &mut WriterState) -> io::Result<()>,
    ) {
        let done = catch_unwind(AssertUnwindSafe(|| job(self, &mut *progress)));
        let done = match done {
            Ok(done) => {
                self.failures.record_success(name);
                done
            }
            Err(_) => {
                error!(
                    job = name,
                    "job of the state writer panicked; job abandoned"
                );
                self.failures.record_panic(name.to_owned());
                Err(io::Error::other("the job panicked"))
            }
        };
        // Logged once: a full disk would fill the log, too.
        if let Err(error) = &done
            && !progress.has_failed
        {
            warn!(folder = %self.folder.display(), %error, "state cannot be written; further failures are not logged until a write succeeds");
        }
        progress.has_failed = done.is_err();
    }

    fn run_job(&self, job: StoreJob, progress: &mut WriterState) -> io::Result<()> {
        match job {
            StoreJob::Record(tenant, new) => self.record(&tenant, new),
            StoreJob::Table(name) => self.write_table(&name),
            StoreJob::Forget(tenant) => self.releases.forget(&tenant),
            StoreJob::Check(name) => self.blobs.check(&name),
            StoreJob::Collect => self.collect(progress),
            StoreJob::Pin(tenant, number, done) => {
                let pinned = self.pin(&tenant, number);
                let copy = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
                let result = pinned.as_ref().map(drop).map_err(copy);
                drop(done.send(pinned));
                result
            }
            // `run` has handled it.
            StoreJob::Done(_) => Ok(()),
        }
    }

    /// Returns whether the budget is exceeded and enough bytes are new for another collection to be worthwhile.
    fn is_over_budget(&self, progress: &WriterState) -> bool {
        let bytes = self.usage.bytes.load(Relaxed);
        let step = self.budget / COLLECTION_BUDGET_DIVISOR;
        bytes > self.budget && bytes > progress.bytes_left.saturating_add(step)
    }

    fn record(&self, tenant: &str, new: NewRelease) -> io::Result<()> {
        let newest = self.releases.numbers(tenant)?.first().copied();
        if let Some(newest) = newest
            && readable(self.releases.entry(tenant, newest))?.is_some_and(|it| it.key == new.key)
        {
            return Ok(());
        }
        let (pages, blobs) = pages::write(&new.places)?;
        self.usage.add(self.blobs.put(&blobs)?);
        let entry = ReleaseInfo {
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

    fn write_table(&self, name: &str) -> io::Result<()> {
        match self.pending_tables.remove(name) {
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
        for number in numbers.into_iter().skip(self.max_releases.max(1)) {
            if may_drop(pinned, number) {
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

    /// Drops releases until the rest fits the budget, and removes unreferenced blobs.
    fn collect(&self, progress: &mut WriterState) -> io::Result<()> {
        // Set first, so that a failed collection is not repeated after every job.
        progress.until_collect = MIN_RECORDS_BETWEEN_COLLECTIONS;
        progress.bytes_left = self.usage.bytes.load(Relaxed);
        let mut used = BlobUsage::default();
        let mut droppable = Vec::new();
        let mut files = 0;
        self.tables.clean()?;
        self.tables.size(|size, blobs| used.add(size, blobs))?;
        for tenant in self.releases.tenants()? {
            self.releases.clean(&tenant)?;
            let pinned = readable(self.releases.pinned(&tenant))?;
            let mut is_newest = !self.known_tenants.is_gone(&tenant);
            for number in self.releases.numbers(&tenant)? {
                if self.is_closing.load(Relaxed) {
                    return Ok(());
                }
                // The blobs of a damaged release may be removed. Any other read error aborts, because the blobs in use are then unknown.
                let Some(OpenRelease {
                    entry,
                    blobs,
                    pages,
                    ..
                }) = readable(self.releases.open(&tenant, number))?
                else {
                    continue;
                };
                used.add(pages.header.size, blobs);
                files += 1;
                if !is_newest && may_drop(pinned, number) {
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
                used.subtract(release.pages.header.size, release.blobs);
            }
        }
        self.blobs.sweep(|name| used.counts.contains_key(name))?;
        self.usage.blobs.store(used.counts.len() as u64, Relaxed);
        self.usage.bytes.store(used.bytes, Relaxed);
        progress.bytes_left = used.bytes;
        progress.until_collect = MIN_RECORDS_BETWEEN_COLLECTIONS.max(files / 4);
        Ok(())
    }
}

/// The blobs in use.
#[derive(Default)]
struct BlobUsage {
    /// The number of releases and tables that refer to each blob.
    counts: HashMap<BlobId, usize>,
    /// The total bytes of the blobs and of the files that refer to them.
    bytes: u64,
}

impl BlobUsage {
    fn add(&mut self, size: u64, blobs: BlobRefs) {
        self.bytes = self.bytes.saturating_add(size);
        for (name, length) in blobs {
            let count = self.counts.entry(name).or_default();
            *count += 1;
            if *count == 1 {
                self.bytes = self.bytes.saturating_add(length);
            }
        }
    }

    fn subtract(&mut self, size: u64, blobs: BlobRefs) {
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

/// Returns whether a release may be dropped: not if it is pinned, or if the pin is unreadable (`None`).
fn may_drop(pinned: Option<Option<u64>>, number: u64) -> bool {
    pinned.is_some_and(|pinned| pinned != Some(number))
}

/// Creates the folders and locks `folder`. Closing the file, or killing the process, releases the lock.
pub(super) fn lock(folder: &Path, inner: &[&Path]) -> io::Result<File> {
    for folder in std::iter::once(folder).chain(inner.iter().copied()) {
        disk::make_folder(folder)?;
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        // Fail on a FIFO of this name rather than block.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::other("another process writes to this folder"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}
