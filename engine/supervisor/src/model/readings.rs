//! The readings of folders: their numbers, and the changes that wait for a reading in flight.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use content::name::TenantId;

/// The longest time that a changed folder waits for its reading in flight. A reading that takes longer may never end.
pub(super) const MAX_HOLD_TIME: Duration = Duration::from_millis(500);

/// The readings of folders.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// The number of the last reading.
    pub(super) last: u64,
    /// The tenants that changed during a reading, and the time at which that reading began.
    pub(super) held: BTreeMap<TenantId, Instant>,
    /// The longest wait for files whose upload has not ended.
    pub(super) settle_max: Duration,
}

impl Readings {
    /// Returns the tenants that have waited for their reading in flight for [`MAX_HOLD_TIME`].
    pub(super) fn overdue(&self, now: Instant) -> Vec<TenantId> {
        let held = self.held.iter();
        let overdue = held.filter(|(_, begun)| **begun + MAX_HOLD_TIME <= now);
        overdue.map(|(id, _)| id.clone()).collect()
    }
}
