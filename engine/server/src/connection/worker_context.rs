//! The state that all connections of a worker share.
//!
//! **Invariant:** knows no connection; never leaves its worker's thread.

use std::cell::RefCell;
use std::sync::Arc;

use crate::access_log::AccessLogBuffer;
use crate::listen::admission::Admission;
use crate::request::layers::request_id::RequestIds;
use crate::settings::ServeSettings;
use crate::snapshot_store::SnapshotStore;

/// The state that all connections of a worker share.
#[derive(Debug)]
pub(crate) struct WorkerContext {
    pub(crate) snapshots: Arc<SnapshotStore>,
    pub(crate) settings: Arc<ServeSettings>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) ids: RequestIds,
    /// The access log, if the settings have one.
    pub(crate) access_log: Option<RefCell<AccessLogBuffer>>,
}

impl WorkerContext {
    pub(crate) fn new(
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
