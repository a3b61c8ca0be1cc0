//! What outlives the process: bytes by their hash, and the releases and tables that name them.
//!
//! ```text
//! lock                          held by the one process that writes
//! used                          when a process last began to work here
//! blobs/<2 digits>/<62 digits>  bytes, by their SHA-256
//! releases/<tenant>/<number>    a release: metadata, header fields, resources by path, bodies; large ones as names of blobs
//! releases/<tenant>/pinned      the number of the release that is not to be dropped
//! tables/records                tables: values by key, the large ones as names of blobs
//! ```
//!
//! Everything in it can be lost: it saves work, or keeps what was good before. So nothing here is an error towards serving. What cannot be read is not there, what cannot be written is said once, and work goes on.
//!
//! - Bytes that several releases, places, tables or tenants have are written once.
//! - What is read is held against its hash: it comes back as it was written, or not at all. A damaged blob is written again when it is needed next.
//! - Files are whole or not there, whenever the process ends.
//! - Writing happens on a thread of its own: whoever hands out bytes does not wait for the disk. Of several versions of a table that wait, only the last is written.
//! - One process writes; others that open the same folder only read, until they [claim](Store::claim) it after the first has ended.
//! - Each deployment has a folder of its own, so that several can share a directory.
//!
//! **Invariant:** knows nothing of what the bytes mean or why a release was made, and decides nothing about what is served.

mod blobs;
mod disk;
mod format;
mod frame;
mod pages;
mod releases;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tracing::warn;

use self::blobs::{Blobs, Name};
use self::disk::Durability;
pub use self::pages::PlacedPages;
pub use self::releases::Entry;
use self::releases::{Releases, is_tenant};
use self::tables::Tables;
pub use self::tables::{Mark, Rows, rows_in_memory};
pub use self::writer::New;
use self::writer::{
    Failures, Job, Known, MAX_WAITING_JOBS, Usage, Version, Waiting, WaitingJobs, Writer, lock,
};

/// Deployments that nobody has started for so long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60 * 24 * 60);
/// The file that says when a process last began to work with a deployment's folder.
const USED: &str = "used";

/// Why a release cannot be pinned or unpinned.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process writes here, or nobody can.
    #[error(
        "the releases cannot be changed: another process has them, or the folder cannot be written"
    )]
    ReadOnly,
    /// There is no such release.
    #[error("{tenant} has no release {number}")]
    Unknown {
        /// The tenant's name.
        tenant: String,
        /// The number that was requested.
        number: u64,
    },
    /// This cannot be a tenant's name.
    #[error("`{0}` is no name of a tenant")]
    Name(String),
    /// The disk is too slow.
    #[error("{limit} changes of the state wait for the disk; try again later", limit = MAX_WAITING_JOBS)]
    Busy,
    /// The disk refused.
    #[error("the pin cannot be written")]
    Disk(#[from] io::Error),
}

/// A release with all its bytes. Bodies are as they are: encodings of them are not kept.
#[derive(Debug, Clone)]
pub struct Release {
    /// What is known of it.
    pub entry: Entry,
    /// What the tenant answered, by place. Bodies with the same bytes share them.
    pub places: Vec<PlacedPages>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// How many releases a tenant has at most (at least one); a pinned one may come on top.
    pub releases: usize,
    /// How many bytes there may be on the disk. Tables, and each tenant's newest and its pinned release stay even if they are more; but for tenants that [are gone](Store::set_tenants).
    pub bytes: u64,
}

/// What one deployment keeps.
///
/// When it is dropped, it waits until everything handed over is on disk, and gives the lock back.
#[derive(Debug)]
pub struct Store {
    releases: Releases,
    tables: Tables,
    blobs: Blobs,
    folder: PathBuf,
    keep: Keep,
    waiting: Arc<Waiting>,
    known: Arc<Known>,
    queued: Arc<AtomicUsize>,
    waiting_jobs: Arc<WaitingJobs>,
    usage: Arc<Usage>,
    failures: Arc<Failures>,
    /// Where this process is the one that writes.
    writer: OnceLock<Handle>,
}

/// The writing thread, as others see it.
#[derive(Debug)]
struct Handle {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    is_closing: Arc<AtomicBool>,
}

impl Store {
    /// Opens what is kept in `directory` for the deployment that `name` tells from others; nothing need be there. Forgets deployments that are long gone.
    #[must_use]
    pub fn of_deployment(directory: &Path, name: &str, keep: Keep) -> Self {
        let folder = Self::place(directory, name);
        let store = Self::open(folder, keep);
        // A folder that cannot be written was told.
        let _ = disk::write(&store.folder.join(USED), Durability::Later, |file| {
            file.write_all(name.as_bytes())
        });
        forget(directory, &store.folder);
        store
    }

    /// Where a deployment's folder is within `directory`, whether there is one or not.
    #[must_use]
    pub fn place(directory: &Path, name: &str) -> PathBuf {
        let name = Name::of(name.as_bytes()).to_string();
        directory.join(&name[..16])
    }

    /// Opens what is kept in `folder`, which need not be there.
    #[must_use]
    pub fn open(folder: PathBuf, keep: Keep) -> Self {
        let mut store = Self::reader(folder);
        store.keep = keep;
        if let Err(error) = store.claim() {
            warn!(folder = %store.folder.display(), %error, "the state is only read: nothing is kept for the next start while another process writes there, or nobody can");
        }
        store
    }

    /// What is kept in `folder`, which need not be there, for one who only reads: it makes and changes nothing there.
    #[must_use]
    pub fn reader(folder: PathBuf) -> Self {
        Self {
            releases: Releases {
                folder: folder.join("releases"),
            },
            tables: Tables::new(folder.join("tables")),
            blobs: Blobs::new(folder.join("blobs")),
            folder,
            keep: Keep {
                releases: 0,
                bytes: 0,
            },
            waiting: Arc::default(),
            known: Arc::default(),
            queued: Arc::default(),
            waiting_jobs: Arc::default(),
            usage: Arc::default(),
            failures: Arc::default(),
            writer: OnceLock::new(),
        }
    }

    /// Where it all lies.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Becomes the process that writes, unless it is or another one still does.
    ///
    /// # Errors
    ///
    /// When another process writes, or nobody can.
    pub fn claim(&self) -> io::Result<()> {
        if self.is_writable() {
            return Ok(());
        }
        let blobs = self.folder.join("blobs");
        let lock = lock(
            &self.folder,
            &[&self.releases.folder, &self.tables.folder, &blobs],
        )?;
        // Another process may have written until now.
        self.tables.forget();
        let is_closing = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            folder: self.folder.clone(),
            releases: self.releases.clone(),
            tables: self.tables.clone(),
            blobs: self.blobs.clone(),
            waiting: self.waiting.clone(),
            known: self.known.clone(),
            keep: self.keep.releases,
            budget: self.keep.bytes,
            is_closing: is_closing.clone(),
            queued: self.queued.clone(),
            waiting_jobs: self.waiting_jobs.clone(),
            usage: self.usage.clone(),
            failures: self.failures.clone(),
            lock,
        };
        // `Job::is_counted` says how its jobs are limited.
        let (jobs, received) = channel();
        let thread = thread::spawn(move || writer.run(&received));
        // Of two threads that come here at once, one has the lock.
        let _ = self.writer.set(Handle {
            jobs,
            thread,
            is_closing,
        });
        Ok(())
    }

    /// How many releases are handed over and not written yet.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued.load(Relaxed)
    }

    /// How many blobs are on the disk, and the bytes of all that is there, as far as this process knows: nothing where another one writes.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        let Usage { blobs, bytes } = &*self.usage;
        (blobs.load(Relaxed), bytes.load(Relaxed))
    }

    /// Returns how many bytes there may be on the disk.
    #[must_use]
    pub const fn max_bytes(&self) -> u64 {
        self.keep.bytes
    }

    /// Returns how often a job of the writing thread panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.failures.panics()
    }

    /// Returns a job of the writing thread that panicked and did not succeed since.
    #[must_use]
    pub fn failing_job(&self) -> Option<String> {
        self.failures.first()
    }

    /// Whether releases can be recorded and pinned. Otherwise another process does that, or nobody can.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writer.get().is_some()
    }

    /// The rows of a table, when there is one and it is whole, with all that it names.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Rows> {
        self.read_table(name, None)
    }

    /// The rows of a table that was written with this mark, as [`Self::table`] gives them. Of any other only the front is read.
    #[must_use]
    pub fn marked_table(&self, name: &str, mark: &Mark) -> Option<Rows> {
        self.read_table(name, Some(mark))
    }

    fn read_table(&self, name: &str, mark: Option<&Mark>) -> Option<Rows> {
        let failed = |blob| self.check(blob);
        let read = self.tables.read(name, mark, &self.blobs, failed);
        let read = disk::present(read).unwrap_or_else(|error| {
            warn!(table = name, %error, "a part of the state cannot be read, and is ignored");
            None
        });
        read.flatten()
    }

    /// Whether a table is there, whole or not.
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        self.tables.has(name).unwrap_or_default()
    }

    /// The mark that a table was written with, when there is one and it is whole as far as that tells. Of the file only the front is read.
    #[must_use]
    pub fn mark(&self, name: &str) -> Option<Mark> {
        self.tables.mark(name).ok().flatten()
    }

    /// The names of all tables that begin with `prefix`, without it, sorted.
    #[must_use]
    pub fn tables(&self, prefix: &str) -> Vec<String> {
        let names = self.tables.names().unwrap_or_default();
        let names = names.iter();
        names
            .filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned()))
            .collect()
    }

    /// Writes a table soon, with a mark for who wants to know what was written without reading it. `make` is called on the writing thread, unless another version comes before its turn.
    pub fn write_table(
        &self,
        name: String,
        mark: Option<Mark>,
        make: impl FnOnce() -> Rows + Send + 'static,
    ) {
        self.change_table(name, Some((mark, Box::new(make))));
    }

    /// Removes a table soon.
    pub fn remove_table(&self, name: String) {
        self.change_table(name, None);
    }

    fn change_table(&self, name: String, make: Option<Version>) {
        if self.is_writable() && self.waiting.add(name.clone(), make) {
            let _ = self.send(Job::Table(name));
        }
    }

    /// Records a release soon, with the tenant's next number, and drops its oldest ones. Nothing is written when its newest release has the same key.
    pub fn record(&self, tenant: &str, release: New) {
        if has_name(tenant) && self.is_writable() {
            self.queued.fetch_add(1, Relaxed);
            let _ = self.send(Job::Record(tenant.to_owned(), release));
        }
    }

    /// What is known of a tenant's releases, newest first. Whether their blobs are whole is open until one is loaded.
    #[must_use]
    pub fn list(&self, tenant: &str) -> Vec<Entry> {
        if !has_name(tenant) {
            return Vec::new();
        }
        let numbers = self.releases.numbers(tenant).unwrap_or_else(|error| {
            warn!(tenant, %error, "the releases of a tenant cannot be listed");
            Vec::new()
        });
        let entry = |number| self.said(tenant, number, self.releases.entry(tenant, number));
        numbers.into_iter().filter_map(entry).collect()
    }

    /// The number of a tenant's newest release.
    #[must_use]
    pub fn newest(&self, tenant: &str) -> Option<u64> {
        let numbers = || self.releases.numbers(tenant).ok();
        is_tenant(tenant).then(numbers)??.first().copied()
    }

    /// A release with all its bytes, as they were recorded; `None` when it is not there, or anything of it is missing or damaged.
    #[must_use]
    pub fn load(&self, tenant: &str, number: u64) -> Option<Release> {
        if !has_name(tenant) {
            return None;
        }
        let read = self.releases.open(tenant, number);
        let release = self.said(tenant, number, read)?;
        let mut blobs = Vec::new();
        for (name, _) in release.blobs {
            match self.blobs.get(&name) {
                Ok(bytes) => blobs.push(bytes),
                Err(error) => {
                    warn!(tenant, number, blob = %name, %error, "a blob cannot be read, nor the release that names it");
                    self.check(name);
                    return None;
                }
            }
        }
        let pages = self.said(tenant, number, release.pages.rest())?;
        let places = pages::read(&pages, &blobs, release.layout).ok_or_else(disk::damaged);
        let places = self.said(tenant, number, places)?;
        Some(Release {
            entry: release.entry,
            places,
        })
    }

    /// Keeps a release until it is unpinned or another one is pinned. That is on disk when this returns.
    ///
    /// # Errors
    ///
    /// When there is no such release, or it cannot be written.
    pub fn pin(&self, tenant: &str, number: u64) -> Result<(), StoreError> {
        self.set_pin(tenant, Some(number))
    }

    /// Ends what [`pin`](Self::pin) began; without it, does nothing. That is on disk when this returns.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn unpin(&self, tenant: &str) -> Result<(), StoreError> {
        self.set_pin(tenant, None)
    }

    /// The number of the tenant's pinned release.
    #[must_use]
    pub fn pinned(&self, tenant: &str) -> Option<u64> {
        match has_name(tenant) {
            true => self.pin_of(tenant),
            false => None,
        }
    }

    /// Returns the numbers of all pinned releases, by tenant. A pin that cannot be read is logged, and is left out.
    #[must_use]
    pub fn pins(&self) -> BTreeMap<String, u64> {
        let tenants = self.releases.tenants().unwrap_or_else(|error| {
            warn!(%error, "the tenants that have releases cannot be listed");
            Vec::new()
        });
        let pin = |tenant: String| self.pin_of(&tenant).map(|number| (tenant, number));
        tenants.into_iter().filter_map(pin).collect()
    }

    fn pin_of(&self, tenant: &str) -> Option<u64> {
        self.releases.pinned(tenant).unwrap_or_else(|error| {
            warn!(tenant, %error, "which release is pinned cannot be read");
            None
        })
    }

    /// Says which tenants there are. The releases of others stay while there is room, for the day on which they come back; where there is none, their newest ones may go, too.
    pub fn set_tenants(&self, tenants: impl IntoIterator<Item = String>) {
        self.known.set(tenants.into_iter().collect());
    }

    /// Removes all of a tenant's releases soon. Returns whether it will be done: not where too much waits for the disk.
    pub fn forget(&self, tenant: &str) -> bool {
        has_name(tenant) && self.send(Job::Forget(tenant.to_owned()))
    }

    /// Keeps to the budget soon, and removes what no release needs. This happens by itself, too: before the first thing that is handed over, and after a number of records.
    pub fn collect(&self) {
        // Where that is refused, the writing thread does it by itself later.
        let _ = self.send(Job::Collect);
    }

    /// Waits until everything is on disk that was handed over before.
    pub fn finish(&self) {
        let (done, is_done) = channel();
        let _ = self.send(Job::Done(done));
        // An error means that there is no thread, and nothing to wait for.
        let _ = is_done.recv();
    }

    fn set_pin(&self, tenant: &str, number: Option<u64>) -> Result<(), StoreError> {
        if !is_tenant(tenant) {
            return Err(StoreError::Name(tenant.to_owned()));
        }
        let (done, is_done) = channel();
        if !self.send(Job::Pin(tenant.to_owned(), number, done)) {
            return Err(StoreError::Busy);
        }
        match (is_done.recv(), number) {
            (Err(_), _) if self.is_writable() => {
                Err(io::Error::other("the program failed while it wrote").into())
            }
            (Err(_), _) => Err(StoreError::ReadOnly),
            (Ok(Ok(false)), Some(number)) => Err(StoreError::Unknown {
                tenant: tenant.to_owned(),
                number,
            }),
            (Ok(done), _) => Ok(done.map(drop)?),
        }
    }

    /// Has a blob that could not be read looked at soon.
    fn check(&self, blob: Name) {
        // Where that is refused, the next reader finds it again.
        let _ = self.send(Job::Check(blob));
    }

    /// Hands a job over. Returns whether there was room for it. Without a thread it is dropped: that was said when the folder was opened.
    fn send(&self, job: Job) -> bool {
        let Some(writer) = self.writer.get() else {
            return true;
        };
        if job.is_counted() && !self.waiting_jobs.add() {
            return false;
        }
        // The thread ends with us.
        let _ = writer.jobs.send(job);
        true
    }

    /// What was read of a release. What is not there needs no word.
    fn said<T>(&self, tenant: &str, number: u64, read: io::Result<T>) -> Option<T> {
        disk::present(read).unwrap_or_else(|error| {
            let file = self.releases.path(tenant, number);
            warn!(file = %file.display(), %error, "a release cannot be read, and is ignored");
            None
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.is_closing.store(true, Relaxed);
            drop(writer.jobs);
            // An error means that it panicked, and has said so.
            let _ = writer.thread.join();
        }
    }
}

/// Removes other deployments that are long gone.
fn forget(directory: &Path, own: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // Only what has this mark was made here: the directory may hold other things.
        let used = fs::metadata(path.join(USED)).and_then(|used| used.modified());
        let age = used.map(|used| SystemTime::now().duration_since(used));
        if path != own && matches!(age, Ok(Ok(age)) if age > FORGOTTEN) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether this can be a tenant's name, or a word that it is none.
fn has_name(tenant: &str) -> bool {
    let is_tenant = is_tenant(tenant);
    if !is_tenant {
        warn!(tenant, "this is no name of a tenant, and has no releases");
    }
    is_tenant
}
