//! The event loop of a server: waits for events, passes them to the model, publishes snapshots, and reports.
//!
//! The loop runs on its own thread, which opens no file. After a panic, the current snapshot is still served, the loop starts again, and everything in flight is tried again.
//! A heartbeat on the status board shows that the loop runs; `/readyz` and the metrics report the heartbeat.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::{debug, error, info, warn};

use content::name::TenantId;
use content::report::guard::{guard, inject};
use content::report::{Report, Severity};
use release::snapshot::Snapshot;
use server::admin::control::ControlError;
use server::admin::status::{Availability, DeploymentStatus, StatusBoard, TenantStatus};
use server::connection::events::EventChannel;
use server::snapshot_store::SnapshotStore;

use crate::model::agenda::{MIN_RETRY_DELAY, Reload, ReloadScope};
use crate::model::event::{ChangeSet, Event, SurveyOutcome, Ticket};
use crate::runner::driver::Environment;
use crate::runner::memory;
use crate::runner::operator::commands::{CommandKind, TenantCommand};
use crate::runner::operator::{Inbox, OperatorCommand};
use crate::runner::registry::Registry;
use crate::runner::reload_queue::{ReloadQueue, ReloadSender};
use crate::runner::threads::background::BackgroundWorker;
use crate::runner::threads::background::order;
use crate::runner::threads::surveyor::Surveyor;
use crate::runner::threads::watcher;
use crate::snapshot::findings::findings;
use crate::source::survey::SurveyRequest;
use crate::source::watch::{Watch, WatchStatus};
use crate::state::not_found::NotFoundTable;
use crate::state::release_record::CurrentRelease;
use crate::state::releases::place;
use crate::state::tables::PersistedState;
use crate::state::visits::VisitTables;
use crate::state::write::persist_shared;

/// The limit on the wait for events. A clock that is set, a machine that was suspended and a mounted folder cause no notification.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The limit while data waits for the queue of the store, or background jobs wait for memory.
const MAX_STORE_WAIT: Duration = Duration::from_millis(50);

/// The time without progress after which the watch counts as hung. Listing a slow folder takes up to five seconds.
const MAX_WATCH_SILENCE: Duration = Duration::from_secs(30);

/// The interval at which the memory of the parts is reported.
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);

/// The supervisor of a server, with the receivers of its results.
#[derive(Debug)]
pub struct ReloadLoop {
    /// The supervisor.
    pub registry: Registry,
    /// The current snapshot.
    pub snapshots: Arc<SnapshotStore>,
    /// The states of the tenants, for the admin listener.
    pub board: Arc<StatusBoard>,
    /// The event stream that shows errors in the browsers of authors (`--dev`).
    pub events: Option<EventChannel>,
    /// The queued commands of operators.
    pub inbox: Inbox,
}

/// The state of the loop that survives a panic.
struct LoopState {
    queue: ReloadQueue,
    watch: WatchStatus,
    surveyor: Surveyor,
    /// The survey in flight.
    survey: Option<Reload>,
    /// The reloads that no snapshot contains yet, and when they began.
    reloads: Vec<(Reload, Instant)>,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// The time at which the clock was last read.
    last_clock_reading: Timestamp,
    /// When the memory of the parts was last reported.
    memory_reported: Option<Instant>,
    not_found: NotFoundTable,
    visits: VisitTables,
}

impl Environment for LoopState {
    fn begin_reload(&mut self, reload: Reload) {
        inject("loop", "reload");
        self.reloads.push((reload, Instant::now()));
    }

    fn survey(&mut self, reload: Reload, request: SurveyRequest) {
        let wake = Arc::clone(&self.wake);
        self.surveyor.start(request, move || wake());
        self.survey = Some(reload);
    }

    fn can_survey(&mut self) -> bool {
        self.survey.is_none() && !self.surveyor.is_busy()
    }
}

impl ReloadLoop {
    /// Starts the loop and its watch on new threads, and returns a sender of reload requests.
    #[must_use]
    pub fn start(mut self, watch: Watch) -> ReloadSender {
        let queue = ReloadQueue::default();
        let sender = queue.sender();
        self.registry.settings.open_files = watch.open_files();
        self.registry.job_pool.notify(sender.clone());
        self.snapshots.on_notice(self.registry.prioritise());
        if let Some(dormant) = self.registry.settings.dormant.clone() {
            self.snapshots
                .set_dormant_lookup(move |address| dormant.find(address));
        }
        let mut state = LoopState {
            queue,
            watch: watch.status(),
            surveyor: Surveyor::default(),
            survey: None,
            reloads: Vec::new(),
            wake: Arc::new(self.registry.job_pool.waker()),
            last_clock_reading: Timestamp::now(),
            memory_reported: None,
            not_found: NotFoundTable::restore(&self.snapshots, self.registry.store()),
            visits: VisitTables::restore(&self.snapshots, self.registry.store()),
        };
        if !self.registry.world.is_started() {
            let request = Event::Requested(ReloadScope::Everything);
            self.registry.handle(request, Timestamp::now());
            // The first reload has panicked, or has told the reason for its failure.
            if self.registry.alarm.is_none() {
                self.report_panic();
            }
        }
        watcher::start(watch, self.registry.config().clone(), sender.clone());
        thread::spawn(move || {
            loop {
                let run = || self.run(&mut state);
                if catch_unwind(AssertUnwindSafe(run)).is_err() {
                    state.survey = None;
                    self.registry.handle(Event::Recovered, Timestamp::now());
                    self.report_panic();
                    self.board.restarted();
                    thread::sleep(MIN_RETRY_DELAY);
                }
            }
        });
        sender
    }

    /// Handles events until a panic.
    fn run(&mut self, state: &mut LoopState) {
        self.board.beat();
        let background = BackgroundWorker::start();
        loop {
            // A watch that hangs notices no changes, which is reported like a loop that hangs.
            if state.watch.silence() < MAX_WATCH_SILENCE {
                self.board.beat();
            }
            self.board.set_store(self.registry.store_status());
            self.report_memory(state);
            self.start_background_jobs(&background);
            self.report_watching(state);
            self.run_once(state);
        }
    }

    /// Reports the memory of the parts, at most once in [`MEMORY_INTERVAL`].
    fn report_memory(&self, state: &mut LoopState) {
        let is_recent = |at: Instant| at.elapsed() < MEMORY_INTERVAL;
        if !state.memory_reported.is_some_and(is_recent) {
            state.memory_reported = Some(Instant::now());
            self.board.set_memory(memory::memory_status(&self.registry));
        }
    }

    /// Waits for events once, and handles them.
    fn run_once(&mut self, state: &mut LoopState) {
        inject("loop", "wait");
        let next_change = self.registry.next_change();
        for scope in state.queue.receive(self.wait_time(next_change)) {
            self.registry
                .handle(Event::Changed(scope), Timestamp::now());
        }
        let now = Timestamp::now();
        if self.has_clock_turned(state.last_clock_reading, now, next_change) {
            self.registry.handle(Event::ClockTurned, now);
        }
        state.last_clock_reading = now;
        self.apply_finished_survey(state, now);
        self.run_commands(now);
        memory::measure_when_due(&mut self.registry, now);
        if self.registry.job_pool.is_background_held() {
            memory::admit_background(&self.registry);
        }
        inject("loop", "take");
        while let Some(snapshot) = self.registry.advance(state, now) {
            self.publish(snapshot, state, now);
        }
        self.report_reloads(state);
        inject("loop", "persist");
        let is_last = self.registry.commands.has_pending_flush();
        let persisted = self.registry.persisted.as_mut();
        let forgotten = persisted.map(PersistedState::take_forgotten);
        let store = self.registry.store();
        state.not_found.persist(&self.snapshots, store, is_last);
        let forgotten = forgotten.unwrap_or_default();
        state
            .visits
            .persist(&self.snapshots, store, forgotten, is_last);
        if self.registry.commands.has_pending_flush() && !self.registry.world.has_persistable() {
            persist_shared(&mut self.registry);
            self.registry.commands.report_flushed();
        }
    }

    /// Returns the limit on the next wait for events.
    fn wait_time(&self, next_change: Option<Timestamp>) -> Duration {
        let registry = &self.registry;
        let is_behind = registry.job_pool.is_background_held()
            || registry.commands.has_pending_flush()
            || registry.world.has_persistable();
        let max_wait = match is_behind {
            true => MAX_STORE_WAIT,
            false => MAX_WAIT,
        };
        let until_due = registry.world.until_due(Instant::now());
        time_until(next_change)
            .min(until_due.unwrap_or(max_wait))
            .min(max_wait)
    }

    /// Returns whether a page has appeared or expired, or the year of the copyright line has changed.
    fn has_clock_turned(
        &self,
        last_clock_reading: Timestamp,
        now: Timestamp,
        next_change: Option<Timestamp>,
    ) -> bool {
        let catalog = &self.registry.catalog;
        catalog.year(now) != catalog.year(last_clock_reading)
            || next_change.is_some_and(|due| due <= now)
    }

    /// Starts background jobs for images and content encodings, and records the finished jobs.
    fn start_background_jobs(&mut self, background: &BackgroundWorker) {
        inject("loop", "pictures");
        if background.has_finished() {
            let grown = std::mem::take(&mut self.registry.demands.ordered_tenants);
            let demands = &mut self.registry.demands;
            demands.changed.extend(grown.iter().cloned());
            self.registry
                .handle(Event::DataAdded(grown), Timestamp::now());
        }
        background.order(order::order(&mut self.registry));
    }

    /// Applies the survey that has ended, if any.
    fn apply_finished_survey(&mut self, state: &mut LoopState, now: Timestamp) {
        let Some(surveyed) = state.surveyor.poll() else {
            return;
        };
        let Some(reload) = state.survey.take() else {
            return;
        };
        let applied = match surveyed {
            Ok(survey) => {
                let applied = self
                    .registry
                    .apply_survey(survey, reload.tenants.clone(), now);
                applied.map_err(|problem| problem.to_string())
            }
            Err(problem) => Err(problem.to_owned()),
        };
        if let Err(problem) = &applied {
            self.report_failed(state, &reload, problem.clone());
        }
        // The survey is tried again while persisted tenants replace folders that cannot be listed.
        let outcome = applied
            .ok()
            .filter(|_| self.registry.alarm.is_none())
            .unwrap_or(SurveyOutcome::Failed);
        self.registry.handle(Event::Surveyed(outcome), now);
    }

    /// Executes the queued commands of operators. Replies to callers that have timed out are dropped.
    fn run_commands(&mut self, now: Timestamp) {
        while let Some(command) = self.inbox.next() {
            match command {
                OperatorCommand::Inspect { tenants, reply } => {
                    let registry = &self.registry;
                    // A panic in a report must not end the loop.
                    let findings = || findings(registry, &tenants);
                    if let Ok(findings) = guard("findings", "all", "tenants", findings) {
                        let _ = reply.send(findings);
                    }
                }
                OperatorCommand::Record { tenant, reply } => {
                    let _ = reply.send(self.record(&tenant, now));
                }
                OperatorCommand::RollBack {
                    tenant,
                    release,
                    reply,
                } => {
                    let number = release.entry.number;
                    match self.prepare_rollback(&tenant, *release) {
                        Ok(()) => self.pin(tenant, Some(number), reply, now),
                        Err(problem) => drop(reply.send(Err(problem))),
                    }
                }
                OperatorCommand::Resume { tenant, reply } => self.pin(tenant, None, reply, now),
                OperatorCommand::Restore { tenant, reply } => self.restore(tenant, reply, now),
                OperatorCommand::Flush { reply } => self.registry.commands.add_flush(reply),
            }
        }
    }

    /// Passes the current output of a tenant to the store. Returns the current release.
    fn record(&mut self, tenant: &str, now: Timestamp) -> Result<CurrentRelease, ControlError> {
        let unknown = || ControlError::UnknownTenant(tenant.to_owned());
        let id = TenantId::new(tenant).map_err(|_| unknown())?;
        let event = Event::RecordRequested { tenant: id };
        self.registry.handle(event, now);
        let data = self.registry.catalog.tenants.get(tenant);
        Ok(data.ok_or_else(unknown)?.recorded.current())
    }

    /// Prepares a release at the current addresses of its tenant. The release is served once its pin is written to disk.
    fn prepare_rollback(
        &mut self,
        tenant: &str,
        release: release::store::Release,
    ) -> Result<(), ControlError> {
        let number = release.entry.number;
        let data = self.registry.catalog.tenants.get_mut(tenant);
        let data = data.ok_or_else(|| ControlError::UnknownTenant(tenant.to_owned()))?;
        if data.recorded.prepared_rollback.is_some() {
            return Err(ControlError::Failed(
                "nothing was changed: another rollback of the tenant is in flight; try again"
                    .to_owned(),
            ));
        }
        let placed = place(data, release).ok_or_else(|| {
            ControlError::Failed(format!(
                "nothing was changed: release {number} of `{tenant}` has none of the tenant's current addresses"
            ))
        })?;
        data.recorded.prepared_rollback = Some(placed);
        Ok(())
    }

    /// Starts a command that pins a release, or removes the pin (`None`).
    fn pin(
        &mut self,
        tenant: String,
        release: Option<u64>,
        reply: Sender<Result<(), ControlError>>,
        now: Timestamp,
    ) {
        let kind = release.map_or(CommandKind::Resume, CommandKind::RollBack);
        if let Some((id, ticket)) = self.begin(tenant, kind, reply) {
            let event = Event::PinRequested {
                tenant: id,
                to: release,
                ticket,
            };
            self.registry.handle(event, now);
        }
    }

    /// Starts a command that serves a removed tenant.
    fn restore(&mut self, tenant: String, reply: Sender<Result<(), ControlError>>, now: Timestamp) {
        if let Some((tenant, ticket)) = self.begin(tenant, CommandKind::Restore, reply) {
            let event = Event::RestoreRequested { tenant, ticket };
            self.registry.handle(event, now);
        }
    }

    /// Adds a command for a tenant. Replies with an error if the name is not valid.
    fn begin(
        &mut self,
        tenant: String,
        kind: CommandKind,
        reply: Sender<Result<(), ControlError>>,
    ) -> Option<(TenantId, Ticket)> {
        let Ok(id) = TenantId::new(&tenant) else {
            let _ = reply.send(Err(ControlError::UnknownTenant(tenant)));
            return None;
        };
        let ticket = self.registry.commands.add(TenantCommand {
            tenant,
            kind,
            reply,
        });
        Some((id, ticket))
    }

    /// Publishes a snapshot, then reports and persists the changes.
    fn publish(&mut self, snapshot: Snapshot, state: &mut LoopState, now: Timestamp) {
        let begun = Instant::now();
        let former = self.snapshots.replace(snapshot);
        self.registry.set_served();
        // Freeing the snapshot of many tenants takes long, and must not delay the loop.
        rayon::spawn(move || drop(former));
        inject("loop", "report");
        report(
            &self.registry,
            &self.board,
            &self.registry.publisher.changes,
        );
        self.announce(None);
        persist_shared(&mut self.registry);
        // The model spaces publications so that they take a limited share of the time.
        let took = self.registry.publisher.took + begun.elapsed();
        self.registry.report_published(took, now);
        self.report_reloads(state);
    }

    /// Logs the reloads whose readings have ended.
    fn report_reloads(&mut self, state: &mut LoopState) {
        if state.reloads.is_empty() || state.survey.is_some() || self.registry.has_readings() {
            return;
        }
        let status = self.board.current();
        for (reload, begun) in std::mem::take(&mut state.reloads) {
            let alarm = self.registry.any_alarm().map(ToOwned::to_owned);
            self.board.reloaded(begun.elapsed(), alarm);
            let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let names = (reload.tenants.as_ref()).map(|names| read_tenants(names, &status));
            let is_unread = names.as_ref().is_some_and(Vec::is_empty)
                && reload
                    .tenants
                    .as_ref()
                    .is_some_and(|names| !names.is_empty());
            let tenants = names.map_or_else(|| "all".to_owned(), |names| names.join(" "));
            let themes = reload.includes_themes;
            match reload.is_retry || is_unread && !themes {
                true => debug!(
                    took_ms,
                    tenants, themes, "reloaded again, or during an upload"
                ),
                false => info!(took_ms, tenants, themes, "reloaded"),
            }
        }
    }

    /// Reports a reload that failed.
    fn report_failed(&mut self, state: &mut LoopState, reload: &Reload, problem: String) {
        // A retry has the same message.
        if !reload.is_retry {
            error!(problem, "reload failed; serving the last valid state");
        }
        let begun = state.reloads.iter().rfind(|(other, _)| other == reload);
        let took = begun.map_or(Duration::ZERO, |(_, begun)| begun.elapsed());
        state.reloads.retain(|(other, _)| other != reload);
        // The alarm stays until an attempt succeeds.
        self.registry.alarm = Some(problem.clone());
        report(&self.registry, &self.board, &ChangeSet::default());
        self.announce(Some(&problem));
        self.board.reloaded(took, Some(problem));
    }

    /// Reports that the loop has panicked and starts again.
    fn report_panic(&mut self) {
        let problem = "internal error during a reload; retrying, and serving the last valid state";
        error!("{problem}");
        self.registry.alarm = Some(problem.to_owned());
        self.board
            .reloaded(Duration::ZERO, Some(problem.to_owned()));
    }

    /// Reports when detection changes between notifications and polling.
    fn report_watching(&mut self, state: &LoopState) {
        if self.registry.is_polling != state.watch.is_polling() {
            self.registry.is_polling = state.watch.is_polling();
            report(&self.registry, &self.board, &ChangeSet::default());
        }
    }

    /// Sends all errors to the browsers of authors. `problem`: the reason that the folders cannot be read.
    fn announce(&self, problem: Option<&str>) {
        if let Some(events) = &self.events {
            events.publish(&self.registry.diagnostics(problem));
        }
    }
}

/// Returns the time until `due`, at most [`MAX_WAIT`].
fn time_until(due: Option<Timestamp>) -> Duration {
    let left = due.and_then(|due| Duration::try_from(due - Timestamp::now()).ok());
    left.unwrap_or(MAX_WAIT).min(MAX_WAIT)
}

/// Returns the names of tenants, without names that begin with a dot, and without tenants that wait for an upload to end.
///
/// A growing file reloads its tenant several times a second, and would fill the log.
fn read_tenants<'n>(names: &'n BTreeSet<String>, status: &DeploymentStatus) -> Vec<&'n str> {
    let waits = |name: &str| {
        let tenant = status.tenants.get(name);
        tenant.is_some_and(|tenant| tenant.state == Availability::Receiving)
    };
    let names = names.iter().map(String::as_str);
    names
        .filter(|name| !name.starts_with('.') && !waits(name))
        .collect()
}

/// Writes the states of all tenants to `board`, and logs the changes.
pub fn log_report(registry: &Registry, board: &StatusBoard) {
    report(registry, board, &ChangeSet::all());
}

/// Writes the states of the changed tenants to `board`, and logs the changes.
pub(crate) fn report(registry: &Registry, board: &StatusBoard, changes: &ChangeSet) {
    let before = board.current();
    let mut tenants = before.tenants.clone();
    let mut ids: BTreeSet<&str> = changes.tenants.iter().map(TenantId::as_str).collect();
    if changes.affects_all {
        ids.extend(before.tenants.keys().map(|id| &**id));
        ids.extend(registry.catalog.tenants.keys().map(TenantId::as_str));
    }
    for id in ids {
        let Some(status) = registry.status_of(id) else {
            tenants.remove(id);
            continue;
        };
        let old = before.tenants.get(id).map(AsRef::as_ref);
        log_state(&status, old);
        tenants.insert(Arc::clone(&status.id), Arc::new(status));
    }
    let status = registry.status_with(tenants);
    log_themes(registry, &status);
    board.replace(status);
}

/// Logs the state of a tenant if the state or its errors have changed.
fn log_state(tenant: &TenantStatus, old: Option<&TenantStatus>) {
    if old.is_some_and(|old| old.errors == tenant.errors && old.state == tenant.state) {
        return;
    }
    // A preview that is too old has a line of its own.
    if matches!(tenant.state, Availability::Pending | Availability::Expired) {
        return;
    }
    if tenant.state == Availability::Receiving {
        debug!(tenant = %tenant.id, first = tenant.receiving.first(), "waiting for an upload to end; serving the last valid pages");
        return;
    }
    if tenant.state == Availability::Live
        && old.is_some_and(|old| old.state == Availability::Receiving)
    {
        info!(tenant = %tenant.id, "upload ended; the new pages are live once they are rendered");
        return;
    }
    if tenant.is_in_flight && tenant.errors.is_empty() {
        info!(tenant = %tenant.id, state = tenant.state.name(), "rendering is still in flight");
        return;
    }
    if tenant.state == Availability::Live {
        if !old.is_some_and(|old| old.state == Availability::Live) {
            info!(tenant = %tenant.id, pages = tenant.pages, "live");
        }
        return;
    }
    warn!(
        tenant = %tenant.id,
        state = tenant.state.name(),
        errors = tenant.errors.len(),
        first = tenant.errors.first().map_or("", String::as_str),
        "the folder has errors; `rowhouse check` lists them"
    );
}

/// Logs the first theme error that no tenant reports, because all tenants still use the last valid theme.
fn log_themes(registry: &Registry, status: &DeploymentStatus) {
    let mut report = Report::default();
    report.extend(registry.catalog.themes.report().cloned());
    let report = report.sorted();
    let is_reported = |file: &str| {
        let mut errors = status.tenants().flat_map(|tenant| &tenant.errors);
        errors.any(|error| error.starts_with(file))
    };
    let unreported = report
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .find(|diagnostic| !is_reported(&diagnostic.file));
    if let Some(error) = unreported {
        warn!(
            file = error.file,
            code = error.code.as_str(),
            "{}",
            error.message
        );
    }
}
