//! What workers do for a tenant: read and check its folder, or render it; and what they bring back.
//!
//! **Invariant:** knows no other tenant, and changes nothing: whoever asked takes what is brought.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report};
use content::source::{self, Activity, Folder, FolderLimits, Hashes, LargeFile, Tree};
use content::tenant::{Site, ThemedValues, read_or_written};
use release::large;
use release::store::{Mark, Release, Store};
use render::{Compiled, reading_key};

use crate::jobs::packed_folder::{FolderContent, to_folder};
use crate::jobs::persisted_reading::PersistedReading;
use crate::runner::catalog::tenant::{BuildInputs, failure};
use crate::runner::workers::{JobStep, JobWeight};
use crate::snapshot::replaced::ReplacedFiles;
use crate::state::tables::{PersistedCache, is_kept, kept_reading, kept_replaced, kept_site};

/// What was done for a tenant.
#[derive(Debug)]
pub(crate) enum JobOutcome {
    /// Its folder was read, by the number of the reading; nothing where it is as it was.
    Read(u64, Option<Box<FolderReading>>),
    /// It was compiled.
    Compiled(Box<BuildAttempt>),
    /// Its pages were compressed.
    Coded(Box<(BuildInputs, Compiled)>),
    /// The reading with this number found no folder.
    Gone(u64),
    /// The reading with this number was given up, since the file system did not respond.
    Unresponsive(u64, Arc<ReadRequest>),
    /// What was good before the process began was compiled; nothing where that was of no use either.
    StandIn(Option<Box<(Compiled, BuildInputs)>>),
    /// The pinned release was read; `None` where it cannot be.
    Release(Option<Box<Release>>),
    /// The pin was written to disk, or why it could not be.
    PinWritten(Option<String>),
}

/// A tenant that was compiled.
#[derive(Debug)]
pub(crate) struct BuildAttempt {
    pub(crate) made_from: BuildInputs,
    /// Where requests wait for it that came before it was rendered.
    pub(crate) waiting: Vec<Arc<Compiled>>,
    /// Whether a snapshot with it is to be served at once.
    pub(crate) is_urgent: bool,
    pub(crate) compiled: Option<Compiled>,
    pub(crate) report: Report,
    pub(crate) took: Duration,
    /// Where it was not rendered but taken up as it was before: a digest of what it answers.
    pub(crate) recalled: Option<[u8; 32]>,
}

/// A folder that is not as it was.
#[derive(Debug)]
pub(crate) struct FolderReading {
    pub(crate) content: FolderContent,
    pub(crate) files: Hashes,
    /// Not known where reading failed, so that it is read whatever it holds the next time.
    pub(crate) fingerprint: Option<[u8; 32]>,
    /// What reading said, apart from what the content is.
    pub(crate) reading: Report,
    /// Its content, when that could be made out.
    pub(crate) site: Option<Site>,
    /// What is written, where it could not be made out.
    pub(crate) written: Option<ThemedValues>,
    pub(crate) report: Report,
    /// What was kept of a tenant that is new, where its folder is of no use.
    pub(crate) last_good: Option<Site>,
    /// What was worked out for a tenant that is new.
    pub(crate) cache: Option<PersistedCache>,
    /// Whether its good copy is this folder.
    pub(crate) is_kept: bool,
    /// What tells the folder from others without reading it, where what was read is still to be kept under it.
    pub(crate) mark: Option<Mark>,
    /// The files that such a tenant had before.
    pub(crate) replaced: Option<ReplacedFiles>,
}

/// A folder that is to be read.
#[derive(Debug, Clone)]
pub(crate) struct ReadRequest {
    pub(crate) id: TenantId,
    pub(crate) path: PathBuf,
    /// How reports name it.
    pub(crate) label: String,
    /// What it was when it was last read.
    pub(crate) known: Option<([u8; 32], Report)>,
    /// Where files go that are too large for memory.
    pub(crate) large: PathBuf,
    /// Those that were taken before, which are not read again unless they changed.
    pub(crate) known_large: BTreeMap<String, LargeFile>,
    /// Where things are kept, if anywhere.
    pub(crate) store: Option<Arc<Store>>,
    /// Whether the tenant is new to this process, so that something may have been kept of it.
    pub(crate) is_new: bool,
    /// Whether content is to take little memory.
    pub(crate) packs: bool,
    /// When it was handed over.
    pub(crate) now: SystemTime,
    /// Whether the file system responds.
    pub(crate) activity: Activity,
    /// See [`FolderLimits::upload_pause`].
    pub(crate) upload_pause: Duration,
}

/// What a look at a folder comes to.
enum FolderListing {
    /// It is not there.
    Gone,
    /// Its files are as they were when the process before this one read them.
    Unchanged(Box<FolderReading>),
    /// It is to be read.
    Changed(Box<Tree>, Option<Mark>),
}

/// Bytes in memory for each byte of a text that is parsed: its copies, and the values of its front matter.
const BYTES_PER_TEXT_BYTE: u64 = 16;

/// The limit of that. What a tenant may have of values is limited, too.
const MAX_PARSED_BYTES: u64 = 96 << 20;

/// Estimates the memory that reading and checking a folder takes, in bytes.
fn weight_of(tree: &Tree) -> u64 {
    let sizes = tree.sizes();
    let parsed = sizes.text.saturating_mul(BYTES_PER_TEXT_BYTE);
    sizes.total.saturating_add(parsed.min(MAX_PARSED_BYTES))
}

/// Says that work for a tenant takes more memory than there is for all work in progress.
pub(crate) fn too_heavy(file: String, verb: &str, bytes: u64, limit: u64) -> Diagnostic {
    let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
    let message = format!(
        "the tenant takes some {} MiB of memory to be {verb}, more than the {} MiB that there are for work in progress",
        mebibytes(bytes),
        mebibytes(limit)
    );
    Diagnostic::error(Code::TooLarge, file, message)
        .hint("make several tenants of it, or give the program more memory (`--memory`)")
}

impl ReadRequest {
    /// Lists the folder, and then reads and checks it, once there is memory for that. `secure`: whether visitors come by HTTPS. `done` makes the result of what was read; nothing where the folder is as it was.
    pub(crate) fn read(
        self,
        secure: bool,
        number: u64,
        done: impl Fn(Option<FolderReading>) -> JobOutcome + Clone + Send + 'static,
    ) -> JobStep<JobOutcome> {
        let label = self.label.clone();
        let listed = guard("read", self.id.as_str(), &label, || self.list());
        match listed {
            Ok(FolderListing::Gone) => JobStep::Done(JobOutcome::Gone(number)),
            Ok(FolderListing::Unchanged(read)) => {
                JobStep::Done(done(Some(self.complete(*read, secure))))
            }
            Ok(FolderListing::Changed(tree, mark)) => {
                let bytes = weight_of(&tree);
                let (folder, refused, refuse) = (Arc::new(self), done.clone(), label);
                let again = Arc::clone(&folder);
                let weight = JobWeight {
                    bytes,
                    refuse: Box::new(move |limit| {
                        let problem = too_heavy(refuse, "read", bytes, limit);
                        refused(Some(again.failed(problem, secure)))
                    }),
                };
                let work = move |_| {
                    let read = guard("read", folder.id.as_str(), &folder.label, || {
                        folder.read_tree(*tree, mark)
                    });
                    JobStep::Done(done(match read {
                        Ok(read) => read.map(|read| folder.complete(read, secure)),
                        Err(problem) => Some(folder.failed(problem, secure)),
                    }))
                };
                JobStep::Weighed(weight, Box::new(work))
            }
            Err(problem) => JobStep::Done(done(Some(self.failed(problem, secure)))),
        }
    }

    /// Returns the result of a reading that was given up, since a call to the file system did not return within `limit`. The folder is read again later.
    pub(crate) fn unresponsive(&self, limit: Duration, secure: bool) -> FolderReading {
        let message = format!(
            "the file system of this folder does not respond: a call has been in flight for more than {} seconds",
            limit.as_secs()
        );
        let problem = Diagnostic::error(Code::Unreadable, self.label.clone(), message)
            .hint("check the mount; the folder is read again once the file system responds");
        FolderReading {
            reading: failure(problem.clone()),
            ..self.failed(problem, secure)
        }
    }

    fn failed(&self, problem: Diagnostic, secure: bool) -> FolderReading {
        let read = FolderReading {
            report: failure(problem),
            ..self.nothing(None)
        };
        self.complete(read, secure)
    }

    /// Adds what was persisted of a tenant that is new to this process.
    fn complete(&self, mut read: FolderReading, secure: bool) -> FolderReading {
        let (id, label) = (&self.id, &self.label);
        if let Some(store) = self.kept() {
            read.replaced = Some(kept_replaced(store, id, read.is_kept, secure));
            if read.site.is_none() || !read.report.is_servable() {
                let good = guard("kept", id.as_str(), label, || kept_site(store, id, label));
                read.last_good = good.ok().flatten();
            }
        }
        read
    }

    /// Where something may have been kept of it that this process does not know.
    fn kept(&self) -> Option<&Arc<Store>> {
        self.store.as_ref().filter(|_| self.is_new)
    }

    /// Lists the folder, and takes up what was read of it before the process began, where its files are as they were.
    fn list(&self) -> FolderListing {
        let limits = FolderLimits {
            upload_pause: self.upload_pause,
            ..FolderLimits::default()
        };
        let tree = source::walk(&self.path, &self.label, limits, &self.activity);
        if tree.is_gone {
            return FolderListing::Gone;
        }
        let is_kept = self.packs && self.store.is_some();
        let stamp = is_kept.then(|| tree.stamp(self.now)).flatten();
        let mark = stamp.map(|stamp| reading_key(&self.label, &stamp));
        let read_before = || {
            let rows = kept_reading(self.kept()?, &self.id, &mark?)?;
            PersistedReading::of_rows(&self.id, &self.label, rows)
        };
        match read_before() {
            Some(reading) => FolderListing::Unchanged(Box::new(self.taken_up(reading))),
            None => FolderListing::Changed(Box::new(tree), mark),
        }
    }

    fn taken_up(&self, reading: PersistedReading) -> FolderReading {
        let fingerprint = reading.files.fingerprint();
        FolderReading {
            content: FolderContent::Packed(reading.packed),
            fingerprint: Some(fingerprint),
            files: reading.files,
            site: Some(Arc::unwrap_or_clone(reading.site)),
            report: reading.report,
            ..self.nothing(Some(&fingerprint))
        }
    }

    fn read_tree(&self, tree: Tree, mark: Option<Mark>) -> Option<FolderReading> {
        let take_large = |file, size| Ok(to_folder(&large::take(file, size, &self.large)?));
        let (folder, reading) = tree.read(Some(&take_large), (&self.known_large, self.now));
        let files = folder.hashes();
        let fingerprint = files.fingerprint();
        let known = self.known.as_ref();
        if known.is_some_and(|(known, said)| *known == fingerprint && *said == reading) {
            return None;
        }
        // Of a folder that could not be read at all, what it lacks is no news.
        let is_read = !folder.files.is_empty() || reading.is_servable();
        let check = || match is_read {
            true => {
                let (site, report) = read_or_written(&self.id, &folder);
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
            .filter(|_| self.packs && report.is_servable());
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
            ..self.nothing(Some(&fingerprint))
        })
    }

    /// What is known of a tenant beside what its folder holds.
    fn nothing(&self, fingerprint: Option<&[u8; 32]>) -> FolderReading {
        let kept = self.kept();
        let is_kept = |fingerprint| kept.is_some_and(|store| is_kept(store, &self.id, fingerprint));
        FolderReading {
            content: FolderContent::Open(Folder {
                label: self.label.clone(),
                ..Folder::default()
            }),
            files: Hashes::default(),
            fingerprint: None,
            reading: Report::default(),
            site: None,
            written: None,
            report: Report::default(),
            last_good: None,
            cache: kept.map(|store| PersistedCache::of_tenant(store, &self.id)),
            is_kept: fingerprint.is_some_and(is_kept),
            mark: None,
            replaced: None,
        }
    }
}
