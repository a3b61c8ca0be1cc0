//! When a replica collects: once a day in the whole fleet, whatever the number of replicas.
//!
//! Replicas look at the time of the last collection, and a [lease](crate::lease) chooses one of them. All times are since 1970. A clock that is wrong by minutes moves a collection by minutes.

use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// The time between two collections of a fleet.
pub const COLLECTION_INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// The time without a collection after which operators are told.
pub const COLLECTION_ALARM: Duration = Duration::from_secs(3 * 24 * 3_600);

/// The longest time by which a replica looks later than it could, so that replicas do not look at once.
pub const COLLECTION_JITTER: Duration = HOUR;

/// Returns the time until a collection is due; zero if it is due. `last` is the time of the last collection.
#[must_use]
pub fn until_due(last: Option<Duration>, now: Duration) -> Duration {
    let due = last.map_or(Duration::ZERO, |last| last + COLLECTION_INTERVAL);
    // The clock of the replica may have been behind.
    due.saturating_sub(now).min(COLLECTION_INTERVAL)
}

/// Returns the time until the replica looks again, after an attempt that did not collect, or a look that found no work for `until_due`. `jitter` is at most [`COLLECTION_JITTER`].
#[must_use]
pub fn next_look(until_due: Duration, jitter: Duration) -> Duration {
    until_due.max(HOUR) + jitter.min(COLLECTION_JITTER)
}

/// Returns whether the fleet was not collected for so long that operators are told. `since` is the time from which the replica knows.
#[must_use]
pub fn is_overdue(last: Option<Duration>, since: Duration, now: Duration) -> bool {
    now.saturating_sub(last.unwrap_or(since)) > COLLECTION_ALARM
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = COLLECTION_INTERVAL;
    const NOW: Duration = Duration::from_secs(1_800_000_000);

    #[test]
    fn collection_is_due_a_day_after_the_last() {
        assert_eq!(until_due(None, NOW), Duration::ZERO);
        assert_eq!(until_due(Some(NOW - 2 * DAY), NOW), Duration::ZERO);
        assert_eq!(until_due(Some(NOW - HOUR), NOW), DAY - HOUR);
        assert_eq!(until_due(Some(NOW + 30 * DAY), NOW), DAY, "a wrong clock");
    }

    #[test]
    fn replica_looks_again_when_it_is_due_and_after_a_failure_in_an_hour() {
        assert_eq!(next_look(Duration::ZERO, Duration::ZERO), HOUR);
        assert_eq!(next_look(DAY, HOUR / 2), DAY + HOUR / 2);
        assert_eq!(next_look(DAY, DAY), DAY + COLLECTION_JITTER);
    }

    /// Hundred replicas that look at different times collect once a day together.
    #[test]
    fn replicas_collect_once_a_day_together() {
        let mut last = None;
        let mut collections = 0;
        let mut looks: Vec<Duration> = (0..100).map(|number| NOW + HOUR * number / 100).collect();
        for now in (0..10 * 24 * 60).map(|minute| NOW + Duration::from_secs(60) * minute) {
            for (number, look) in looks.iter_mut().enumerate() {
                if *look > now {
                    continue;
                }
                if until_due(last, now).is_zero() {
                    collections += 1;
                    last = Some(now);
                }
                let jitter = HOUR * u32::try_from(number).unwrap_or_default() / 100;
                *look = now + next_look(until_due(last, now), jitter);
            }
        }
        assert_eq!(collections, 10);
        assert!(!is_overdue(last, NOW, NOW + 10 * DAY));
    }

    #[test]
    fn operators_are_told_after_three_days() {
        let late = NOW + 3 * DAY + HOUR;
        assert!(!is_overdue(Some(NOW), NOW, NOW + 2 * DAY));
        assert!(is_overdue(Some(NOW), NOW, late));
        assert!(is_overdue(None, NOW, late));
        assert!(!is_overdue(None, late - HOUR, late));
    }
}
