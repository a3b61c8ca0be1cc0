//! Holds the snapshot that is being served.
//!
//! One owner puts a new [`Snapshot`] into the store; every request takes the current one and keeps it until it is answered.
//! Neither ever waits for the other: the swap is one atomic pointer.
//!
//! The store also has the counters of every tenant in the snapshot, and gives them to the mounts of the next one, so that a request finds its counters without a look-up and a reload does not set them back to zero. A tenant that is gone takes its counters with it; one that comes back begins at zero.
//!
//! **Invariant:** never builds or changes what is in a snapshot.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::watch;

use super::tls::handshake_counters::HandshakeCounters;
use crate::connection::connection_counters::ConnectionCounters;
use crate::metrics::history::{History, Sample};
use crate::metrics::not_found::NotFound;
use crate::metrics::tenant_history::TenantHistory;
use release::snapshot::traffic::Traffic;
use release::snapshot::{HostEntry, Mount, Snapshot};

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
    tenants: Mutex<BTreeMap<Arc<str>, Arc<Traffic>>>,
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
    pub not_found: NotFound,
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
            tenants: Mutex::default(),
            shared: Traffic::default(),
            unknown: Traffic::default(),
            connections: ConnectionCounters::default(),
            handshakes: HandshakeCounters::default(),
            history: History::default(),
            tenant_history: TenantHistory::default(),
            not_found: NotFound::default(),
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

    /// Serves `next` from the next request on, and gives back what was served before. Requests under way finish with what they have.
    pub fn replace(&self, next: Snapshot) -> Arc<Snapshot> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let mut present = Vec::new();
        let (mut own, mut new) = (Vec::new(), Vec::new());
        for mount in mounts(&next) {
            match mount.traffic.get() {
                Some(traffic) => own.push((Arc::as_ptr(traffic), mount)),
                None => new.push(mount),
            }
        }
        // Of the mounts of one tenant, one is enough.
        own.sort_unstable_by_key(|(traffic, _)| *traffic);
        own.dedup_by_key(|(traffic, _)| *traffic);
        for (traffic, mount) in own {
            present.push(traffic);
            // One that was away for a while still has its own.
            if let Some(traffic) = mount.traffic.get()
                && !tenants.contains_key(&mount.tenant)
            {
                tenants.insert(Arc::clone(&mount.tenant), Arc::clone(traffic));
            }
        }
        for mount in new {
            let traffic = tenants.entry(Arc::clone(&mount.tenant)).or_default();
            present.push(Arc::as_ptr(traffic));
            mount.traffic.get_or_init(|| Arc::clone(traffic));
        }
        present.sort_unstable();
        tenants.retain(|_, traffic| present.binary_search(&Arc::as_ptr(traffic)).is_ok());
        drop(tenants);
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
    fn total(&self, tenants: &BTreeMap<Arc<str>, Arc<Traffic>>) -> Sample {
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
    pub fn tenants(&self) -> BTreeMap<Arc<str>, Arc<Traffic>> {
        self.tenants
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn mounts(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<Mount>> {
    snapshot
        .hosts
        .values()
        .filter_map(|host| match host {
            HostEntry::Site(routes) => Some(routes),
            HostEntry::Moved(_) => None,
        })
        .flat_map(|routes| routes.root.iter().chain(routes.prefixes.values()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use release::snapshot::HostRoutes;

    #[test]
    fn counters_outlive_a_reload() {
        let snapshots = SnapshotStore::new(sample::snapshot());
        let before = snapshots.tenants();
        before["bluedoor"].record(
            http::StatusCode::OK,
            release::snapshot::Coding::Identity,
            3,
            std::time::Duration::ZERO,
        );
        snapshots.replace(sample::snapshot());
        assert_eq!(
            snapshots.tenants()["bluedoor"]
                .counts()
                .next()
                .map(|count| count.bytes),
            Some(3)
        );
        for mount in mounts(&snapshots.current()) {
            assert!(mount.traffic.get().is_some());
        }
    }

    #[test]
    fn names_that_come_and_go_leave_nothing_behind() {
        let snapshots = SnapshotStore::default();
        for number in 0..10_000 {
            let mut next = Snapshot::default();
            let mount = sample::mount(&format!("tenant-{number}"), "", &[]);
            let routes = HostRoutes {
                root: Some(Arc::new(mount)),
                ..HostRoutes::default()
            };
            let host = HostEntry::Site(Arc::new(routes));
            next.hosts.insert("studio.example".into(), host);
            snapshots.replace(next);
        }
        let names: Vec<_> = snapshots.tenants().into_keys().collect();
        assert_eq!(names, ["tenant-9999".into()]);
        snapshots.replace(Snapshot::default());
        assert!(snapshots.tenants().is_empty());
    }

    #[test]
    fn all_mounts_of_a_tenant_count_together() {
        let snapshots = SnapshotStore::new(sample::snapshot());
        let (all, current) = (snapshots.tenants(), snapshots.current());
        for mount in mounts(&current) {
            let traffic = mount.traffic.get().unwrap();
            assert!(Arc::ptr_eq(traffic, &all[&mount.tenant]));
        }
    }
}
