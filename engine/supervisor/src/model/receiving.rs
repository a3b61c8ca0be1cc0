//! The wait of a tenant for files whose upload has not ended.
//!
//! ```text
//! None ──Receiving──> Waiting ──Receiving──> Waiting ... ──complete──> None
//!                        └──limit over, and a file still changes──> Overdue ──no file changes──> None
//! ```
//!
//! An overdue tenant does not wait again until its files rest: a file that grows all the time delays the tenant once.
//!
//! **Invariant:** reads no clock and no file. Callers pass the time.

use std::time::{Duration, Instant};

/// The delay before the first further look at files that are open or have no end. Each further look doubles the delay.
const MIN_LOOK_DELAY: Duration = Duration::from_millis(250);

/// The longest delay before a further look, also at an overdue tenant. A change of the folder causes an earlier look.
const MAX_LOOK_DELAY: Duration = Duration::from_secs(5);

/// The files of a tenant at a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileActivity {
    /// The reading waits for files. `quiet_in`: the time after which all files are complete if none of them changes.
    Awaited { quiet_in: Option<Duration> },
    /// The folder was used as it is, and a file still changes.
    Changing,
    /// No file changes.
    Resting,
}

/// The wait of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// The tenant waits. `looks`: the number of looks since the start of the wait.
    Waiting { since: Instant, looks: u32 },
    /// The limit was reached, and files still change. The folder is used as it is.
    Overdue,
}

impl Receiving {
    /// Returns whether the next reading may lead to a further wait.
    pub(crate) fn may_wait(before: Option<Self>, limit: Duration, now: Instant) -> bool {
        match before {
            None => !limit.is_zero(),
            Some(Self::Waiting { since, .. }) => now < since + limit,
            Some(Self::Overdue) => false,
        }
    }

    /// Returns the state after a reading, and the time of the next look, if one is needed. `limit`: the longest wait.
    pub(crate) fn after(
        before: Option<Self>,
        files: FileActivity,
        limit: Duration,
        now: Instant,
    ) -> (Option<Self>, Option<Instant>) {
        match files {
            FileActivity::Awaited { quiet_in } => {
                let (wait, due) = Self::wait(before, quiet_in, limit, now);
                (Some(wait), Some(due))
            }
            FileActivity::Changing => (Some(Self::Overdue), Some(now + MAX_LOOK_DELAY)),
            FileActivity::Resting => (None, None),
        }
    }

    /// Begins or continues a wait. Returns the wait and the time of the next look, which is at most `limit` after the start.
    ///
    /// `quiet_in`: the time after which all files are complete if none of them changes.
    fn wait(
        before: Option<Self>,
        quiet_in: Option<Duration>,
        limit: Duration,
        now: Instant,
    ) -> (Self, Instant) {
        let (since, looks) = match before {
            Some(Self::Waiting { since, looks }) => (since, looks + 1),
            Some(Self::Overdue) | None => (now, 0),
        };
        let delay = MIN_LOOK_DELAY.saturating_mul(1 << looks.min(16));
        let delay = quiet_in.unwrap_or(delay.min(MAX_LOOK_DELAY));
        let due = (now + delay).min(since + limit).max(now);
        (Self::Waiting { since, looks }, due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn looks_are_rare_and_end_at_the_limit() {
        let begin = Instant::now();
        let (mut wait, mut now, mut looks) = (None, begin, 0);
        while Receiving::may_wait(wait, LIMIT, now) {
            let (next, due) = Receiving::wait(wait, None, LIMIT, now);
            (wait, now, looks) = (Some(next), due, looks + 1);
        }
        assert_eq!(now, begin + LIMIT);
        assert!((10..20).contains(&looks), "{looks}");
    }

    #[test]
    fn files_that_only_need_rest_are_looked_at_when_they_have_rested() {
        let now = Instant::now();
        let rest = Duration::from_millis(700);
        let (wait, due) = Receiving::wait(None, Some(rest), LIMIT, now);
        assert_eq!(
            (wait, due),
            (
                Receiving::Waiting {
                    since: now,
                    looks: 0
                },
                now + rest
            )
        );
    }

    #[test]
    fn overdue_tenant_and_limit_of_zero_do_not_wait() {
        let now = Instant::now();
        assert!(!Receiving::may_wait(Some(Receiving::Overdue), LIMIT, now));
        assert!(!Receiving::may_wait(None, Duration::ZERO, now));
        assert!(Receiving::may_wait(None, LIMIT, now));
    }
}
