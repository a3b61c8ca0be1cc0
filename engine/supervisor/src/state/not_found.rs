//! Persists the requested paths without a page, so that a restart does not end their counts.
//!
//! **Invariant:** the table is read once, before the first request, and encoded on the thread that writes the state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use release::store::Store;
use server::snapshot_store::SnapshotStore;

use crate::state::tables::{load_not_found, write_not_found};

/// The shortest time between two versions of the table.
const INTERVAL: Duration = Duration::from_secs(60);

/// The state of the persisted paths.
#[derive(Debug)]
pub(crate) struct NotFoundTable {
    /// The number of recorded requests in the last version.
    written: u64,
    at: Instant,
}

impl NotFoundTable {
    /// Restores the persisted paths.
    pub(crate) fn restore(snapshots: &SnapshotStore, store: Option<&Arc<Store>>) -> Self {
        if let Some(saved) = store.and_then(|store| load_not_found(store)) {
            snapshots.not_found.restore(&saved);
        }
        Self {
            written: snapshots.not_found.recorded(),
            at: Instant::now(),
        }
    }

    /// Persists the paths if requests were recorded. `is_last`: whether the process ends, so that the interval does not count.
    pub(crate) fn persist(
        &mut self,
        snapshots: &Arc<SnapshotStore>,
        store: Option<&Arc<Store>>,
        is_last: bool,
    ) {
        let recorded = snapshots.not_found.recorded();
        let is_due = is_last || self.at.elapsed() >= INTERVAL;
        if !is_due || recorded == self.written {
            return;
        }
        if let Some(store) = store.filter(|store| store.claim().is_ok()) {
            self.written = recorded;
            self.at = Instant::now();
            let snapshots = Arc::clone(snapshots);
            write_not_found(store, move || snapshots.not_found.save());
        }
    }
}
