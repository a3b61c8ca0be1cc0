//! The releases of tenants on disk, so that an older one can be listed, compared and served again.
//!
//! ```text
//! lock                          held by the one process that writes
//! blobs/<2 digits>/<62 digits>  bytes, by their SHA-256
//! releases/<tenant>/<number>    a release: metadata, header fields, resources by path; bodies as names of blobs
//! releases/<tenant>/pinned      the number of the release that is not to be dropped
//! ```
//!
//! Nothing here is an error towards serving. What cannot be read is not there, what cannot be written is said once, and work goes on.
//!
//! - A body that several releases, places or tenants have is written once.
//! - What is read is held against its hash: a release comes back with the bytes that were recorded, or not at all. A damaged blob is written again when a release needs it next.
//! - Files are whole or not there, whenever the process ends.
//! - One process writes; others that open the same folder only read, until they [claim](History::claim) it after the first has ended.
//!
//! **Invariant:** knows nothing of what bodies say or why a release was made, and decides nothing about what is served.

mod blobs;
mod disk;
mod format;
mod pages;
mod releases;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use thiserror::Error;
use tracing::warn;

use self::blobs::Blobs;
pub use self::pages::PlacedPages;
pub use self::releases::Entry;
use self::releases::{Releases, is_tenant};
pub use self::writer::New;
use self::writer::{Job, Usage, Writer};

/// Why a release cannot be pinned or unpinned.
#[derive(Debug, Error)]
pub enum HistoryError {
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
        /// The number that was asked for.
        number: u64,
    },
    /// This cannot be a tenant's name.
    #[error("`{0}` is no name of a tenant")]
    Name(String),
    /// The disk refused.
    #[error("the pin cannot be written")]
    Disk(#[from] io::Error),
}

/// A release with all its bytes.
#[derive(Debug, Clone)]
pub struct Release {
    /// What is known of it.
    pub entry: Entry,
    /// What the tenant answered, by place. Bodies with the same bytes share them.
    pub places: Vec<PlacedPages>,
}

/// The releases in one folder.
///
/// When it is dropped, it waits until everything handed over is on disk, and gives the lock back.
#[derive(Debug)]
pub struct History {
    releases: Releases,
    blobs: Blobs,
    folder: PathBuf,
    keep: usize,
    budget: u64,
    queued: Arc<AtomicUsize>,
    usage: Arc<Usage>,
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

impl History {
    /// Opens the releases in `folder`, which need not be there.
    ///
    /// `keep`: how many releases a tenant has at most (at least one); a pinned one may come on top.
    /// `budget`: how many bytes of blobs all releases together may name. Each tenant's newest and its pinned release stay even if they are more.
    #[must_use]
    pub fn open(folder: PathBuf, keep: usize, budget: u64) -> Self {
        let mut history = Self::reader(folder);
        history.keep = keep;
        history.budget = budget;
        if let Err(error) = history.claim() {
            warn!(folder = %history.folder.display(), %error, "releases are read only: none is recorded here until the other process has ended");
        }
        history
    }

    /// The releases in `folder`, which need not be there, for one who only reads: it makes and changes nothing there.
    #[must_use]
    pub fn reader(folder: PathBuf) -> Self {
        Self {
            releases: Releases {
                folder: folder.join("releases"),
            },
            blobs: Blobs::new(folder.join("blobs")),
            folder,
            keep: 0,
            budget: 0,
            queued: Arc::default(),
            usage: Arc::default(),
            writer: OnceLock::new(),
        }
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
        let inner = [self.releases.folder.clone(), self.folder.join("blobs")];
        let lock = lock(&self.folder, &inner)?;
        let is_closing = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            folder: self.folder.clone(),
            releases: self.releases.clone(),
            blobs: self.blobs.clone(),
            keep: self.keep,
            budget: self.budget,
            is_closing: is_closing.clone(),
            queued: self.queued.clone(),
            usage: self.usage.clone(),
            lock,
        };
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

    /// How many blobs are on the disk, and their bytes, as far as this process knows: nothing where another one writes.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        let Usage { blobs, bytes } = &*self.usage;
        (blobs.load(Relaxed), bytes.load(Relaxed))
    }

    /// Whether releases can be recorded and pinned. Otherwise another process does that, or nobody can.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writer.get().is_some()
    }

    /// Records a release soon, with the tenant's next number, and drops its oldest ones. Nothing is written when its newest release has the same key.
    pub fn record(&self, tenant: &str, release: New) {
        if has_name(tenant) && self.is_writable() {
            self.queued.fetch_add(1, Relaxed);
            self.send(Job::Record(tenant.to_owned(), release));
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

    /// A release with all its bytes, as they were recorded; `None` when it is not there, or anything of it is missing or damaged.
    #[must_use]
    pub fn load(&self, tenant: &str, number: u64) -> Option<Release> {
        if !has_name(tenant) {
            return None;
        }
        let read = self.releases.read(tenant, number);
        let (entry, pages) = self.said(tenant, number, read)?;
        let mut blobs = Vec::new();
        let names = pages::blobs(&pages).ok_or_else(disk::damaged);
        for (name, _) in self.said(tenant, number, names)? {
            match self.blobs.get(&name) {
                Ok(bytes) => blobs.push(bytes),
                Err(error) => {
                    warn!(tenant, number, blob = %name, %error, "a blob cannot be read, nor the release that names it");
                    self.send(Job::Check(name));
                    return None;
                }
            }
        }
        let places = pages::read(&pages, &blobs).ok_or_else(disk::damaged);
        let places = self.said(tenant, number, places)?;
        Some(Release { entry, places })
    }

    /// Keeps a release until it is unpinned or another one is pinned. That is on disk when this returns.
    ///
    /// # Errors
    ///
    /// When there is no such release, or it cannot be written.
    pub fn pin(&self, tenant: &str, number: u64) -> Result<(), HistoryError> {
        self.set_pin(tenant, Some(number))
    }

    /// Ends what [`pin`](Self::pin) began; without it, does nothing. That is on disk when this returns.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn unpin(&self, tenant: &str) -> Result<(), HistoryError> {
        self.set_pin(tenant, None)
    }

    /// The number of the tenant's pinned release.
    #[must_use]
    pub fn pinned(&self, tenant: &str) -> Option<u64> {
        if !has_name(tenant) {
            return None;
        }
        self.releases.pinned(tenant).unwrap_or_else(|error| {
            warn!(tenant, %error, "which release is pinned cannot be read");
            None
        })
    }

    /// Removes all of a tenant's releases soon.
    pub fn forget(&self, tenant: &str) {
        if has_name(tenant) {
            self.send(Job::Forget(tenant.to_owned()));
        }
    }

    /// Keeps to the budget soon, and removes what no release needs. This happens by itself, too: at the start, and after a number of records.
    pub fn collect(&self) {
        self.send(Job::Collect);
    }

    /// Waits until everything is on disk that was handed over before.
    pub fn finish(&self) {
        let (done, is_done) = channel();
        self.send(Job::Done(done));
        // An error means that there is no thread, and nothing to wait for.
        let _ = is_done.recv();
    }

    fn set_pin(&self, tenant: &str, number: Option<u64>) -> Result<(), HistoryError> {
        if !is_tenant(tenant) {
            return Err(HistoryError::Name(tenant.to_owned()));
        }
        let (done, is_done) = channel();
        self.send(Job::Pin(tenant.to_owned(), number, done));
        match (is_done.recv(), number) {
            (Err(_), _) => Err(HistoryError::ReadOnly),
            (Ok(Ok(false)), Some(number)) => Err(HistoryError::Unknown {
                tenant: tenant.to_owned(),
                number,
            }),
            (Ok(done), _) => Ok(done.map(drop)?),
        }
    }

    /// Hands a job over. Without a thread it is dropped: that was said when the folder was opened.
    fn send(&self, job: Job) {
        if let Some(writer) = self.writer.get() {
            // The thread ends with us.
            let _ = writer.jobs.send(job);
        }
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

impl Drop for History {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.is_closing.store(true, Relaxed);
            drop(writer.jobs);
            // An error means that it panicked, and has said so.
            let _ = writer.thread.join();
        }
    }
}

/// Makes the folders, and takes the lock of the outer one. It is given back when the file is closed, also by a process that is killed.
fn lock(folder: &Path, inner: &[PathBuf]) -> io::Result<File> {
    let inner = inner.iter().map(PathBuf::as_path);
    for folder in std::iter::once(folder).chain(inner) {
        disk::make_folder(folder)?;
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another process writes here")),
        Err(TryLockError::Error(error)) => Err(error),
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
