//! Passes events to the [`World`](crate::model::world::World), and executes its actions on the data of tenants, the job pool and the store.
//!
//! A server handles events one by one ([`crate::ReloadLoop`]). Commands such as `check` and `export` call [`Registry::reload`], which waits for a complete snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use tracing::{info, warn};

use content::name::TenantId;
use content::report::Report;
use content::report::guard::inject;
use release::snapshot::{ResourceTable, Snapshot};
use render::Cache;
use render::CompiledTenant;
use server::admin::status::{StatusBoard, StoreStatus};

use crate::jobs::arrival::Arrival;
use crate::jobs::compile::{CompressPages, StandInBuild, StandInInputs};
use crate::jobs::outcome::{BuildAttempt, FolderReading, JobOutcome, PageOrigin, ReadRequest};
use crate::jobs::pin;
use crate::jobs::read::{self, ReadOptions};
use crate::model::agenda::{Reload, ReloadScope};
use crate::model::event::{
    Action, BuildResult, ChangeSet, ClockTime, Event, OutsideFacts, ReadingOutcome, ServedForm,
    StoreState, SurveyOutcome,
};
use crate::model::tenant::{BuildKey, TenantState as States};
use crate::model::world::Mode;
use crate::runner::catalog::complete_tenant::{self, CompleteTenant};
use crate::runner::catalog::tenant::{BuildInputs, ServedPages, TenantData, has_unreadable_file};
use crate::runner::memory;
use crate::runner::memory::bytes_of;
use crate::runner::preview;
use crate::runner::registry::{Registry, ReloadError};
use crate::runner::removal;
use crate::runner::threads::background::order;
use crate::runner::threads::job_pool::{EXPECTED_TIME, Job};
use crate::snapshot::replaced::ReplacedFiles;
use crate::source::survey::{RestoredTenant, Survey, SurveyRequest};
use crate::state::release_record::PinnedRelease;
use crate::state::releases::{place, queue_room};
use crate::state::tables::{PersistedCache, PersistedState};
use crate::state::write::{self, persist_tenant};

/// The time that a tenant may take at startup before the first snapshot is published without its newest pages.
const STARTUP_TIME: Duration = Duration::from_secs(10);

/// The interval at which the job pool is polled while the caller waits.
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// The services around a supervisor: the reports of reloads, and surveys on other threads.
pub(crate) trait Environment {
    /// Notes that a reload begins.
    fn begin_reload(&mut self, reload: Reload);

    /// Starts a survey, whose end is reported as [`Event::Surveyed`].
    fn survey(&mut self, reload: Reload, request: SurveyRequest);

    /// Returns whether a survey can be started.
    fn can_survey(&mut self) -> bool;
}

/// An environment without surveys, for commands that read all folders once.
struct NoEnvironment;

impl Environment for NoEnvironment {
    fn begin_reload(&mut self, _: Reload) {}

    fn survey(&mut self, _: Reload, _: SurveyRequest) {}

    fn can_survey(&mut self) -> bool {
        false
    }
}

/// The data of an event that the plain [`Event`] does not contain.
#[derive(Debug)]
pub(crate) enum EventData {
    Nothing,
    Read(Box<FolderReading>),
    Unresponsive(Arc<ReadRequest>),
    Built(Box<FinishedBuild>),
    StandIn(Box<(CompiledTenant, BuildInputs)>),
    Release(Box<PinnedRelease>),
    Restored(Box<RestoredTenant>),
}

/// The output of a build that has ended.
#[derive(Debug)]
pub(crate) struct FinishedBuild {
    made_from: BuildInputs,
    compiled: Option<Arc<CompiledTenant>>,
    /// The results without pages at whose open mounts requests wait.
    waiting: Vec<Arc<CompiledTenant>>,
    /// The diagnostics of the build and its duration; `None` if pages were only compressed.
    outcome: Option<(Report, Duration)>,
    origin: PageOrigin,
    /// Whether the job compressed pages and rendered none.
    is_encoding: bool,
}

impl Registry {
    /// Reads all folders, builds the tenants that have changed, and returns a snapshot.
    ///
    /// # Errors
    /// Returns an error if the folder of tenants or themes cannot be listed, or if the folder of tenants has become empty. The last valid state stays.
    pub fn reload(&mut self, now: Timestamp) -> Result<Snapshot, ReloadError> {
        let survey = self.survey_request(true).run();
        let outcome = self.apply_survey(survey, None, now)?;
        self.handle(Event::Surveyed(outcome), now);
        Ok(self.drive(now))
    }

    /// Applies the result of a survey. The folders of new tenants and of `only` (of all tenants if `None`) are read next.
    ///
    /// # Errors
    /// As [`Registry::reload`].
    pub(crate) fn apply_survey(
        &mut self,
        survey: Survey,
        only: Option<BTreeSet<String>>,
        now: Timestamp,
    ) -> Result<SurveyOutcome, ReloadError> {
        self.catalog.now = now;
        let folders = match self.check_listing(survey.tenants) {
            Ok(folders) => Some(folders),
            Err(problem) => {
                self.alarm = Some(problem.to_string());
                if !self.restore(survey.restored, now) {
                    return Err(problem);
                }
                None
            }
        };
        let has_themes = survey.themes.is_some();
        if let Some(themes) = survey.themes {
            self.catalog.themes = themes?;
            if self.catalog.themes.have_unreadable_file() {
                self.handle(Event::Unread(ReloadScope::Themes), now);
            }
        }
        if let Some(folders) = folders {
            self.alarm = None;
            let folders = self.catalog.name(folders, &self.settings);
            let tenants: BTreeSet<TenantId> = folders.into_keys().collect();
            let listed = removal::note_sleep(self, &tenants, now);
            self.handle(Event::Listed { tenants, only }, now);
            if let Some(persisted) = &mut self.persisted {
                persisted.retain(&listed, self.world.removed().keys());
            }
        }
        for (tenant, read) in survey.removed {
            let is_found = read.is_some();
            if !is_found {
                warn!(%tenant, "the state has no readable folder of a removed tenant; the tenant is not restored");
            }
            let mut data = read.map_or(EventData::Nothing, |read| {
                EventData::Restored(Box::new(read))
            });
            let event = Event::RemovedRead { tenant, is_found };
            self.handle_with(event, &mut data, now);
        }
        let persisted = self.persisted.as_ref();
        let config = &self.settings.config;
        let addresses = &mut self.catalog.addresses;
        addresses.read(config, survey.deployment, persisted, clock().instant);
        if addresses.needs_another_read() {
            self.handle(Event::Unread(ReloadScope::List), now);
        }
        Ok(match has_themes || self.catalog.addresses.has_new_rules() {
            true => SurveyOutcome::NewForAll,
            false => SurveyOutcome::SameForAll,
        })
    }

    /// Handles all results of the job pool and the actions that follow, without waiting. Returns a snapshot if one is to be published now.
    pub(crate) fn advance(
        &mut self,
        environment: &mut dyn Environment,
        now: Timestamp,
    ) -> Option<Snapshot> {
        loop {
            while let Some((id, done)) = self.job_pool.poll() {
                self.handle_result(&id, done, now);
            }
            let facts = self.facts(environment);
            // A job may have ended after the pool was polled, so that the facts are outdated.
            if let Some((id, done)) = self.job_pool.poll() {
                self.handle_result(&id, done, now);
                continue;
            }
            let actions = self.world.step(Event::QueueDrained(facts), clock());
            if actions.is_empty() {
                return None;
            }
            if let Some(snapshot) = self.perform(actions, &mut EventData::Nothing, environment, now)
            {
                return Some(snapshot);
            }
        }
    }

    /// Handles an event, and executes the actions that follow.
    pub(crate) fn handle(&mut self, event: Event, now: Timestamp) {
        self.handle_with(event, &mut EventData::Nothing, now);
    }

    /// Handles an event with its data, and executes the actions that follow.
    pub(crate) fn handle_with(&mut self, event: Event, event_data: &mut EventData, now: Timestamp) {
        let actions = self.world.step(event, clock());
        // Only `Event::QueueDrained` leads to publications, surveys and watches.
        self.perform(actions, event_data, &mut NoEnvironment, now);
    }

    /// Waits until a snapshot is complete, and returns it.
    fn drive(&mut self, now: Timestamp) -> Snapshot {
        loop {
            if let Some(snapshot) = self.advance(&mut NoEnvironment, now) {
                self.report_published(Duration::ZERO, now);
                return snapshot;
            }
            if let Some((id, done)) = self.job_pool.wait(POLL_INTERVAL) {
                self.handle_result(&id, done, now);
            }
        }
    }

    /// Records that the last snapshot was published. `took`: the time for assembling and reporting the snapshot.
    pub(crate) fn report_published(&mut self, took: Duration, now: Timestamp) {
        self.handle(Event::Published { took }, now);
    }

    /// Collects the facts of [`Event::QueueDrained`].
    fn facts(&mut self, environment: &mut dyn Environment) -> OutsideFacts {
        let expected = match (self.settings.mode, self.world.is_started()) {
            (Mode::Batch, _) => None,
            (Mode::Serve, false) => Some(STARTUP_TIME),
            (Mode::Serve, true) => Some(EXPECTED_TIME),
        };
        let tenants = &self.catalog.tenants;
        // The pages of the folder, also of a pinned tenant: its images come from them.
        let is_there = |id: &str| {
            let rendered = tenants.get(id).and_then(|tenant| tenant.rendered());
            rendered.is_some_and(|rendered| !rendered.is_open())
        };
        OutsideFacts {
            has_readings: self.job_pool.has_readings(expected),
            has_builds: self.job_pool.has_work(expected),
            has_background: self.job_pool.has_background(),
            is_awaited: self.job_pool.forget_built(is_there),
            can_survey: environment.can_survey(),
            store: self.store_state(),
        }
    }

    /// Returns whether changes can be persisted, and the free space in the queue of the store.
    fn store_state(&self) -> StoreState {
        let Some(store) = self.store() else {
            return StoreState::Absent;
        };
        match store.claim() {
            Ok(()) if !store.has_problem() => StoreState::Ready(queue_room(store)),
            _ => StoreState::ReadOnly,
        }
    }

    /// Returns whether readings are in flight that are likely to end within [`EXPECTED_TIME`] of their start.
    pub(crate) fn has_readings(&self) -> bool {
        self.job_pool.has_readings(Some(EXPECTED_TIME))
    }

    /// Assembles a snapshot of all built tenants. `changes`: the changes since the last snapshot.
    pub(crate) fn snapshot(&mut self, changes: ChangeSet) -> Snapshot {
        let store = self.persisted.as_ref().map(PersistedState::store);
        let (catalog, world) = (&mut self.catalog, &self.world);
        let publisher = &mut self.publisher;
        let (snapshot, replaced) =
            publisher.publish(changes, catalog, world, &self.settings, store);
        let changed = &self.publisher.changes;
        match changed.affects_all {
            true => self
                .demands
                .changed
                .extend(self.catalog.tenants.keys().cloned()),
            false => self.demands.changed.extend(changed.tenants.iter().cloned()),
        }
        self.handle(Event::DataAdded(replaced), self.catalog.now);
        snapshot
    }

    /// Renders tenants for at most `time`, and returns a snapshot of the rendered tenants. Returns `None` if no addresses are assigned yet.
    pub fn finish_within(&mut self, time: Duration, now: Timestamp) -> Option<Snapshot> {
        let until = Instant::now() + time;
        while self.job_pool.has_background() && Instant::now() < until {
            if self.advance(&mut NoEnvironment, now).is_some() {
                self.report_published(Duration::ZERO, now);
            }
            thread::sleep(POLL_INTERVAL);
        }
        while self.advance(&mut NoEnvironment, now).is_some() {
            self.report_published(Duration::ZERO, now);
        }
        self.catalog.deployment.as_ref()?;
        Some(self.snapshot(ChangeSet::all()))
    }

    /// Waits until all tenants are rendered, and returns a snapshot. Requests for tenants beyond the memory limit wait in that snapshot. `board` shows the progress.
    pub fn finish(&mut self, board: &StatusBoard, now: Timestamp) -> Option<Snapshot> {
        loop {
            let is_busy = self.job_pool.is_busy();
            if self.advance(&mut NoEnvironment, now).is_some() {
                self.report_published(Duration::ZERO, now);
                board.replace(self.status());
                memory::measure(self, now);
            }
            memory::measure_when_due(self, now);
            // `advance` may have started further jobs.
            if !is_busy && !self.job_pool.is_busy() {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        memory::measure(self, now);
        board.replace(self.status());
        self.catalog.deployment.as_ref()?;
        Some(self.snapshot(ChangeSet::all()))
    }

    /// Passes all new data to the store, waiting for space in its queue.
    pub fn persist(&mut self) {
        let now = self.catalog.now;
        loop {
            if self.advance(&mut NoEnvironment, now).is_some() {
                self.report_published(Duration::ZERO, now);
            }
            write::persist_shared(self);
            if !self.world.has_persistable() || self.store_state() == StoreState::ReadOnly {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the store has written its queue to disk.
    pub fn finish_persisting(&self) {
        if let Some(store) = self.store() {
            store.finish();
        }
    }

    /// Renders all images of the last snapshot.
    pub fn render_images(&mut self) {
        order::render_images(self);
        let drawn = self.catalog.tenants.keys().cloned().collect();
        self.handle(Event::DataAdded(drawn), self.catalog.now);
    }

    /// Compresses all pages of the last snapshot at the best level of each content encoding.
    pub fn compress_fully(&self) {
        order::compress_fully(self);
    }

    /// Returns the use of memory and disk.
    #[must_use]
    pub fn store_status(&self) -> StoreStatus {
        memory::store_status(self)
    }

    /// Calls `visit` with each tenant that has pages, in the order of their names. Evicted pages are rendered again. `is_compressed`: with all content encodings.
    ///
    /// # Errors
    /// Returns the first error of `visit`.
    pub fn for_each_complete_tenant<E>(
        &self,
        is_compressed: bool,
        visit: impl FnMut(&CompleteTenant) -> Result<(), E>,
    ) -> Result<(), E> {
        complete_tenant::for_each(self, is_compressed, visit)
    }

    /// Handles the result of a job.
    pub(crate) fn handle_result(&mut self, id: &TenantId, done: JobOutcome, now: Timestamp) {
        let tenant = id.clone();
        let mut event_data = EventData::Nothing;
        let event = match done {
            JobOutcome::Read(number, read, arrival, changed) => {
                if let Some(changed) = changed {
                    let tenant = tenant.clone();
                    self.handle(Event::PreviewRead { tenant, changed }, now);
                }
                let event = self.read_event(id, number, read.as_deref(), *arrival);
                event_data = read.map_or(EventData::Nothing, EventData::Read);
                event
            }
            JobOutcome::Gone(number) => Event::Read {
                tenant,
                number,
                reading: ReadingOutcome::Gone,
                is_changing: false,
            },
            JobOutcome::Unresponsive(number, folder) => {
                event_data = EventData::Unresponsive(folder);
                Event::Read {
                    tenant,
                    number,
                    reading: ReadingOutcome::Unresponsive,
                    is_changing: false,
                }
            }
            JobOutcome::Compiled(attempt) => {
                let BuildAttempt {
                    made_from,
                    waiting,
                    is_urgent,
                    compiled,
                    report,
                    took,
                    origin,
                } = *attempt;
                let result = self.result(id, compiled.as_ref(), &report, origin, is_urgent);
                let key = made_from.key;
                event_data = EventData::Built(Box::new(FinishedBuild {
                    made_from,
                    compiled: compiled.map(Arc::new),
                    waiting,
                    outcome: Some((report, took)),
                    origin,
                    is_encoding: false,
                }));
                Event::Built {
                    tenant,
                    key,
                    result,
                }
            }
            JobOutcome::Compressed(coded) => {
                let (made_from, compiled) = *coded;
                let (key, bytes) = (made_from.key, bytes_of(&compiled));
                event_data = EventData::Built(Box::new(FinishedBuild {
                    made_from,
                    compiled: Some(Arc::new(compiled)),
                    waiting: Vec::new(),
                    outcome: None,
                    origin: PageOrigin::Rendered,
                    is_encoding: true,
                }));
                Event::Encoded { tenant, key, bytes }
            }
            JobOutcome::StandIn(found) => {
                let is_found = found.is_some();
                event_data = found.map_or(EventData::Nothing, EventData::StandIn);
                Event::StoodIn { tenant, is_found }
            }
            JobOutcome::Release(release) => {
                let data = self.catalog.tenants.get(id);
                let placed = data
                    .zip(release)
                    .and_then(|(data, release)| place(data, *release));
                let is_found = placed.is_some();
                event_data = placed.map_or(EventData::Nothing, |placed| {
                    EventData::Release(Box::new(placed))
                });
                Event::PinLoaded { tenant, is_found }
            }
            JobOutcome::PinWritten(problem) => {
                let is_written = problem.is_none();
                self.commands.set_problem(problem);
                Event::PinWritten { tenant, is_written }
            }
        };
        self.handle_with(event, &mut event_data, now);
    }

    /// Describes the result of a reading for the model, and records the files whose upload has not ended.
    fn read_event(
        &mut self,
        id: &TenantId,
        number: u64,
        read: Option<&FolderReading>,
        arrival: Arrival,
    ) -> Event {
        let reading = match read {
            _ if arrival.is_waiting => ReadingOutcome::Receiving {
                has_content: read.is_some(),
                quiet_in: arrival.quiet_in,
            },
            None => ReadingOutcome::Unchanged,
            Some(read) => ReadingOutcome::Changed {
                has_errors: !read.report.is_servable(),
                is_unreadable: has_unreadable_file(&read.reading),
            },
        };
        let is_changing = arrival.is_changing;
        if let Some(tenant) = self.catalog.tenants.get_mut(id) {
            tenant.reading.set_arrival(arrival);
        }
        Event::Read {
            tenant: id.clone(),
            number,
            reading,
            is_changing,
        }
    }

    /// Describes the result of a build for the model.
    fn result(
        &self,
        id: &TenantId,
        compiled: Option<&CompiledTenant>,
        report: &Report,
        origin: PageOrigin,
        is_urgent: bool,
    ) -> BuildResult {
        let Some(compiled) = compiled else {
            return BuildResult::Failed;
        };
        let tenant = self.catalog.tenants.get(id);
        let has_unkept = tenant.is_some_and(|tenant| tenant.reading.mark.is_some());
        BuildResult::Pages {
            form: match (compiled.is_open(), compiled.is_uncompressed()) {
                (false, _) => ServedForm::Complete,
                (true, true) => ServedForm::Unencoded,
                (true, false) => ServedForm::Evicted,
            },
            is_persisted: origin.persisted_key().is_some() && !has_unkept,
            has_errors: !report.is_servable(),
            bytes: bytes_of(compiled),
            is_requested: self.job_pool.is_wanted(id),
            is_urgent,
        }
    }

    /// Executes the actions that the world has decided on. Returns a snapshot if one is to be published.
    pub(crate) fn perform(
        &mut self,
        actions: Vec<Action>,
        event_data: &mut EventData,
        environment: &mut dyn Environment,
        now: Timestamp,
    ) -> Option<Snapshot> {
        let mut jobs = Vec::new();
        let mut snapshot = None;
        for action in actions {
            match action {
                Action::BeginReload(reload) => environment.begin_reload(reload),
                Action::Survey(reload) => {
                    let request = self.survey_request(reload.includes_themes);
                    environment.survey(reload, request);
                }
                Action::Read {
                    tenant,
                    number,
                    is_only,
                    waits,
                } => jobs.push(self.read_job(tenant, number, is_only, waits)),
                Action::ReportUnresponsive { tenant, number } => {
                    if let EventData::Unresponsive(folder) = event_data {
                        let (folder, is_secure) = (Arc::clone(folder), self.settings.is_secure());
                        jobs.push(read::report_unresponsive(tenant, number, folder, is_secure));
                    }
                }
                Action::Forget(tenant) => {
                    self.catalog.forget(&tenant);
                    self.job_pool.forget(&tenant);
                }
                Action::ReportRemoval(tenant) => removal::report(self, &tenant),
                Action::ReportReturn(tenant) => removal::report_return(&tenant),
                Action::ReportPreview { tenant, phase } => preview::report(self, &tenant, phase),
                Action::Restore(tenant) => {
                    if let EventData::Restored(restored) =
                        std::mem::replace(event_data, EventData::Nothing)
                    {
                        removal::restore(self, tenant, *restored, now);
                    }
                }
                Action::ForgetHistory(tenant) => removal::forget(self, &tenant),
                Action::PersistRemovals => removal::persist(self),
                Action::ReplaceContent(tenant) => {
                    if let EventData::Read(read) = std::mem::replace(event_data, EventData::Nothing)
                    {
                        let (catalog, is_persisting) =
                            (&mut self.catalog, self.persisted.is_some());
                        catalog.now = now;
                        catalog.replace_content(&tenant, *read, &self.settings, is_persisting);
                        write::persist_reading(self, &tenant);
                    }
                }
                Action::Plan(changes) => self.plan(&changes, now),
                Action::Build { tenant, key, opens } => {
                    jobs.extend(self.build_job(&tenant, key, opens));
                }
                Action::ReportBuild(tenant) => self.report_build(&tenant, event_data),
                Action::Serve { tenant, .. } => self.serve(&tenant, event_data, now),
                Action::ServeStandIn(tenant) => self.serve_stand_in(&tenant, event_data, now),
                Action::Close(tenant) => {
                    if let Some(tenant) = self.catalog.tenants.get_mut(&tenant) {
                        tenant.served = None;
                    }
                }
                Action::StandIn(tenant) => match self.stand_in_job(&tenant, now) {
                    Some(job) => jobs.push(job),
                    None => {
                        let is_found = false;
                        self.handle(Event::StoodIn { tenant, is_found }, now);
                    }
                },
                Action::Park { tenant, .. } => self.park(&tenant, event_data),
                Action::Evict { tenant, .. } => self.evict(&tenant, event_data),
                Action::LoadPin { tenant, number } => {
                    jobs.extend(self.store().map(|store| pin::load(store, tenant, number)));
                }
                Action::WritePin { tenant, to } => {
                    jobs.extend(self.store().map(|store| pin::write(store, tenant, to)));
                }
                Action::ServePin { tenant, is_pinned } => {
                    self.serve_pin(&tenant, is_pinned, event_data);
                }
                Action::Reply { ticket, reply } => self.commands.reply(ticket, reply),
                Action::Persist(tenant) => persist_tenant(self, &tenant),
                Action::Publish(changes) => {
                    inject("loop", "snapshot");
                    snapshot = Some(self.snapshot(changes));
                }
            }
        }
        if !jobs.is_empty() {
            inject("loop", "hand over");
            self.job_pool.hand_over(jobs);
        }
        snapshot
    }

    /// Assigns addresses, derives the inputs of builds, and reports them as [`Event::Planned`].
    fn plan(&mut self, changes: &ChangeSet, now: Timestamp) {
        inject("addresses", "all");
        let begun = Instant::now();
        let plans = self.catalog.plan(changes, &self.settings, now);
        if let Some(dormant) = &self.settings.dormant {
            dormant.set_needed(self.catalog.shown_by_all());
        }
        let took = begun.elapsed();
        self.handle(Event::Planned { plans, took }, now);
    }

    /// Returns a job that reads the folder of a tenant. A new tenant is added to the catalog.
    fn read_job(
        &mut self,
        id: TenantId,
        number: u64,
        is_only: bool,
        waits: bool,
    ) -> Job<JobOutcome> {
        let is_new = !self.catalog.tenants.contains_key(&id);
        let order = ReadOptions {
            settings: &self.settings,
            store: self
                .persisted
                .as_ref()
                .map(|persisted| Arc::clone(persisted.store())),
            number,
            is_only,
            waits,
            is_new,
            is_packed: self.catalog.is_packed,
        };
        let tenant = self.catalog.tenants.entry(id.clone());
        let tenant = tenant.or_insert_with(|| {
            Box::new(TenantData::new(
                PersistedCache::default(),
                ReplacedFiles::default(),
            ))
        });
        read::read(id, tenant, order)
    }

    /// Returns a job that builds a tenant, or `None` if inputs are missing.
    ///
    /// `opens`: requests wait at the addresses of the tenant, and the job runs in the background.
    fn build_job(&mut self, id: &TenantId, key: BuildKey, opens: bool) -> Option<Job<JobOutcome>> {
        let made_from = self.catalog.inputs(id, key, &self.settings)?;
        let sources = self.release_sources();
        let tenant = self.catalog.tenants.get_mut(id)?;
        tenant.persisted.cache.begin();
        let waiting = opens.then(|| tenant.open_mounts(&made_from)).flatten();
        let waiting: Vec<_> = waiting.into_iter().collect();
        let is_background = !waiting.is_empty();
        let compressed = self
            .settings
            .compression(!is_background && tenant.is_requested());
        let made_from = Arc::new(made_from);
        let copy = is_background.then(|| made_from.copy_job(id, &sources, &waiting, compressed));
        let job = made_from.job(id, &sources, waiting, is_background, compressed);
        Some(Job { copy, ..job })
    }

    /// Records the diagnostics and the duration of a build.
    fn report_build(&mut self, id: &TenantId, event_data: &mut EventData) {
        if let EventData::Built(built) = event_data
            && let Some((report, took)) = built.outcome.take()
            && let Some(tenant) = self.catalog.tenants.get_mut(id)
        {
            tenant.record_build(report, took);
            if built.origin == PageOrigin::Rendered && built.compiled.is_some() {
                self.settings.renders.observe(took);
            }
        }
    }

    /// Makes the pages of a build the current pages of the tenant.
    fn serve(&mut self, id: &TenantId, event_data: &EventData, now: Timestamp) {
        let EventData::Built(built) = event_data else {
            return;
        };
        let (is_secure, is_persisting) = (self.settings.is_secure(), self.persisted.is_some());
        let hosts = &self.publisher.hosts;
        let Some(tenant) = self.catalog.tenants.get_mut(id) else {
            return;
        };
        let Some(compiled) = &built.compiled else {
            return;
        };
        let before = tenant.rendered();
        let images = before.map(|before| hosts.replaced_images(before, compiled, is_secure));
        tenant.replace_files(compiled, images.unwrap_or_default(), now);
        match built.origin.persisted_key() {
            Some(response_key) => {
                self.demands.restored += 1;
                tenant
                    .recorded
                    .set_last(&built.made_from.inputs, response_key);
            }
            None => tenant.recorded.is_due |= is_persisting && !built.is_encoding,
        }
        tenant.served = Some(ServedPages {
            made_from: built.made_from.clone(),
            compiled: Arc::clone(compiled),
        });
        if !compiled.is_open() {
            if let Some(pinned) = &mut tenant.recorded.pinned {
                pinned.add_images(compiled);
            }
            self.job_pool.forget(id);
        }
    }

    /// Makes pages of persisted content the current pages of the tenant.
    fn serve_stand_in(&mut self, id: &TenantId, event_data: &mut EventData, now: Timestamp) {
        if let EventData::StandIn(found) = std::mem::replace(event_data, EventData::Nothing)
            && let Some(tenant) = self.catalog.tenants.get_mut(id)
        {
            let (compiled, made_from) = *found;
            tenant.replace_files(&compiled, ResourceTable::default(), now);
            tenant.served = Some(ServedPages {
                made_from,
                compiled: Arc::new(compiled),
            });
        }
    }

    /// Serves the loaded or prepared release of a tenant (`is_pinned`), or the pages of its folder. A tenant whose pinned release was not found is unavailable.
    fn serve_pin(&mut self, id: &TenantId, is_pinned: bool, event_data: &mut EventData) {
        let Some(tenant) = self.catalog.tenants.get_mut(id) else {
            return;
        };
        let recorded = &mut tenant.recorded;
        let event_data = std::mem::replace(event_data, EventData::Nothing);
        let release = match event_data {
            EventData::Release(release) => Some(*release),
            _ => recorded.prepared_rollback.take(),
        };
        recorded.pinned = release.filter(|_| is_pinned);
        recorded.prepared_rollback = None;
        let states = self.world.tenant(id.as_str());
        let unreadable = states.and_then(States::unreadable_pin);
        match &recorded.pinned {
            Some(pinned) => {
                info!(tenant = %id, release = pinned.number, "serving the pinned release; changes of the folder are not published");
                if (tenant.served.as_ref()).is_some_and(|served| served.compiled.is_open()) {
                    // No request waits for these pages, and the images of the release come from them.
                    self.job_pool.prioritise()(id.as_str());
                }
            }
            None => {
                if let Some(release) = unreadable {
                    warn!(tenant = %id, release, "the pinned release cannot be served; responding with 503 until `rowhouse rollback` to another release or `rowhouse resume`");
                }
            }
        }
    }

    /// Parks a job that compresses, loads or renders the pages of a tenant when a request arrives.
    fn park(&mut self, id: &TenantId, event_data: &EventData) {
        let waiting = match event_data {
            EventData::Built(built) => built.waiting.clone(),
            _ => Vec::new(),
        };
        let sources = self.release_sources();
        let Some(served) = self
            .catalog
            .tenants
            .get(id)
            .and_then(|tenant| tenant.served.clone())
        else {
            return;
        };
        let ServedPages {
            made_from,
            compiled,
        } = served;
        let job = match compiled.is_uncompressed() {
            true => made_from.compression_job(id, compiled, waiting),
            false => {
                let mut made_from = made_from;
                made_from.inputs.attempt = Arc::default();
                let waiting = [vec![compiled], waiting].concat();
                let made_from = Arc::new(made_from);
                made_from.job(id, &sources, waiting, true, CompressPages::OnRequest)
            }
        };
        self.job_pool.hold(job);
    }

    /// Evicts the pages of a tenant, and parks a job that restores the pages when a request arrives.
    fn evict(&mut self, id: &TenantId, event_data: &EventData) {
        let waiting = match event_data {
            EventData::Built(built) => built.waiting.clone(),
            _ => Vec::new(),
        };
        let sources = self.release_sources();
        let Some(tenant) = self.catalog.tenants.get_mut(id) else {
            return;
        };
        tenant.persisted.forget(sources.store.as_ref(), id);
        let Some((made_from, evicted)) = tenant.evict() else {
            return;
        };
        self.demands.evictions += 1;
        self.publisher.hosts.forget(&evicted.images);
        let (made_from, waiting) = (Arc::new(made_from), [vec![evicted], waiting].concat());
        let job = made_from.job(id, &sources, waiting, true, CompressPages::OnRequest);
        self.job_pool.hold(job);
    }

    /// Returns a job that builds pages from the persisted content of a tenant, if data is persisted.
    fn stand_in_job(&self, id: &TenantId, now: Timestamp) -> Option<Job<JobOutcome>> {
        let persisted = self.persisted.as_ref()?;
        let tenant = self.catalog.tenants.get(id)?;
        let site = Arc::clone(tenant.content.site.as_ref()?);
        let themes = &self.catalog.themes;
        let fallback = StandInBuild {
            packed: tenant.content.packed.clone(),
            addresses: Arc::clone(&tenant.addresses.0),
            inputs: StandInInputs {
                // No build has this key, so the pages of any build replace the stand-in.
                key: BuildKey::default(),
                deployment: Arc::clone(self.catalog.deployment.as_ref()?),
                islands: Arc::clone(&self.settings.islands),
                cache: Arc::<Cache>::clone(&tenant.persisted.cache),
                templates: themes.get(&site.manifest.theme).cloned(),
                persisted_themes: Arc::clone(&themes.last_valid),
                store: Arc::clone(persisted.store()),
                now,
                includes_hidden: self.settings.is_dev(),
            },
            site,
        };
        Some(fallback.job(id))
    }

    /// Serves persisted tenants if the folders cannot be listed at startup. Returns whether there are any.
    pub(crate) fn restore(
        &mut self,
        restored: BTreeMap<TenantId, RestoredTenant>,
        now: Timestamp,
    ) -> bool {
        let ids: Vec<TenantId> = restored.keys().cloned().collect();
        for (id, restored) in restored {
            removal::add(self, id, restored, now);
        }
        let has_any = !ids.is_empty();
        self.handle(Event::Restored(ids), now);
        has_any
    }
}

/// Returns the current time by the monotonic clock and by the system clock.
pub(crate) fn clock() -> ClockTime {
    ClockTime {
        instant: Instant::now(),
        time: SystemTime::now(),
    }
}

#[cfg(test)]
mod tests;
