//! Jobs that render the pages of a tenant, compress them, or render persisted content in their place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use content::address::Address;
use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report};
use content::tenant::{MANIFEST, Site, ThemedValues};
use release::store::Store;
use render::Cache;
use render::DeploymentFacts;
use render::Templates;
use render::{CompileInputs, CompiledTenant, Islands, RenderAttempt};

use crate::jobs::outcome::{BuildAttempt, JobOutcome, PageOrigin, too_heavy};
use crate::jobs::packed_folder::PackedFolder;
use crate::jobs::render_threads::{RENDER_THREADS, ThreadLease};
use crate::jobs::shared_release::{SharedBuild, SharedReleases};
use crate::model::tenant::BuildKey;
use crate::runner::catalog::tenant::{BuildInputs, failure, hosts_of, render};
use crate::runner::catalog::themes::LastValidThemes;
use crate::runner::threads::job_pool::{Job, JobCopy, JobKind, JobStep, JobWeight};
use crate::state::tables::load_site;

/// The time limit for rendering one page. Themes are trusted, and the slowest page takes a fraction of a second.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// When the pages of a tenant are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompressPages {
    /// Right after rendering.
    Immediately,
    /// Right after rendering if a request waits for the pages, otherwise on the first request. Until then the mounts stay open, and the pages are set aside.
    OnRequest,
    /// Never: the pages are read uncompressed.
    Never,
}

/// The places that may have the pages of a tenant from an earlier rendering.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReleaseSources {
    /// The store of this machine, if there is one.
    pub(crate) store: Option<Arc<Store>>,
    /// The releases of the fleet, if this process is a replica.
    pub(crate) shared: Option<Arc<dyn SharedReleases>>,
}

/// The pages of a tenant, or the reasons that there are none.
struct BuiltPages {
    origin: PageOrigin,
    compiled: Option<CompiledTenant>,
    report: Report,
    took: Duration,
}

impl BuildInputs {
    /// Restores the pages of an earlier rendering, reuses those of another replica, or renders. `is_awaited`: a visitor waits.
    fn build(
        &self,
        sources: &ReleaseSources,
        is_awaited: bool,
        with_pages: bool,
        lease: &ThreadLease,
    ) -> BuiltPages {
        let mut begin = Instant::now();
        let restored = (sources.store.as_ref()).and_then(|store| self.restore(store, with_pages));
        let (origin, compiled, report) = if let Some(restored) = restored {
            let origin = PageOrigin::Persisted(restored.response_key);
            (origin, Some(restored.compiled), restored.report)
        } else {
            let shared = sources.shared.as_deref();
            match shared.map(|shared| self.find_shared(shared, is_awaited)) {
                Some(SharedBuild::Reused(compiled, report)) => {
                    (PageOrigin::Shared, Some(compiled), report)
                }
                Some(SharedBuild::Render(claim)) => {
                    begin = Instant::now();
                    let (compiled, report) = render(self, lease);
                    if let (Some(shared), Some(compiled)) = (shared, &compiled) {
                        self.share(shared, claim, compiled, &report);
                    }
                    (PageOrigin::Rendered, compiled, report)
                }
                None => {
                    let (compiled, report) = render(self, lease);
                    (PageOrigin::Rendered, compiled, report)
                }
            }
        };
        BuiltPages {
            origin,
            compiled,
            report,
            took: begin.elapsed(),
        }
    }

    fn weight(&self) -> u64 {
        let site = &self.site;
        let packed = self.packed.as_deref();
        weight_of(
            &site.written,
            site.pages.len(),
            self.addresses.len(),
            packed,
        )
    }

    /// Returns a job that renders the tenant, or finds an earlier rendering in `sources`, and fills the open mounts of `waiting`.
    ///
    /// The parts of a queued job share the inputs: thousands of tenants may be queued.
    pub(crate) fn job(
        self: Arc<Self>,
        id: &TenantId,
        sources: &ReleaseSources,
        waiting: Vec<Arc<CompiledTenant>>,
        is_background: bool,
        compressed: CompressPages,
    ) -> Job<JobOutcome> {
        let (watched, refused) = (Arc::clone(&self), Arc::clone(&self));
        let sources = sources.clone();
        let bytes = self.weight();
        let lease = Arc::new(ThreadLease::default());
        let abandoned = Arc::clone(&lease);
        Job {
            weight: Some(JobWeight {
                bytes,
                refuse: Box::new(move |limit| {
                    let file = refused.site.label.clone();
                    failed(
                        &refused,
                        too_heavy(file, "rendered", bytes, limit),
                        Duration::ZERO,
                    )
                }),
            }),
            copy: None,
            id: id.clone(),
            kind: JobKind::Compile,
            is_background,
            watchdog: Some(Box::new(move || {
                let done = timed_out(&watched)?;
                RENDER_THREADS.release(&abandoned);
                Some(done)
            })),
            work: Box::new(move |is_wanted| {
                let is_for_later = compressed == CompressPages::OnRequest && !is_wanted;
                let mut made_from = Self::clone(&self);
                made_from.inputs.compresses = !is_for_later && compressed != CompressPages::Never;
                let BuiltPages {
                    origin,
                    mut compiled,
                    report,
                    took,
                } = made_from.build(&sources, is_wanted, !is_for_later, &lease);
                let is_urgent = match &mut compiled {
                    Some(compiled) if is_for_later => {
                        compiled.set_aside();
                        !is_background
                    }
                    // Pages name files of their theme, which a snapshot must serve first.
                    Some(compiled) if made_from.inputs.templates.is_served() => {
                        compiled.fill(&waiting);
                        waiting.is_empty()
                    }
                    _ => true,
                };
                JobStep::Done(JobOutcome::Compiled(Box::new(BuildAttempt {
                    made_from,
                    waiting,
                    is_urgent,
                    compiled,
                    report,
                    took,
                    origin,
                })))
            }),
        }
    }

    /// Returns a function that copies the job, for requests that cannot wait for the background.
    pub(crate) fn copy_job(
        self: &Arc<Self>,
        id: &TenantId,
        sources: &ReleaseSources,
        waiting: &[Arc<CompiledTenant>],
        compressed: CompressPages,
    ) -> JobCopy<JobOutcome> {
        let made_from = Arc::clone(self);
        let (id, sources, waiting) = (id.clone(), sources.clone(), waiting.to_vec());
        Box::new(move || {
            let mut other = Self::clone(&made_from);
            other.inputs.attempt = Arc::default();
            let other = Arc::new(other);
            other.job(&id, &sources, waiting, true, compressed)
        })
    }

    /// Returns a job that compresses the pages that were set aside, and fills their mounts and the mounts of `waiting`.
    pub(crate) fn compression_job(
        self,
        id: &TenantId,
        uncompressed: Arc<CompiledTenant>,
        mut waiting: Vec<Arc<CompiledTenant>>,
    ) -> Job<JobOutcome> {
        Job {
            id: id.clone(),
            kind: JobKind::Compile,
            is_background: true,
            watchdog: None,
            copy: None,
            // The uncompressed pages are in memory already.
            weight: None,
            work: Box::new(move |_| {
                if !self.inputs.templates.is_served() {
                    waiting.clear();
                }
                let coded = uncompressed.compress(&waiting);
                JobStep::Done(JobOutcome::Compressed(Box::new((self, coded))))
            }),
        }
    }
}

/// The content and inputs of a stand-in: pages that are served until the tenant can be rendered.
pub(crate) struct StandInBuild {
    pub(crate) site: Arc<Site>,
    pub(crate) packed: Option<Arc<PackedFolder>>,
    pub(crate) addresses: Arc<[Address]>,
    pub(crate) inputs: StandInInputs,
}

/// The inputs of a stand-in, other than content.
pub(crate) struct StandInInputs {
    pub(crate) key: BuildKey,
    pub(crate) deployment: Arc<DeploymentFacts>,
    pub(crate) islands: Arc<Islands>,
    pub(crate) cache: Arc<Cache>,
    /// The current theme.
    pub(crate) templates: Option<Arc<Templates>>,
    /// The last valid versions of themes.
    pub(crate) persisted_themes: Arc<LastValidThemes>,
    pub(crate) store: Arc<Store>,
    pub(crate) now: Timestamp,
    pub(crate) includes_hidden: bool,
}

impl StandInBuild {
    /// Returns a job that renders a stand-in.
    ///
    /// The job tries the current content with the last valid theme, then the persisted content with the current theme, then both persisted versions.
    pub(crate) fn job(self, id: &TenantId) -> Job<JobOutcome> {
        let Self {
            site,
            packed,
            addresses,
            inputs,
        } = self;
        let StandInInputs {
            key,
            deployment,
            islands,
            cache,
            templates,
            persisted_themes: themes,
            store,
            now,
            includes_hidden,
        } = inputs;
        let theme = site.manifest.theme.clone();
        let rendering = Arc::<RenderAttempt>::default();
        let watched = Arc::clone(&rendering);
        let lease = Arc::new(ThreadLease::default());
        let abandoned = Arc::clone(&lease);
        let weight = JobWeight {
            bytes: weight_of(
                &site.written,
                site.pages.len(),
                addresses.len(),
                packed.as_deref(),
            ),
            refuse: Box::new(|_| JobOutcome::StandIn(None)),
        };
        let attempt = move |site: Arc<Site>, packed, templates: Arc<Templates>| {
            let made_from = BuildInputs {
                key,
                site,
                packed,
                folder: None,
                addresses: addresses.clone(),
                hosts: hosts_of(&addresses),
                inputs: CompileInputs {
                    deployment: Arc::clone(&deployment),
                    templates,
                    islands: Arc::clone(&islands),
                    cache: Arc::clone(&cache),
                    attempt: Arc::clone(&rendering),
                    compresses: true,
                },
            };
            Some((render(&made_from, &lease).0?, made_from))
        };
        let (id, name) = (id.clone(), id.clone());
        let find = move || {
            let good_theme = || themes.get(&theme);
            let good_site = || {
                let good = Arc::new(load_site(&store, &id, &site.label)?);
                Some(good.at(now, includes_hidden))
            };
            good_theme()
                .and_then(|good| attempt(Arc::clone(&site), packed, good))
                .or_else(|| attempt(good_site()?, None, templates?))
                .or_else(|| attempt(good_site()?, None, good_theme()?))
                .map(Box::new)
        };
        Job {
            id: name.clone(),
            kind: JobKind::Compile,
            is_background: false,
            copy: None,
            weight: Some(weight),
            watchdog: Some(Box::new(move || {
                watched.abandon_after(PAGE_TIMEOUT)?;
                RENDER_THREADS.release(&abandoned);
                Some(JobOutcome::StandIn(None))
            })),
            work: Box::new(move |_| {
                let found = guard("persisted", name.as_str(), MANIFEST, find);
                JobStep::Done(JobOutcome::StandIn(found.ok().flatten()))
            }),
        }
    }
}

/// Returns a failed build if the rendering of a page has exceeded [`PAGE_TIMEOUT`].
fn timed_out(made_from: &BuildInputs) -> Option<JobOutcome> {
    let (path, template) = made_from.inputs.attempt.abandon_after(PAGE_TIMEOUT)?;
    let site = &made_from.site;
    let page = site.pages.get(&path);
    let page = page.map_or_else(
        || "an error page".to_owned(),
        |page| format!("`{}`", site.name_of(&page.file)),
    );
    let diagnostic = Diagnostic::error(
        Code::TemplateFailed,
        format!("{}/{template}", made_from.inputs.templates.theme.label),
        format!(
            "rendering {page} did not end within {} seconds and was abandoned",
            PAGE_TIMEOUT.as_secs()
        ),
    );
    let hint = "look for nested loops, and for lists that grow in a loop";
    Some(failed(made_from, diagnostic.hint(hint), PAGE_TIMEOUT))
}

/// Returns a failed build with this problem.
fn failed(made_from: &BuildInputs, problem: Diagnostic, took: Duration) -> JobOutcome {
    JobOutcome::Compiled(Box::new(BuildAttempt {
        made_from: made_from.clone(),
        waiting: Vec::new(),
        is_urgent: true,
        compiled: None,
        report: failure(problem),
        took,
        origin: PageOrigin::Rendered,
    }))
}

/// Bytes in memory for each byte of a text while its page is rendered.
const BYTES_PER_TEXT_BYTE: u64 = 8;

/// Bytes in memory for each key and value while it is validated and passed to a template.
const BYTES_PER_NODE: u64 = 1 << 10;

/// Bytes of a page at one address, with all content encodings and its share of common data.
const BYTES_PER_PAGE: u64 = 48 << 10;

/// Bytes in memory for each byte of a packed folder.
const BYTES_PER_PACKED_BYTE: u64 = 24;

/// Estimates the memory that rendering a tenant needs, in bytes.
fn weight_of(
    written: &ThemedValues,
    pages: usize,
    addresses: usize,
    packed: Option<&PackedFolder>,
) -> u64 {
    let texts: usize = written.texts.values().map(String::len).sum();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let packed = packed.map_or(0, PackedFolder::len);
    [
        (count(texts), BYTES_PER_TEXT_BYTE),
        (count(written.nodes), BYTES_PER_NODE),
        (
            count(pages).saturating_mul(count(addresses.max(1))),
            BYTES_PER_PAGE,
        ),
        (count(packed), BYTES_PER_PACKED_BYTE),
    ]
    .into_iter()
    .map(|(count, bytes)| count.saturating_mul(bytes))
    .fold(0, u64::saturating_add)
}
