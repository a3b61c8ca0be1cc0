//! Passes events to the [`World`](crate::model::world::World), and publishes the snapshots that follow.
//!
//! A server handles events one by one ([`crate::ReloadLoop`]). Commands such as `check` and `export` call [`Registry::reload`], which waits for a complete snapshot.
//!
//! `results` describes the results of jobs as events, and `actions` executes the actions.

mod actions;
mod results;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use tracing::warn;

use content::name::TenantId;
use content::report::Report;
use release::snapshot::Snapshot;
use render::CompiledTenant;
use server::admin::status::{StatusBoard, StoreStatus};

use crate::jobs::outcome::{FolderReading, PageOrigin, ReadRequest};
use crate::model::agenda::{Reload, ReloadScope};
use crate::model::event::{ChangeSet, ClockTime, Event, OutsideFacts, StoreState, SurveyOutcome};
use crate::model::world::Mode;
use crate::runner::catalog::complete_tenant::{self, CompleteTenant};
use crate::runner::catalog::tenant::BuildInputs;
use crate::runner::registry::{Registry, ReloadError};
use crate::runner::threads::background::order;
use crate::runner::threads::job_pool::EXPECTED_TIME;
use crate::runner::{memory, removal};
use crate::source::survey::{RestoredTenant, Survey, SurveyRequest};
use crate::state::release_record::PinnedRelease;
use crate::state::releases::queue_room;
use crate::state::tables::PersistedState;
use crate::state::write;

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
