//! Holds the snapshot that is being served.
//!
//! One owner puts a new [`Snapshot`] into the store; every request takes the current one and keeps it until it is answered.
//! Neither ever waits for the other: the swap is one atomic pointer.
//!
//! **Invariant:** never builds or changes what is in a snapshot.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::watch;

use super::tls::handshake_counters::HandshakeCounters;
use crate::connection::connection_counters::ConnectionCounters;
use crate::metrics::history::{History, Sample};
use crate::metrics::not_found::NotFoundPaths;
use crate::metrics::tenant_history::TenantHistory;
use release::snapshot::traffic::Traffic;
use release::snapshot::{Mount, Snapshot, TrafficTable};

/// What the log and the counters call a known host that answers for no tenant. No tenant has such a name, since ids are host labels.
pub(super) const SHARED: &str = "_shared";
/// What they call a request that names no known host, or is none.
pub(super) const UNKNOWN: &str = "_unknown";

/// What a request waits for, by the tenant that it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Its pages.
    Pages(&'a str),
    /// A picture.
    Picture(&'a str),
    /// Nothing: it was answered. Only the first request since [`Traffic::look`] is told.
    Nothing(&'a str),
}

/// Is told what a request waits for.
type OnWanted = Box<dyn Fn(Wanted<'_>) + Send + Sync>;

/// The current snapshot, and the counters that outlive it.
pub struct SnapshotStore {
    current: ArcSwap<Snapshot>,
    wanted: OnceLock<OnWanted>,
    /// Seconds that requests waited for something of their tenant to be made.
    pub(super) waits: Histogram,
    /// Says that there is another snapshot.
    changes: watch::Sender<()>,
    since: Mutex<Instant>,
    /// What known hosts answer for no tenant: shared files, and hosts that only redirect.
    pub shared: Traffic,
    /// What names no known host, or is no valid request.
    pub unknown: Traffic,
    /// What happened to connections.
    pub connections: ConnectionCounters,
    /// What happened to TLS handshakes.
    pub handshakes: HandshakeCounters,
    /// What was answered in the last hour.
    pub history: History,
    /// The same of each tenant.
    pub tenant_history: TenantHistory,
    /// What tenants have no page for.
    pub not_found: NotFoundPaths,
}

/// Upper bounds of the histogram of waits, in seconds.
const WAIT_BOUNDS: [f64; 8] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

impl fmt::Debug for SnapshotStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SnapshotStore")
            .finish_non_exhaustive()
    }
}

impl Default for SnapshotStore {
    fn default() -> Self {
        Self {
            current: ArcSwap::default(),
            wanted: OnceLock::new(),
            waits: Histogram::new(WAIT_BOUNDS),
            changes: watch::Sender::default(),
            since: Mutex::new(Instant::now()),
            shared: Traffic::default(),
            unknown: Traffic::default(),
            connections: ConnectionCounters::default(),
            handshakes: HandshakeCounters::default(),
            history: History::default(),
            tenant_history: TenantHistory::default(),
            not_found: NotFoundPaths::default(),
        }
    }
}

impl SnapshotStore {
    /// A store with its first snapshot.
    #[must_use]
    pub fn new(first: Snapshot) -> Self {
        let snapshots = Self::default();
        snapshots.replace(first);
        snapshots
    }

    /// The snapshot to answer from. Hold it for one request at most, or it stays in memory when it is replaced.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Serves `next` from the next request on, and gives back what was served before. Requests in flight finish with what they have.
    pub fn replace(&self, next: Snapshot) -> Arc<Snapshot> {
        let former = self.current.swap(Arc::new(next));
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.changes.send_replace(());
        former
    }

    /// To be waited on: each new snapshot.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Calls `wanted` from now on with what a request waits for, more than once for as long as it does.
    pub fn on_wanted(&self, wanted: impl Fn(Wanted<'_>) + Send + Sync + 'static) {
        // There is one owner, which says so once.
        let _ = self.wanted.set(Box::new(wanted));
    }

    /// Says what a request waits for.
    pub(super) fn want(&self, what: Wanted<'_>) {
        if let Some(wanted) = self.wanted.get() {
            wanted(what);
        }
    }

    /// Returns the counters of a mount's tenant, for an answer to a request. Tells the owner of the request.
    pub(super) fn traffic_of<'m>(&'m self, mount: &'m Mount) -> &'m Traffic {
        let Some(traffic) = mount.traffic.get() else {
            return &self.unknown;
        };
        if let Some(wanted) = self.wanted.get()
            && traffic.note()
        {
            wanted(Wanted::Nothing(&mount.tenant));
        }
        traffic
    }

    /// How long ago the current snapshot was put into the store.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }

    /// Takes a step of the history of all and of each tenant, `took` after the last one.
    pub(super) fn sample(&self, took: Duration) {
        let tenants = self.tenants();
        self.tenant_history.take(&tenants, took);
        self.history.take(self.total(&tenants), took);
    }

    /// Everything that was answered since the start, but for tenants that are gone.
    fn total(&self, tenants: &TrafficTable) -> Sample {
        let mut total = Sample::default();
        for traffic in tenants.values() {
            total.add_traffic(traffic);
        }
        total.add_traffic(&self.shared);
        total.add_traffic(&self.unknown);
        total
    }

    /// The counters of every tenant in the snapshot, by id.
    #[must_use]
    pub fn tenants(&self) -> TrafficTable {
        self.current().traffic.clone()
    }
}
