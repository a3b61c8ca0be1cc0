//! Holds the current snapshot.
//!
//! The supervisor puts a new [`Snapshot`] into the store. Every request takes the current snapshot and holds it until the response is ready.
//! Neither side waits for the other: the swap is one atomic pointer.
//!
//! **Invariant:** never builds or changes a snapshot.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::watch;

use super::tls::handshake_counters::HandshakeCounters;
use crate::metrics::connection_counters::ConnectionCounters;
use crate::metrics::history::{History, Sample};
use crate::metrics::not_found::NotFoundPaths;
use crate::metrics::tenant_history::TenantHistory;
use crate::metrics::visits::Visits;
use release::snapshot::traffic::Traffic;
use release::snapshot::{Mount, Snapshot, TrafficTable};

/// The name of shared hosts in the log and the counters: known hosts whose response belongs to no tenant. It cannot be a tenant's id, since ids are host labels.
pub(super) const SHARED_HOSTS: &str = "_shared";
/// The name of unknown hosts in the log and the counters: requests that name no known host, or that are not valid.
pub(super) const UNKNOWN_HOSTS: &str = "_unknown";

/// A notice to the supervisor about a request, with the id of the tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestNotice<'a> {
    /// The request waits for a tenant whose content this replica does not have.
    Dormant(&'a str),
    /// The request waits for the tenant's pages.
    Pages(&'a str),
    /// The request waits for an image of the tenant.
    Image(&'a str),
    /// The request waits for the Markdown form of a page of the tenant, at this path below its address.
    Markdown(&'a str, &'a str),
    /// The request was answered. Only the first such request after each [`Traffic::look`] is reported.
    Answered(&'a str),
}

/// The address of a request that no tenant of the current snapshot answers: host and path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedAddress<'a> {
    /// The host is unknown.
    Host(&'a str, &'a str),
    /// The host is known, and a tenant may claim a prefix of the path.
    Prefix(&'a str, &'a str),
}

/// The supervisor's callback for notices.
type NoticeHandler = Box<dyn Fn(RequestNotice<'_>) + Send + Sync>;

/// The supervisor's look-up of dormant tenants.
type DormantLookup = Box<dyn Fn(RequestedAddress<'_>) -> Option<Arc<str>> + Send + Sync>;

/// The current snapshot, and the counters that outlive snapshots.
pub struct SnapshotStore {
    current: ArcSwap<Snapshot>,
    notice_handler: OnceLock<NoticeHandler>,
    dormant_lookup: OnceLock<DormantLookup>,
    /// Seconds that requests waited for pages or images of their tenant.
    pub(super) waits: Histogram,
    /// Notifies subscribers of a new snapshot.
    changes: watch::Sender<()>,
    replaced_at: Mutex<Instant>,
    /// Traffic of known hosts without a tenant: shared files, and hosts that only redirect.
    pub shared: Traffic,
    /// Traffic of unknown hosts and invalid requests.
    pub unknown: Traffic,
    /// Counters of connections.
    pub connections: ConnectionCounters,
    /// Counters of TLS handshakes.
    pub handshakes: HandshakeCounters,
    /// Traffic of the last hour, of all tenants together.
    pub history: History,
    /// Traffic of the last hour, by tenant.
    pub tenant_history: TenantHistory,
    /// Requested paths that have no page.
    pub not_found: NotFoundPaths,
    /// Visits by day and tenant.
    pub visits: Visits,
}

/// Upper bounds of the wait histogram, in seconds.
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
            notice_handler: OnceLock::new(),
            dormant_lookup: OnceLock::new(),
            waits: Histogram::new(WAIT_BOUNDS),
            changes: watch::Sender::default(),
            replaced_at: Mutex::new(Instant::now()),
            shared: Traffic::default(),
            unknown: Traffic::default(),
            connections: ConnectionCounters::default(),
            handshakes: HandshakeCounters::default(),
            history: History::default(),
            tenant_history: TenantHistory::default(),
            not_found: NotFoundPaths::default(),
            visits: Visits::default(),
        }
    }
}

impl SnapshotStore {
    /// Creates a store with its first snapshot.
    #[must_use]
    pub fn new(first: Snapshot) -> Self {
        let snapshots = Self::default();
        snapshots.replace(first);
        snapshots
    }

    /// Returns the current snapshot. A caller must not hold the guard for longer than one request, or a replaced snapshot stays in memory.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Replaces the current snapshot and returns the previous one. Requests in flight finish with the snapshot that they hold.
    pub fn replace(&self, next: Snapshot) -> Arc<Snapshot> {
        let former = self.current.swap(Arc::new(next));
        *self
            .replaced_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.changes.send_replace(());
        former
    }

    /// Returns a receiver that is notified of each new snapshot.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Registers the callback for notices about requests. A waiting request repeats its notice until it stops waiting.
    pub fn on_notice(&self, handler: impl Fn(RequestNotice<'_>) + Send + Sync + 'static) {
        // The supervisor registers once; a second registration is ignored.
        let _ = self.notice_handler.set(Box::new(handler));
    }

    /// Registers the look-up of tenants whose content this replica does not have.
    pub fn set_dormant_lookup(
        &self,
        lookup: impl Fn(RequestedAddress<'_>) -> Option<Arc<str>> + Send + Sync + 'static,
    ) {
        // The supervisor registers once; a second registration is ignored.
        let _ = self.dormant_lookup.set(Box::new(lookup));
    }

    /// Returns the dormant tenant at an address.
    pub fn dormant(&self, address: RequestedAddress<'_>) -> Option<Arc<str>> {
        self.dormant_lookup.get()?(address)
    }

    /// Returns whether a tenant claims a host: one of the current snapshot, or a dormant one.
    pub(super) fn is_claimed(&self, host: &str) -> bool {
        self.current().hosts.contains_key(host)
            || self.dormant(RequestedAddress::Host(host, "/")).is_some()
    }

    /// Sends a notice about a request to the supervisor.
    pub(super) fn send_notice(&self, notice: RequestNotice<'_>) {
        if let Some(handler) = self.notice_handler.get() {
            handler(notice);
        }
    }

    /// Returns the traffic counters of a mount's tenant, and notifies the supervisor of the request.
    pub(super) fn traffic_of<'m>(&'m self, mount: &'m Mount) -> &'m Traffic {
        let Some(traffic) = mount.traffic.get() else {
            return &self.unknown;
        };
        if let Some(handler) = self.notice_handler.get()
            && traffic.note()
        {
            handler(RequestNotice::Answered(&mount.tenant));
        }
        traffic
    }

    /// Returns the time since the current snapshot was stored.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.replaced_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }

    /// Adds a sample to the history of all tenants and of each tenant. `took` is the time since the last sample.
    pub(super) fn record_sample(&self, took: Duration) {
        let tenants = self.tenants();
        self.tenant_history.record(&tenants, took);
        self.history.record(self.total(&tenants), took);
    }

    /// Counts the visits since the last call.
    pub fn settle_visits(&self) {
        self.visits.settle(&self.tenants());
    }

    /// Returns the traffic since startup, without tenants that were removed.
    fn total(&self, tenants: &TrafficTable) -> Sample {
        let mut total = Sample::default();
        for traffic in tenants.values() {
            total.add_traffic(traffic);
        }
        total.add_traffic(&self.shared);
        total.add_traffic(&self.unknown);
        total
    }

    /// Returns the traffic counters of each tenant in the snapshot, by id.
    #[must_use]
    pub fn tenants(&self) -> TrafficTable {
        self.current().traffic.clone()
    }
}
