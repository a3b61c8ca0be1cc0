//! Logs each request in the access log, and records its span, if either is configured.
//!
//! **Invariant:** does not change the response; never blocks.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::ready;
use std::task::{Context, Poll};

use http::HeaderValue;
use jiff::Timestamp;
use tower::Service;

use super::exchange::{Exchange, LayerFuture, LayerService};
use crate::access_log::AccessEntry;
use crate::access_log::AccessLogBuffer;
use crate::connection::worker_context::WorkerContext;
use crate::request::forwarded::visitor;
use crate::request::trace::Trace;
use crate::response::routed_response::{ResponseOwner, RoutedResponse};
use crate::snapshot_store::{SHARED_HOSTS, UNKNOWN_HOSTS};
use release::snapshot::fields::X_REQUEST_ID;

/// The layer that logs each request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccessLogger<'w, S> {
    pub(crate) context: &'w WorkerContext,
    pub(crate) inner: S,
}

impl<'a, S: LayerService<'a>> Service<Exchange<'a>> for AccessLogger<'_, S> {
    type Response = RoutedResponse<'a>;
    type Error = Infallible;
    type Future = LayerFuture<'a>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange<'a>) -> Self::Future {
        let answer = self.inner.respond(exchange);
        if self.context.access_log.is_some() || self.context.settings.spans.is_some() {
            self.log(&exchange, &answer);
        }
        ready(Ok(answer))
    }
}

impl<S> AccessLogger<'_, S> {
    fn log(&self, exchange: &Exchange<'_>, answer: &RoutedResponse<'_>) {
        let settings = &self.context.settings;
        let Exchange { head, peer, .. } = exchange;
        let mut buffer = self.context.access_log.as_ref().map(RefCell::borrow_mut);
        let with_visitor = buffer
            .as_deref()
            .is_some_and(AccessLogBuffer::has_addresses);
        let id = answer.response.headers().get(&X_REQUEST_ID);
        let mut entry = AccessEntry {
            at: Timestamp::now(),
            tenant: match answer.owner {
                ResponseOwner::Tenant(mount) => &mount.tenant,
                ResponseOwner::Host => SHARED_HOSTS,
                ResponseOwner::Unknown => UNKNOWN_HOSTS,
            },
            method: head.method.as_str(),
            route: answer.route,
            status: answer.response.status(),
            bytes: answer.bytes(),
            encoding: answer.encoding,
            took: exchange.started.elapsed(),
            id: id
                .map(HeaderValue::to_str)
                .and_then(Result::ok)
                .unwrap_or("-"),
            trace: peer
                .is_trusted
                .then(|| Trace::named_by(head.headers))
                .flatten(),
            visitor: with_visitor.then(|| visitor(peer.address, head.headers, settings)),
        };
        if let Some(spans) = &settings.spans {
            entry.trace = Some(spans.record(&entry));
        }
        if let Some(buffer) = &mut buffer {
            buffer.push(&entry);
        }
    }
}
