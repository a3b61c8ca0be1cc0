//! How many connections there are, and from where.
//!
//! A connection takes a permit when a worker gets it and gives it back when it ends, wherever that happens.
//!
//! **Invariant:** opens and closes no connection itself; costs a request nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

use super::snapshot_store::SnapshotStore;

/// Counters of connections since the start.
#[derive(Debug, Default)]
pub struct Connections {
    /// Accepted.
    pub accepted: AtomicU64,
    /// Of these, still open.
    pub open: AtomicU64,
    /// How many may be open at once.
    pub limit: AtomicU64,
    /// Accepted, and waiting for another to end, since as many are open as may be.
    pub waiting: AtomicU64,
    /// Closed at once, since their address has too many.
    pub refused: AtomicU64,
    /// Ended while idle, to make room for another.
    pub made_room: AtomicU64,
    /// Ended because the header fields of a request took too long.
    pub slow_heads: AtomicU64,
    /// Ended because the client did not read.
    pub slow_readers: AtomicU64,
    /// Ended because a request and its response took too long together.
    pub slow_requests: AtomicU64,
    /// Ended because no request came for too long.
    pub idle: AtomicU64,
    /// Ended because what came was no HTTP, or more of it than is allowed.
    pub malformed: AtomicU64,
}

/// Connections by address.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One of the connections that an address may have, given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

/// The right to one connection, given back when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    /// `None` for a trusted proxy, whose connections are not counted.
    _share: Option<Share>,
    /// The number of connections of the worker that has this one.
    load: Arc<AtomicUsize>,
    snapshots: Arc<SnapshotStore>,
    _permit: OwnedSemaphorePermit,
}

impl Permit {
    /// Takes the permit.
    pub(super) fn new(
        share: Option<Share>,
        load: Arc<AtomicUsize>,
        snapshots: Arc<SnapshotStore>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        load.fetch_add(1, Relaxed);
        snapshots.connections.open.fetch_add(1, Relaxed);
        Self {
            _share: share,
            load,
            snapshots,
            _permit: permit,
        }
    }
}

impl Addresses {
    /// Counts one more connection from `address`, unless it has `most` already.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Share> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(address).or_default();
        (*count < most).then(|| {
            *count += 1;
            Share {
                addresses: Arc::clone(self),
                address,
            }
        })
    }

    fn leave(&self, address: IpAddr) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&address);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.addresses.leave(self.address);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Relaxed);
        self.snapshots.connections.open.fetch_sub(1, Relaxed);
    }
}

/// What counts as one address: one client usually has a whole /64 network of IPv6, so single addresses of it say nothing.
pub(super) fn client_subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_its_share() {
        let addresses = Arc::new(Addresses::default());
        let address = IpAddr::from([192, 0, 2, 1]);
        let enter = || addresses.enter(address, 2);
        let (first, second) = (enter().unwrap(), enter().unwrap());
        assert!(enter().is_none());
        let _other = addresses.enter(IpAddr::from([192, 0, 2, 2]), 2).unwrap();
        drop(first);
        let third = enter().unwrap();
        assert!(enter().is_none());
        drop((second, third));
        assert_eq!(addresses.open.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_household() {
        let of = |text: &str| client_subnet(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
