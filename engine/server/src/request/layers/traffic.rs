//! Counts responses by tenant, and passes on those that are [visits](crate::metrics::visits).
//!
//! **Invariant:** does not change the response. Takes no lock, since a mount has the counters of its tenant. The exception is the first request after the supervisor read the counters. Recording a [`not_found`](crate::metrics::not_found) path is skipped if its lock is taken.

use http::StatusCode;

use super::exchange::Exchange;
use crate::connection::worker_context::WorkerContext;
use crate::response::routed_response::{ResponseOwner, RoutedResponse};

/// Counts an answer.
pub(crate) fn count<'a>(
    context: &WorkerContext,
    exchange: &Exchange<'a>,
    answer: &RoutedResponse<'a>,
) {
    let snapshots = &context.snapshots;
    let traffic = match answer.owner {
        ResponseOwner::Tenant(mount) => snapshots.traffic_of(mount),
        ResponseOwner::Host => &snapshots.shared,
        ResponseOwner::Unknown => &snapshots.unknown,
    };
    traffic.record(
        answer.response.status(),
        answer.encoding,
        answer.bytes(),
        exchange.started.elapsed(),
    );
    if let (StatusCode::NOT_FOUND, ResponseOwner::Tenant(mount)) =
        (answer.response.status(), answer.owner)
    {
        traffic.record_not_found();
        if let Some(path) = exchange.head.uri.path().strip_prefix(&*mount.prefix) {
            snapshots.not_found.record(&mount.tenant, path);
        }
    }
    let mut page_requests = context.page_requests.borrow_mut();
    page_requests.push(exchange.head, answer);
}
