//! Limits the handshakes of each client subnet: the number in flight, and the number that begins per second.
//!
//! A handshake takes a few hundred times the processor time of a request. A connection beyond the limit is closed when it is accepted, before a handshake begins.
//!
//! **Invariant:** opens and closes no connection; remembers a subnet only until its budget is full again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::listen::client_subnets::client_subnet;

/// The limits of a client subnet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandshakeLimits {
    /// Handshakes in flight.
    pub(crate) max_in_flight: usize,
    /// Handshakes per second, on average. A burst may have four times as many.
    pub(crate) rate: u32,
}

/// Seconds for which an unused budget grows.
const BURST_SECONDS: f64 = 4.0;

/// Number of subnets below which full budgets are not swept.
const MIN_SWEPT_SUBNETS: usize = 1024;

/// Handshakes by client subnet.
#[derive(Debug, Default)]
pub(crate) struct HandshakeGate {
    subnets: Mutex<Subnets>,
}

#[derive(Debug, Default)]
struct Subnets {
    by_address: HashMap<IpAddr, HandshakeBudget>,
    /// Number of subnets after the last sweep.
    after_sweep: usize,
}

#[derive(Debug)]
struct HandshakeBudget {
    in_flight: usize,
    /// Handshakes that may begin, as of `at`.
    available: f64,
    at: Instant,
}

/// A permit for one handshake, given back on drop.
#[derive(Debug)]
pub(crate) struct HandshakePass {
    gate: Arc<HandshakeGate>,
    subnet: IpAddr,
}

impl HandshakeBudget {
    fn available(&self, rate: f64, now: Instant) -> f64 {
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * rate;
        (self.available + grown).min(rate * BURST_SECONDS)
    }
}

impl HandshakeGate {
    /// Admits a handshake from the subnet of `address`, unless the subnet is at a limit.
    pub(crate) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        limits: HandshakeLimits,
        now: Instant,
    ) -> Option<HandshakePass> {
        let subnet = client_subnet(address);
        let rate = f64::from(limits.rate);
        let mut subnets = self.subnets.lock().unwrap_or_else(PoisonError::into_inner);
        subnets.sweep(rate, now);
        let budget = subnets.by_address.entry(subnet).or_insert(HandshakeBudget {
            in_flight: 0,
            available: rate * BURST_SECONDS,
            at: now,
        });
        budget.available = budget.available(rate, now);
        budget.at = now;
        if budget.in_flight >= limits.max_in_flight || budget.available < 1.0 {
            return None;
        }
        budget.in_flight += 1;
        budget.available -= 1.0;
        Some(HandshakePass {
            gate: Arc::clone(self),
            subnet,
        })
    }

    fn release(&self, subnet: IpAddr) {
        let mut subnets = self.subnets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = subnets.by_address.get_mut(&subnet) {
            budget.in_flight -= 1;
        }
    }
}

impl Subnets {
    /// Removes subnets with a full budget and no handshake in flight, once the number of subnets has doubled since the last sweep.
    fn sweep(&mut self, rate: f64, now: Instant) {
        if self.by_address.len() < MIN_SWEPT_SUBNETS.max(self.after_sweep * 2) {
            return;
        }
        self.by_address.retain(|_, budget| {
            budget.in_flight > 0 || budget.available(rate, now) < rate * BURST_SECONDS
        });
        self.after_sweep = self.by_address.len();
    }
}

impl Drop for HandshakePass {
    fn drop(&mut self) {
        self.gate.release(self.subnet);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: HandshakeLimits = HandshakeLimits {
        max_in_flight: 3,
        rate: 2,
    };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn subnet_is_limited_in_number_and_rate() {
        let (gate, start) = (Arc::new(HandshakeGate::default()), Instant::now());
        let admit = |millis: u64| {
            let now = start + Duration::from_millis(millis);
            gate.admit(address(1), LIMITS, now)
        };
        // Three in flight.
        let passes: Vec<_> = (0..3).map(|_| admit(0).unwrap()).collect();
        assert!(admit(0).is_none());
        assert!(gate.admit(address(2), LIMITS, start).is_some());
        drop(passes);
        // Eight in a burst, of which five are left; then two per second.
        for number in 0..5 {
            assert!(admit(0).is_some(), "{number}");
        }
        assert!(admit(0).is_none());
        assert!(admit(400).is_none());
        assert!(admit(500).is_some());
        assert!(admit(500).is_none());
        // A clock that stands still or goes back adds nothing and removes nothing.
        assert!(admit(0).is_none());
    }

    #[test]
    fn subnets_with_a_full_budget_are_forgotten() {
        let (gate, start) = (Arc::new(HandshakeGate::default()), Instant::now());
        for number in 0..20_000_u32 {
            let address = IpAddr::from(number.to_be_bytes());
            let now = start + Duration::from_millis(number.into());
            drop(gate.admit(address, LIMITS, now));
        }
        let known = gate.subnets.lock().unwrap().by_address.len();
        // A used handshake is available again after half a second, so some 500 subnets have a reason to be remembered.
        assert!(known <= 2 * MIN_SWEPT_SUBNETS, "{known}");
    }
}
