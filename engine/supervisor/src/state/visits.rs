//! Persists the visits, so that a restart does not end their counts.
//!
//! Each day has a table of its own, so that counting today does not write the other days again.
//!
//! **Invariant:** the tables are read once, before the first request, and encoded on the thread that writes the state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use content::name::TenantId;
use jiff::civil::Date;
use release::store::Store;
use server::snapshot_store::SnapshotStore;

use crate::state::tables::{load_visits, remove_visits, write_visits};

/// The shortest time between two versions of the tables.
const INTERVAL: Duration = Duration::from_secs(60);

/// The state of the persisted visits.
#[derive(Debug)]
pub(crate) struct VisitTables {
    /// The days that differ from their tables.
    changed: BTreeSet<Date>,
    at: Instant,
}

impl VisitTables {
    /// Restores the persisted visits.
    pub(crate) fn restore(snapshots: &SnapshotStore, store: Option<&Arc<Store>>) -> Self {
        if let Some(store) = store {
            // The newest first, since names are limited.
            snapshots
                .visits
                .restore(load_visits(store).into_iter().rev());
        }
        Self {
            changed: snapshots.visits.take_changed(),
            at: Instant::now(),
        }
    }

    /// Persists the days that have changed, without the `forgotten` tenants. `is_last`: whether the process ends, so that the interval does not count.
    pub(crate) fn persist(
        &mut self,
        snapshots: &Arc<SnapshotStore>,
        store: Option<&Arc<Store>>,
        forgotten: Vec<TenantId>,
        is_last: bool,
    ) {
        let is_due = is_last || !forgotten.is_empty() || self.at.elapsed() >= INTERVAL;
        if !is_due {
            return;
        }
        for tenant in forgotten {
            snapshots.visits.forget(tenant.as_str());
        }
        snapshots.settle_visits();
        self.changed.append(&mut snapshots.visits.take_changed());
        self.at = Instant::now();
        let Some(store) = store.filter(|store| store.claim().is_ok()) else {
            return;
        };
        for date in std::mem::take(&mut self.changed) {
            match snapshots.visits.has(date) {
                true => {
                    let snapshots = Arc::clone(snapshots);
                    write_visits(store, date, move || snapshots.visits.save(date));
                }
                false => remove_visits(store, date),
            }
        }
    }
}
