//! Every tenant, theme and address, and how they become a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use content::address::{Assignment, Origin};
use content::name::TenantId;
use content::report::Report;
use content::report::guard::inject;
use content::source::SourceError;
use content::tenant::Site;
use content::tenant::manifest::Company;
use release::snapshot::Snapshot;
use render::link::Deployment;
use render::{Compiled, Islands};
use server::status::{RenderTimes, Status};

use crate::jobs::work::Done;
use crate::places::Places;
use crate::runner::addresses::Addresses;
use crate::runner::cards::Cards;
use crate::runner::demand::{InMemory, Names};
use crate::runner::round::Round;
use crate::runner::tenant::Tenant;
use crate::runner::themes::Themes;
use crate::runner::workers::{SOON, Wait, Workers};
use crate::snapshot::hosts::Hosts;
use crate::snapshot::replaced::{self, Retention};
use crate::snapshot::shared::Shared;
use crate::source::survey::{Survey, SurveyRequest};
use crate::state::persisted::Persisted;

/// Why there is nothing to serve.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The tenants' or themes' folder cannot be listed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The folder of tenants held some, and holds none: more likely an unmounted volume than a wish.
    #[error("the folder `{}` has become empty: what it held is still served", .0.display())]
    Emptied(PathBuf),
}

/// How long a tenant may take at the start to be waited for: who is sent here once the process is ready should find it, and the others should not wait for long.
const AT_THE_START: Duration = Duration::from_secs(10);

/// The time after its last change in which a file that ends early counts as being uploaded.
const UPLOAD_PAUSE: Duration = Duration::from_secs(10);

/// What came of waiting for the workers.
#[derive(Debug, Default)]
pub(crate) struct Came {
    /// Whether a folder was read, which may change what others are.
    pub(crate) has_folder: bool,
    /// Whether somebody waits for a snapshot with what came.
    pub(crate) is_urgent: bool,
}

/// The owner of all tenants.
#[derive(Debug)]
pub struct Registry {
    pub(crate) places: Places,
    pub(crate) islands: Arc<Islands>,
    pub(crate) tenants: BTreeMap<TenantId, Tenant>,
    pub(crate) addresses: Addresses,
    pub(crate) themes: Themes,
    deployment: Option<Arc<Deployment>>,
    cards: Cards,
    pub(crate) shared: Shared,
    pub(crate) hosts: Hosts,
    pub(crate) notes: Report,
    pub(crate) persisted: Option<Persisted>,
    /// Whether something is still to be kept: the disk is slow, or another process writes.
    pub(crate) is_behind: bool,
    /// The tenants of whose pictures requests wait for one.
    pub(crate) wanted_pictures: Names,
    /// The last look at who was asked for.
    pub(crate) asked: Round,
    /// Where tenants are read, checked and compiled.
    pub(crate) workers: Workers<Done>,
    /// How often a folder was handed over to be read.
    pub(crate) readings: u64,
    /// The most bytes of pages and pictures in memory, where there is a limit.
    pub(crate) memory: Option<usize>,
    /// How long replaced files stay.
    pub(crate) keep_assets: SignedDuration,
    /// The last look at memory.
    pub(crate) looked: Round,
    /// What was in memory then.
    pub(crate) in_memory: InMemory,
    /// How long tenants take to be rendered.
    pub(crate) renders: RenderTimes,
    /// Whether content is kept packed.
    pub(crate) packs: bool,
    /// The time after its last change in which a file that ends early counts as being uploaded.
    pub(crate) upload_pause: Duration,
    /// Whether those that take long are waited for, too.
    pub(crate) is_patient: bool,
    /// Whether pages are compressed.
    pub(crate) compresses: bool,
    /// Whether examples of kinds of section are pages.
    shows_kinds: bool,
    /// Whether a reload has ended.
    pub(crate) is_started: bool,
    /// Whether something is compiled that is in no snapshot yet.
    pub(crate) is_stale: bool,
    /// The addresses with which tenants were last compiled.
    pub(crate) compiled_for: Option<Arc<Assignment>>,
    /// The last snapshot.
    renewed: Round,
    /// The next moment at which a page comes or goes, by the content that was last settled.
    next_change: Option<Timestamp>,
    /// When folders were last read.
    pub(crate) now: Timestamp,
    pub(crate) alarm: Option<String>,
    /// Whether changes are noticed by polling, although notifications were wanted.
    pub(crate) is_polled: bool,
}

impl Registry {
    /// A registry without tenants.
    #[must_use]
    pub fn new(places: Places, islands: Arc<Islands>) -> Self {
        Self {
            places,
            islands,
            tenants: BTreeMap::new(),
            addresses: Addresses::default(),
            themes: Themes::default(),
            deployment: None,
            cards: Cards::default(),
            shared: Shared::default(),
            now: Timestamp::UNIX_EPOCH,
            hosts: Hosts::default(),
            notes: Report::default(),
            persisted: None,
            is_behind: false,
            wanted_pictures: Names::default(),
            asked: Round::new(),
            workers: Workers::new(),
            readings: 0,
            memory: None,
            keep_assets: replaced::A_DAY,
            looked: Round::new(),
            in_memory: InMemory::default(),
            renders: RenderTimes::default(),
            packs: false,
            upload_pause: Duration::ZERO,
            is_patient: true,
            compresses: true,
            shows_kinds: false,
            is_started: false,
            is_stale: false,
            compiled_for: None,
            renewed: Round::new(),
            next_change: None,
            alarm: None,
            is_polled: false,
        }
    }

    /// Reads every folder, and compiles what changed since the last time.
    ///
    /// # Errors
    /// When the folder of tenants or themes cannot be listed, or holds nothing where it held something; the last state stays.
    pub fn reload(&mut self, now: Timestamp) -> Result<Snapshot, ReloadError> {
        let survey = self.survey_request(true).run();
        self.reload_surveyed(now, survey, None)
    }

    /// Returns a request to read what concerns all tenants. `with_themes`: the themes as well.
    pub(crate) fn survey_request(&self, with_themes: bool) -> SurveyRequest {
        SurveyRequest::new(&self.places, with_themes)
    }

    /// Takes a survey, and has the folders of `tenants` (all without them) and of new tenants read.
    ///
    /// # Errors
    /// As [`Registry::reload`].
    pub(crate) fn reload_surveyed(
        &mut self,
        now: Timestamp,
        survey: Survey,
        tenants: Option<&BTreeSet<String>>,
    ) -> Result<Snapshot, ReloadError> {
        self.now = now;
        let folders = match self.listed(survey.tenants) {
            Ok(folders) => Some(folders),
            Err(problem) => {
                self.alarm = Some(problem.to_string());
                self.restore(now).then_some(()).ok_or(problem)?;
                None
            }
        };
        if let Some(themes) = survey.themes {
            let directory = self.places.themes.as_deref();
            let persisted = self.persisted.as_ref();
            self.themes.reload(directory, Some(themes), persisted)?;
        } else if self.places.themes.is_none() {
            self.themes.reload(None, None, self.persisted.as_ref())?;
        }
        if let Some(folders) = folders {
            self.alarm = None;
            self.read_tenants(folders, tenants);
        }
        let persisted = self.persisted.as_ref();
        self.addresses
            .read(&self.places, survey.deployment, persisted);
        Ok(self.reload_read(now))
    }

    /// Has the folders of these tenants read, which are known.
    pub(crate) fn reload_known(&mut self, now: Timestamp, tenants: &BTreeSet<String>) -> Snapshot {
        self.now = now;
        let known = tenants.iter().filter_map(|name| {
            let (id, _) = self.tenants.get_key_value(name.as_str())?;
            Some((id.clone(), self.places.tenants.join(name)))
        });
        let known: Vec<_> = known.collect();
        self.read_known(known);
        self.reload_read(now)
    }

    /// Takes what was read in time, and makes a snapshot of it.
    fn reload_read(&mut self, now: Timestamp) -> Snapshot {
        let wait = match (self.is_patient, self.is_started) {
            (true, _) => Wait::All,
            (false, false) => Wait::Each(AT_THE_START),
            (false, true) => Wait::Until(Instant::now() + SOON),
        };
        self.take_done(wait, now);
        let snapshot = self.settle(wait, now);
        self.is_started = true;
        snapshot
    }

    /// What was done in the meantime; `None` when nothing was, or nobody has to see it at once.
    pub(crate) fn reload_done(&mut self, now: Timestamp) -> Option<Snapshot> {
        let wait = Wait::Until(Instant::now() + SOON);
        let deployment = self.deployment.clone()?;
        let came = self.take_done(wait, now);
        if self.workers.is_held() {
            self.go_on();
        }
        if came.has_folder {
            return Some(self.settle(wait, now));
        }
        if came.is_urgent {
            return Some(self.renew(&deployment));
        }
        self.is_stale |= self.make_room();
        let is_due = self.renewed.is_over()
            || self.in_memory.has_much_leaving()
            || !self.workers.has_background()
            || (self.is_stale && self.is_awaited());
        (self.is_stale && is_due).then(|| self.renew(&deployment))
    }

    /// Whether a request waits for a tenant that is there by now, at an address of the last snapshot that nobody fills any more.
    fn is_awaited(&self) -> bool {
        self.workers.wait_in_vain(|id| {
            let compiled = self.tenants.get(id).and_then(Tenant::compiled);
            compiled.is_some_and(|compiled| !compiled.is_open())
        })
    }

    /// Gives out addresses and compiles what changed, until no folder comes in any more that changes what others are.
    fn settle(&mut self, wait: Wait, now: Timestamp) -> Snapshot {
        loop {
            for tenant in self.tenants.values_mut() {
                tenant.turn_pages(now, self.islands.dev.is_some());
            }
            let tenants = self.tenants.values();
            let changes = tenants.filter_map(Tenant::next_change);
            self.next_change = changes.min();
            inject("addresses", "all");
            let assignment = self
                .addresses
                .assign(&self.places.origin, &mut self.tenants);
            let deployment = self.deployment(assignment.root.clone(), now);
            self.compile(&assignment, &deployment, now);
            if !self.take_done(wait, now).has_folder {
                return self.renew(&deployment);
            }
        }
    }

    /// A snapshot of what is to be served now, after something else than a folder changed.
    pub(crate) fn serve_again(&mut self) -> Option<Snapshot> {
        let deployment = self.deployment.clone()?;
        Some(self.renew(&deployment))
    }

    /// Keeps files with hashed names for so long after they were replaced, instead of a day.
    #[must_use]
    pub fn with_assets_for(mut self, time: Duration) -> Self {
        self.keep_assets = time.try_into().unwrap_or(SignedDuration::MAX);
        self
    }

    /// Notes how long tenants take to be rendered.
    #[must_use]
    pub fn with_render_times(mut self, renders: RenderTimes) -> Self {
        self.renders = renders;
        self
    }

    /// Keeps no more than so many bytes of pages and pictures in memory.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Limits the memory of all work in progress (reading, rendering) to so many bytes.
    #[must_use]
    pub fn with_work_memory(self, bytes: u64) -> Self {
        self.workers.limit_memory(bytes);
        self
    }

    /// Leaves pages as they are: for who only looks at them, or writes them somewhere else.
    #[must_use]
    pub const fn without_codings(mut self) -> Self {
        self.compresses = false;
        self
    }

    /// Leaves files out that end early and were written a few seconds before, until they are read again. For a server alone, which reads again.
    #[must_use]
    pub const fn awaiting_uploads(mut self) -> Self {
        self.upload_pause = UPLOAD_PAUSE;
        self
    }

    /// Lets nobody wait for tenants that take long: what is not done soon is taken by [`Registry::reload_done`].
    #[must_use]
    pub fn impatient(mut self) -> Self {
        self.is_patient = false;
        self
    }

    /// A registry whose tenants have the examples of their theme's kinds of section as pages, which all pages may show in frames. For the manual of the program.
    #[must_use]
    pub fn with_kinds_shown(mut self) -> Self {
        self.shows_kinds = true;
        self
    }

    /// How long replaced files stay, and how much room they have: those on the disk at most half of the state.
    pub(crate) fn retention(&self) -> Retention {
        let limit = self.store().map(|store| store.max_bytes() / 2);
        Retention {
            kept_for: self.keep_assets,
            large_bytes: limit.unwrap_or(u64::MAX),
        }
    }

    /// A snapshot of what is compiled now.
    fn renew(&mut self, deployment: &Arc<Deployment>) -> Snapshot {
        inject("loop", "snapshot");
        let begun = Instant::now();
        self.is_stale = false;
        self.in_memory.leaving = 0;
        self.restore_pins();
        self.share();
        self.tenants.values_mut().for_each(Tenant::settle);
        let retention = self.retention();
        let replaced = self.tenants.values_mut().map(|tenant| &mut tenant.replaced);
        replaced::prune_all(replaced, self.now, retention);
        let snapshot = self.snapshot(deployment);
        self.renewed = Round::since(begun);
        snapshot
    }

    /// Says that the last snapshot is served: pages may name its files from now on.
    pub fn set_served(&self) {
        self.shared.set_served();
    }

    /// Waits until all tenants are rendered that can be within this time, and gives a snapshot of what is.
    pub fn finish_soon(&mut self, time: Duration, now: Timestamp) -> Option<Snapshot> {
        let until = Instant::now() + time;
        while self.workers.has_background() && Instant::now() < until {
            self.take_done(Wait::Until(Instant::now() + SOON), now);
            thread::sleep(SOON / 20);
        }
        // The last may have come in since.
        self.take_done(Wait::Until(Instant::now()), now);
        let deployment = self.deployment.clone()?;
        Some(self.renew(&deployment))
    }

    /// The next moment at which a page comes or goes, anywhere.
    #[must_use]
    pub const fn next_change(&self) -> Option<Timestamp> {
        self.next_change
    }

    /// The year of the copyright line: the company's, where it is.
    pub(crate) fn year(&self, now: Timestamp) -> i16 {
        let deployment = self.deployment.as_ref();
        let zone = deployment.map(|deployment| deployment.company.time_zone.clone());
        zone.unwrap_or_default().year(now)
    }

    /// Whether this is for authors (`--dev`).
    pub(crate) fn is_dev(&self) -> bool {
        self.islands.dev.is_some()
    }

    /// Where the folders are.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Everything that there is to say, by file and line.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.notes.clone();
        report.extend(
            self.addresses
                .report(self.tenants.keys().map(TenantId::as_str)),
        );
        report.extend(self.themes.report().cloned());
        report.extend(self.shared.failed.clone());
        for tenant in self.tenants.values() {
            report.extend(tenant.content.clone());
            report.extend(tenant.result.clone());
            report.extend(tenant.conflicts.clone());
        }
        report.extend(self.hosts.report.clone());
        report.extend(self.cross_tenant());
        report.sorted()
    }

    /// Why the folders or `deployment.yaml` are of no use, while what they held is served.
    #[must_use]
    pub fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref().or(self.addresses.alarm())
    }

    /// How every tenant is doing, for the admin listener.
    #[must_use]
    pub fn status(&self) -> Status {
        let tenants = self
            .tenants
            .iter()
            .map(|(id, tenant)| tenant.status(id))
            .collect();
        Status {
            complete: self.is_started,
            alarm: self.alarm().map(ToOwned::to_owned),
            polling: self.is_polled,
            tenants,
        }
    }

    /// The tenants' content as it is served.
    pub fn sites(&self) -> impl Iterator<Item = (&Site, &Compiled)> {
        self.tenants.values().filter_map(|tenant| {
            let served = tenant.lifecycle.served()?;
            Some((served.inputs.site.as_ref(), served.result.as_ref()))
        })
    }

    /// What all tenants share; the same `Arc` as before when nothing of it changed.
    fn deployment(&mut self, root: Option<TenantId>, now: Timestamp) -> Arc<Deployment> {
        self.open_shown(root.as_ref(), now);
        let site = root
            .as_ref()
            .and_then(|root| self.tenants.get(root)?.site.as_deref());
        let origin = &self.places.origin;
        let company = site.and_then(|site| site.manifest.company.clone());
        let company = company.unwrap_or_else(|| anonymous(origin));
        let sites = company.sites.iter().map(|one| {
            let site = TenantId::new(&one.tenant)
                .ok()
                .and_then(|id| self.tenants.get(&id)?.site.clone());
            let theme = |site: &Site| self.themes.get(&site.manifest.theme).cloned();
            let source = site.and_then(|site| theme(&site).map(|theme| (site, theme)));
            (one.clone(), source)
        });
        let sites = sites.collect();
        let deployment = Deployment {
            origin: origin.clone(),
            sites: self.cards.renew(sites),
            year: company.time_zone.year(now),
            company,
            image: site.and_then(|site| render::default_image(site, origin)),
            root,
            hsts: (self.places.hsts)
                .or_else(|| site.map(|site| site.manifest.hsts))
                .unwrap_or_default(),
            caching: self.places.caching,
            shows_kinds: self.shows_kinds,
        };
        if let Some(before) = &self.deployment
            && **before == deployment
        {
            return Arc::clone(before);
        }
        let deployment = Arc::new(deployment);
        self.deployment = Some(Arc::clone(&deployment));
        deployment
    }

    /// Opens the content of those tenants that all pages show something of.
    fn open_shown(&mut self, root: Option<&TenantId>, now: Timestamp) {
        let drafts = self.is_dev();
        let company = || {
            let site = self.tenants.get(root?)?.site.as_ref()?;
            site.manifest.company.clone()
        };
        let sites = company().map_or_else(Vec::new, |company| company.sites);
        let sites = sites.iter().map(|site| site.tenant.as_str());
        for id in root.map(TenantId::as_str).into_iter().chain(sites) {
            if let Some(tenant) = self.tenants.get_mut(id) {
                tenant.open(now, drafts);
            }
        }
    }
}

/// The company where no tenant tells of one: the domain itself.
fn anonymous(origin: &Origin) -> Company {
    serde_json::from_value(serde_json::json!({
        "name": origin.domain(),
        "legal_name": origin.domain(),
        "description": "",
        "email": format!("postmaster@{}", origin.domain()),
    }))
    .unwrap_or_else(|error| unreachable!("the profile is whole: {error}"))
}
