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

use crate::runner::background::BackgroundWorker;
use crate::runner::operator::{Command, Inbox};
use crate::runner::registry::Registry;
use crate::source::watch::{Changes, NoticeSender, Watch};
use content::report::guard::{guard, inject};
use content::report::{Report, Severity};
use release::snapshot::Snapshot;
use server::events::Events;
use server::snapshot_store::SnapshotStore;
use server::status::{State, Status, StatusBoard};

/// The longest that nothing is looked at: clocks are set, machines sleep, and folders are mounted where no notification tells of it.
const LONGEST: Duration = Duration::from_secs(1);
/// The same while the background waits for the disk.
const HELD: Duration = Duration::from_millis(50);
/// How long until what could not be read is tried again, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest that is waited until it is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

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

/// What is to be read again.
#[derive(Debug, Clone, Default)]
struct Wanted {
    /// The folders of these tenants; of all without them.
    tenants: Option<BTreeSet<String>>,
    themes: bool,
}

impl Wanted {
    /// Nothing: addresses, pages and the year are looked at all the same.
    fn nothing() -> Self {
        Self {
            tenants: Some(BTreeSet::new()),
            themes: false,
        }
    }

    fn and(self, other: Self) -> Self {
        let tenants = self.tenants.zip(other.tenants);
        Self {
            tenants: tenants.map(|(one, other)| one.into_iter().chain(other).collect()),
            themes: self.themes || other.themes,
        }
    }
}

/// What the loop has in mind from one turn to the next, and after a panic.
#[derive(Debug)]
struct Agenda {
    /// What is to be read again, and was not yet, or not all of it.
    pending: Option<Wanted>,
    /// When it is tried, and how long to wait if that fails.
    due: Instant,
    pause: Duration,
    /// When the clock was last looked at.
    looked: Timestamp,
}

impl Agenda {
    fn new(pending: Option<Wanted>) -> Self {
        Self {
            pending,
            due: Instant::now() + FIRST_PAUSE,
            pause: FIRST_PAUSE,
            looked: Timestamp::now(),
        }
    }

    /// Something changed: it is taken at once, together with what is still pending.
    fn want(&mut self, wanted: Wanted) {
        self.pending = Some(match self.pending.take() {
            Some(pending) => pending.and(wanted),
            None => wanted,
        });
        self.due = Instant::now();
        self.pause = FIRST_PAUSE;
    }

    /// What could not be read is tried again, later each time.
    fn postpone(&mut self) {
        self.due = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// How long nothing needs to be done.
    fn until(&self, next_change: Option<Timestamp>) -> Duration {
        match self.pending {
            Some(_) => until(next_change).min(self.due.saturating_duration_since(Instant::now())),
            None => until(next_change),
        }
    }
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
        let mut agenda = Agenda::new(self.registry.still_wanted());
        if !self.registry.is_started {
            agenda.pending = Some(Wanted {
                tenants: None,
                themes: true,
            });
            self.survive(&mut agenda);
        }
        thread::spawn(move || {
            loop {
                let run = || self.run(&mut watch, &mut agenda);
                if catch_unwind(AssertUnwindSafe(run)).is_err() {
                    self.survive(&mut agenda);
                    self.board.restarted();
                    thread::sleep(agenda.pause);
                }
            }
        });
        sender
    }

    /// Takes changes for as long as nothing fails.
    fn run(&mut self, watch: &mut Watch, agenda: &mut Agenda) {
        self.board.beat();
        watch.begin();
        let background = BackgroundWorker::start();
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
            is_new = self.turn(watch, agenda);
        }
    }

    /// Waits for something to do, and does it. Whether there is a new snapshot.
    fn turn(&mut self, watch: &mut Watch, agenda: &mut Agenda) -> bool {
        inject("loop", "wait");
        let next_change = self.registry.next_change();
        let longest = match self.registry.workers.is_held() {
            true => HELD,
            false => LONGEST,
        };
        match watch.next(agenda.until(next_change).min(longest)) {
            Some(changes) => {
                agenda.want(self.wanted(&changes));
            }
            None if self.registry.is_time(agenda.looked, next_change) => {
                agenda.want(Wanted::nothing())
            }
            None => {}
        }
        agenda.looked = Timestamp::now();
        let is_due = agenda.pending.is_some() && agenda.due <= Instant::now();
        if is_due {
            self.reload(agenda);
        }
        self.run_commands();
        self.take_done(agenda) || is_due
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

    /// After a panic that nobody else has caught: what is pending stays so, and is tried again.
    fn survive(&mut self, agenda: &mut Agenda) {
        let problem = "the program itself failed while it took changes; it tries again, and the last state is served";
        error!("{problem}");
        let unread = self.registry.restart_lost_jobs();
        agenda.want(Wanted {
            tenants: Some(unread),
            themes: false,
        });
        self.registry.alarm = Some(problem.to_owned());
        agenda.postpone();
        self.board
            .reloaded(Duration::ZERO, Some(problem.to_owned()));
    }

    /// What has to be read again after some changes.
    fn wanted(&self, changes: &Changes) -> Wanted {
        let places = self.registry.places();
        let roots: Vec<&Path> = std::iter::once(places.tenants.as_path())
            .chain(places.themes.as_deref())
            .collect();
        let everything = changes.everything || changes.elsewhere(&roots);
        Wanted {
            tenants: match everything {
                true => None,
                false => changes.below(&places.tenants),
            },
            themes: places.themes.as_deref().is_some_and(|themes| {
                everything || changes.below(themes).is_none_or(|names| !names.is_empty())
            }),
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
        if agenda.pending.is_none() {
            agenda.pending = self.registry.still_wanted();
            agenda.postpone();
        }
        true
    }

    fn publish(&self, snapshot: Snapshot) {
        let former = self.snapshots.replace(snapshot);
        self.registry.set_served();
        // Of many tenants it takes a while to take apart.
        rayon::spawn(move || drop(former));
    }

    /// Reads what is pending again, and swaps in what came of it. What could not be read stays pending.
    fn reload(&mut self, agenda: &mut Agenda) {
        inject("loop", "reload");
        let begin = Instant::now();
        // Every further attempt would say the same.
        let is_first = agenda.pause == FIRST_PAUSE;
        let Wanted { tenants, themes } = agenda.pending.clone().unwrap_or_else(Wanted::nothing);
        let reloaded = self
            .registry
            .reload_some(Timestamp::now(), tenants.as_ref(), themes);
        match reloaded {
            Ok(snapshot) => {
                self.publish(snapshot);
                inject("loop", "report");
                log_report(&self.registry, &self.board);
                self.announce(None);
                if self.registry.alarm.is_none() {
                    agenda.pending = self.registry.still_wanted();
                }
                let alarm = self.registry.alarm().map(ToOwned::to_owned);
                self.board.reloaded(begin.elapsed(), alarm);
                let names = |names: &BTreeSet<String>| {
                    names
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(" ")
                };
                let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
                let tenants = tenants.as_ref().map_or_else(|| "all".to_owned(), names);
                match is_first {
                    true => info!(took_ms, tenants, themes, "reloaded"),
                    false => debug!(took_ms, tenants, themes, "tried again"),
                }
            }
            Err(problem) => {
                if is_first {
                    error!(%problem, "nothing was taken; the last state is served");
                }
                let problem = problem.to_string();
                // It stays until the next attempt succeeds, whatever comes in the meantime.
                self.registry.alarm = Some(problem.clone());
                log_report(&self.registry, &self.board);
                self.announce(Some(&problem));
                self.board.reloaded(begin.elapsed(), Some(problem));
            }
        }
        agenda.postpone();
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
    /// What the system would not give the last time, to be read again.
    fn still_wanted(&self) -> Option<Wanted> {
        let (tenants, themes) = (self.unread(), self.themes.are_unread());
        let any = themes || !tenants.is_empty() || self.addresses.is_unread();
        any.then_some(Wanted {
            tenants: Some(tenants),
            themes,
        })
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
    left.unwrap_or(LONGEST).min(LONGEST)
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
