//! What workers do for a tenant: read and check its folder, or render it; and what they bring back.
//!
//! **Invariant:** knows no other tenant, and changes nothing: whoever asked takes what is brought.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Diagnostic, Report};
use content::source::{self, Folder, Hashes, Limits};
use content::tenant::{Site, Written, read_or_written};
use release::large;
use release::store::Store;
use render::Compiled;

use super::packed::Content;
use super::persisted::{PersistedCache, is_kept};
use super::replaced::ReplacedFiles;
use super::tenant::{MadeFrom, failure};

/// What was done for a tenant.
#[derive(Debug)]
pub(super) enum Done {
    /// Its folder was read, by the number of the reading; nothing where it is as it was.
    Read(u64, Option<Box<Read>>),
    /// It was compiled.
    Compiled(Box<Attempt>),
    /// Its pages were compressed.
    Coded(Box<(MadeFrom, Compiled)>),
    /// What was good before the process began was compiled; nothing where that was of no use either.
    StandIn(Option<Box<(Compiled, MadeFrom)>>),
}

/// A tenant that was compiled.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) made_from: MadeFrom,
    /// Where requests wait for it that came before it was rendered.
    pub(super) waiting: Vec<Arc<Compiled>>,
    /// Whether a snapshot with it is to be served at once.
    pub(super) is_urgent: bool,
    pub(super) compiled: Option<Compiled>,
    pub(super) report: Report,
    pub(super) took: Duration,
    /// Where it was not rendered but taken up as it was before: a digest of what it answers.
    pub(super) recalled: Option<[u8; 32]>,
}

/// A folder that is not as it was.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) content: Content,
    pub(super) files: Hashes,
    /// Not known where reading failed, so that it is read whatever it holds the next time.
    pub(super) fingerprint: Option<[u8; 32]>,
    /// What reading said, apart from what the content is.
    pub(super) reading: Report,
    /// Its content, when that could be made out.
    pub(super) site: Option<Site>,
    /// What is written, where it could not be made out.
    pub(super) written: Option<Written>,
    pub(super) report: Report,
    /// What was kept of a tenant that is new, where its folder is of no use.
    pub(super) last_good: Option<Site>,
    /// What was worked out for a tenant that is new.
    pub(super) cache: Option<PersistedCache>,
    /// Whether its good copy is this folder.
    pub(super) is_kept: bool,
    /// The files that such a tenant had before.
    pub(super) replaced: Option<ReplacedFiles>,
}

impl Read {
    /// Reads a folder and checks it; `None` when it is as it was. `large`: where files go that are too large for memory; `store`: where a tenant that is new may have been kept; `packs`: whether content is to take little memory.
    pub(super) fn of(
        id: &TenantId,
        path: &Path,
        label: &str,
        known: Option<([u8; 32], Report)>,
        large: &Path,
        store: Option<&Arc<Store>>,
        packs: bool,
    ) -> Option<Self> {
        let take_large = |file, size| large::take(file, size, large);
        let (folder, reading) = source::read(path, label, Limits::default(), Some(&take_large));
        let files = folder.hashes();
        let fingerprint = files.fingerprint();
        if known.is_some_and(|known| known == (fingerprint, reading.clone())) {
            return None;
        }
        // Of a folder that could not be read at all, what it lacks is no news.
        let is_read = !folder.files.is_empty() || reading.is_servable();
        let check = || match is_read {
            true => {
                let (site, report) = read_or_written(id, &folder);
                (Some(site), report)
            }
            false => (None, Report::default()),
        };
        let (site, problems) = guard("check", id.as_str(), label, check)
            .unwrap_or_else(|diagnostic| (None, failure(diagnostic)));
        let (site, written) = match site {
            Some(Ok(site)) => (Some(site), None),
            Some(Err(written)) => (None, Some(written)),
            None => (None, None),
        };
        let mut report = reading.clone();
        report.extend(problems);
        let is_kept = store.is_some_and(|store| is_kept(store, id, &fingerprint));
        let content = Content::Open(folder);
        let packed = content.packed().filter(|_| packs && report.is_servable());
        let (content, site) = match packed {
            Some(packed) => (Content::Packed(packed), site.map(Site::outline)),
            None => (content, site),
        };
        Some(Self {
            cache: store.map(|store| PersistedCache::of_tenant(store, id)),
            is_kept,
            replaced: None,
            content,
            files,
            fingerprint: Some(fingerprint),
            reading,
            site,
            written,
            report,
            last_good: None,
        })
    }

    pub(super) fn good_site(&self) -> Option<&Site> {
        self.site.as_ref().filter(|_| self.report.is_servable())
    }

    pub(super) fn failed(label: &str, diagnostic: Diagnostic) -> Self {
        Self {
            content: Content::Open(Folder {
                label: label.to_owned(),
                ..Folder::default()
            }),
            fingerprint: None,
            reading: Report::default(),
            site: None,
            written: None,
            report: failure(diagnostic),
            files: Hashes::default(),
            last_good: None,
            cache: None,
            is_kept: false,
            replaced: None,
        }
    }
}
