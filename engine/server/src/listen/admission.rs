//! Admits connections: identifies the peer and checks the limits of its client subnet.
//!
//! A trusted proxy may open any number of connections. With the PROXY protocol the proxy names the client of each connection, and the limits of that client's subnet apply.
//!
//! **Invariant:** opens and closes no connection; costs a request nothing.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

use crate::access::failed_attempts::FailedAttempts;
use crate::listen::client_subnets::{ClientShare, ClientSubnets};
use crate::settings::ServeSettings;
use crate::snapshot_store::SnapshotStore;
use crate::tls::handshake_gate::{HandshakeGate, HandshakeLimits, HandshakePass};

/// Open connections, handshakes and failed attempts of all client subnets.
#[derive(Debug)]
pub(crate) struct Admission {
    subnets: Arc<ClientSubnets>,
    handshakes: Arc<HandshakeGate>,
    /// Failed attempts at protected tenants.
    pub(crate) attempts: FailedAttempts,
    snapshots: Arc<SnapshotStore>,
    settings: Arc<ServeSettings>,
}

/// A connection's place within the limits of its client subnet, given back on drop. Empty for a trusted proxy.
#[derive(Debug, Default)]
pub(crate) struct AdmissionGuard {
    _share: Option<ClientShare>,
    /// Held until the handshake ends.
    pub(crate) handshake: Option<HandshakePass>,
}

impl Admission {
    pub(crate) fn new(snapshots: Arc<SnapshotStore>, settings: Arc<ServeSettings>) -> Self {
        Self {
            subnets: Arc::default(),
            handshakes: Arc::default(),
            attempts: FailedAttempts::default(),
            snapshots,
            settings,
        }
    }

    /// Counts a connection of `peer`. Returns `None` if the peer's subnet has reached a limit.
    pub(crate) fn admit(&self, peer: Peer, kind: ListenerKind) -> Option<AdmissionGuard> {
        if peer.is_trusted {
            return Some(AdmissionGuard::default());
        }
        let limits = &self.settings.limits;
        // Handshakes first, since a flood of them costs most.
        let handshake = match kind {
            ListenerKind::Tls => {
                let limits = HandshakeLimits {
                    max_in_flight: limits.handshakes_per_address,
                    rate: limits.handshake_rate,
                };
                let pass = self.handshakes.admit(peer.address, limits, Instant::now());
                if pass.is_none() {
                    self.snapshots.handshakes.refused.fetch_add(1, Relaxed);
                    return None;
                }
                pass
            }
            ListenerKind::Clear | ListenerKind::Redirect => None,
        };
        let limit = limits.connections_per_address;
        let Some(share) = self.subnets.admit(peer.address, limit) else {
            self.snapshots.connections.refused.fetch_add(1, Relaxed);
            return None;
        };
        Some(AdmissionGuard {
            _share: Some(share),
            handshake,
        })
    }
}

/// The remote end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub(crate) is_trusted: bool,
}

/// The type of listener that accepted a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// HTTP without TLS, from a proxy or from the same machine.
    Clear,
    /// HTTPS.
    Tls,
    /// HTTP that only redirects to HTTPS and answers ACME challenges.
    Redirect,
}

/// An accepted connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct NewConnection {
    /// In non-blocking mode.
    pub(crate) socket: TcpStream,
    pub(crate) peer: Peer,
    pub(crate) kind: ListenerKind,
    pub(crate) admitted: AdmissionGuard,
    pub(crate) permit: ConnectionPermit,
}

/// A permit for one open connection, given back on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    /// The number of open connections of the connection's worker.
    load: Arc<AtomicUsize>,
    snapshots: Arc<SnapshotStore>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    /// Counts one more open connection, in total and for the worker.
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
