//! What all connections of a worker answer with.
//!
//! **Invariant:** knows no connection; never leaves its worker's thread.

use std::cell::RefCell;
use std::sync::Arc;

use super::access::AccessLogBuffer;
use super::admission::Admission;
use super::layers::request_id::RequestIds;
use super::settings::ServeSettings;
use super::snapshot_store::SnapshotStore;

/// What all connections of a worker answer with.
#[derive(Debug)]
pub(super) struct WorkerContext {
    pub(super) snapshots: Arc<SnapshotStore>,
    pub(super) settings: Arc<ServeSettings>,
    pub(super) admission: Arc<Admission>,
    pub(super) ids: RequestIds,
    /// Where there is an access log.
    pub(super) access_log: Option<RefCell<AccessLogBuffer>>,
}

impl WorkerContext {
    pub(super) fn new(
        snapshots: Arc<SnapshotStore>,
        settings: Arc<ServeSettings>,
        admission: Arc<Admission>,
    ) -> Self {
        let access_log = settings.access_log.clone().map(AccessLogBuffer::new);
        Self {
            snapshots,
            settings,
            admission,
            ids: RequestIds::default(),
            access_log: access_log.map(RefCell::new),
        }
    }
}
