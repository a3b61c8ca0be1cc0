//! Limits the failed attempts of each client subnet at protected tenants.
//!
//! A token is too long to be guessed. The limit keeps a client that tries from using the processor and the log.
//!
//! **Invariant:** is used for requests with a credential only; remembers a subnet only until its budget is full again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::listen::client_subnets::client_subnet;

/// Failed attempts of a client subnet at once.
const MAX_ATTEMPTS: f64 = 10.0;
/// Seconds until one more attempt is allowed.
const SECONDS_PER_ATTEMPT: f64 = 6.0;

/// Number of subnets below which full budgets are not swept.
const MIN_SWEPT_SUBNETS: usize = 1024;

/// The failed attempts by client subnet.
#[derive(Debug, Default)]
pub(crate) struct FailedAttempts {
    subnets: Mutex<Subnets>,
}

#[derive(Debug, Default)]
struct Subnets {
    by_address: HashMap<IpAddr, AttemptBudget>,
    /// Number of subnets after the last sweep.
    after_sweep: usize,
}

/// The attempts that a subnet has left, as of `at`.
#[derive(Debug)]
struct AttemptBudget {
    left: f64,
    at: Instant,
}

impl AttemptBudget {
    fn left(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + elapsed / SECONDS_PER_ATTEMPT).min(MAX_ATTEMPTS)
    }
}

impl FailedAttempts {
    /// Returns the time until the subnet of `address` may try again, if it is at the limit.
    pub(crate) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let subnets = self.subnets.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = subnets.by_address.get(&client_subnet(address))?;
        let missing = 1.0 - budget.left(now);
        (missing > 0.0).then(|| Duration::from_secs_f64(missing * SECONDS_PER_ATTEMPT))
    }

    /// Counts a failed attempt of the subnet of `address`.
    pub(crate) fn record(&self, address: IpAddr, now: Instant) {
        let mut subnets = self.subnets.lock().unwrap_or_else(PoisonError::into_inner);
        subnets.sweep(now);
        let budget = subnets.by_address.entry(client_subnet(address));
        let budget = budget.or_insert(AttemptBudget {
            left: MAX_ATTEMPTS,
            at: now,
        });
        budget.left = (budget.left(now) - 1.0).max(0.0);
        budget.at = now;
    }
}

impl Subnets {
    /// Removes subnets with a full budget, once the number of subnets has doubled since the last sweep.
    fn sweep(&mut self, now: Instant) {
        if self.by_address.len() < MIN_SWEPT_SUBNETS.max(self.after_sweep * 2) {
            return;
        }
        self.by_address
            .retain(|_, budget| budget.left(now) < MAX_ATTEMPTS);
        self.after_sweep = self.by_address.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnet_waits_after_ten_failed_attempts() {
        let attempts = FailedAttempts::default();
        let (address, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let now = Instant::now();
        for _ in 0..10 {
            assert_eq!(attempts.wait(address, now), None);
            attempts.record(address, now);
        }
        assert_eq!(attempts.wait(address, now), Some(Duration::from_secs(6)));
        assert_eq!(attempts.wait(other, now), None);
        let later = now + Duration::from_secs(6);
        assert_eq!(attempts.wait(address, later), None);
        attempts.record(address, later);
        assert!(attempts.wait(address, later).is_some());
        assert_eq!(
            attempts.wait(address, later + Duration::from_secs(60)),
            None
        );
    }

    #[test]
    fn subnets_with_a_full_budget_are_forgotten() {
        let attempts = FailedAttempts::default();
        let now = Instant::now();
        let record = |numbers: std::ops::Range<u32>, at| {
            for number in numbers {
                attempts.record(IpAddr::from(number.to_be_bytes()), at);
            }
        };
        record(0..4_000, now);
        record(4_000..4_200, now + Duration::from_secs(600));
        let subnets = attempts.subnets.lock().unwrap();
        assert!(subnets.by_address.len() <= 200);
    }
}
