//! The ages of previews: which previews end soon, and which are too old to be served.
//!
//! ```text
//! Current ──the last seventh of the limit begins──> Ending ──limit reached──> Expired
//!    ^                                                 │                        │
//!    └──────────────────── folder changes ─────────────┴────────────────────────┘
//! ```
//!
//! The age of a preview begins with the last change of its folder, which the file system knows, or with its last publication, which the bucket knows. It therefore survives restarts without persisted data. The time of the newest reading counts, also if it is earlier than the time before: the clocks of publishers differ.
//!
//! **Invariant:** reads no clock and no file. Each preview has at most one timer, the time of its next phase.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use content::name::TenantId;

/// Operators are warned in this share of the age limit before its end: two days of 14.
const WARNING_SHARE: u32 = 7;

/// The phase of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewPhase {
    /// The preview is served.
    Current,
    /// The preview is served, and ends soon.
    Ending,
    /// The preview is too old, and is not served until its folder changes.
    Expired,
}

/// The age of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PreviewAge {
    /// The last change of the folder.
    pub(crate) changed: SystemTime,
    pub(crate) phase: PreviewPhase,
}

/// The ages of all previews, and the times at which their phases change.
#[derive(Debug, Default)]
pub(crate) struct Previews {
    /// The age at which a preview expires; `None` outside a server.
    max_age: Option<Duration>,
    ages: BTreeMap<TenantId, PreviewAge>,
    /// The time of the next phase of each preview.
    timers: BTreeSet<(SystemTime, TenantId)>,
}

impl Previews {
    /// Sets the age at which a preview expires, before the first event.
    pub(super) const fn set_max_age(&mut self, age: Duration) {
        self.max_age = Some(age);
    }

    /// Returns the age of a preview, if its folder was read.
    pub(crate) fn age(&self, id: &TenantId) -> Option<PreviewAge> {
        self.ages.get(id).copied()
    }

    /// Returns the time at which a preview expires unless its folder changes before.
    pub(crate) fn end(&self, id: &TenantId) -> Option<SystemTime> {
        self.age(id)?.changed.checked_add(self.max_age?)
    }

    /// Notes the last change of a preview's folder, as its newest reading has found it. Returns whether the phase of the preview changes.
    pub(super) fn note_change(
        &mut self,
        id: &TenantId,
        changed: SystemTime,
        now: SystemTime,
    ) -> bool {
        let before = self.age(id);
        self.remove_timer(id);
        let phase = PreviewPhase::Current;
        self.ages.insert(id.clone(), PreviewAge { changed, phase });
        self.update(id, now);
        let phase_before = before.map_or(PreviewPhase::Current, |before| before.phase);
        self.age(id).is_some_and(|age| age.phase != phase_before)
    }

    /// Applies the timers that are due. Returns the previews whose phases have changed.
    pub(super) fn apply_timers(&mut self, now: SystemTime) -> Vec<TenantId> {
        let mut changed = Vec::new();
        while let Some((due, id)) = self.timers.first().cloned() {
            if due > now {
                break;
            }
            self.timers.pop_first();
            self.update(&id, now);
            changed.push(id);
        }
        changed
    }

    /// Forgets a preview whose folder was removed.
    pub(super) fn forget(&mut self, id: &TenantId) {
        self.remove_timer(id);
        self.ages.remove(id);
    }

    /// Sets the phase and the timer of a preview without a timer.
    fn update(&mut self, id: &TenantId, now: SystemTime) {
        let Some(age) = self.ages.get_mut(id) else {
            return;
        };
        let (phase, next) = phase_at(age.changed, self.max_age, now);
        age.phase = phase;
        self.timers.extend(next.map(|next| (next, id.clone())));
    }

    fn remove_timer(&mut self, id: &TenantId) {
        let next = self.age(id).and_then(|age| {
            let (warning, end) = limits(age.changed, self.max_age)?;
            match age.phase {
                PreviewPhase::Current => Some(warning),
                PreviewPhase::Ending => Some(end),
                PreviewPhase::Expired => None,
            }
        });
        if let Some(next) = next {
            self.timers.remove(&(next, id.clone()));
        }
    }
}

/// Returns the times at which the phases [`PreviewPhase::Ending`] and [`PreviewPhase::Expired`] begin, if there is a limit.
fn limits(changed: SystemTime, max_age: Option<Duration>) -> Option<(SystemTime, SystemTime)> {
    let max_age = max_age?;
    let end = changed.checked_add(max_age)?;
    Some((end.checked_sub(max_age / WARNING_SHARE)?, end))
}

/// Returns the phase at a time, and the time of the next phase.
fn phase_at(
    changed: SystemTime,
    max_age: Option<Duration>,
    now: SystemTime,
) -> (PreviewPhase, Option<SystemTime>) {
    match limits(changed, max_age) {
        Some((_, end)) if end <= now => (PreviewPhase::Expired, None),
        Some((warning, end)) if warning <= now => (PreviewPhase::Ending, Some(end)),
        Some((warning, _)) => (PreviewPhase::Current, Some(warning)),
        None => (PreviewPhase::Current, None),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::model::event::{Action, ClockTime, Event, OutsideFacts, ReadingOutcome, StoreState};
    use crate::model::removal::removed_tenants::Remembered;
    use crate::model::world::{Mode, World};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn day(number: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + 20_000 * DAY + number * DAY
    }

    fn previews() -> (Previews, TenantId) {
        let mut previews = Previews::default();
        previews.set_max_age(14 * DAY);
        (previews, TenantId::new("corner@spring").unwrap())
    }

    fn phase(previews: &Previews, id: &TenantId) -> PreviewPhase {
        previews.age(id).unwrap().phase
    }

    #[test]
    fn preview_ends_after_a_warning_and_begins_again_when_its_folder_changes() {
        let (mut previews, id) = previews();
        assert!(!previews.note_change(&id, day(0), day(1)));
        assert_eq!(previews.end(&id), Some(day(14)));
        let second = Duration::from_secs(1);
        for (now, has_changed, expected) in [
            (day(12) - second, false, PreviewPhase::Current),
            (day(12), true, PreviewPhase::Ending),
            (day(13), false, PreviewPhase::Ending),
            (day(14), true, PreviewPhase::Expired),
            (day(40), false, PreviewPhase::Expired),
        ] {
            let changed = previews.apply_timers(now);
            assert_eq!(!changed.is_empty(), has_changed, "{expected:?}");
            assert_eq!(phase(&previews, &id), expected);
        }
        assert!(previews.note_change(&id, day(40), day(40)));
        assert_eq!(phase(&previews, &id), PreviewPhase::Current);
        assert_eq!(previews.apply_timers(day(52)), std::slice::from_ref(&id));
        // A change in the phase of the warning moves the timer.
        assert!(previews.note_change(&id, day(52), day(52)));
        assert!(previews.apply_timers(day(54)).is_empty());
        assert_eq!(previews.end(&id), Some(day(66)));
    }

    #[test]
    fn old_preview_is_expired_at_once_after_a_restart() {
        let (mut previews, id) = previews();
        assert!(previews.note_change(&id, day(0), day(20)));
        assert_eq!(phase(&previews, &id), PreviewPhase::Expired);
        assert!(previews.timers.is_empty());
    }

    #[test]
    fn earlier_time_of_a_later_version_counts_as_after_a_restart() {
        let (mut previews, id) = previews();
        previews.note_change(&id, day(5), day(5));
        assert!(previews.note_change(&id, day(0), day(13)));
        assert_eq!(phase(&previews, &id), PreviewPhase::Ending);
        assert_eq!(previews.end(&id), Some(day(14)));
        assert_eq!(previews.timers.len(), 1);
        assert!(!previews.note_change(&id, day(0), day(13)));
        assert_eq!(previews.timers.len(), 1);
    }

    #[test]
    fn forgotten_preview_has_no_timer() {
        let (mut previews, id) = previews();
        previews.note_change(&id, day(0), day(0));
        previews.forget(&id);
        assert_eq!(previews.age(&id), None);
        assert!(previews.apply_timers(day(40)).is_empty());
    }

    /// Returns the time of each day.
    fn clock() -> impl Fn(u32) -> ClockTime {
        let begin = Instant::now();
        move |days| ClockTime {
            instant: begin + days * DAY,
            time: day(days),
        }
    }

    /// Returns a world that has listed a preview.
    fn world(id: &TenantId, now: ClockTime) -> World {
        let mut world = World::new(Mode::Serve, Remembered::default());
        world.set_preview_max_age(14 * DAY);
        let listed = Event::Listed {
            tenants: BTreeSet::from([id.clone()]),
            only: None,
        };
        world.step(listed, now);
        world
    }

    #[test]
    fn late_result_of_an_earlier_reading_changes_nothing() {
        let (_, id) = previews();
        let at = clock();
        let mut world = world(&id, at(5));
        for (number, days) in [(2, 5), (1, 4)] {
            let read = Event::PreviewRead {
                tenant: id.clone(),
                number,
                changed: day(days),
            };
            world.step(read, at(5));
            let read = Event::Read {
                tenant: id.clone(),
                number,
                reading: ReadingOutcome::Unchanged,
                is_changing: false,
            };
            world.step(read, at(5));
            assert_eq!(world.previews().end(&id), Some(day(19)));
        }
    }

    #[test]
    fn world_ends_and_resumes_a_preview_by_the_clock() {
        let (_, id) = previews();
        let at = clock();
        let idle = || {
            Event::QueueDrained(OutsideFacts {
                has_readings: false,
                has_builds: false,
                has_background: false,
                is_awaited: false,
                can_survey: false,
                store: StoreState::Absent,
            })
        };
        let report = |actions: Vec<Action>| {
            actions.into_iter().find_map(|action| match action {
                Action::ReportPreview { phase, .. } => Some(phase),
                _ => None,
            })
        };
        let mut world = world(&id, at(1));
        let read = |days| Event::PreviewRead {
            tenant: id.clone(),
            number: 1,
            changed: day(days),
        };
        assert_eq!(report(world.step(read(0), at(1))), None);
        for (days, phase) in [
            (11, None),
            (12, Some(PreviewPhase::Ending)),
            (13, None),
            (14, Some(PreviewPhase::Expired)),
            (15, None),
        ] {
            assert_eq!(report(world.step(idle(), at(days))), phase, "{days}");
        }
        let is_expired = |world: &World| world.tenant("corner@spring").unwrap().is_expired();
        assert!(is_expired(&world));
        let resumed = report(world.step(read(15), at(15)));
        assert_eq!(resumed, Some(PreviewPhase::Current));
        assert!(!is_expired(&world));
        // A removed folder takes its timer along.
        let event = Event::Listed {
            tenants: BTreeSet::new(),
            only: None,
        };
        world.step(event, at(16));
        assert_eq!(report(world.step(idle(), at(40))), None);
    }

    #[test]
    fn preview_without_a_limit_does_not_expire() {
        let (_, id) = previews();
        let mut previews = Previews::default();
        assert!(!previews.note_change(&id, day(0), day(4_000)));
        assert_eq!(previews.end(&id), None);
        assert!(previews.apply_timers(day(9_000)).is_empty());
    }
}
