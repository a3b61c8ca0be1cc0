//! How many handshakes a client subnet may have in flight, and how many it may begin in a second.
//!
//! A handshake costs some hundred times what a request does. A subnet that asks for more than its part is closed at accepting, before any of that is spent.
//!
//! **Invariant:** opens and closes no connection itself; remembers a subnet for no longer than its budget needs to fill up again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::listen::client_subnets::client_subnet;

/// What a client subnet may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandshakeLimits {
    /// Handshakes in flight.
    pub(crate) at_once: usize,
    /// Handshakes that begin in a second, over time; four times as many may begin together.
    pub(crate) rate: u32,
}

/// Seconds for which a budget that nobody used grows.
const BURST_SECONDS: f64 = 4.0;

/// Below so many subnets nobody looks which of them can be forgotten.
const MIN_SWEPT_SUBNETS: usize = 1024;

/// Handshakes by client subnet.
#[derive(Debug, Default)]
pub(crate) struct HandshakeGate {
    subnets: Mutex<Subnets>,
}

#[derive(Debug, Default)]
struct Subnets {
    by_address: HashMap<IpAddr, HandshakeBudget>,
    /// How many were left when some were forgotten last.
    left: usize,
}

#[derive(Debug)]
struct HandshakeBudget {
    under_way: usize,
    /// Handshakes that may begin, as of `at`.
    free: f64,
    at: Instant,
}

/// The right to one handshake; it is over when this is dropped.
#[derive(Debug)]
pub(crate) struct HandshakePass {
    gate: Arc<HandshakeGate>,
    subnet: IpAddr,
}

impl HandshakeBudget {
    fn free(&self, rate: f64, now: Instant) -> f64 {
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * rate;
        (self.free + grown).min(rate * BURST_SECONDS)
    }
}

impl HandshakeGate {
    /// Lets one handshake of the subnet of `address` begin, unless it has too many.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        limits: HandshakeLimits,
        now: Instant,
    ) -> Option<HandshakePass> {
        let subnet = client_subnet(address);
        let rate = f64::from(limits.rate);
        let mut subnets = self.subnets.lock().unwrap_or_else(PoisonError::into_inner);
        subnets.forget(rate, now);
        let budget = subnets.by_address.entry(subnet).or_insert(HandshakeBudget {
            under_way: 0,
            free: rate * BURST_SECONDS,
            at: now,
        });
        budget.free = budget.free(rate, now);
        budget.at = now;
        if budget.under_way >= limits.at_once || budget.free < 1.0 {
            return None;
        }
        budget.under_way += 1;
        budget.free -= 1.0;
        Some(HandshakePass {
            gate: Arc::clone(self),
            subnet,
        })
    }

    fn leave(&self, subnet: IpAddr) {
        let mut subnets = self.subnets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = subnets.by_address.get_mut(&subnet) {
            budget.under_way -= 1;
        }
    }
}

impl Subnets {
    /// Forgets the subnets that may do all that a new one may, once there are twice as many as the last time.
    fn forget(&mut self, rate: f64, now: Instant) {
        if self.by_address.len() < MIN_SWEPT_SUBNETS.max(self.left * 2) {
            return;
        }
        self.by_address.retain(|_, budget| {
            budget.under_way > 0 || budget.free(rate, now) < rate * BURST_SECONDS
        });
        self.left = self.by_address.len();
    }
}

impl Drop for HandshakePass {
    fn drop(&mut self) {
        self.gate.leave(self.subnet);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: HandshakeLimits = HandshakeLimits {
        at_once: 3,
        rate: 2,
    };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn a_subnet_has_its_number_and_its_rate() {
        let (gate, start) = (Arc::new(HandshakeGate::default()), Instant::now());
        let enter = |millis: u64| {
            let now = start + Duration::from_millis(millis);
            gate.enter(address(1), LIMITS, now)
        };
        // Three at once.
        let passes: Vec<_> = (0..3).map(|_| enter(0).unwrap()).collect();
        assert!(enter(0).is_none());
        assert!(gate.enter(address(2), LIMITS, start).is_some());
        drop(passes);
        // Eight in a burst, of which five are left, and then two a second.
        for number in 0..5 {
            assert!(enter(0).is_some(), "{number}");
        }
        assert!(enter(0).is_none());
        assert!(enter(400).is_none());
        assert!(enter(500).is_some());
        assert!(enter(500).is_none());
        // A clock that stands still or goes back gives nothing and takes nothing.
        assert!(enter(0).is_none());
    }

    #[test]
    fn subnets_that_came_once_are_forgotten() {
        let (gate, start) = (Arc::new(HandshakeGate::default()), Instant::now());
        for number in 0..20_000_u32 {
            let address = IpAddr::from(number.to_be_bytes());
            let now = start + Duration::from_millis(number.into());
            drop(gate.enter(address, LIMITS, now));
        }
        let known = gate.subnets.lock().unwrap().by_address.len();
        // One pass of the budget is back after half a second: some 500 are remembered for a reason.
        assert!(known <= 2 * MIN_SWEPT_SUBNETS, "{known}");
    }
}
