//! The data of one tenant: the last valid content, the current pages, and the diagnostics of the folder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use content::address::Address;
use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report, Severity};
use content::source::{FileHashes, Folder, LargeSourceFile};
use content::tenant::{HiddenReason, MANIFEST, Site};
use release::snapshot::ResourceTable;
use release::store::TableMark;
use render::{AddressMount, CompileInputs, CompiledTenant};
use server::admin::status::{PreviewStatus, TenantStatus};

use crate::jobs::arrival::{Arrival, LastLook};
use crate::jobs::packed_folder::{FolderContent, PackedFolder};
use crate::jobs::persisted_reading::PersistedReading;
use crate::jobs::render_threads::{RENDER_THREADS, ThreadLease};
use crate::model::tenant::BuildKey;
use crate::model::tenant::TenantState as States;
use crate::runner::memory::demand::TenantDemand;
use crate::runner::threads::job_pool::processors;
use crate::snapshot::replaced::ReplacedFiles;
use crate::state::release_record::ReleaseRecord;
use crate::state::tables::PersistedCache;

/// The data of a tenant. The model holds the states of the tenant ([`States`]).
#[derive(Debug)]
pub(crate) struct TenantData {
    pub(crate) reading: LastReading,
    pub(crate) content: ValidContent,
    pub(crate) reports: TenantReports,
    /// The addresses of the pages, and the revision of the addresses; 0 before the first assignment.
    pub(crate) addresses: (Arc<[Address]>, u64),
    /// The current pages, or the open mounts at which requests wait.
    pub(crate) served: Option<ServedPages>,
    /// The persisted cache of costly results.
    pub(crate) persisted: PersistedCache,
    /// The counts and times of visitors' requests.
    pub(crate) demand: TenantDemand,
    /// The files that older pages may still request.
    pub(crate) replaced: ReplacedFiles,
    /// The duration of the last build.
    pub(crate) compiled_in: Duration,
    /// The recorded and pinned releases.
    pub(crate) recorded: ReleaseRecord,
}

/// The result of the last reading of the folder.
#[derive(Debug, Default)]
pub(crate) struct LastReading {
    /// The hash of all files; `None` if reading panicked.
    pub(crate) fingerprint: Option<[u8; 32]>,
    /// The diagnostics of reading, without the diagnostics of the content.
    pub(crate) report: Report,
    /// The hash of each file, if releases are recorded.
    pub(crate) files: Option<FileHashes>,
    /// The files that changed a short time ago.
    pub(crate) look: Arc<LastLook>,
    /// The files that the tenant waits for, one line each.
    awaited: Vec<String>,
    /// The files that are too large for memory.
    pub(crate) large: BTreeMap<String, LargeSourceFile>,
    /// The key under which the content is still to be persisted, so that an unchanged folder is not read again.
    pub(crate) mark: Option<TableMark>,
}

impl LastReading {
    /// Records the files whose upload has not ended.
    pub(crate) fn set_arrival(&mut self, arrival: Arrival) {
        self.look = Arc::new(arrival.look);
        self.awaited = arrival.files;
    }
}

/// The last content without errors.
#[derive(Debug)]
pub(crate) struct ValidContent {
    /// The content with all pages, including future and expired pages.
    read: Option<Arc<Site>>,
    /// The hash of the folder that `read` comes from, if known.
    pub(crate) folder: Option<[u8; 32]>,
    /// The content that visitors see now.
    pub(crate) site: Option<Arc<Site>>,
    /// The revision of `site`; `None` until inputs are derived from `site`.
    pub(crate) revision: Option<u64>,
    /// The period in which `site` is valid: its start, and its end if a page appears or expires.
    shown: (Timestamp, Option<Timestamp>),
    /// The end of the period of `site` as recorded in the catalog.
    pub(crate) recorded_change: Option<Timestamp>,
    /// The packed folder, if `read` is an outline.
    pub(crate) packed: Option<Arc<PackedFolder>>,
    /// The folder, until it is persisted.
    pub(crate) pending: Option<FolderContent>,
}

/// The diagnostics of a tenant.
#[derive(Debug, Default)]
pub(crate) struct TenantReports {
    /// The diagnostics of the folder.
    pub(crate) content: Report,
    /// The diagnostics of the rendered pages.
    pub(crate) result: Report,
    /// The refused claims of addresses.
    pub(crate) conflicts: Vec<Diagnostic>,
}

impl Default for ValidContent {
    fn default() -> Self {
        Self {
            read: None,
            folder: None,
            site: None,
            revision: None,
            shown: (Timestamp::MIN, None),
            recorded_change: None,
            packed: None,
            pending: None,
        }
    }
}

impl ValidContent {
    /// Returns the size of the packed folder in bytes; 0 if no folder is packed.
    pub(crate) fn packed_bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, |packed| packed.len())
    }
}

impl TenantData {
    pub(crate) fn new(persisted: PersistedCache, replaced: ReplacedFiles) -> Self {
        Self {
            reading: LastReading::default(),
            content: ValidContent::default(),
            reports: TenantReports::default(),
            addresses: (Arc::default(), 0),
            served: None,
            persisted,
            demand: TenantDemand::default(),
            replaced,
            compiled_in: Duration::ZERO,
            recorded: ReleaseRecord::default(),
        }
    }

    /// Returns the current errors of the folder, the pages and the addresses.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.reports
            .content
            .iter()
            .chain(self.reports.result.iter())
            .chain(&self.reports.conflicts)
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns the row of the tenant on the admin listener.
    pub(crate) fn status(
        &self,
        id: &TenantId,
        states: &States,
        preview: Option<PreviewStatus>,
    ) -> TenantStatus {
        let (state, since) = states.state();
        TenantStatus {
            id: id.shared(),
            state,
            since,
            pages: self.compiled().map_or(0, |compiled| compiled.pages),
            hosts: self
                .served
                .as_ref()
                .map_or_else(Arc::default, |served| Arc::clone(&served.made_from.hosts)),
            compiled_in: self.compiled_in,
            is_in_flight: states.is_in_flight(),
            errors: self.errors().map(one_line).collect(),
            pinned: self.recorded.pinned.as_ref().map(|pinned| pinned.number),
            unreadable_pin: states.unreadable_pin(),
            receiving: match states.is_receiving() {
                true => self.reading.awaited.clone(),
                false => Vec::new(),
            },
            preview,
        }
    }

    /// Returns the pages that visitors get: the pinned release, or else the pages of the folder.
    pub(crate) fn compiled(&self) -> Option<&Arc<CompiledTenant>> {
        let pinned = self.recorded.pinned.as_ref();
        pinned
            .map(|pinned| &pinned.compiled)
            .or_else(|| self.rendered())
    }

    /// Returns the pages of the last valid content of the folder, even while a release is pinned.
    pub(crate) fn rendered(&self) -> Option<&Arc<CompiledTenant>> {
        self.served.as_ref().map(|served| &served.compiled)
    }

    /// Replaces the content.
    pub(crate) fn set_content(&mut self, site: Site, now: Timestamp, includes_hidden: bool) {
        let site = Arc::new(site);
        self.content.site = Some(site.at(now, includes_hidden));
        self.content.revision = None;
        self.content.shown = (now, site.next_change(now));
        self.content.read = Some(site);
    }

    /// Unpacks the content permanently, because pages of other tenants show settings and files of this tenant.
    pub(crate) fn unpack(&mut self, now: Timestamp, includes_hidden: bool) {
        let content = self.content.packed.as_ref().zip(self.content.read.as_ref());
        if let Some(site) = content.and_then(|(packed, outline)| packed.site(&outline.id)) {
            self.content.packed = None;
            self.set_content(site, now, includes_hidden);
        }
    }

    /// Shows pages that have appeared, and hides pages that have expired.
    pub(crate) fn update_pages(&mut self, now: Timestamp, includes_hidden: bool) {
        let (since, until) = self.content.shown;
        if since <= now && until.is_none_or(|until| now < until) {
            return;
        }
        let (Some(content), Some(shown)) = (&self.content.read, &self.content.site) else {
            return;
        };
        self.content.shown = (now, content.next_change(now));
        let marked = |hidden: Option<HiddenReason>| hidden.filter(|_| includes_hidden);
        let due = content
            .pages
            .values()
            .filter(|page| page.is_shown(now, includes_hidden))
            .map(|page| (&page.path, marked(page.hidden_at(now))));
        let shown = shown.pages.iter().map(|(path, page)| (path, page.hidden));
        if !due.eq(shown) {
            self.content.site = Some(content.at(now, includes_hidden));
            self.content.revision = None;
        }
    }

    /// Returns a note about the pages that are not served at time `now` because of their times.
    pub(crate) fn scheduled_pages(&self, now: Timestamp) -> Option<Diagnostic> {
        self.content.read.as_ref()?.scheduled_pages(now)
    }

    /// Returns the next time at which a page of the tenant appears or expires.
    pub(crate) const fn next_change(&self) -> Option<Timestamp> {
        self.content.shown.1
    }

    /// Lets requests wait at the addresses of the tenant until its pages are rendered.
    ///
    /// Returns the open mounts, or `None` if the tenant has no address or creating the mounts panics.
    pub(crate) fn open_mounts(&mut self, made_from: &BuildInputs) -> Option<Arc<CompiledTenant>> {
        let BuildInputs {
            site,
            addresses,
            inputs,
            ..
        } = made_from;
        let before = self.rendered().map(AsRef::as_ref);
        let waiting = || CompiledTenant::pending(site, addresses, inputs, before);
        let waiting = guard("wait", site.id.as_str(), &site.label, waiting);
        let waiting = Arc::new(waiting.ok().flatten()?);
        self.served = Some(ServedPages {
            made_from: made_from.clone(),
            compiled: Arc::clone(&waiting),
        });
        Some(waiting)
    }

    /// Returns the last reading of the folder, if the folder is packed.
    pub(crate) fn packed_reading(&self) -> Option<PersistedReading> {
        Some(PersistedReading {
            site: Arc::clone(self.content.read.as_ref()?),
            packed: Arc::clone(self.content.packed.as_ref()?),
            files: self.reading.files.clone()?,
            report: self.reports.content.clone(),
        })
    }

    /// Evicts the pages. Returns the inputs of the job that restores the pages, and the open mounts.
    pub(crate) fn evict(&mut self) -> Option<(BuildInputs, Arc<CompiledTenant>)> {
        let served = self.served.as_mut()?;
        let made_from = &mut served.made_from;
        made_from.inputs.cache = Arc::clone(&self.persisted.cache);
        made_from.inputs.attempt = Arc::default();
        served.compiled = Arc::new(served.compiled.evicted(&self.persisted.cache));
        let evicted = (served.made_from.clone(), Arc::clone(&served.compiled));
        self.demand.note_eviction();
        Some(evicted)
    }

    /// Records the files of the current content as served files, if the tenant is evicted. Must be called before the content is replaced.
    pub(crate) fn retain_files(&mut self, is_secure: bool) {
        let is_asleep = self.rendered().is_some_and(|compiled| {
            compiled.is_rendered && compiled.is_open() && !compiled.is_uncompressed()
        });
        if !is_asleep {
            return;
        }
        let folder = match (&self.content.packed, &self.content.read) {
            (Some(packed), _) => packed.folder(),
            (None, Some(site)) => Some(assets_of(site)),
            (None, None) => None,
        };
        if let Some(folder) = folder {
            self.replaced
                .set_served_before(render::replaced_files(&folder, is_secure));
        }
    }

    /// Records the diagnostics and the duration of a build.
    pub(crate) fn record_build(&mut self, report: Report, took: Duration) {
        self.reports.result = report;
        self.compiled_in = took;
    }

    /// Adds the images in `images`, and the files that `new` no longer has, to the replaced files.
    pub(crate) fn replace_files(
        &mut self,
        new: &CompiledTenant,
        images: ResourceTable,
        now: Timestamp,
    ) {
        // A tenant's files are the same at all its addresses.
        let files = |compiled: &CompiledTenant| compiled.mounts.first().cloned();
        if let Some(new) = files(new)
            && let Some(new) = new.pages()
        {
            let old = self.rendered().and_then(|old| files(old));
            let old = old.as_ref().and_then(AddressMount::pages);
            let old = old.map(|pages| &**pages.resources.files());
            self.replaced.replace(old, new.resources.files(), now);
            self.replaced.add(images, now);
        }
    }
}

/// The pages of a tenant with their inputs.
#[derive(Debug, Clone)]
pub(crate) struct ServedPages {
    pub(crate) made_from: BuildInputs,
    pub(crate) compiled: Arc<CompiledTenant>,
}

/// All inputs of a build.
#[derive(Debug, Clone)]
pub(crate) struct BuildInputs {
    pub(crate) key: BuildKey,
    pub(crate) site: Arc<Site>,
    /// The packed folder, if `site` is an outline.
    pub(crate) packed: Option<Arc<PackedFolder>>,
    /// The hash of the folder, if known.
    pub(crate) folder: Option<[u8; 32]>,
    pub(crate) addresses: Arc<[Address]>,
    /// The addresses as text, for the admin listener.
    pub(crate) hosts: Arc<[String]>,
    pub(crate) inputs: CompileInputs,
}

/// Returns addresses as text: host and prefix.
pub(crate) fn hosts_of(addresses: &[Address]) -> Arc<[String]> {
    let addresses = addresses.iter();
    addresses.map(Address::key).collect()
}

/// Renders all pages of a tenant at all its addresses. `lease` holds the threads of a large tenant during the build.
pub(crate) fn render(
    made_from: &BuildInputs,
    lease: &ThreadLease,
) -> (Option<CompiledTenant>, Report) {
    let site = &made_from.site;
    let work = || {
        let opened = made_from
            .packed
            .as_ref()
            .map(|packed| packed.shown_as(site));
        let opened = opened.unwrap_or_default();
        let site = opened.as_ref().unwrap_or(site);
        render::compile(site, &made_from.addresses, &made_from.inputs)
    };
    let work = || guard("compile", site.id.as_str(), &site.name_of(MANIFEST), work);
    // Starting threads takes longer than rendering a small tenant.
    let wanted = site.pages.len() * made_from.addresses.len() / MIN_PAGES_PER_THREAD;
    let compiled = match RENDER_THREADS.lease(
        wanted.min(processors()),
        MAX_THREADS_PER_PROCESSOR * processors(),
        lease,
    ) {
        Some(pool) => pool.install(work),
        None => work(),
    };
    RENDER_THREADS.release(lease);
    compiled.unwrap_or_else(|diagnostic| (None, failure(diagnostic)))
}

/// Returns the files of a site, by their paths in its folder.
fn assets_of(site: &Site) -> Folder {
    let file = |path: &String| format!("assets/{path}");
    let (files, large) = (site.assets.iter(), site.large.iter());
    Folder {
        label: site.label.clone(),
        files: files
            .map(|(path, bytes)| (file(path), bytes.clone()))
            .collect(),
        large: large
            .map(|(path, large)| (file(path), large.clone()))
            .collect(),
    }
}

/// The limit on threads of all large tenants, per processor. Two large tenants have as many threads each as a single one.
const MAX_THREADS_PER_PROCESSOR: usize = 2;

/// The number of pages per thread, counted once for each address. The start of a thread costs more than rendering fewer pages.
const MIN_PAGES_PER_THREAD: usize = 8;

/// Returns a report with one diagnostic.
pub(crate) fn failure(diagnostic: Diagnostic) -> Report {
    let mut report = Report::default();
    report.push(diagnostic);
    report
}

/// Returns whether a file could not be read. A later attempt may succeed.
pub(crate) fn has_unreadable_file(report: &Report) -> bool {
    let mut diagnostics = report.iter();
    diagnostics.any(|diagnostic| diagnostic.code == Code::Unreadable)
}

/// Returns a diagnostic in one line, for logs and lists.
pub(crate) fn one_line(diagnostic: &Diagnostic) -> String {
    match diagnostic.position {
        Some(place) => format!(
            "{}:{}:{}: {} [{}]",
            diagnostic.file, place.line, place.column, diagnostic.message, diagnostic.code
        ),
        None => format!(
            "{}: {} [{}]",
            diagnostic.file, diagnostic.message, diagnostic.code
        ),
    }
}
