//! The state that all connections of a worker share.
//!
//! **Invariant:** knows no connection; never leaves its worker's thread.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use http::{Response, Version};

use crate::access_log::AccessLogBuffer;
use crate::connection::fast_lane::lane_buffers::LaneBuffers;
use crate::connection::http_date::HttpDate;
use crate::connection::http2::joined_writes::SpareBuffer;
use crate::listen::admission::Admission;
use crate::metrics::visits::page_request::PageRequestBuffer;
use crate::request::layers::request_id::RequestIds;
use crate::response::respond::close_after;
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
    /// Whether the worker drains, so that each response ends its connection.
    pub(crate) is_draining: Cell<bool>,
    /// The requests for pages that are counted as visits.
    pub(crate) page_requests: RefCell<PageRequestBuffer>,
    pub(crate) date: RefCell<HttpDate>,
    pub(crate) lane: RefCell<LaneBuffers>,
    /// For connections of HTTP/2 that write.
    pub(crate) spare_buffer: SpareBuffer,
}

impl WorkerContext {
    pub(crate) fn new(
        snapshots: Arc<SnapshotStore>,
        settings: Arc<ServeSettings>,
        admission: Arc<Admission>,
    ) -> Self {
        let access_log = settings.access_log.clone().map(AccessLogBuffer::new);
        let page_requests = PageRequestBuffer::new(Arc::clone(&snapshots.visits.queue));
        Self {
            snapshots,
            settings,
            admission,
            ids: RequestIds::default(),
            access_log: access_log.map(RefCell::new),
            page_requests: RefCell::new(page_requests),
            date: RefCell::default(),
            lane: RefCell::default(),
            spare_buffer: SpareBuffer::default(),
            is_draining: Cell::new(false),
        }
    }

    /// Tells the client of a request of `version` that the response is the last of its connection, if the worker drains. HTTP/2 has a frame for this instead (RFC 9113, section 6.8).
    pub(crate) fn finish<B>(&self, response: &mut Response<B>, version: Version) {
        if self.is_draining.get() && version < Version::HTTP_2 {
            close_after(response, version);
        }
    }
}
