//! Whom a connection counts for, and whether there is room for one more of theirs.
//!
//! A trusted proxy has as many connections as it likes. With the PROXY protocol it says for whom each one is, and that one is asked about then.
//!
//! **Invariant:** opens and closes no connection itself; costs a request nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::peer::{Entrance, Peer};
use super::permit::{ClientShare, ClientSubnets};
use super::settings::ServeSettings;
use super::snapshot_store::SnapshotStore;
use super::tls::handshake_gate::{HandshakeGate, HandshakeLimits, HandshakePass};

/// What all client subnets have open and under way.
#[derive(Debug)]
pub(super) struct Admission {
    subnets: Arc<ClientSubnets>,
    handshakes: Arc<HandshakeGate>,
    snapshots: Arc<SnapshotStore>,
    settings: Arc<ServeSettings>,
}

/// What a connection counts for, given back when dropped. Nothing for a trusted proxy.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    _share: Option<ClientShare>,
    /// Until the handshake is over.
    pub(super) handshake: Option<HandshakePass>,
}

impl Admission {
    pub(super) fn new(snapshots: Arc<SnapshotStore>, settings: Arc<ServeSettings>) -> Self {
        Self {
            subnets: Arc::default(),
            handshakes: Arc::default(),
            snapshots,
            settings,
        }
    }

    /// Counts one more connection of `peer`; nothing where its subnet has too many.
    pub(super) fn admit(&self, peer: Peer, entrance: Entrance) -> Option<Admitted> {
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
