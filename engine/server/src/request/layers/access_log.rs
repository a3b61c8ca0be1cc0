//! Logs each request in the access log, and records its span, if either is configured.
//!
//! **Invariant:** does not change the response; never blocks.

use std::cell::RefCell;

use http::HeaderValue;
use jiff::Timestamp;

use super::exchange::Exchange;
use crate::access_log::AccessEntry;
use crate::access_log::AccessLogBuffer;
use crate::connection::worker_context::WorkerContext;
use crate::request::forwarded::visitor;
use crate::request::trace::Trace;
use crate::response::routed_response::{ResponseOwner, RoutedResponse};
use crate::snapshot_store::{SHARED_HOSTS, UNKNOWN_HOSTS};

/// Logs a request and records its span, if the settings have an access log or spans.
pub(crate) fn log(context: &WorkerContext, exchange: &Exchange<'_>, answer: &RoutedResponse<'_>) {
    if context.access_log.is_some() || context.settings.spans.is_some() {
        write_entry(context, exchange, answer);
    }
}

fn write_entry(context: &WorkerContext, exchange: &Exchange<'_>, answer: &RoutedResponse<'_>) {
    let settings = &context.settings;
    let Exchange { head, peer, .. } = exchange;
    let mut buffer = context.access_log.as_ref().map(RefCell::borrow_mut);
    let with_visitor = buffer
        .as_deref()
        .is_some_and(AccessLogBuffer::has_addresses);
    let id = answer.response.request_id();
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
