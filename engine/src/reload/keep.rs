//! Keeps what is served as the folders are: waits for changes, reloads, swaps, tells.
//!
//! It works on a thread of its own. Whatever goes wrong there, the last snapshot goes on being served.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::{error, info, warn};

use super::paint::Painter;
use super::slow::SlowLane;
use super::{Estate, year_in_chicago};
use crate::report::{Report, Severity};
use crate::serve::events::Events;
use crate::serve::shelf::Shelf;
use crate::serve::status::{State, Status, StatusBoard};
use crate::watch::{Changes, Method, Notice, Watch};

/// The longest that nothing is looked at: clocks are set, machines sleep, and folders are mounted where no notification tells of it.
const LONGEST: Duration = Duration::from_secs(1);

/// The owner with what it keeps.
#[derive(Debug)]
pub struct Keeper {
    /// The tenants.
    pub estate: Estate,
    /// Where snapshots go.
    pub shelf: Arc<Shelf>,
    /// Where the tenants' state is told.
    pub board: Arc<StatusBoard>,
    /// Where authors' browsers hear of it (`--dev`).
    pub events: Option<Events>,
}

impl Keeper {
    /// Begins to keep. Sending [`Notice::Everything`] reloads all.
    #[must_use]
    pub fn start(mut self, method: Method) -> Sender<Notice> {
        let places = self.estate.places();
        let roots = std::iter::once(places.tenants.clone())
            .chain(places.themes.clone())
            .chain(places.deployment.clone())
            .collect();
        let mut watch = Watch::start(method, roots);
        let sender = watch.sender();
        let mut looked = Timestamp::now();
        thread::spawn(move || {
            let painter = Painter::start();
            self.estate.slow = Some(SlowLane::start(watch.sender()));
            self.tell_of_watching(&watch);
            painter.order(self.estate.undrawn());
            self.estate.keep();
            loop {
                let due = self.estate.next_change(looked);
                let reloaded = match watch.next(until(due)) {
                    Some(changes) => {
                        self.take(&changes);
                        self.tell_of_watching(&watch);
                        true
                    }
                    None => self.look_at_the_clock(looked, due),
                };
                looked = Timestamp::now();
                let reloaded = self.take_slow() || reloaded;
                if reloaded {
                    painter.order(self.estate.undrawn());
                }
                if reloaded || painter.has_finished() {
                    self.estate.keep();
                }
            }
        });
        sender
    }

    /// Pages come and go at their moment, and the year of the copyright line with the year.
    fn look_at_the_clock(&mut self, looked: Timestamp, due: Option<Timestamp>) -> bool {
        let now = Timestamp::now();
        let new_year = year_in_chicago(now) != year_in_chicago(looked);
        let is_time = new_year || due.is_some_and(|due| due <= now);
        if is_time {
            self.reload(Some(&BTreeSet::new()), false);
        }
        is_time
    }

    /// Reloads what changed. What cannot be read changes nothing.
    fn take(&mut self, changes: &Changes) {
        let places = self.estate.places();
        let roots: Vec<&Path> = std::iter::once(places.tenants.as_path())
            .chain(places.themes.as_deref())
            .collect();
        let everything = changes.everything || changes.elsewhere(&roots);
        let tenants = match everything {
            true => None,
            false => changes.below(&places.tenants),
        };
        let themes = places.themes.as_deref().is_some_and(|themes| {
            everything || changes.below(themes).is_none_or(|names| !names.is_empty())
        });
        self.reload(tenants.as_ref(), themes);
    }

    /// Swaps in what was compiled aside.
    fn take_slow(&mut self) -> bool {
        let Some(snapshot) = self.estate.take_slow() else {
            return false;
        };
        self.shelf.replace(snapshot);
        tell(&self.estate, &self.board);
        self.announce(None);
        info!("a tenant that takes long is reloaded");
        true
    }

    /// Reads the folders of `tenants` (all without them) again, and swaps in what came of it.
    fn reload(&mut self, tenants: Option<&BTreeSet<String>>, themes: bool) {
        let begin = Instant::now();
        match self.estate.reload_some(Timestamp::now(), tenants, themes) {
            Ok(snapshot) => {
                self.shelf.replace(snapshot);
                tell(&self.estate, &self.board);
                self.announce(None);
                let alarm = self.estate.alarm().map(ToOwned::to_owned);
                self.board.reloaded(begin.elapsed(), alarm);
                let names = |names: &BTreeSet<String>| {
                    names
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(" ")
                };
                info!(
                    took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
                    tenants = tenants.map_or_else(|| "all".to_owned(), names),
                    themes,
                    "reloaded"
                );
            }
            Err(problem) => {
                error!(%problem, "nothing was taken; the last state is served");
                let problem = problem.to_string();
                tell(&self.estate, &self.board);
                self.announce(Some(&problem));
                self.board.reloaded(begin.elapsed(), Some(problem));
            }
        }
    }

    fn tell_of_watching(&mut self, watch: &Watch) {
        if self.estate.is_polled != watch.fell_back() {
            self.estate.is_polled = watch.fell_back();
            tell(&self.estate, &self.board);
        }
    }

    fn announce(&self, problem: Option<&str>) {
        if let Some(events) = &self.events {
            events.tell(&self.estate.wrongs(problem));
        }
    }
}

/// How long nothing needs to be looked at, as far as the clock goes.
fn until(due: Option<Timestamp>) -> Duration {
    let left = due.and_then(|due| Duration::try_from(due - Timestamp::now()).ok());
    left.unwrap_or(LONGEST).min(LONGEST)
}

/// Puts the tenants' state on the board, and what is new of it in the log.
pub(crate) fn tell(estate: &Estate, board: &StatusBoard) {
    let status = estate.status();
    let before = board.current();
    for tenant in &status.tenants {
        // Both are in the order of the ids.
        let place = before
            .tenants
            .binary_search_by(|old| old.id.cmp(&tenant.id));
        let old = place.ok().and_then(|place| before.tenants.get(place));
        if old.is_some_and(|old| old.mistakes == tenant.mistakes && old.state == tenant.state) {
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
            mistakes = tenant.mistakes.len(),
            first = tenant.mistakes.first().map_or("", String::as_str),
            "the folder has mistakes; `rowhouse check` shows them all"
        );
    }
    tell_of_themes(estate, &status);
    board.replace(status);
}

/// A theme's mistakes that no tenant shows, since every tenant still has the last good theme.
fn tell_of_themes(estate: &Estate, status: &Status) {
    let mut report = Report::default();
    report.extend(estate.themes.report().cloned());
    let report = report.sorted();
    let by_a_tenant = |file: &str| {
        let mut mistakes = status.tenants.iter().flat_map(|tenant| &tenant.mistakes);
        mistakes.any(|mistake| mistake.starts_with(file))
    };
    let alone = report
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Mistake)
        .find(|diagnostic| !by_a_tenant(&diagnostic.file));
    if let Some(mistake) = alone {
        warn!(
            file = mistake.file,
            code = mistake.code.as_str(),
            "{}",
            mistake.message
        );
    }
}
