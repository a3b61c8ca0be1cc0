//! The thread that changes the state on disk, so that no other thread waits for the disk.
//!
//! If the disk refuses a write, tables and releases wait, and are tried again until they are written. A failure of a single job, such as a damaged folder of one tenant, delays no other job.
//!
//! Blobs are written before the release that refers to them and removed after it. Every release thus has all its blobs, whenever the process ends.
//!
//! **Invariant:** holds the folder's lock while it runs, so a folder has at most one writer.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tracing::{error, info, warn};

use super::access::{self, AccessError};
use super::blobs::{BlobId, BlobRefs, Blobs};
use super::disk::{self, readable};
use super::health::{Health, QueuedReleases};
use super::pages::{self, AddressPages};
use super::releases::{OpenRelease, ReleaseFolder, ReleaseInfo};
use super::tables::{Rows, TableFile, TableMark};
use crate::snapshot::Resource;
use crate::snapshot::resources::ResourceWalk;

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

    /// Returns a version that could not be written, unless a newer one is queued.
    fn restore(&self, name: &str, version: Option<TableVersion>) {
        self.locked().entry(name.to_owned()).or_insert(version);
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
pub(super) struct ExistingTenants(Mutex<Option<BTreeSet<String>>>);

impl ExistingTenants {
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

/// The name of a collection in alerts and in the log.
const COLLECTION: &str = "collect";

/// Divides the budget into steps. Beyond the budget, a collection runs after each step of newly written bytes.
const COLLECTION_BUDGET_DIVISOR: u64 = 16;

/// The time between two attempts while the disk refuses writes.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// The time without a write after which the writer proves that the disk still takes writes.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);

/// The content of the file that proves that the disk takes writes: one block.
const PROBE_CONTENT: [u8; 4096] = [0; 4096];

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
    pub addresses: Vec<AddressPages>,
}

impl NewRelease {
    /// Returns the bytes of all bodies. Bodies that several addresses share count once.
    pub(super) fn bytes(&self) -> u64 {
        let mut walk = ResourceWalk::default();
        let addresses = self.addresses.iter();
        let bodies = addresses.flat_map(|place| walk.visit(&place.pages.resources));
        let sizes = bodies.filter_map(|(_, resource)| match &**resource {
            Resource::Body(body) => Some(body.variants.identity()?.bytes.len()),
            Resource::Redirect(_) => None,
        });
        sizes.sum()
    }
}

/// A job for the writing thread. The first field is the name of the tenant or table.
pub(super) enum StoreJob {
    /// Records a release of this many bytes.
    Record(String, NewRelease, u64),
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

    /// Returns whether the job waits while the disk refuses writes. The caller of any other job knows that it failed, or repeats it.
    const fn can_wait(&self) -> bool {
        match self {
            Self::Record(..) | Self::Table(_) | Self::Forget(_) => true,
            Self::Pin(..) | Self::Check(_) | Self::Collect | Self::Done(_) => false,
        }
    }

    /// Returns the name of the job in alerts and in the log.
    fn name(&self) -> String {
        match self {
            Self::Record(tenant, ..) => format!("release of {tenant}"),
            Self::Forget(tenant) => format!("releases of {tenant}"),
            Self::Table(name) => format!("table {name}"),
            Self::Pin(tenant, ..) => format!("pin of {tenant}"),
            Self::Check(_) | Self::Done(_) => "check".to_owned(),
            Self::Collect => COLLECTION.to_owned(),
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

/// The state of the writing thread.
pub(super) struct StoreWriter {
    pub(super) folder: PathBuf,
    pub(super) releases: ReleaseFolder,
    pub(super) tables: TableFile,
    pub(super) blobs: Blobs,
    pub(super) pending_tables: Arc<PendingTables>,
    pub(super) existing_tenants: Arc<ExistingTenants>,
    /// The largest number of releases per tenant.
    pub(super) max_releases: usize,
    /// The disk budget in bytes.
    pub(super) budget: u64,
    /// Whether the store is being dropped: the thread then only finishes the queued jobs.
    pub(super) is_closing: Arc<AtomicBool>,
    /// The queued releases.
    pub(super) queued: Arc<QueuedReleases>,
    /// The number of other queued jobs.
    pub(super) waiting_jobs: Arc<WaitingJobs>,
    /// The disk use.
    pub(super) usage: Arc<DiskUsage>,
    /// The failures of jobs.
    pub(super) health: Arc<Health>,
    /// The lock file, held until the thread ends.
    pub(super) lock: File,
}

/// The state of the thread between two jobs.
struct WriterState {
    /// Whether the last job failed. The first failure in a row is logged.
    has_failed: bool,
    /// Whether the first collection has run.
    has_begun: bool,
    /// Recorded releases left until the next collection.
    until_collect: usize,
    /// The bytes on disk after the last collection.
    bytes_left: u64,
    /// The jobs that wait until the disk takes writes again, oldest first.
    postponed: Vec<StoreJob>,
    /// The version of a table that the last job could not write.
    unwritten: Option<(String, Option<TableVersion>)>,
    /// When the disk is tried next.
    attempt_due: Instant,
}

/// The result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobResult {
    Done,
    /// The job failed for a reason of its own.
    Failed,
    /// The disk takes no writes.
    Refused,
}

impl StoreWriter {
    /// Runs until the last sender is dropped. A job that panics does not stop the thread.
    pub(super) fn run(self, jobs: &Receiver<StoreJob>) {
        let mut progress = WriterState {
            has_failed: false,
            has_begun: false,
            until_collect: 0,
            bytes_left: 0,
            postponed: Vec::new(),
            unwritten: None,
            attempt_due: Instant::now() + PROBE_INTERVAL,
        };
        loop {
            let left = progress
                .attempt_due
                .saturating_duration_since(Instant::now());
            match jobs.recv_timeout(left) {
                Ok(job) => self.handle(job, &mut progress),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if progress.attempt_due <= Instant::now() {
                self.try_again(&mut progress);
            }
        }
        if self.health.has_problem() {
            self.try_again(&mut progress);
        }
        drop(self.lock);
    }

    fn handle(&self, job: StoreJob, progress: &mut WriterState) {
        // Runs before the first job and not at startup, because startup reads the state and would wait.
        if !std::mem::replace(&mut progress.has_begun, true) {
            self.run_guarded(COLLECTION, progress, Self::collect);
        }
        if let StoreJob::Done(done) = job {
            // The caller may have given up.
            let _ = done.send(());
            return;
        }
        if job.is_counted() {
            self.waiting_jobs.remove();
        }
        // Jobs keep their order: a later release of a tenant must not be recorded before an earlier one.
        if job.can_wait() && !progress.postponed.is_empty() {
            progress.postponed.push(job);
            return;
        }
        let postponed = self.attempt(job, progress);
        progress.postponed.extend(postponed);
        if self.is_over_budget(progress) {
            self.run_guarded(COLLECTION, progress, Self::collect);
        }
    }

    /// Runs a job, and returns the job if it waits until the disk takes writes again.
    fn attempt(&self, job: StoreJob, progress: &mut WriterState) -> Option<StoreJob> {
        let name = job.name();
        let result = self.run_guarded(&name, progress, |writer, progress| {
            writer.run_job(&job, progress)
        });
        let unwritten = progress.unwritten.take();
        if result == JobResult::Refused && job.can_wait() {
            if let Some((table, version)) = unwritten {
                self.pending_tables.restore(&table, version);
            }
            return Some(job);
        }
        if let StoreJob::Pin(..) = job {
            // The operator has the error, and no later job repeats the pin.
            self.health.record_success(&name);
        }
        if let StoreJob::Record(_, _, bytes) = job {
            self.queued.remove(bytes);
            progress.until_collect = progress.until_collect.saturating_sub(1);
            if progress.until_collect == 0 && !progress.has_failed {
                self.run_guarded(COLLECTION, progress, Self::collect);
            }
        }
        None
    }

    /// Runs the jobs that wait, until the disk refuses one. Without such jobs, only proves that the disk takes writes.
    fn try_again(&self, progress: &mut WriterState) {
        progress.attempt_due = Instant::now() + PROBE_INTERVAL;
        if let Err(error) = self.probe() {
            self.refuse(error, progress);
            return;
        }
        let mut jobs = std::mem::take(&mut progress.postponed).into_iter();
        for job in jobs.by_ref() {
            let postponed = self.attempt(job, progress);
            progress.postponed.extend(postponed);
            if !progress.postponed.is_empty() {
                break;
            }
        }
        progress.postponed.extend(jobs);
        let is_refused = self.health.is_failing(COLLECTION)
            && self.run_guarded(COLLECTION, progress, Self::collect) == JobResult::Refused;
        let is_accepted = progress.postponed.is_empty() && !is_refused;
        if is_accepted && self.health.set_problem(None) {
            progress.has_failed = false;
            info!(folder = %self.folder.display(), "state can be written again");
        }
    }

    /// Proves that the disk takes writes, and records that the folder is in use.
    fn probe(&self) -> io::Result<()> {
        disk::make_folder(&self.folder)?;
        disk::probe(&self.folder, &PROBE_CONTENT)?;
        let _ = access::mark_used(&self.folder);
        Ok(())
    }

    /// Notes that the disk takes no writes.
    fn refuse(&self, error: io::Error, progress: &mut WriterState) {
        progress.attempt_due = Instant::now() + RETRY_INTERVAL;
        self.log(&error, progress);
        let reason = AccessError::of(&self.folder, error);
        self.health.set_problem(Some(reason.to_string()));
    }

    /// Logs the first failure in a row: a full disk would fill the log, too.
    fn log(&self, error: &io::Error, progress: &mut WriterState) {
        if !std::mem::replace(&mut progress.has_failed, true) {
            warn!(folder = %self.folder.display(), %error, "state cannot be written; further failures are not logged until a write succeeds");
        }
    }

    /// Runs a job. A failure is counted. If it concerns this job only, it raises an alert until the job succeeds.
    fn run_guarded(
        &self,
        name: &str,
        progress: &mut WriterState,
        job: impl FnOnce(&Self, &mut WriterState) -> io::Result<()>,
    ) -> JobResult {
        let error = match catch_unwind(AssertUnwindSafe(|| job(self, &mut *progress))) {
            Ok(Ok(())) => {
                self.health.record_success(name);
                progress.has_failed = false;
                return JobResult::Done;
            }
            Ok(Err(error)) => error,
            Err(_) => {
                error!(
                    job = name,
                    "job of the state writer panicked; job abandoned"
                );
                self.health.record_panic(name.to_owned());
                self.log(&io::Error::other("the job panicked"), progress);
                return JobResult::Failed;
            }
        };
        let refusal = match disk::is_full(&error) {
            true => Err(io::Error::new(error.kind(), error.to_string())),
            false => self.probe(),
        };
        match refusal {
            Err(refusal) => {
                self.health.record_failure(None);
                self.refuse(refusal, progress);
                JobResult::Refused
            }
            Ok(()) => {
                self.health.record_failure(Some(name.to_owned()));
                self.log(&error, progress);
                JobResult::Failed
            }
        }
    }

    fn run_job(&self, job: &StoreJob, progress: &mut WriterState) -> io::Result<()> {
        match job {
            StoreJob::Record(tenant, new, _) => self.record(tenant, new),
            StoreJob::Table(name) => self.write_table(name, progress),
            StoreJob::Forget(tenant) => self.releases.forget(tenant),
            StoreJob::Check(name) => self.blobs.check(name),
            StoreJob::Collect => self.collect(progress),
            StoreJob::Pin(tenant, number, done) => {
                let pinned = self.pin(tenant, *number);
                let copy = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
                let result = pinned.as_ref().map(drop).map_err(copy);
                drop(done.send(pinned));
                result
            }
            // `handle` has answered it.
            StoreJob::Done(_) => Ok(()),
        }
    }

    /// Returns whether the budget is exceeded and enough bytes are new for another collection to be worthwhile.
    fn is_over_budget(&self, progress: &WriterState) -> bool {
        let bytes = self.usage.bytes.load(Relaxed);
        let step = self.budget / COLLECTION_BUDGET_DIVISOR;
        bytes > self.budget && bytes > progress.bytes_left.saturating_add(step)
    }

    fn record(&self, tenant: &str, new: &NewRelease) -> io::Result<()> {
        let newest = self.releases.numbers(tenant)?.first().copied();
        if let Some(newest) = newest
            && readable(self.releases.entry(tenant, newest))?.is_some_and(|it| it.key == new.key)
        {
            return Ok(());
        }
        let (pages, blobs) = pages::write(&new.addresses)?;
        self.usage.add(self.blobs.put(&blobs)?);
        let entry = ReleaseInfo {
            number: newest.unwrap_or(0) + 1,
            at: new.at,
            cause: new.cause.clone(),
            pages: new.pages,
            key: new.key,
        };
        self.releases.write(tenant, &entry, &blobs, &pages)?;
        self.usage.add((0, pages.len() as u64));
        self.trim(tenant)
    }

    fn write_table(&self, name: &str, progress: &mut WriterState) -> io::Result<()> {
        match self.pending_tables.remove(name) {
            Some(Some((mark, make))) => {
                let rows = make();
                let written = self.tables.write(name, mark.as_ref(), &rows, &self.blobs);
                if written.is_err() {
                    let version: TableVersion = (mark, Box::new(move || rows));
                    progress.unwritten = Some((name.to_owned(), Some(version)));
                }
                self.usage.add(written?);
                Ok(())
            }
            Some(None) => {
                let removed = self.tables.remove(name);
                if removed.is_err() {
                    progress.unwritten = Some((name.to_owned(), None));
                }
                removed
            }
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
            let mut is_newest = !self.existing_tenants.is_gone(&tenant);
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
