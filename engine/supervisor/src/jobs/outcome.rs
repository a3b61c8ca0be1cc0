//! The outcomes of jobs, and the reading of a tenant's folder.
//!
//! **Invariant:** a job neither reads other tenants nor changes shared state. The event loop applies its outcome.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report};
use content::source::{Activity, FileHashes, Folder, FolderLimits, FolderTree, LargeSourceFile};
use content::tenant::{Site, ThemedValues, read_or_themed_values};
use release::large;
use release::store::{Release, Store, TableMark};
use render::{CompiledTenant, reading_key};

use crate::jobs::arrival::{Arrival, ArrivalCheck};
use crate::jobs::packed_folder::{FolderContent, to_folder};
use crate::jobs::persisted_reading::PersistedReading;
use crate::runner::catalog::tenant::{BuildInputs, failure};
use crate::runner::threads::job_pool::{JobStep, JobWeight};
use crate::snapshot::replaced::ReplacedFiles;
use crate::source::TenantSource;
use crate::state::tables::{PersistedCache, is_persisted, load_reading, load_replaced, load_site};

/// The outcome of a job.
#[derive(Debug)]
pub(crate) enum JobOutcome {
    /// The reading with this number has ended. `None` means that the folder is unchanged, or that the tenant waits for its files. The time is that at which a preview was published, or its folder last changed, if known.
    Read(
        u64,
        Option<Box<FolderReading>>,
        Box<Arrival>,
        Option<SystemTime>,
    ),
    /// The compilation of a tenant has ended, with pages or without.
    Compiled(Box<BuildAttempt>),
    /// The pages that were set aside were compressed.
    Compressed(Box<(BuildInputs, CompiledTenant)>),
    /// The reading with this number found no folder.
    Gone(u64),
    /// The reading with this number was abandoned, because the file system did not respond.
    Unresponsive(u64, Arc<ReadRequest>),
    /// A stand-in was compiled; `None` if it could not be.
    StandIn(Option<Box<(CompiledTenant, BuildInputs)>>),
    /// The pinned release was read; `None` if it could not be.
    Release(Option<Box<Release>>),
    /// The write of a pin to disk has ended. `Some` is the reason for a failure.
    PinWritten(Option<String>),
}

/// The result of compiling a tenant.
#[derive(Debug)]
pub(crate) struct BuildAttempt {
    /// The inputs of the build.
    pub(crate) made_from: BuildInputs,
    /// Earlier compilations at whose open mounts requests wait.
    pub(crate) waiting: Vec<Arc<CompiledTenant>>,
    /// Whether a snapshot with the result must be published at once.
    pub(crate) is_urgent: bool,
    /// The pages, or `None` if the build failed.
    pub(crate) compiled: Option<CompiledTenant>,
    pub(crate) report: Report,
    /// The duration of the build, without the wait for another replica.
    pub(crate) took: Duration,
    pub(crate) origin: PageOrigin,
}

/// The origin of the pages of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageOrigin {
    /// The job rendered the pages.
    Rendered,
    /// An earlier rendering in the store of this machine, with the digest of all responses.
    Persisted([u8; 32]),
    /// The rendering of another replica.
    Shared,
}

impl PageOrigin {
    /// Returns the digest of all responses, if the store of this machine has the release.
    pub(crate) const fn persisted_key(self) -> Option<[u8; 32]> {
        match self {
            Self::Persisted(key) => Some(key),
            Self::Rendered | Self::Shared => None,
        }
    }
}

/// The result of reading a changed folder.
#[derive(Debug)]
pub(crate) struct FolderReading {
    pub(crate) content: FolderContent,
    /// The hashes of all files.
    pub(crate) files: FileHashes,
    /// A digest of all files. `None` if reading failed, so that the next result always counts as a change.
    pub(crate) fingerprint: Option<[u8; 32]>,
    /// The diagnostics of reading the files, without the diagnostics of their content.
    pub(crate) reading: Report,
    /// The content, if it could be parsed.
    pub(crate) site: Option<Site>,
    /// The values that the author wrote, if they are not valid content.
    pub(crate) written: Option<ThemedValues>,
    pub(crate) report: Report,
    /// The persisted valid content of a tenant that is new to this process, if its folder is unusable.
    pub(crate) last_valid: Option<Site>,
    /// The persisted cache of a tenant that is new to this process.
    pub(crate) cache: Option<PersistedCache>,
    /// Whether the persisted valid copy equals this folder.
    pub(crate) is_persisted: bool,
    /// The mark of the folder (a digest of its label and file metadata), if the reading must still be persisted under that mark.
    pub(crate) mark: Option<TableMark>,
    /// The replaced files of a tenant that is new to this process.
    pub(crate) replaced: Option<ReplacedFiles>,
}

/// A request to read a tenant's folder.
#[derive(Debug, Clone)]
pub(crate) struct ReadRequest {
    pub(crate) id: TenantId,
    pub(crate) source: Arc<dyn TenantSource>,
    /// The name of the folder in reports.
    pub(crate) label: String,
    /// The fingerprint and the diagnostics of the last reading.
    pub(crate) known: Option<([u8; 32], Report)>,
    /// The folder for copies of files that are too large for memory.
    pub(crate) large: PathBuf,
    /// The large files of the last reading, which are read again only if they changed.
    pub(crate) known_large: BTreeMap<String, LargeSourceFile>,
    /// The store, if there is one.
    pub(crate) store: Option<Arc<Store>>,
    /// Whether the tenant is new to this process, so that the store may have data of an earlier process.
    pub(crate) is_new: bool,
    /// Whether the content is compressed in memory.
    pub(crate) is_packed: bool,
    /// The time of the request.
    pub(crate) now: SystemTime,
    /// The calls to the file system in flight, which show whether the file system responds.
    pub(crate) activity: Activity,
    /// The check for files whose upload has not ended; `None` outside a server.
    pub(crate) arrivals: Option<ArrivalCheck>,
}

/// The result of listing a folder.
enum FolderListing {
    /// The folder does not exist.
    Gone,
    /// The files are unchanged since an earlier process read them.
    Unchanged(Box<FolderReading>),
    /// Files are still changing, so the folder is not read yet.
    Receiving(Arrival),
    /// The folder must be read.
    Changed(Box<FolderTree>, Option<TableMark>, Arrival),
}

/// Bytes in memory for each byte of a text that is parsed: its copies, and the values of its front matter.
const BYTES_PER_TEXT_BYTE: u64 = 16;

/// The limit on the estimate for parsed texts. The number of values of a tenant is limited as well.
const MAX_PARSED_BYTES: u64 = 96 << 20;

/// Estimates the memory that reading and checking a folder needs, in bytes.
fn weight_of(tree: &FolderTree) -> u64 {
    let sizes = tree.sizes();
    let parsed = sizes.text.saturating_mul(BYTES_PER_TEXT_BYTE);
    sizes.total.saturating_add(parsed.min(MAX_PARSED_BYTES))
}

/// Returns the error for work that needs more memory than the limit for all work in progress.
pub(crate) fn too_heavy(file: String, verb: &str, bytes: u64, limit: u64) -> Diagnostic {
    let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
    let message = format!(
        "the tenant needs about {} MiB of memory to be {verb}; the limit for all work in flight is {} MiB",
        mebibytes(bytes),
        mebibytes(limit)
    );
    Diagnostic::error(Code::TooLarge, file, message)
        .hint("split the tenant into several tenants, or raise `--memory`")
}

impl ReadRequest {
    /// Lists the folder, then reads and checks it as soon as enough memory is free.
    ///
    /// `is_secure`: whether visitors use HTTPS. `done` makes the outcome from the reading, which is `None` if the folder is unchanged or the tenant waits for its files.
    pub(crate) fn read(
        self: Arc<Self>,
        is_secure: bool,
        number: u64,
        done: impl Fn(Option<FolderReading>, Arrival, Option<SystemTime>) -> JobOutcome
        + Clone
        + Send
        + 'static,
    ) -> JobStep<JobOutcome> {
        let label = self.label.clone();
        let listed = guard("read", self.id.as_str(), &label, || self.list());
        let (listed, changed) = match listed {
            Ok((listing, changed)) => (Ok(listing), changed),
            Err(problem) => (Err(problem), None),
        };
        let done = move |read, arrival| done(read, arrival, changed);
        match listed {
            Ok(FolderListing::Gone) => JobStep::Done(JobOutcome::Gone(number)),
            Ok(FolderListing::Unchanged(read)) => JobStep::Done(done(
                Some(self.complete(*read, is_secure)),
                Arrival::default(),
            )),
            Ok(FolderListing::Receiving(arrival)) => {
                JobStep::Done(done(self.received(&arrival, is_secure), arrival))
            }
            Ok(FolderListing::Changed(tree, mark, mut arrival)) => {
                let bytes = weight_of(&tree);
                let (folder, refused, refuse) = (self, done.clone(), label);
                let again = Arc::clone(&folder);
                let weight = JobWeight {
                    bytes,
                    refuse: Box::new(move |limit| {
                        let problem = too_heavy(refuse, "read", bytes, limit);
                        refused(Some(again.failed(problem, is_secure)), Arrival::default())
                    }),
                };
                let work = move |_| {
                    let read = guard("read", folder.id.as_str(), &folder.label, || {
                        folder.read_tree(*tree, mark, &mut arrival)
                    });
                    let read = match read {
                        Ok(_) if arrival.is_waiting => folder.received(&arrival, is_secure),
                        Ok(read) => read.map(|read| folder.complete(read, is_secure)),
                        Err(problem) => Some(folder.failed(problem, is_secure)),
                    };
                    JobStep::Done(done(read, arrival))
                };
                JobStep::Weighed(weight, Box::new(work))
            }
            Err(problem) => JobStep::Done(done(
                Some(self.failed(problem, is_secure)),
                Arrival::default(),
            )),
        }
    }

    /// Returns the result of a reading that was abandoned, because a call to the file system did not return within `limit`. The folder is read again later.
    pub(crate) fn unresponsive(&self, limit: Duration, is_secure: bool) -> FolderReading {
        let message = format!(
            "the file system of this folder does not respond; a call has been in flight for more than {} seconds",
            limit.as_secs()
        );
        let problem = Diagnostic::error(Code::Unreadable, self.label.clone(), message)
            .hint("check the mount; the folder is read again once the file system responds");
        FolderReading {
            reading: failure(problem.clone()),
            ..self.failed(problem, is_secure)
        }
    }

    /// Returns the result of a reading that waits for files. A tenant that is new to this process serves its last valid folder meanwhile.
    fn received(&self, arrival: &Arrival, is_secure: bool) -> Option<FolderReading> {
        let message = format!("files are being received: {}", arrival.files.join(", "));
        let problem = || {
            Diagnostic::error(Code::IncompleteFile, self.label.clone(), message)
                .hint("wait for the upload to end")
        };
        self.is_new.then(|| self.failed(problem(), is_secure))
    }

    /// Returns the result of a reading that failed with this problem.
    fn failed(&self, problem: Diagnostic, is_secure: bool) -> FolderReading {
        let read = FolderReading {
            report: failure(problem),
            ..self.without_content(None)
        };
        self.complete(read, is_secure)
    }

    /// Adds the persisted data of a tenant that is new to this process.
    fn complete(&self, mut read: FolderReading, is_secure: bool) -> FolderReading {
        let (id, label) = (&self.id, &self.label);
        if let Some(store) = self.earlier_store() {
            read.replaced = Some(load_replaced(store, id, read.is_persisted, is_secure));
            if read.site.is_none() || !read.report.is_servable() {
                let good = guard("persisted", id.as_str(), label, || {
                    load_site(store, id, label)
                });
                read.last_valid = good.ok().flatten();
            }
        }
        read
    }

    /// Returns the store, if it may have data of the tenant from an earlier process.
    fn earlier_store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref().filter(|_| self.is_new)
    }

    /// Lists the folder. Restores the reading of an earlier process if the file metadata is unchanged. Also returns the time at which a preview was published, or its folder last changed.
    fn list(&self) -> (FolderListing, Option<SystemTime>) {
        let limits = FolderLimits::default();
        let tree = self.source.tree(&self.id, limits, &self.activity);
        if tree.is_gone {
            return (FolderListing::Gone, None);
        }
        let is_preview = self.id.is_preview();
        let published = || self.source.published(&self.id);
        let changed = is_preview.then(|| published().or_else(|| tree.last_change()));
        let changed = changed.flatten();
        let is_persisted = self.is_packed && self.store.is_some();
        let stamp = is_persisted.then(|| tree.stamp(self.now)).flatten();
        let mark = stamp.map(|stamp| reading_key(&self.label, &stamp));
        let read_before = || {
            let rows = load_reading(self.earlier_store()?, &self.id, &mark?)?;
            PersistedReading::of_rows(&self.id, &self.label, rows)
        };
        let listing = match read_before() {
            Some(reading) => FolderListing::Unchanged(Box::new(self.restored(reading))),
            None => {
                let check = self.arrivals.as_ref();
                let arrival = check.map(|check| check.look(&tree, self.now));
                match arrival.unwrap_or_default() {
                    arrival if arrival.is_waiting => FolderListing::Receiving(arrival),
                    arrival => FolderListing::Changed(Box::new(tree), mark, arrival),
                }
            }
        };
        (listing, changed)
    }

    /// Converts a restored reading.
    fn restored(&self, reading: PersistedReading) -> FolderReading {
        let fingerprint = reading.files.fingerprint();
        FolderReading {
            content: FolderContent::Packed(reading.packed),
            fingerprint: Some(fingerprint),
            files: reading.files,
            site: Some(Arc::unwrap_or_clone(reading.site)),
            report: reading.report,
            ..self.without_content(Some(&fingerprint))
        }
    }

    /// Reads and checks all files. Returns `None` if the folder is unchanged, or if a file has no end and the tenant waits for it.
    fn read_tree(
        &self,
        tree: FolderTree,
        mark: Option<TableMark>,
        arrival: &mut Arrival,
    ) -> Option<FolderReading> {
        let take_large = |file, size| Ok(to_folder(&large::copy_private(file, size, &self.large)?));
        let (folder, mut reading) = tree.read(Some(&take_large), (&self.known_large, self.now));
        if let Some(check) = &self.arrivals {
            let problems = check.check_ends(&folder, arrival);
            if arrival.is_waiting {
                return None;
            }
            problems
                .into_iter()
                .for_each(|problem| reading.push(problem));
        }
        let files = folder.hashes();
        let fingerprint = files.fingerprint();
        let known = self.known.as_ref();
        if known.is_some_and(|(known, said)| *known == fingerprint && *said == reading) {
            return None;
        }
        // Missing files are not reported for a folder that could not be read at all.
        let is_read = !folder.files.is_empty() || reading.is_servable();
        let check = || match is_read {
            true => {
                let (site, report) = read_or_themed_values(&self.id, &folder);
                (Some(site), report)
            }
            false => (None, Report::default()),
        };
        let (site, problems) = guard("check", self.id.as_str(), &self.label, check)
            .unwrap_or_else(|diagnostic| (None, failure(diagnostic)));
        let (site, written) = match site {
            Some(Ok(site)) => (Some(site), None),
            Some(Err(written)) => (None, Some(written)),
            None => (None, None),
        };
        let mut report = reading.clone();
        report.extend(problems);
        let content = FolderContent::Open(folder);
        let packed = content
            .packed()
            .filter(|_| self.is_packed && report.is_servable());
        let (content, site) = match packed {
            Some(packed) => (FolderContent::Packed(packed), site.map(Site::outline)),
            None => (content, site),
        };
        Some(FolderReading {
            content,
            files,
            fingerprint: Some(fingerprint),
            reading,
            site,
            written,
            report,
            mark,
            ..self.without_content(Some(&fingerprint))
        })
    }

    /// Returns a reading without content, with the persisted cache of the tenant.
    fn without_content(&self, fingerprint: Option<&[u8; 32]>) -> FolderReading {
        let kept = self.earlier_store();
        let is_persisted =
            |fingerprint| kept.is_some_and(|store| is_persisted(store, &self.id, fingerprint));
        FolderReading {
            content: FolderContent::Open(Folder {
                label: self.label.clone(),
                ..Folder::default()
            }),
            files: FileHashes::default(),
            fingerprint: None,
            reading: Report::default(),
            site: None,
            written: None,
            report: Report::default(),
            last_valid: None,
            cache: kept.map(|store| PersistedCache::of_tenant(store, &self.id)),
            is_persisted: fingerprint.is_some_and(is_persisted),
            mark: None,
            replaced: None,
        }
    }
}
