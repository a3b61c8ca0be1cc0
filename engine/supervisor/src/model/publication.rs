//! When addresses are assigned again, and when a snapshot is published: for many changes at once, where more are likely soon.

use std::time::{Duration, Instant};

use content::name::TenantId;

use crate::model::event::ChangeSet;

/// The part of the time that planning and publishing may take while many tenants change.
const MAX_PUBLISH_SHARE: u32 = 20;

/// The time between two snapshots that no visitor and no author waits for, at least.
const BACKGROUND_PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// The time that results are collected before addresses are assigned again or a snapshot is published, at least.
const COLLECT_TIME: Duration = Duration::from_millis(100);

/// Work for all tenants that is collected before it is done.
#[derive(Debug, Clone, Default)]
pub(super) struct CollectedChanges {
    pub(super) changes: ChangeSet,
    /// The time of the first change that it is due for.
    pub(super) since: Option<Instant>,
    /// The end of the last run, and its duration.
    pub(super) last: Option<Instant>,
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
        self.changes.everything = true;
    }

    /// Begins the work, for the changes that it returns.
    pub(super) fn begin(&mut self) -> ChangeSet {
        self.since = None;
        std::mem::take(&mut self.changes)
    }

    pub(super) fn end(&mut self, now: Instant, took: Duration) {
        self.last = Some(now);
        self.took = took;
    }

    /// Returns when it is done at the latest, while further results are expected soon.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let wait = COLLECT_TIME.max(self.took.saturating_mul(MAX_PUBLISH_SHARE));
        let begun = self.since?;
        let earliest = self.last.map_or(begun, |last| last.max(begun));
        Some(earliest + wait)
    }
}

/// When a snapshot is published.
#[derive(Debug, Clone, Default)]
pub(super) struct Publication {
    /// The changes since the last snapshot, due where visitors, authors or operators wait for them.
    pub(super) urgent: CollectedChanges,
    /// Whether something was built in the background that no snapshot has.
    pub(super) has_background: bool,
    /// Whether the first snapshot was published.
    pub(super) is_started: bool,
}

impl Publication {
    /// Returns when a snapshot is due that no visitor and no author waits for.
    pub(super) fn background_due(&self) -> Option<Instant> {
        let CollectedChanges { last, took, .. } = &self.urgent;
        let interval = BACKGROUND_PUBLISH_INTERVAL.max(took.saturating_mul(MAX_PUBLISH_SHARE));
        Some((*last)? + interval)
    }

    /// Notes a change of a tenant that the next snapshot contains, and that is no reason for one.
    pub(super) fn changes_in_background(&mut self, tenant: &TenantId) {
        self.has_background = true;
        self.urgent.changes.note(tenant);
    }
}
