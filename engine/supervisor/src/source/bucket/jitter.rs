//! Random times, so that replicas do not act at once.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

/// Returns a random number, which is not a secret.
pub(super) fn random() -> u64 {
    // The standard library seeds hashers with random numbers of the system.
    RandomState::new().build_hasher().finish()
}

/// Returns the interval, up to a quarter shorter or longer, so that replicas do not ask at the same time.
pub(super) fn with_jitter(interval: Duration) -> Duration {
    let thousandths = u32::try_from(random() % 500).unwrap_or_default();
    interval * (750 + thousandths) / 1000
}
