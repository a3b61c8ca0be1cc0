//! The interval between two passes of periodic work over all tenants.
//!
//! **Invariant:** knows no tenant.

use std::time::{Duration, Instant};

/// The shortest time between the starts of two passes.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// A divisor of time: with many tenants, periodic work takes at most `1 / MIN_INTERVAL_RATIO` of the time.
const MIN_INTERVAL_RATIO: u32 = 20;

/// The start and the duration of the last pass over all tenants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FullPass {
    begun: Instant,
    took: Duration,
}

impl FullPass {
    /// Returns the state before the first pass.
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// Returns a pass that began at `begun` and ends now.
    pub(crate) fn since(begun: Instant) -> Self {
        let took = begun.elapsed();
        Self { begun, took }
    }

    /// Returns whether the pass began at least `time` ago.
    pub(crate) fn began_before(self, time: Duration) -> bool {
        self.begun.elapsed() >= time
    }

    /// Returns whether the next pass is due.
    pub(crate) fn is_due(self) -> bool {
        self.begun.elapsed() >= MIN_INTERVAL.max(self.took * MIN_INTERVAL_RATIO)
    }
}
