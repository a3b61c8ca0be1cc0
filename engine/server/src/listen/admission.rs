//! Admits connections: who is at the other end, and whether its client subnet may have one more.
//!
//! A trusted proxy has as many connections as it opens. With the PROXY protocol it names the client of each connection, and that client's share counts then.
//!
//! **Invariant:** opens and closes no connection itself; costs a request nothing.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

use crate::listen::client_subnets::{ClientShare, ClientSubnets};
use crate::settings::ServeSettings;
use crate::snapshot_store::SnapshotStore;
use crate::tls::handshake_gate::{HandshakeGate, HandshakeLimits, HandshakePass};

/// What all client subnets have open and in flight.
#[derive(Debug)]
pub(crate) struct Admission {
    subnets: Arc<ClientSubnets>,
    handshakes: Arc<HandshakeGate>,
    snapshots: Arc<SnapshotStore>,
    settings: Arc<ServeSettings>,
}

/// What a connection counts for, given back when dropped. Nothing for a trusted proxy.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    _share: Option<ClientShare>,
    /// Until the handshake is over.
    pub(crate) handshake: Option<HandshakePass>,
}

impl Admission {
    pub(crate) fn new(snapshots: Arc<SnapshotStore>, settings: Arc<ServeSettings>) -> Self {
        Self {
            subnets: Arc::default(),
            handshakes: Arc::default(),
            snapshots,
            settings,
        }
    }

    /// Counts one more connection of `peer`; nothing where its subnet has too many.
    pub(crate) fn admit(&self, peer: Peer, entrance: Entrance) -> Option<Admitted> {
        if peer.trusted {
            return Some(Admitted::default());
        }
        let limits = &self.settings.limits;
        // First what floods.
        let handshake = match entrance {
            Entrance::Tls => {
                let limits = HandshakeLimits {
                    at_once: limits.handshakes_per_address,
                    rate: limits.handshake_rate,
                };
                let pass = self.handshakes.enter(peer.address, limits, Instant::now());
                if pass.is_none() {
                    self.snapshots.handshakes.refused.fetch_add(1, Relaxed);
                    return None;
                }
                pass
            }
            Entrance::Clear | Entrance::Redirect => None,
        };
        let most = limits.connections_per_address;
        let Some(share) = self.subnets.enter(peer.address, most) else {
            self.snapshots.connections.refused.fetch_add(1, Relaxed);
            return None;
        };
        Some(Admitted {
            _share: Some(share),
            handshake,
        })
    }
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Whether it is a trusted proxy.
    pub(crate) trusted: bool,
}

/// Which kind of listener a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// HTTP without TLS, of a proxy or on the machine itself.
    Clear,
    /// HTTPS.
    Tls,
    /// HTTP that only leads to HTTPS, and answers the challenges of authorities.
    Redirect,
}

/// A connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct NewConnection {
    /// Not blocking.
    pub(crate) socket: TcpStream,
    pub(crate) peer: Peer,
    pub(crate) entrance: Entrance,
    pub(crate) admitted: Admitted,
    pub(crate) permit: ConnectionPermit,
}

/// The right to one connection, given back when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    /// The number of connections of the worker that has this one.
    load: Arc<AtomicUsize>,
    snapshots: Arc<SnapshotStore>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    /// Counts one more open connection, here and with its worker.
    pub(crate) fn new(
        load: Arc<AtomicUsize>,
        snapshots: Arc<SnapshotStore>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        load.fetch_add(1, Relaxed);
        snapshots.connections.open.fetch_add(1, Relaxed);
        Self {
            load,
            snapshots,
            _permit: permit,
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Relaxed);
        self.snapshots.connections.open.fetch_sub(1, Relaxed);
    }
}
