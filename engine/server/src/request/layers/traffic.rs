//! Counts responses by tenant, and passes on those that are [visits](crate::metrics::visits).
//!
//! **Invariant:** does not change the response. Takes no lock, since a mount has the counters of its tenant. The exception is the first request after the supervisor read the counters. Recording a [`not_found`](crate::metrics::not_found) path is skipped if its lock is taken.

use std::convert::Infallible;
use std::future::ready;
use std::task::{Context, Poll};

use http::StatusCode;
use tower::Service;

use super::exchange::{Exchange, LayerFuture, LayerService};
use crate::connection::worker_context::WorkerContext;
use crate::response::routed_response::{ResponseOwner, RoutedResponse};

/// The layer that counts responses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrafficCounters<'w, S> {
    pub(crate) context: &'w WorkerContext,
    pub(crate) inner: S,
}

impl<'a, S: LayerService<'a>> Service<Exchange<'a>> for TrafficCounters<'_, S> {
    type Response = RoutedResponse<'a>;
    type Error = Infallible;
    type Future = LayerFuture<'a>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange<'a>) -> Self::Future {
        let answer = self.inner.respond(exchange);
        let snapshots = &self.context.snapshots;
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
        let mut page_requests = self.context.page_requests.borrow_mut();
        page_requests.push(&exchange.head, &answer);
        drop(page_requests);
        ready(Ok(answer))
    }
}
