//! Keeps what is served as the folders are: waits for changes, reloads, swaps, tells.
//!
//! It works on a thread of its own. Whatever goes wrong there, the last snapshot goes on being served.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::Estate;
use crate::report::Severity;
use crate::serve::shelf::Shelf;
use crate::serve::status::{State, Status, StatusBoard};
use crate::watch::{Changes, Method, Notice, Watch};

/// How often it is looked whether a new year has begun.
const CALENDAR: Duration = Duration::from_secs(30);

/// The owner with what it keeps.
#[derive(Debug)]
pub struct Keeper {
    /// The tenants.
    pub estate: Estate,
    /// Where snapshots go.
    pub shelf: Arc<Shelf>,
    /// Where the tenants' state is told.
    pub board: Arc<StatusBoard>,
    /// Says the year in Chicago.
    pub year: fn() -> i16,
}

impl Keeper {
    /// Begins to keep. Sending [`Notice::Everything`] reloads all.
    #[must_use]
    pub fn start(mut self, method: Method) -> Sender<Notice> {
        let places = self.estate.places();
        let roots = std::iter::once(places.tenants.clone())
            .chain(places.themes.clone())
            .collect();
        let mut watch = Watch::start(method, roots);
        let sender = watch.sender();
        let begun = (self.year)();
        thread::spawn(move || {
            let mut year = begun;
            loop {
                let changes = watch.next(CALENDAR);
                let new_year = (self.year)() != year;
                if let Some(changes) = changes {
                    self.take(&changes);
                    watch.follow_links();
                } else if new_year {
                    self.take(&Changes {
                        everything: true,
                        ..Changes::default()
                    });
                }
                year = (self.year)();
            }
        });
        sender
    }

    /// Reloads what changed. What cannot be read changes nothing.
    fn take(&mut self, changes: &Changes) {
        let begin = Instant::now();
        let places = self.estate.places();
        let tenants = changes.below(&places.tenants);
        let themes = match &places.themes {
            None => false,
            Some(themes) => {
                changes.everything || changes.paths.iter().any(|path| path.starts_with(themes))
            }
        };
        // Paths of the themes' folder are not below the tenants'.
        let tenants = if themes && !changes.everything {
            Some(Default::default())
        } else {
            tenants
        };
        match self
            .estate
            .reload_some((self.year)(), tenants.as_ref(), themes)
        {
            Ok(snapshot) => {
                self.shelf.replace(snapshot);
                tell(&self.estate, &self.board);
                info!(
                    took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
                    tenants = tenants.map_or_else(
                        || "all".to_owned(),
                        |names| names.into_iter().collect::<Vec<_>>().join(" ")
                    ),
                    themes,
                    "reloaded"
                );
            }
            Err(problem) => error!(%problem, "nothing was taken; the last state is served"),
        }
    }
}

/// Puts the tenants' state on the board, and what is new of it in the log.
pub(crate) fn tell(estate: &Estate, board: &StatusBoard) {
    let status = estate.status();
    let before = board.current();
    for tenant in &status.tenants {
        let same = |old: &&crate::serve::status::TenantStatus| old.id == tenant.id;
        let old = before.tenants.iter().find(same);
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
    let report = estate.report();
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
