//! When something was last done for all tenants, and when it is due again.
//!
//! **Invariant:** knows no tenant.

use std::time::{Duration, Instant};

/// How often what is done in the background is put into a snapshot: visitors who wait for it have it already.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// With many tenants, what is done again and again for all of them takes this part of the time, and no more.
const MIN_INTERVAL_RATIO: u32 = 20;

/// When something was last done for all tenants, and how long it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FullPass {
    begun: Instant,
    took: Duration,
}

impl FullPass {
    /// Before the first.
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// One that began then, and ends now.
    pub(crate) fn since(begun: Instant) -> Self {
        let took = begun.elapsed();
        Self { begun, took }
    }

    /// Whether it began longer ago than this.
    pub(crate) fn is_before(self, time: Duration) -> bool {
        self.begun.elapsed() >= time
    }

    /// Whether the next is due.
    pub(crate) fn is_over(self) -> bool {
        self.begun.elapsed() >= MIN_INTERVAL.max(self.took * MIN_INTERVAL_RATIO)
    }
}
