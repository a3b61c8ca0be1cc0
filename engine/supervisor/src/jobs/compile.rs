//! Compiles the tenants that changed, or stands in with what was good before the process began.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::jobs::packed::Packed;
use crate::jobs::recalled::Recalled;
use crate::jobs::render_threads::{Lease, RENDER_THREADS};
use crate::jobs::work::{Attempt, Done, too_heavy};
use crate::model::lifecycle::Finished;
use crate::runner::registry::{Came, Registry};
use crate::runner::tenant::{MadeFrom, failure, hosts_of};
use crate::runner::workers::{Again, Job, Kind, Step, Wait, Weight};
use crate::state::persisted::kept_site;
use content::address::Assignment;
use content::name::TenantId;
use content::report::guard::{guard, inject};
use content::report::{Code, Diagnostic, Report, hint_for};
use content::tenant::{MANIFEST, Site, Written};
use release::snapshot::ResourceTable;
use release::store::Store;
use render::link::Deployment;
use render::template::Templates;
use render::{Compiled, Inputs, Progress};

/// How long one page may take to be rendered. Themes are trusted, and the slowest page takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(10);

/// When the pages of a tenant are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressed {
    /// As soon as they are rendered.
    AtOnce,
    /// If a request waits for them, else when one comes. Until then they lie beside open mounts.
    WhenAsked,
    /// Never: they are read as they are.
    Never,
}

impl MadeFrom {
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

    /// A job that renders it, or takes it from `store` as it was before, and fills the open mounts of `waiting`.
    pub(crate) fn job(
        mut self,
        id: &TenantId,
        store: Option<&Arc<Store>>,
        waiting: Vec<Arc<Compiled>>,
        is_background: bool,
        compressed: Compressed,
    ) -> Job<Done> {
        let (watched, refused) = (self.clone(), self.clone());
        let store = store.cloned();
        let bytes = self.weight();
        let lease = Arc::new(Lease::default());
        let given_up = Arc::clone(&lease);
        Job {
            weight: Some(Weight {
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
            again: None,
            id: id.clone(),
            kind: Kind::Compile,
            is_background,
            watchdog: Some(Box::new(move || {
                let done = endless(&watched)?;
                RENDER_THREADS.release(&given_up);
                Some(done)
            })),
            work: Box::new(move |is_wanted| {
                let begin = Instant::now();
                let is_for_later = compressed == Compressed::WhenAsked && !is_wanted;
                self.inputs.compresses = !is_for_later && compressed != Compressed::Never;
                let recalled = store.and_then(|store| self.recalled(&store, !is_for_later));
                let answers = recalled.as_ref().map(|recalled| recalled.answers);
                let (mut compiled, report) = match recalled {
                    Some(Recalled {
                        compiled, report, ..
                    }) => (Some(compiled), report),
                    None => self.compile(&lease),
                };
                let is_urgent = match &mut compiled {
                    Some(compiled) if is_for_later => {
                        compiled.set_aside();
                        !is_background
                    }
                    // Pages name files of their theme.
                    Some(compiled) if self.inputs.templates.is_served() => {
                        compiled.fill(&waiting);
                        waiting.is_empty()
                    }
                    _ => true,
                };
                Step::Done(Done::Compiled(Box::new(Attempt {
                    made_from: self,
                    waiting,
                    is_urgent,
                    compiled,
                    report,
                    took: begin.elapsed(),
                    recalled: answers,
                })))
            }),
        }
    }

    /// The same job once more, in the background's place.
    fn again(
        &self,
        id: &TenantId,
        store: Option<&Arc<Store>>,
        waiting: &[Arc<Compiled>],
        compressed: Compressed,
    ) -> Again<Done> {
        let mut other = self.clone();
        other.inputs.progress = Arc::default();
        let (id, store, waiting) = (id.clone(), store.cloned(), waiting.to_vec());
        Box::new(move || other.job(&id, store.as_ref(), waiting, true, compressed))
    }

    /// A job that compresses the pages that were set aside, and puts them into their mounts and those of `waiting`.
    fn coding(
        self,
        id: &TenantId,
        uncoded: Arc<Compiled>,
        mut waiting: Vec<Arc<Compiled>>,
    ) -> Job<Done> {
        Job {
            id: id.clone(),
            kind: Kind::Compile,
            is_background: true,
            watchdog: None,
            again: None,
            // What it compresses is in memory.
            weight: None,
            work: Box::new(move |_| {
                if !self.inputs.templates.is_served() {
                    waiting.clear();
                }
                let coded = uncoded.coded(&waiting);
                Step::Done(Done::Coded(Box::new((self, coded))))
            }),
        }
    }
}

impl Registry {
    /// Hands over every tenant whose content, addresses, theme or company profile is not what it was at the last attempt.
    pub(crate) fn compile(
        &mut self,
        assignment: &Arc<Assignment>,
        deployment: &Arc<Deployment>,
        now: Timestamp,
    ) {
        let before = self.compiled_for.replace(Arc::clone(assignment));
        let has_same_addresses = before.is_some_and(|before| Arc::ptr_eq(&before, assignment));
        let mut jobs = Vec::new();
        let mut without_theme = Vec::new();
        let store = self.store().cloned();
        for (id, tenant) in &mut self.tenants {
            let Some(site) = &tenant.site else {
                continue;
            };
            let Some(templates) = self.themes.get(&site.manifest.theme) else {
                let site = Arc::clone(site);
                tenant.lifecycle.stop();
                let report = unknown_theme(&site, self.themes.names());
                tenant.conclude(report, Duration::ZERO);
                if !tenant.lifecycle.has_served() {
                    without_theme.push((id.clone(), site));
                }
                continue;
            };
            let addresses = || {
                let addresses = assignment.addresses.get(id);
                addresses.map_or(&[][..], Vec::as_slice)
            };
            let last = tenant.lifecycle.last();
            if last.is_some_and(|last| {
                last.is_of(site, deployment, templates, &self.islands)
                    && (has_same_addresses || last.addresses == addresses())
            }) {
                continue;
            }
            let made_from = MadeFrom {
                site: Arc::clone(site),
                packed: tenant.packed.clone(),
                folder: tenant.content_folder,
                addresses: addresses().to_vec(),
                hosts: hosts_of(addresses()),
                inputs: Inputs {
                    deployment: Arc::clone(deployment),
                    templates: Arc::clone(templates),
                    islands: Arc::clone(&self.islands),
                    cache: Arc::clone(&tenant.persisted.cache),
                    progress: Arc::default(),
                    compresses: true,
                },
            };
            tenant.lifecycle.begin(&made_from);
            tenant.persisted.cache.begin();
            let waiting: Vec<_> = match self.is_patient || tenant.lifecycle.has_served() {
                true => Vec::new(),
                false => tenant.wait(&made_from).into_iter().collect(),
            };
            let is_background = !waiting.is_empty();
            // Authors look at what they save.
            let is_shown = self.is_patient || self.islands.dev.is_some();
            let compressed = match is_shown || (!is_background && tenant.is_asked()) {
                _ if !self.compresses => Compressed::Never,
                true => Compressed::AtOnce,
                false => Compressed::WhenAsked,
            };
            let store = store.as_ref();
            let again = is_background.then(|| made_from.again(id, store, &waiting, compressed));
            let job = made_from.job(id, store, waiting, is_background, compressed);
            jobs.push(Job { again, ..job });
        }
        for (id, site) in without_theme {
            let addresses = assignment.addresses.get(&id).cloned().unwrap_or_default();
            let job = self.stand_in(&id, &site, addresses, deployment, now);
            jobs.extend(self.or_give_up(&id, job));
        }
        inject("loop", "hand over");
        self.workers.hand_over(jobs);
    }

    /// Lets every tenant be rendered again whose job was lost in a panic: the job was not handed over, or its result was not taken. Returns those whose folders have to be read again for the same reason.
    pub(crate) fn restart_lost_jobs(&mut self) -> BTreeSet<String> {
        let mut unread = BTreeSet::new();
        for (id, tenant) in &mut self.tenants {
            let has_job = |kind| self.workers.has_job(id, kind);
            if tenant.lifecycle.is_rendering() && !has_job(Kind::Compile) {
                tenant.lifecycle.stop();
            }
            if tenant.lifecycle.is_reading() && !has_job(Kind::Read) && !has_job(Kind::Report) {
                // The folder may be as it was when it was last taken.
                tenant.fingerprint = None;
                unread.insert(id.to_string());
            }
        }
        unread
    }

    /// Takes what was done, and waits for more as far as `wait` says.
    pub(crate) fn take_done(&mut self, wait: Wait, now: Timestamp) -> Came {
        let mut came = Came::default();
        while let Some((id, done)) = self.workers.next(wait) {
            match done {
                Done::Read(number, read) => {
                    came.has_folder |= read.is_some();
                    came.is_urgent = true;
                    self.take_reading(&id, number, read, now);
                }
                Done::Gone(number) => self.note_gone(&id, number),
                Done::Unresponsive(number, folder) => {
                    self.report_unresponsive(id, number, folder);
                }
                Done::Compiled(attempt) => {
                    came.is_urgent |= attempt.is_urgent;
                    self.is_stale = true;
                    self.take_attempt(&id, *attempt, now);
                }
                Done::Coded(coded) => {
                    self.is_stale = true;
                    let (made_from, compiled) = *coded;
                    let tenant = self.tenants.get_mut(&id);
                    let tenant = tenant.filter(|tenant| tenant.lifecycle.may_finish(&made_from));
                    if let Some(tenant) = tenant {
                        let compiled = Arc::new(compiled);
                        let finished = Some(Arc::clone(&compiled));
                        tenant.lifecycle.finish(made_from, finished);
                        self.workers.forget(&id);
                        self.note(&compiled);
                    }
                }
                Done::StandIn(stand_in) => {
                    came.is_urgent = true;
                    let tenant = self.tenants.get_mut(&id);
                    let absent = tenant.filter(|tenant| !tenant.lifecycle.has_served());
                    match (absent, stand_in) {
                        (Some(tenant), Some(stand_in)) => {
                            let (compiled, made_from) = *stand_in;
                            tenant.replace_files(&compiled, ResourceTable::default(), now);
                            tenant.is_new = true;
                            tenant.lifecycle.stand_in(made_from, Arc::new(compiled));
                        }
                        (Some(tenant), None) => tenant.lifecycle.give_up(),
                        (None, _) => {}
                    }
                }
            }
        }
        came
    }

    /// Takes a tenant that was compiled, unless it is another one by now.
    fn take_attempt(&mut self, id: &TenantId, attempt: Attempt, now: Timestamp) {
        let made_from = attempt.made_from;
        let store = self.store().cloned();
        let tenant = self.tenants.get_mut(id);
        let Some(tenant) = tenant.filter(|tenant| tenant.lifecycle.awaits(&made_from)) else {
            return;
        };
        tenant.conclude(attempt.report, attempt.took);
        if let Some(compiled) = &attempt.compiled {
            let before = tenant.rendered();
            let pictures = before.map(|before| {
                let secure = self.places.origin.is_secure();
                self.hosts.replaced_pictures(before, compiled, secure)
            });
            tenant.replace_files(compiled, pictures.unwrap_or_default(), now);
            tenant.is_new |= attempt.recalled.is_none() || tenant.unkept.is_some();
        }
        let compiled = attempt.compiled.map(Arc::new);
        let finished = tenant.lifecycle.finish(made_from.clone(), compiled);
        match attempt.recalled {
            Some(answers) => {
                self.in_memory.recalls += 1;
                tenant.recorded.set_last(&made_from.inputs, answers);
            }
            None => {
                self.renders.observe(attempt.took);
                tenant.recorded.is_due |= finished == Finished::Served && store.is_some();
            }
        }
        if matches!(finished, Finished::Served | Finished::Failed)
            && let Some(served) = tenant.lifecycle.served()
        {
            let (made_from, result) = (served.inputs.clone(), Arc::clone(&served.result));
            let mut waiting = attempt.waiting;
            match (result.is_open(), result.is_uncoded()) {
                (false, _) => {
                    self.workers.forget(id);
                    self.note(&result);
                }
                (true, true) => {
                    let job = made_from.coding(id, Arc::clone(&result), waiting.clone());
                    if self.workers.sleep(job) {
                        self.make_room_of(id, &result, waiting);
                    }
                }
                // It is out of memory: whoever asks next has it brought back, or tried again.
                (true, false) => {
                    if attempt.recalled.is_some() {
                        let asleep = Arc::clone(&result);
                        tenant.lifecycle.sleep(made_from.clone(), asleep);
                    }
                    waiting.insert(0, result);
                    let later = Compressed::WhenAsked;
                    let job = made_from.job(id, store.as_ref(), waiting, true, later);
                    self.workers.sleep(job);
                }
            }
        }
        if finished == Finished::NeedsStandIn {
            let MadeFrom {
                site,
                addresses,
                inputs,
                ..
            } = made_from;
            let job = self.stand_in(id, &site, addresses, &inputs.deployment, now);
            let job = self.or_give_up(id, job);
            self.workers.hand_over(job.into_iter().collect());
        }
    }

    /// Where nothing can stand in for a tenant that was never rendered, nobody has to wait for it.
    fn or_give_up(&mut self, id: &TenantId, job: Option<Job<Done>>) -> Option<Job<Done>> {
        if job.is_none()
            && let Some(tenant) = self.tenants.get_mut(id)
        {
            tenant.lifecycle.give_up();
        }
        job
    }

    /// A job that compiles the newest content with the newest theme that can be, of what was good before the process began.
    fn stand_in(
        &self,
        id: &TenantId,
        site: &Arc<Site>,
        addresses: Vec<content::address::Address>,
        deployment: &Arc<Deployment>,
        now: Timestamp,
    ) -> Option<Job<Done>> {
        let persisted = self.persisted.as_ref()?;
        let tenant = self.tenants.get(id)?;
        let (theme, packed) = (&site.manifest.theme, tenant.packed.clone());
        let (themes, drafts) = (Arc::clone(&self.themes.good), self.is_dev());
        let (store, theme) = (Arc::clone(persisted.store()), theme.clone());
        let (id, site, deployment) = (id.clone(), Arc::clone(site), Arc::clone(deployment));
        let (islands, cache) = (
            Arc::clone(&self.islands),
            Arc::clone(&tenant.persisted.cache),
        );
        let templates = self.themes.get(&theme).cloned();
        let progress = Arc::<Progress>::default();
        let watched = Arc::clone(&progress);
        let lease = Arc::new(Lease::default());
        let given_up = Arc::clone(&lease);
        let weight = Weight {
            bytes: weight_of(
                &site.written,
                site.pages.len(),
                addresses.len(),
                packed.as_deref(),
            ),
            refuse: Box::new(|_| Done::StandIn(None)),
        };
        let attempt = move |site: Arc<Site>, packed, templates: Arc<Templates>| {
            let made_from = MadeFrom {
                site,
                packed,
                folder: None,
                addresses: addresses.clone(),
                hosts: hosts_of(&addresses),
                inputs: Inputs {
                    deployment: Arc::clone(&deployment),
                    templates,
                    islands: Arc::clone(&islands),
                    cache: Arc::clone(&cache),
                    progress: Arc::clone(&progress),
                    compresses: true,
                },
            };
            Some((made_from.compile(&lease).0?, made_from))
        };
        let name = id.clone();
        let find = move || {
            let good_theme = || themes.get(&theme);
            let good_site = || {
                let good = Arc::new(kept_site(&store, &id, &site.label)?);
                Some(good.at(now, drafts))
            };
            good_theme()
                .and_then(|good| attempt(Arc::clone(&site), packed, good))
                .or_else(|| attempt(good_site()?, None, templates?))
                .or_else(|| attempt(good_site()?, None, good_theme()?))
                .map(Box::new)
        };
        Some(Job {
            id: name.clone(),
            kind: Kind::Compile,
            is_background: false,
            again: None,
            weight: Some(weight),
            watchdog: Some(Box::new(move || {
                watched.give_up_after(LIMIT)?;
                RENDER_THREADS.release(&given_up);
                Some(Done::StandIn(None))
            })),
            work: Box::new(move |_| {
                let found = guard("kept", name.as_str(), MANIFEST, find);
                Step::Done(Done::StandIn(found.ok().flatten()))
            }),
        })
    }
}

/// What comes of a tenant of which a page has been rendered for longer than [`LIMIT`]; nothing where none has.
fn endless(made_from: &MadeFrom) -> Option<Done> {
    let (path, template) = made_from.inputs.progress.give_up_after(LIMIT)?;
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
            "rendering {page} did not end within {} seconds and was given up",
            LIMIT.as_secs()
        ),
    );
    let hint = "look for loops within loops, and for lists that grow with every turn";
    Some(failed(made_from, diagnostic.hint(hint), LIMIT))
}

/// An attempt that came to nothing.
fn failed(made_from: &MadeFrom, problem: Diagnostic, took: Duration) -> Done {
    Done::Compiled(Box::new(Attempt {
        made_from: made_from.clone(),
        waiting: Vec::new(),
        is_urgent: true,
        compiled: None,
        report: failure(problem),
        took,
        recalled: None,
    }))
}

/// Bytes in memory for each byte of a text, while its page is rendered.
const BYTES_PER_TEXT_BYTE: u64 = 8;

/// Bytes for each key and value, held against its schema and given to a template.
const BYTES_PER_NODE: u64 = 1 << 10;

/// Bytes of a page at one address, with what all pages have in common, and its content encodings.
const BYTES_PER_PAGE: u64 = 48 << 10;

/// Bytes in memory for each byte of a packed folder.
const BYTES_PER_PACKED_BYTE: u64 = 24;

/// Estimates the memory that rendering a tenant takes, in bytes.
fn weight_of(written: &Written, pages: usize, addresses: usize, packed: Option<&Packed>) -> u64 {
    let texts: usize = written.texts.values().map(String::len).sum();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let packed = packed.map_or(0, Packed::len);
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

fn unknown_theme<'a>(site: &Site, themes: impl Iterator<Item = &'a str> + Clone) -> Report {
    let theme = &site.manifest.theme;
    let (message, hint) = if themes.clone().any(|known| known == theme.as_str()) {
        (
            format!("the theme `{theme}` has errors, so that no page can be rendered"),
            format!("mend what is reported of `themes/{theme}`"),
        )
    } else {
        (
            format!("there is no theme `{theme}`"),
            hint_for(theme, themes),
        )
    };
    let mut report = Report::default();
    report.push(Diagnostic::error(Code::UnknownTheme, site.name_of(MANIFEST), message).hint(hint));
    report
}
