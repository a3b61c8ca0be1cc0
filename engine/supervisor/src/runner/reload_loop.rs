//! Keeps what is served as the folders are: waits for changes, reloads, swaps, reports.
//!
//! It works on a thread of its own. Whatever goes wrong there, the last snapshot goes on being served, the loop is started again, and what was to be read stays pending until it is read: it is tried again, later each time.
//! A heartbeat on the board shows that it goes round; `/readyz` and the metrics pass it on.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::{debug, error, info, warn};

use crate::model::agenda::{Agenda, MIN_RETRY_DELAY, Reload, Scope};
use crate::runner::background::BackgroundWorker;
use crate::runner::operator::{Command, Inbox};
use crate::runner::registry::Registry;
use crate::runner::surveyor::Surveyor;
use crate::source::survey::Survey;
use crate::source::watch::{Changes, NoticeSender, Watch};
use content::report::guard::{guard, inject};
use content::report::{Report, Severity};
use release::snapshot::Snapshot;
use server::events::Events;
use server::snapshot_store::SnapshotStore;
use server::status::{State, Status, StatusBoard};

/// The limit on the time without a look at everything: clocks are set, machines sleep, and folders are mounted where no notification tells of it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The same while the background waits for the disk.
const MAX_HELD_WAIT: Duration = Duration::from_millis(50);

/// The owner with what it keeps.
#[derive(Debug)]
pub struct ReloadLoop {
    /// The tenants.
    pub registry: Registry,
    /// Where snapshots go.
    pub snapshots: Arc<SnapshotStore>,
    /// Where the tenants' state is told.
    pub board: Arc<StatusBoard>,
    /// Where authors' browsers hear of it (`--dev`).
    pub events: Option<Events>,
    /// The commands of operators.
    pub inbox: Inbox,
}

/// The state of the loop that outlives a panic.
#[derive(Debug)]
struct LoopState {
    agenda: Agenda,
    /// The survey in flight, and when it was started.
    survey: Option<(Reload, Instant)>,
    /// When the clock was last looked at.
    looked: Timestamp,
}

impl ReloadLoop {
    /// Begins to keep. Sending [`Notice::Everything`](crate::source::watch::Notice::Everything) reloads all.
    ///
    /// Whatever fails in a turn is told on the board and tried again in the next.
    #[must_use]
    pub fn start(mut self, mut watch: Watch) -> NoticeSender {
        let sender = watch.sender();
        self.registry.workers.notify(watch.sender());
        self.snapshots.on_wanted(self.registry.hurry());
        let mut state = LoopState {
            agenda: Agenda::default(),
            survey: None,
            looked: Timestamp::now(),
        };
        let unread = self.registry.unread_scopes();
        state.agenda.retry(unread, Instant::now());
        if !self.registry.is_started {
            state.agenda.request(Scope::Everything, Instant::now());
            self.recover(&mut state.agenda);
        }
        thread::spawn(move || {
            loop {
                let run = || self.run(&mut watch, &mut state);
                if catch_unwind(AssertUnwindSafe(run)).is_err() {
                    self.recover(&mut state.agenda);
                    self.board.restarted();
                    thread::sleep(MIN_RETRY_DELAY);
                }
            }
        });
        sender
    }

    /// Takes changes for as long as nothing fails.
    fn run(&mut self, watch: &mut Watch, state: &mut LoopState) {
        self.board.beat();
        watch.begin();
        let background = BackgroundWorker::start();
        let mut surveyor = Surveyor::default();
        // Whether something is served that was not reported, completed and persisted yet.
        let mut is_new = true;
        loop {
            self.board.beat();
            self.board.set_store(self.registry.store_status());
            is_new |= background.has_finished() || self.registry.is_behind;
            if self.registry.has_unfinished() || is_new {
                inject("loop", "pictures");
                background.order(self.registry.unfinished());
            }
            if is_new {
                self.report_watching(watch);
                inject("loop", "persist");
                self.registry.keep();
            }
            is_new = self.turn(watch, state, &mut surveyor);
        }
    }

    /// Waits for something to do, and does it. Whether there is a new snapshot.
    fn turn(&mut self, watch: &mut Watch, state: &mut LoopState, surveyor: &mut Surveyor) -> bool {
        inject("loop", "wait");
        let next_change = self.registry.next_change();
        let max_wait = match self.registry.workers.is_held() {
            true => MAX_HELD_WAIT,
            false => MAX_WAIT,
        };
        let until_due = state.agenda.until_due(Instant::now());
        let wait = until(next_change).min(until_due.unwrap_or(max_wait));
        if let Some(changes) = watch.next(wait.min(max_wait)) {
            for scope in self.scopes(&changes) {
                state.agenda.note(scope, Instant::now());
            }
        }
        if self.registry.is_time(state.looked, next_change) {
            state.agenda.request(Scope::Clock, Instant::now());
        }
        state.looked = Timestamp::now();
        let is_reloaded = self.reload(watch, state, surveyor);
        let is_surveyed = self.take_survey(state, surveyor);
        self.run_commands();
        let is_done = self.take_done(&mut state.agenda);
        if self.registry.has_gone() && !state.agenda.is_surveying() {
            state.agenda.request(Scope::List, Instant::now());
        }
        is_reloaded || is_surveyed || is_done
    }

    /// Runs the queued commands of operators. A reply is sent once the result is in the current snapshot; its receiver may be gone.
    fn run_commands(&mut self) {
        while let Some(command) = self.inbox.next() {
            let registry = &mut self.registry;
            match command {
                Command::Inspect { tenants, reply } => {
                    // A panic in a report must not end the loop.
                    let findings = || registry.findings(&tenants);
                    if let Ok(findings) = guard("findings", "all", "tenants", findings) {
                        let _ = reply.send(findings);
                    }
                }
                Command::Record { tenant, reply } => {
                    let _ = reply.send(registry.record_tenant(&tenant));
                }
                Command::RollBack {
                    tenant,
                    release,
                    reply,
                } => {
                    let result = registry.roll_back(&tenant, release);
                    self.publish_change(result.is_ok());
                    let _ = reply.send(result);
                }
                Command::Resume { tenant, reply } => {
                    let result = registry.resume(&tenant);
                    self.publish_change(result.is_ok());
                    let _ = reply.send(result);
                }
                Command::Flush { deadline, reply } => {
                    registry.flush(deadline);
                    let _ = reply.send(());
                }
            }
        }
    }

    /// Publishes what a command changed.
    fn publish_change(&mut self, is_changed: bool) {
        if is_changed && let Some(snapshot) = self.registry.serve_again() {
            self.publish(snapshot);
            log_report(&self.registry, &self.board);
        }
    }

    /// Has everything tried again that was in progress when the loop panicked.
    fn recover(&mut self, agenda: &mut Agenda) {
        let problem = "the program itself failed while it took changes; it tries again, and the last state is served";
        error!("{problem}");
        let now = Instant::now();
        agenda.recover(now);
        for name in self.registry.restart_lost_jobs() {
            agenda.request(Scope::Tenant(name), now);
        }
        self.registry.alarm = Some(problem.to_owned());
        self.board
            .reloaded(Duration::ZERO, Some(problem.to_owned()));
    }

    /// Returns the parts of the content that some changes concern.
    fn scopes(&self, changes: &Changes) -> Vec<Scope> {
        let places = self.registry.places();
        let roots: Vec<&Path> = std::iter::once(places.tenants.as_path())
            .chain(places.themes.as_deref())
            .collect();
        if changes.everything || changes.elsewhere(&roots) {
            return vec![Scope::Everything];
        }
        let themes = places.themes.as_deref();
        let is_theme = |themes| changes.below(themes).is_none_or(|names| !names.is_empty());
        let themes = themes.is_some_and(is_theme).then_some(Scope::Themes);
        let tenants = match changes.below(&places.tenants) {
            None => vec![Scope::Everything],
            Some(names) => names.into_iter().map(Scope::Tenant).collect(),
        };
        themes.into_iter().chain(tenants).collect()
    }

    /// Returns the changes for which a reload is due.
    fn changes_of(&self, reload: &Reload) -> Changes {
        let places = self.registry.places();
        // As the watch has them.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = absolute(&places.tenants);
        let tenants = reload.tenants.iter().flatten();
        let tenants = tenants.map(|name| folder.join(name));
        let themes = places.themes.as_deref().filter(|_| reload.themes);
        let themes = themes.map(absolute);
        Changes {
            paths: tenants.chain(themes).collect(),
            everything: reload.tenants.is_none(),
        }
    }

    /// Swaps in what took too long to be waited for.
    fn take_done(&mut self, agenda: &mut Agenda) -> bool {
        inject("loop", "take");
        let Some(snapshot) = self.registry.reload_done(Timestamp::now()) else {
            return false;
        };
        self.publish(snapshot);
        log_report(&self.registry, &self.board);
        self.announce(None);
        debug!("what took longer is served");
        agenda.retry(self.registry.unread_scopes(), Instant::now());
        true
    }

    fn publish(&self, snapshot: Snapshot) {
        let former = self.snapshots.replace(snapshot);
        self.registry.set_served();
        // Of many tenants it takes a while to take apart.
        rayon::spawn(move || drop(former));
    }

    /// Reads what is due. Returns whether there is a new snapshot: what concerns all tenants is read on another thread first.
    fn reload(
        &mut self,
        watch: &mut Watch,
        state: &mut LoopState,
        surveyor: &mut Surveyor,
    ) -> bool {
        let mut is_reloaded = false;
        loop {
            let registry = &self.registry;
            let is_known = |name: &str| registry.tenants.contains_key(name);
            let now = Instant::now();
            let next = state.agenda.next(now, is_known, !surveyor.is_busy());
            let Some(reload) = next else {
                return is_reloaded;
            };
            inject("loop", "reload");
            // Before anything is read: what changes there meanwhile is noticed.
            watch.refresh(&self.changes_of(&reload));
            match reload.is_survey {
                true => {
                    let request = self.registry.survey_request(reload.themes);
                    surveyor.start(request, self.registry.workers.wake());
                    state.survey = Some((reload, now));
                }
                false => {
                    self.apply(&mut state.agenda, &reload, None, now);
                    is_reloaded = true;
                }
            }
        }
    }

    /// Takes the survey that has ended, if any. Returns whether there is a new snapshot.
    fn take_survey(&mut self, state: &mut LoopState, surveyor: &mut Surveyor) -> bool {
        let Some(surveyed) = surveyor.poll() else {
            return false;
        };
        let Some((reload, begun)) = state.survey.take() else {
            return false;
        };
        let agenda = &mut state.agenda;
        agenda.end_survey();
        match surveyed {
            Ok(survey) => self.apply(agenda, &reload, Some(survey), begun),
            Err(problem) => {
                self.report_failed(&reload, problem.to_owned(), begun);
                agenda.end(false, Instant::now());
            }
        }
        true
    }

    /// Applies a reload that began at `begun`, and publishes the result. What could not be read is tried again.
    fn apply(
        &mut self,
        agenda: &mut Agenda,
        reload: &Reload,
        survey: Option<Survey>,
        begun: Instant,
    ) {
        let now = Timestamp::now();
        let is_survey = survey.is_some();
        let tenants = reload.tenants.as_ref();
        let reloaded = match survey {
            Some(survey) => self.registry.reload_surveyed(now, survey, tenants),
            None => {
                let tenants = tenants.cloned().unwrap_or_default();
                Ok(self.registry.reload_known(now, &tenants))
            }
        };
        match reloaded {
            Ok(snapshot) => {
                self.publish(snapshot);
                inject("loop", "report");
                log_report(&self.registry, &self.board);
                self.announce(None);
                let alarm = self.registry.alarm().map(ToOwned::to_owned);
                self.board.reloaded(begun.elapsed(), alarm);
                let names = |names: &BTreeSet<String>| {
                    names
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(" ")
                };
                let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                let tenants = tenants.map_or_else(|| "all".to_owned(), names);
                let themes = reload.themes;
                match reload.is_retry {
                    true => debug!(took_ms, tenants, themes, "tried again"),
                    false => info!(took_ms, tenants, themes, "reloaded"),
                }
                // What the state has stands in for folders that could not be listed.
                let is_applied = !is_survey || self.registry.alarm.is_none();
                agenda.end(is_applied, Instant::now());
                agenda.retry(self.registry.unread_scopes(), Instant::now());
            }
            Err(problem) => {
                self.report_failed(reload, problem.to_string(), begun);
                agenda.end(false, Instant::now());
            }
        }
    }

    /// Reports a reload that came to nothing.
    fn report_failed(&mut self, reload: &Reload, problem: String, begun: Instant) {
        // Every further attempt would say the same.
        if !reload.is_retry {
            error!(problem, "nothing was taken; the last state is served");
        }
        // It stays until the next attempt succeeds, whatever comes in the meantime.
        self.registry.alarm = Some(problem.clone());
        log_report(&self.registry, &self.board);
        self.announce(Some(&problem));
        self.board.reloaded(begun.elapsed(), Some(problem));
    }

    fn report_watching(&mut self, watch: &Watch) {
        if self.registry.is_polled != watch.fell_back() {
            self.registry.is_polled = watch.fell_back();
            log_report(&self.registry, &self.board);
        }
    }

    fn announce(&self, problem: Option<&str>) {
        if let Some(events) = &self.events {
            events.publish(&self.registry.diagnostics(problem));
        }
    }
}

impl Registry {
    /// Returns what the system would not give the last time.
    fn unread_scopes(&self) -> Vec<Scope> {
        let list = self.addresses.is_unread().then_some(Scope::List);
        let themes = self.themes.are_unread().then_some(Scope::Themes);
        let tenants = self.unread().into_iter().map(Scope::Tenant);
        tenants.chain(list).chain(themes).collect()
    }

    /// Pages come and go at their moment, and the year of the copyright line with the year.
    fn is_time(&self, looked: Timestamp, next_change: Option<Timestamp>) -> bool {
        let now = Timestamp::now();
        self.year(now) != self.year(looked) || next_change.is_some_and(|due| due <= now)
    }
}

/// How long nothing needs to be looked at, as far as the clock goes.
fn until(due: Option<Timestamp>) -> Duration {
    let left = due.and_then(|due| Duration::try_from(due - Timestamp::now()).ok());
    left.unwrap_or(MAX_WAIT).min(MAX_WAIT)
}

/// Puts the tenants' state on the board, and what is new of it in the log.
pub fn log_report(registry: &Registry, board: &StatusBoard) {
    let status = registry.status();
    let before = board.current();
    // Both are in the order of the ids.
    let mut former = before.tenants.iter().peekable();
    for tenant in &status.tenants {
        while former.next_if(|old| old.id < tenant.id).is_some() {}
        let old = former.next_if(|old| old.id == tenant.id);
        if old.is_some_and(|old| old.errors == tenant.errors && old.state == tenant.state) {
            continue;
        }
        if tenant.state == State::Pending {
            continue;
        }
        if tenant.is_under_way && tenant.errors.is_empty() {
            info!(tenant = %tenant.id, state = tenant.state.name(), "being rendered, which takes long");
            continue;
        }
        if tenant.state == State::Live {
            if old.is_none_or(|old| old.state != State::Live) {
                info!(tenant = %tenant.id, pages = tenant.pages, "live");
            }
            continue;
        }
        warn!(
            tenant = %tenant.id,
            state = tenant.state.name(),
            errors = tenant.errors.len(),
            first = tenant.errors.first().map_or("", String::as_str),
            "the folder has errors; `rowhouse check` shows them all"
        );
    }
    log_themes(registry, &status);
    board.replace(status);
}

/// A theme's errors that no tenant shows, since every tenant still has the last good theme.
fn log_themes(registry: &Registry, status: &Status) {
    let mut report = Report::default();
    report.extend(registry.themes.report().cloned());
    let report = report.sorted();
    let by_a_tenant = |file: &str| {
        let mut errors = status.tenants.iter().flat_map(|tenant| &tenant.errors);
        errors.any(|error| error.starts_with(file))
    };
    let alone = report
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .find(|diagnostic| !by_a_tenant(&diagnostic.file));
    if let Some(error) = alone {
        warn!(
            file = error.file,
            code = error.code.as_str(),
            "{}",
            error.message
        );
    }
}
