//! The state on disk that outlives the process: blobs by hash, and the releases and tables that refer to them.
//!
//! ```text
//! lock                          lock file, held by the only process that writes
//! used                          modification time: when a process last used this folder
//! deployment                    a text of the caller that says whose state this is
//! blobs/<2 digits>/<62 digits>  bytes, named by their SHA-256
//! releases/<tenant>/<number>    a release: metadata, header fields, resources by path, bodies; large bodies as blob references
//! releases/<tenant>/pinned      the number of the release that must not be dropped
//! tables/records                tables: values by key; large values as blob references
//! ```
//!
//! All of the state may be lost: it only saves work or preserves earlier releases. A failure therefore never stops serving. Unreadable data counts as absent. If the disk refuses a write, data waits in memory, and [`Store::problem`] has the reason until the disk takes writes again.
//!
//! - Bytes shared by several releases, addresses, tables or tenants are written once.
//! - Every read verifies a hash: it returns the bytes as written, or nothing. A damaged blob is written again when it is next needed.
//! - A file is complete or absent, even if the process ends during a write.
//! - A separate thread writes, so callers never wait for the disk. Of several queued versions of a table, only the last is written.
//! - One process writes. Other processes that open the folder only read, until they [claim](Store::claim) it after the writer has ended.
//! - Each deployment has its own folder, so several deployments can share a directory.
//!
//! **Invariant:** does not know what the bytes mean or why a release was made, and does not decide what is served.

mod access;
mod blobs;
mod disk;
mod format;
mod frame;
mod health;
mod pages;
mod portable;
mod releases;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tracing::{info, warn};

pub use self::access::AccessError;
use self::access::USED_FILE;
use self::blobs::{BlobId, Blobs};
use self::health::{Health, QueuedReleases};
pub use self::pages::AddressPages;
pub use self::portable::{pack_pages, unpack_pages};
pub use self::releases::ReleaseInfo;
use self::releases::{ReleaseFolder, is_tenant};
use self::tables::TableFile;
pub use self::tables::{Rows, TableMark, rows_in_memory};
pub use self::writer::NewRelease;
use self::writer::{
    DiskUsage, ExistingTenants, MAX_WAITING_JOBS, PendingTables, StoreJob, StoreWriter,
    TableVersion, WaitingJobs,
};

/// How long the state of a deployment is retained after its last startup.
const DEPLOYMENT_RETENTION: Duration = Duration::from_secs(60 * 60 * 24 * 60);
/// The file that says whose state a folder is.
const LABEL_FILE: &str = "deployment";

/// The number of a pinned release whose pin is damaged. Releases count from 1.
pub const UNKNOWN_RELEASE: u64 = 0;

/// Why a release cannot be pinned or unpinned.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process writes to the folder, or the folder is not writable.
    #[error(
        "the releases cannot be changed: another process writes the state, or the folder is not writable: after a takeover, try again in a few seconds; otherwise read the reason in `/readyz`"
    )]
    ReadOnly,
    /// There is no release with this number.
    #[error("{tenant} has no release {number}")]
    Unknown {
        /// The tenant's name.
        tenant: String,
        /// The requested number.
        number: u64,
    },
    /// The text is not a valid tenant name.
    #[error("`{0}` is not a valid tenant name")]
    InvalidTenant(String),
    /// Too many changes are waiting for the disk.
    #[error("{limit} changes of the state are queued for the disk; try again later", limit = MAX_WAITING_JOBS)]
    Busy,
    /// The pin cannot be written to disk.
    #[error("the pin cannot be written: {0}")]
    Disk(#[from] io::Error),
}

/// A release with all its bytes. Bodies have no content encoding: encodings are not stored.
#[derive(Debug, Clone)]
pub struct Release {
    /// The metadata of the release.
    pub entry: ReleaseInfo,
    /// The tenant's responses, by address. Equal bodies share their bytes.
    pub addresses: Vec<AddressPages>,
}

/// Limits on the stored releases.
#[derive(Debug, Clone, Copy)]
pub struct RetentionLimits {
    /// The largest number of releases per tenant, at least one. A pinned release may be kept in addition.
    pub releases: usize,
    /// The disk budget in bytes.
    ///
    /// Tables and each tenant's newest and pinned releases stay even beyond the budget. Exception: the newest releases of tenants that [are gone](Store::set_tenants) may be dropped.
    pub bytes: u64,
}

/// The folder of a deployment's state within a directory.
#[derive(Debug, Clone)]
pub struct StateFolder {
    /// The name of the folder.
    pub name: String,
    /// The text that says whose state the folder has, as [`Store::of_deployment`] wrote it.
    pub label: Option<String>,
    /// The text that versions until 0.2 wrote: the folders of tenants and themes.
    pub former_label: String,
    /// When a process last used the folder.
    pub used: SystemTime,
}

/// The stored state of one deployment.
///
/// Dropping the store waits until all queued data is on disk, and releases the lock.
#[derive(Debug)]
pub struct Store {
    releases: ReleaseFolder,
    tables: TableFile,
    blobs: Blobs,
    folder: PathBuf,
    /// The text that says whose state this is; empty without a deployment.
    label: String,
    limits: RetentionLimits,
    pending_tables: Arc<PendingTables>,
    existing_tenants: Arc<ExistingTenants>,
    queued: Arc<QueuedReleases>,
    waiting_jobs: Arc<WaitingJobs>,
    usage: Arc<DiskUsage>,
    health: Arc<Health>,
    /// The writing thread; set if this process is the one that writes.
    writer: OnceLock<WriterHandle>,
}

/// A handle to the writing thread.
#[derive(Debug)]
struct WriterHandle {
    jobs: Sender<StoreJob>,
    thread: JoinHandle<()>,
    is_closing: Arc<AtomicBool>,
}

impl Store {
    /// Opens the state in the folder `name` of `directory`, which need not exist, and writes `label` to it.
    ///
    /// Removes the state of deployments that were not in use for 60 days.
    #[must_use]
    pub fn of_deployment(
        directory: &Path,
        name: &str,
        label: String,
        limits: RetentionLimits,
    ) -> Self {
        let mut store = Self::reader(directory.join(name));
        store.limits = limits;
        store.label = label;
        store.claim_or_log();
        // `claim_or_log` has logged a folder that is not writable.
        let _ = access::mark_used(&store.folder);
        forget(directory, &store.folder);
        store
    }

    /// Returns the folders of all deployments in `directory`.
    #[must_use]
    pub fn deployments(directory: &Path) -> Vec<StateFolder> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let folder = |entry: fs::DirEntry| {
            let path = entry.path();
            // The directory may hold other data: only a folder with this file is a deployment's.
            let used = fs::metadata(path.join(USED_FILE)).and_then(|used| used.modified());
            let text = |file| {
                let bytes = disk::read(&path.join(file)).ok()?;
                String::from_utf8(bytes).ok()
            };
            Some(StateFolder {
                name: entry.file_name().into_string().ok()?,
                label: text(LABEL_FILE),
                former_label: text(USED_FILE).unwrap_or_default(),
                used: used.ok()?,
            })
        };
        entries.filter_map(folder).collect()
    }

    /// Opens the state in `folder`, which need not exist.
    #[must_use]
    pub fn open(folder: PathBuf, limits: RetentionLimits) -> Self {
        let mut store = Self::reader(folder);
        store.limits = limits;
        store.claim_or_log();
        store
    }

    fn claim_or_log(&self) {
        let Err(error) = self.claim() else {
            return;
        };
        match error {
            // An older process that is about to end, as in a rolling restart.
            AccessError::InUse(_) => {
                info!(folder = %self.folder.display(), "another process writes the state; reading the state until that process ends");
            }
            _ => {
                warn!(folder = %self.folder.display(), %error, "state folder cannot be written; nothing is persisted for the next startup")
            }
        }
    }

    /// Opens the state in `folder`, which need not exist, for reading. Creates and changes nothing.
    #[must_use]
    pub fn reader(folder: PathBuf) -> Self {
        Self {
            releases: ReleaseFolder {
                folder: folder.join("releases"),
            },
            tables: TableFile::new(folder.join("tables")),
            blobs: Blobs::new(folder.join("blobs")),
            folder,
            label: String::new(),
            limits: RetentionLimits {
                releases: 0,
                bytes: 0,
            },
            pending_tables: Arc::default(),
            existing_tenants: Arc::default(),
            queued: Arc::default(),
            waiting_jobs: Arc::default(),
            usage: Arc::default(),
            health: Arc::default(),
            writer: OnceLock::new(),
        }
    }

    /// Returns the folder that holds the state.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Becomes the process that writes, if no other process is.
    ///
    /// # Errors
    ///
    /// If another process writes, or the folder is not writable.
    pub fn claim(&self) -> Result<(), AccessError> {
        if self.is_writable() {
            return Ok(());
        }
        let blobs = self.folder.join("blobs");
        let inner = [&*self.releases.folder, &*self.tables.folder, &*blobs];
        let claimed = access::claim(&self.folder, &inner);
        let lock = claimed.inspect_err(|error| {
            self.health.set_problem(Some(error.to_string()));
        })?;
        if self.health.set_problem(None) {
            info!(folder = %self.folder.display(), "state can be written now");
        }
        self.write_label();
        // Another process may have written since the index was read.
        self.tables.forget();
        let is_closing = Arc::new(AtomicBool::new(false));
        let writer = StoreWriter {
            folder: self.folder.clone(),
            releases: self.releases.clone(),
            tables: self.tables.clone(),
            blobs: self.blobs.clone(),
            pending_tables: self.pending_tables.clone(),
            existing_tenants: self.existing_tenants.clone(),
            max_releases: self.limits.releases,
            budget: self.limits.bytes,
            is_closing: is_closing.clone(),
            queued: self.queued.clone(),
            waiting_jobs: self.waiting_jobs.clone(),
            usage: self.usage.clone(),
            health: self.health.clone(),
            lock,
        };
        // Unbounded: `StoreJob::is_counted` explains how jobs are limited.
        let (jobs, received) = channel();
        let thread = thread::spawn(move || writer.run(&received));
        // If two threads get here at once, only one holds the lock.
        let _ = self.writer.set(WriterHandle {
            jobs,
            thread,
            is_closing,
        });
        Ok(())
    }

    /// Writes the text that says whose state this is, unless the folder has it.
    fn write_label(&self) {
        let file = self.folder.join(LABEL_FILE);
        let is_known = || disk::read(&file).is_ok_and(|known| known == self.label.as_bytes());
        if self.label.is_empty() || is_known() {
            return;
        }
        let written = disk::write(&file, |file| file.write_all(self.label.as_bytes()));
        if let Err(error) = written {
            warn!(file = %file.display(), %error, "the state has no label; it is found by the folder of tenants only");
        }
    }

    /// Returns the number of releases queued but not written yet.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued.count()
    }

    /// Returns the bytes of the releases queued but not written yet.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.queued.bytes()
    }

    /// Returns the reason that nothing can be written now: of the last claim, or of the disk.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.health.problem()
    }

    /// Returns whether there is a reason that nothing can be written now.
    #[must_use]
    pub fn has_problem(&self) -> bool {
        self.health.has_problem()
    }

    /// Returns how many jobs of the writing thread have failed, including panics.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.health.failures()
    }

    /// Returns the number of blobs and the total bytes on disk, as far as this process knows. Both are zero while another process writes.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        let DiskUsage { blobs, bytes } = &*self.usage;
        (blobs.load(Relaxed), bytes.load(Relaxed))
    }

    /// Returns the disk budget in bytes.
    #[must_use]
    pub const fn max_bytes(&self) -> u64 {
        self.limits.bytes
    }

    /// Returns how many jobs of the writing thread have panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.health.panics()
    }

    /// Returns the name of a job that failed for a reason of its own and has not succeeded since.
    #[must_use]
    pub fn failing_job(&self) -> Option<String> {
        self.health.failing_job()
    }

    /// Returns whether this process can record and pin releases. Otherwise another process writes, or the folder is not writable.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writer.get().is_some()
    }

    /// Returns the rows of a table if the table and all blobs that it refers to are intact.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Rows> {
        self.read_table(name, None)
    }

    /// Returns the rows of a table if it was written with `mark`. For any other mark, reads only the table's metadata.
    #[must_use]
    pub fn marked_table(&self, name: &str, mark: &TableMark) -> Option<Rows> {
        self.read_table(name, Some(mark))
    }

    fn read_table(&self, name: &str, mark: Option<&TableMark>) -> Option<Rows> {
        let failed = |blob| self.check(blob);
        let read = self.tables.read(name, mark, &self.blobs, failed);
        let read = disk::present(read).unwrap_or_else(|error| {
            warn!(table = name, %error, "table of the state cannot be read; table ignored");
            None
        });
        read.flatten()
    }

    /// Returns whether a table exists, intact or not.
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        self.tables.has(name).unwrap_or_default()
    }

    /// Returns the mark of a table. Reads only the table's metadata, so damaged rows go unnoticed.
    #[must_use]
    pub fn mark(&self, name: &str) -> Option<TableMark> {
        self.tables.mark(name).ok().flatten()
    }

    /// Returns the names of all tables that begin with `prefix`, without the prefix, sorted.
    #[must_use]
    pub fn tables(&self, prefix: &str) -> Vec<String> {
        let names = self.tables.names().unwrap_or_default();
        let names = names.iter();
        names
            .filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned()))
            .collect()
    }

    /// Queues a table for writing.
    ///
    /// The writing thread calls `make`, unless a newer version is queued first. Callers can later compare `mark` without reading the rows.
    pub fn write_table(
        &self,
        name: String,
        mark: Option<TableMark>,
        make: impl FnOnce() -> Rows + Send + 'static,
    ) {
        self.change_table(name, Some((mark, Box::new(make))));
    }

    /// Queues the removal of a table.
    pub fn remove_table(&self, name: String) {
        self.change_table(name, None);
    }

    fn change_table(&self, name: String, make: Option<TableVersion>) {
        if self.is_writable() && self.pending_tables.add(name.clone(), make) {
            let _ = self.send(StoreJob::Table(name));
        }
    }

    /// Queues a release for recording with the tenant's next number, and drops the tenant's oldest releases.
    ///
    /// Writes nothing if the tenant's newest release has the same key.
    pub fn record(&self, tenant: &str, release: NewRelease) {
        if has_name(tenant) && self.is_writable() {
            let bytes = release.bytes();
            self.queued.add(bytes);
            let _ = self.send(StoreJob::Record(tenant.to_owned(), release, bytes));
        }
    }

    /// Returns the metadata of a tenant's releases, newest first. Does not verify their blobs; [`Self::load`] does.
    #[must_use]
    pub fn list(&self, tenant: &str) -> Vec<ReleaseInfo> {
        if !has_name(tenant) {
            return Vec::new();
        }
        let numbers = self.releases.numbers(tenant).unwrap_or_else(|error| {
            warn!(tenant, %error, "releases cannot be listed; the tenant counts as having none");
            Vec::new()
        });
        let entry = |number| self.or_logged(tenant, number, self.releases.entry(tenant, number));
        numbers.into_iter().filter_map(entry).collect()
    }

    /// Returns the number of a tenant's newest release.
    #[must_use]
    pub fn newest(&self, tenant: &str) -> Option<u64> {
        let numbers = || self.releases.numbers(tenant).ok();
        is_tenant(tenant).then(numbers)??.first().copied()
    }

    /// Loads a release with all its bytes. Returns `None` if the release is absent, or any part of it is missing or damaged.
    #[must_use]
    pub fn load(&self, tenant: &str, number: u64) -> Option<Release> {
        if !has_name(tenant) {
            return None;
        }
        let read = self.releases.open(tenant, number);
        let release = self.or_logged(tenant, number, read)?;
        let mut blobs = Vec::new();
        for (name, _) in release.blobs {
            match self.blobs.get(&name) {
                Ok(bytes) => blobs.push(bytes),
                Err(error) => {
                    warn!(tenant, number, blob = %name, %error, "blob cannot be read; release cannot be loaded");
                    self.check(name);
                    return None;
                }
            }
        }
        let pages = self.or_logged(tenant, number, release.pages.rest())?;
        let addresses = pages::read(&pages, &blobs, release.layout).ok_or_else(disk::damaged);
        let addresses = self.or_logged(tenant, number, addresses)?;
        Some(Release {
            entry: release.entry,
            addresses,
        })
    }

    /// Pins a release until the release is unpinned or another release is pinned. The pin is on disk when the call returns.
    ///
    /// # Errors
    ///
    /// If there is no such release, or the pin cannot be written.
    pub fn pin(&self, tenant: &str, number: u64) -> Result<(), StoreError> {
        self.set_pin(tenant, Some(number))
    }

    /// Unpins a tenant's pinned release, if there is one. The change is on disk when the call returns.
    ///
    /// # Errors
    ///
    /// If the change cannot be written.
    pub fn unpin(&self, tenant: &str) -> Result<(), StoreError> {
        self.set_pin(tenant, None)
    }

    /// Returns the number of a tenant's pinned release; [`UNKNOWN_RELEASE`] if the pin cannot be read.
    #[must_use]
    pub fn pinned(&self, tenant: &str) -> Option<u64> {
        match has_name(tenant) {
            true => self.pin_of(tenant),
            false => None,
        }
    }

    /// Returns the numbers of all pinned releases, by tenant; [`UNKNOWN_RELEASE`] for a pin that cannot be read.
    #[must_use]
    pub fn pins(&self) -> BTreeMap<String, u64> {
        let tenants = self.releases.tenants().unwrap_or_else(|error| {
            warn!(%error, "tenants with releases cannot be listed; no release counts as pinned");
            self.health.record_failure(Some("list of pins".to_owned()));
            Vec::new()
        });
        let pin = |tenant: String| self.pin_of(&tenant).map(|number| (tenant, number));
        tenants.into_iter().filter_map(pin).collect()
    }

    fn pin_of(&self, tenant: &str) -> Option<u64> {
        self.releases.pinned(tenant).unwrap_or_else(|error| {
            warn!(tenant, %error, "pin cannot be read; its release is unknown");
            Some(UNKNOWN_RELEASE)
        })
    }

    /// Sets the tenants that exist.
    ///
    /// Releases of other tenants stay while there is room, in case the tenants return. Without room, even their newest releases may be dropped.
    pub fn set_tenants(&self, tenants: impl IntoIterator<Item = String>) {
        self.existing_tenants.set(tenants.into_iter().collect());
    }

    /// Queues the removal of all releases of a tenant. Returns `false` if too many jobs wait for the disk.
    pub fn forget(&self, tenant: &str) -> bool {
        has_name(tenant) && self.send(StoreJob::Forget(tenant.to_owned()))
    }

    /// Queues a collection: drops releases beyond the budget and removes unreferenced blobs.
    ///
    /// A collection also runs before the first job and after a number of recorded releases.
    pub fn collect(&self) {
        // If the job is refused, the writing thread collects later by itself.
        let _ = self.send(StoreJob::Collect);
    }

    /// Waits until all data queued before the call is on disk.
    pub fn finish(&self) {
        let (done, is_done) = channel();
        let _ = self.send(StoreJob::Done(done));
        // An error means that there is no writing thread, and nothing to wait for.
        let _ = is_done.recv();
    }

    fn set_pin(&self, tenant: &str, number: Option<u64>) -> Result<(), StoreError> {
        if !is_tenant(tenant) {
            return Err(StoreError::InvalidTenant(tenant.to_owned()));
        }
        let (done, is_done) = channel();
        if !self.send(StoreJob::Pin(tenant.to_owned(), number, done)) {
            return Err(StoreError::Busy);
        }
        match (is_done.recv(), number) {
            (Err(_), _) if self.is_writable() => {
                Err(io::Error::other("the state writer panicked").into())
            }
            (Err(_), _) => Err(StoreError::ReadOnly),
            (Ok(Ok(false)), Some(number)) => Err(StoreError::Unknown {
                tenant: tenant.to_owned(),
                number,
            }),
            (Ok(done), _) => Ok(done.map(drop)?),
        }
    }

    /// Queues a check of a blob that could not be read.
    fn check(&self, blob: BlobId) {
        // If the job is refused, the next reader finds the damage again.
        let _ = self.send(StoreJob::Check(blob));
    }

    /// Queues a job. Returns whether there was room.
    ///
    /// Without a writing thread the job is dropped silently: `open` has logged the reason.
    fn send(&self, job: StoreJob) -> bool {
        let Some(writer) = self.writer.get() else {
            return true;
        };
        if job.is_counted() && !self.waiting_jobs.add() {
            return false;
        }
        // The thread ends only when the store is dropped.
        let _ = writer.jobs.send(job);
        true
    }

    /// Returns the data read from a release. Logs a failure, unless the file is absent.
    fn or_logged<T>(&self, tenant: &str, number: u64, read: io::Result<T>) -> Option<T> {
        disk::present(read).unwrap_or_else(|error| {
            let file = self.releases.path(tenant, number);
            warn!(file = %file.display(), %error, "release cannot be read; release ignored");
            None
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.is_closing.store(true, Relaxed);
            drop(writer.jobs);
            // An error means that the thread panicked, which is logged already.
            let _ = writer.thread.join();
        }
    }
}

/// Removes the folders of other deployments that were not in use for [`DEPLOYMENT_RETENTION`].
fn forget(directory: &Path, own: &Path) {
    for folder in Store::deployments(directory) {
        let path = directory.join(&folder.name);
        let age = SystemTime::now().duration_since(folder.used);
        if path != own && age.is_ok_and(|age| age > DEPLOYMENT_RETENTION) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Returns whether `tenant` is a valid tenant name. Logs an invalid one.
fn has_name(tenant: &str) -> bool {
    let is_tenant = is_tenant(tenant);
    if !is_tenant {
        warn!(tenant, "not a valid tenant name; it has no releases");
    }
    is_tenant
}
