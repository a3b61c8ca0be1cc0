//! The schedule of plans and snapshots: while further results are likely soon, many changes share one plan and one snapshot.

use std::time::{Duration, Instant};

use content::name::TenantId;

use crate::model::event::{Action, ChangeSet, CommandReply, Ticket};

/// A divisor of time: planning and publishing take at most `1 / MAX_PUBLISH_SHARE` of the time while many tenants change.
const MAX_PUBLISH_SHARE: u32 = 20;

/// The shortest time between two snapshots that no visitor and no author waits for.
const BACKGROUND_PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest time for which changes are collected while further results are likely soon.
const COLLECT_TIME: Duration = Duration::from_millis(100);

/// The changes that the next plan or snapshot covers.
#[derive(Debug, Clone, Default)]
pub(super) struct CollectedChanges {
    pub(super) changes: ChangeSet,
    /// The time of the first change that makes a run due.
    pub(super) since: Option<Instant>,
    /// The end of the last run.
    pub(super) last: Option<Instant>,
    /// The duration of the last run.
    pub(super) took: Duration,
}

impl CollectedChanges {
    /// Notes a change of a tenant.
    pub(super) fn note(&mut self, tenant: &TenantId, now: Instant) {
        self.since.get_or_insert(now);
        self.changes.note(tenant);
    }

    /// Notes a change of something that all tenants share.
    pub(super) fn note_everything(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.changes.affects_all = true;
    }

    /// Begins a run. Returns the changes that the run covers.
    pub(super) fn begin(&mut self) -> ChangeSet {
        self.since = None;
        std::mem::take(&mut self.changes)
    }

    /// Notes the end of a run, and its duration.
    pub(super) fn end(&mut self, now: Instant, took: Duration) {
        self.last = Some(now);
        self.took = took;
    }

    /// Returns the latest time at which a run begins while further results are likely soon.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let wait = COLLECT_TIME.max(self.took.saturating_mul(MAX_PUBLISH_SHARE));
        let begun = self.since?;
        let earliest = self.last.map_or(begun, |last| last.max(begun));
        Some(earliest + wait)
    }
}

/// The schedule of snapshots.
#[derive(Debug, Clone, Default)]
pub(super) struct Publication {
    /// The changes since the last snapshot. A snapshot is due if a visitor, an author or an operator waits for a change.
    pub(super) urgent: CollectedChanges,
    /// Whether there are background changes that are not in the current snapshot.
    pub(super) has_background: bool,
    /// Whether the first snapshot was published.
    pub(super) is_started: bool,
    pub(super) replies: HeldReplies,
}

/// The commands that have succeeded, and whose replies wait until visitors see the effect.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldReplies {
    /// The tenants and tickets of the commands whose effect is in no snapshot yet.
    held: Vec<(TenantId, Ticket)>,
    /// The tickets of the commands whose effect is in the snapshot that is being published.
    in_snapshot: Vec<Ticket>,
}

impl HeldReplies {
    /// Holds the reply to a command.
    pub(super) fn hold(&mut self, tenant: TenantId, ticket: Ticket) {
        self.held.push((tenant, ticket));
    }

    /// Notes that a snapshot is made which contains the tenants for which `is_contained` holds.
    pub(super) fn note_snapshot(&mut self, is_contained: impl Fn(&TenantId) -> bool) {
        let contained = self.held.extract_if(.., |(tenant, _)| is_contained(tenant));
        self.in_snapshot.extend(contained.map(|(_, ticket)| ticket));
    }

    /// Returns the replies to the commands whose effect was published.
    pub(super) fn release(&mut self) -> impl Iterator<Item = Action> {
        let reply = CommandReply::Done;
        self.in_snapshot
            .drain(..)
            .map(move |ticket| Action::Reply { ticket, reply })
    }
}

impl Publication {
    /// Returns the time at which a snapshot of background changes is due. Returns `None` before the first snapshot.
    pub(super) fn background_due(&self) -> Option<Instant> {
        let CollectedChanges { last, took, .. } = &self.urgent;
        let interval = BACKGROUND_PUBLISH_INTERVAL.max(took.saturating_mul(MAX_PUBLISH_SHARE));
        Some((*last)? + interval)
    }

    /// Notes a background change of a tenant. The next snapshot contains the change, which does not make a snapshot urgent.
    pub(super) fn changes_in_background(&mut self, tenant: &TenantId) {
        self.has_background = true;
        self.urgent.changes.note(tenant);
    }
}
