//! The agenda: which folders are read again, and when.
//!
//! Each scope settles independently: constant writes to one tenant delay the reload of that tenant only.
//! Known tenants are read as soon as they settle. All other scopes need a survey, and one survey runs at a time.
//! Failed reads are retried with growing delays.
//!
//! **Invariant:** reads no clock and no file. Callers pass the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The time without further changes after which a scope is read. It is longer than the pause between two writes while a folder is copied.
pub(crate) const SETTLE_TIME: Duration = Duration::from_millis(60);

/// The longest time from the first change of a scope to its read, even if the scope keeps changing.
pub(crate) const MAX_SETTLE_TIME: Duration = Duration::from_secs(2);

/// The delay before the first retry of a failed read. Each further retry doubles the delay.
pub(crate) const MIN_RETRY_DELAY: Duration = Duration::from_millis(200);

/// The longest delay before a retry of a failed read.
pub(crate) const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// A part of the content that is read again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReloadScope {
    /// One entry of the folder of tenants, by name.
    Tenant(String),
    /// The list of tenants, and `deployment.yaml`.
    List,
    /// All themes.
    Themes,
    /// All tenants and themes.
    Everything,
}

/// One reload: the tenants and themes to read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reload {
    /// The entries of the folder of tenants to read. `None` reads all entries.
    pub(crate) tenants: Option<BTreeSet<String>>,
    /// Whether the themes are read.
    pub(crate) includes_themes: bool,
    /// Whether the list of tenants and `deployment.yaml` are read as well.
    pub(crate) is_survey: bool,
    /// Whether all its scopes are retries without a new change.
    pub(crate) is_retry: bool,
}

/// The times of the first and the last change of a scope since its last read.
#[derive(Debug, Clone, Copy)]
struct PendingChange {
    first: Instant,
    last: Instant,
}

impl PendingChange {
    /// Returns the time at which the scope is due.
    fn due(self) -> Instant {
        (self.last + SETTLE_TIME).min(self.first + MAX_SETTLE_TIME)
    }
}

/// The scopes whose last read failed.
#[derive(Debug, Default)]
struct PendingRetry {
    scopes: BTreeSet<ReloadScope>,
    due: Option<Instant>,
    /// The number of attempts since the last change.
    attempts: u32,
}

/// The scopes that changed, are being read, or could not be read.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    changes: BTreeMap<ReloadScope, PendingChange>,
    retry: PendingRetry,
    /// The scopes of the reload in progress.
    reading: BTreeSet<ReloadScope>,
    /// The scopes of the survey in flight.
    surveying: Option<BTreeSet<ReloadScope>>,
    /// The time of the last call of [`Agenda::next`]. A scope that was due before that time and is still noted waits for the survey in flight.
    last_call: Option<Instant>,
}

impl Agenda {
    /// Notes a change of a scope. The scope is read once it has settled.
    pub(crate) fn note(&mut self, scope: ReloadScope, now: Instant) {
        let change = PendingChange {
            first: now,
            last: now,
        };
        let pending = self.changes.entry(scope).or_insert(change);
        // A read may be scheduled for a later time.
        pending.first = pending.first.min(now);
        pending.last = now;
        self.retry.attempts = 0;
        // The change may have fixed an earlier failure.
        self.retry.due = self.retry.due.map(|due| due.min(now + SETTLE_TIME));
    }

    /// Schedules a read of a scope at `due`, without waiting for the scope to settle. A change may cause an earlier read.
    pub(crate) fn request(&mut self, scope: ReloadScope, due: Instant) {
        let settled = due.checked_sub(SETTLE_TIME).unwrap_or(due);
        let request = PendingChange {
            first: settled,
            last: settled,
        };
        let pending = self.changes.entry(scope).or_insert(request);
        if pending.first > due {
            // A later read was scheduled.
            *pending = request;
        }
    }

    /// Schedules a retry of scopes that could not be read. The delay doubles with each attempt until a scope changes.
    pub(crate) fn retry(&mut self, scopes: impl IntoIterator<Item = ReloadScope>, now: Instant) {
        self.retry.scopes.extend(scopes);
        if self.retry.scopes.is_empty() || self.retry.due.is_some() {
            return;
        }
        let delay = MIN_RETRY_DELAY.saturating_mul(1 << self.retry.attempts.min(16));
        self.retry.due = Some(now + delay.min(MAX_RETRY_DELAY));
        self.retry.attempts += 1;
    }

    /// Returns the next reload that is due, if any. `is_known` says whether an entry is a known tenant, which needs no survey.
    ///
    /// The caller reports the end of the reload with [`Agenda::end`]. For a survey, it first calls [`Agenda::end_survey`].
    pub(crate) fn next(
        &mut self,
        now: Instant,
        is_known: impl Fn(&str) -> bool,
        can_survey: bool,
    ) -> Option<Reload> {
        self.last_call = Some(now);
        let changed = self.changes.iter();
        let changed = changed.filter(|(_, change)| change.due() <= now);
        let mut due: BTreeSet<ReloadScope> = changed.map(|(scope, _)| scope.clone()).collect();
        if self.retry.due.is_some_and(|due| due <= now) {
            due.extend(self.retry.scopes.iter().cloned());
            self.retry.due = None;
        }
        let needs_survey = |scope: &ReloadScope| match scope {
            ReloadScope::Tenant(name) => !is_known(name),
            ReloadScope::List | ReloadScope::Themes | ReloadScope::Everything => true,
        };
        let may_survey = can_survey && self.surveying.is_none();
        let is_survey = may_survey && due.iter().all(needs_survey);
        if !is_survey {
            // Known tenants do not wait for a survey.
            due.retain(|scope| !needs_survey(scope));
        }
        let is_retry = !due.iter().any(|scope| self.changes.contains_key(scope));
        for scope in &due {
            self.changes.remove(scope);
            self.retry.scopes.remove(scope);
        }
        if !self.retry.scopes.is_empty() && self.retry.due.is_none() {
            // The remaining scopes wait for a survey. The next call starts the survey, unless one is in flight.
            // Without that, a known tenant that is retried all the time would delay the survey for ever.
            let delay = match due.is_empty() {
                true => MIN_RETRY_DELAY,
                false => Duration::ZERO,
            };
            self.retry.due = Some(now + delay);
        }
        if due.is_empty() {
            return None;
        }
        let has_everything = due.contains(&ReloadScope::Everything);
        let name = |scope: &ReloadScope| match scope {
            ReloadScope::Tenant(name) => Some(name.clone()),
            _ => None,
        };
        let reload = Reload {
            tenants: (!has_everything).then(|| due.iter().filter_map(name).collect()),
            includes_themes: has_everything || due.contains(&ReloadScope::Themes),
            is_survey,
            is_retry,
        };
        match is_survey {
            true => self.surveying = Some(due),
            false => self.reading = due,
        }
        Some(reload)
    }

    /// Notes that the survey in flight has ended. The caller applies its result next.
    pub(crate) fn end_survey(&mut self) {
        self.reading
            .extend(self.surveying.take().into_iter().flatten());
    }

    /// Notes that the reload in progress has ended. Its scopes are retried unless `is_applied`.
    pub(crate) fn end(&mut self, is_applied: bool, now: Instant) {
        let scopes = std::mem::take(&mut self.reading);
        if !is_applied {
            self.retry(scopes, now);
        }
    }

    /// Schedules a retry of all scopes that were in progress or in flight when the caller failed, and a read of the list of tenants.
    /// The result of the survey in flight is lost.
    pub(crate) fn recover(&mut self, now: Instant) {
        self.end_survey();
        self.reading.insert(ReloadScope::List);
        self.end(false, now);
    }

    /// Returns the time until the next scope is due, once [`Agenda::next`] has returned `None`.
    ///
    /// Returns `None` if no scope is noted, or if all noted scopes wait for the survey in flight.
    pub(crate) fn until_due(&self, now: Instant) -> Option<Duration> {
        let changes = self.changes.values().map(|change| change.due());
        let is_new = |due: &Instant| self.last_call.is_none_or(|last_call| *due >= last_call);
        let due = changes.chain(self.retry.due).filter(is_new).min()?;
        Some(due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tenant(name: &str) -> ReloadScope {
        ReloadScope::Tenant(name.to_owned())
    }

    fn names(reload: &Reload) -> Vec<&str> {
        let names = reload.tenants.iter().flatten();
        names.map(String::as_str).collect()
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn constant_writes_to_a_tenant_delay_that_tenant_only() {
        let mut agenda = Agenda::default();
        let begin = Instant::now();
        let known = |_: &str| true;
        agenda.note(tenant("quiet"), begin);
        let mut read = Vec::new();
        for step in 0..200 {
            let now = begin + step * 10 * MS;
            agenda.note(tenant("busy"), now);
            if let Some(reload) = agenda.next(now, known, true) {
                read.push((step * 10, names(&reload).join(" ")));
                agenda.end(true, now);
            }
        }
        assert_eq!(read, [(60, "quiet".to_owned())]);
        let now = begin + MAX_SETTLE_TIME;
        let reload = agenda.next(now, known, true).expect("a reload");
        assert_eq!(
            names(&reload),
            ["busy"],
            "read after the longest settle time"
        );
    }

    #[test]
    fn change_that_becomes_due_after_the_last_call_is_due_at_once() {
        let mut agenda = Agenda::default();
        let begin = Instant::now();
        let known = |_: &str| true;
        agenda.note(tenant("app"), begin);
        let last_call = begin + SETTLE_TIME - MS;
        assert_eq!(agenda.next(last_call, known, true), None);
        assert_eq!(agenda.until_due(last_call), Some(MS));
        assert_eq!(agenda.until_due(last_call + 2 * MS), Some(Duration::ZERO));
    }

    #[test]
    fn read_that_is_scheduled_for_later_begins_early_after_a_change_or_a_request() {
        let mut agenda = Agenda::default();
        let begin = Instant::now();
        let later = begin + 100 * SETTLE_TIME;
        agenda.request(tenant("app"), later);
        assert_eq!(agenda.until_due(begin), Some(later - begin));
        agenda.note(tenant("app"), begin);
        assert_eq!(agenda.until_due(begin), Some(SETTLE_TIME));
        agenda.request(tenant("other"), later);
        agenda.request(tenant("other"), begin);
        assert_eq!(agenda.until_due(begin), Some(Duration::ZERO));
    }

    #[test]
    fn known_tenants_do_not_wait_for_a_survey() {
        let mut agenda = Agenda::default();
        let mut now = Instant::now();
        let known = |name: &str| name == "known";
        agenda.request(ReloadScope::Themes, now);
        agenda.request(tenant("known"), now);
        let reload = agenda.next(now, known, true).expect("a reload");
        assert_eq!((names(&reload), reload.is_survey), (vec!["known"], false));
        agenda.end(true, now);
        let survey = agenda.next(now, known, true).expect("a survey");
        assert!(
            survey.is_survey && survey.includes_themes && survey.tenants == Some(BTreeSet::new())
        );
        agenda.note(tenant("known"), now);
        agenda.note(tenant("new"), now);
        now += SETTLE_TIME;
        let reload = agenda.next(now, known, true).expect("a reload");
        assert_eq!((names(&reload), reload.is_survey), (vec!["known"], false));
        agenda.end(true, now);
        assert_eq!(agenda.next(now, known, true), None, "one survey at a time");
        agenda.end_survey();
        agenda.end(true, now);
        let survey = agenda.next(now, known, true).expect("the next survey");
        assert_eq!((names(&survey), survey.is_survey), (vec!["new"], true));
    }

    #[test]
    fn failed_reads_are_retried_with_growing_delays_until_a_change() {
        let mut agenda = Agenda::default();
        let mut now = Instant::now();
        let known = |_: &str| true;
        let mut delays = Vec::new();
        for _ in 0..9 {
            agenda.retry([tenant("unread")], now);
            let delay = agenda.until_due(now).expect("a retry");
            delays.push(delay.as_millis());
            now += delay;
            let reload = agenda.next(now, known, true).expect("a reload");
            assert!(reload.is_retry);
            agenda.end(true, now);
        }
        let expected = [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000];
        assert_eq!(delays, expected);
        agenda.note(tenant("unread"), now);
        now += SETTLE_TIME;
        assert!(!agenda.next(now, known, true).expect("a reload").is_retry);
        agenda.end(false, now);
        assert_eq!(agenda.until_due(now), Some(MIN_RETRY_DELAY));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(u64),
        Change(u8),
        List,
        Themes,
        Everything,
        /// The survey in flight ends, with success or without.
        End(bool),
        Panic,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u64..3_000).prop_map(Step::Wait),
            4 => (0_u8..4).prop_map(Step::Change),
            1 => Just(Step::List),
            1 => Just(Step::Themes),
            1 => Just(Step::Everything),
            3 => any::<bool>().prop_map(Step::End),
            1 => Just(Step::Panic),
        ]
    }

    /// Returns whether a reload reads a scope.
    fn covers(reload: &Reload, scope: &ReloadScope) -> bool {
        match scope {
            ReloadScope::List => reload.is_survey,
            ReloadScope::Themes => reload.includes_themes,
            ReloadScope::Everything => {
                reload.includes_themes && reload.is_survey && reload.tenants.is_none()
            }
            ReloadScope::Tenant(name) => reload
                .tenants
                .as_ref()
                .is_none_or(|names| names.contains(name)),
        }
    }

    proptest! {
        #[test]
        fn properties_of_every_change_is_read_after_it_was_noted(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let mut agenda = Agenda::default();
            let mut now = Instant::now();
            let known = |name: &str| name < "2";
            // The scopes that changed and were not read since, with the time of the change.
            let mut unread: BTreeMap<ReloadScope, Instant> = BTreeMap::new();
            let mut survey: Option<(Reload, Instant)> = None;
            let settle = |agenda: &mut Agenda, unread: &mut BTreeMap<ReloadScope, Instant>,
                          survey: &mut Option<(Reload, Instant)>, now: Instant, succeeds: bool| {
                while let Some(reload) = agenda.next(now, known, true) {
                    if reload.is_survey {
                        assert!(survey.is_none(), "one survey at a time");
                        *survey = Some((reload, now));
                        continue;
                    }
                    assert!(!reload.includes_themes && reload.tenants.is_some());
                    agenda.end(succeeds, now);
                    if succeeds {
                        unread.retain(|scope, noted| *noted > now || !covers(&reload, scope));
                    }
                }
            };
            for step in steps {
                let scope = match &step {
                    Step::Change(number) => Some(tenant(&number.to_string())),
                    Step::List => Some(ReloadScope::List),
                    Step::Themes => Some(ReloadScope::Themes),
                    Step::Everything => Some(ReloadScope::Everything),
                    _ => None,
                };
                if let Some(scope) = scope {
                    agenda.note(scope.clone(), now);
                    unread.insert(scope, now);
                }
                match step {
                    Step::Wait(time) => now += Duration::from_millis(time) + MS,
                    Step::End(succeeds) => {
                        if let Some((reload, begun)) = survey.take() {
                            agenda.end_survey();
                            agenda.end(succeeds, now);
                            if succeeds {
                                unread.retain(|scope, noted| *noted > begun || !covers(&reload, scope));
                            }
                        }
                    }
                    Step::Panic => {
                        survey = None;
                        agenda.recover(now);
                    }
                    _ => {}
                }
                settle(&mut agenda, &mut unread, &mut survey, now, true);
                // A known tenant is read at once when it has settled.
                for (scope, noted) in &unread {
                    if matches!(scope, ReloadScope::Tenant(name) if known(name)) {
                        prop_assert!(now < *noted + SETTLE_TIME, "{scope:?} has settled and is not read");
                    }
                }
            }
            for _ in 0..20 {
                now += MAX_RETRY_DELAY;
                settle(&mut agenda, &mut unread, &mut survey, now, true);
                if let Some((reload, begun)) = survey.take() {
                    agenda.end_survey();
                    agenda.end(true, now);
                    unread.retain(|scope, noted| *noted > begun || !covers(&reload, scope));
                }
            }
            prop_assert!(unread.is_empty(), "never read: {unread:?}");
            prop_assert_eq!(agenda.until_due(now), None);
        }
    }
}
