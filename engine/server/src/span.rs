//! A span for each request, for whoever collects them.
//!
//! It is made when the request is answered, since by then all is known, and put into the collector's queue, which takes what there is room for and never waits.
//!
//! **Invariant:** says nothing that the access log would not say, and is not called unless spans are asked for.

use std::time::SystemTime;

use opentelemetry::trace::{
    Span as _, SpanContext, SpanKind, TraceContextExt as _, TraceFlags, TraceState, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;

use super::line::Entry;
use super::origin::Trace;

/// Records the span of a request: a part of the trace that a trusted proxy named, or the first of a new one. Returns the trace.
pub(super) fn record(tracer: &SdkTracer, entry: &Entry<'_>) -> Trace {
    let context = entry.trace.map_or_else(Context::new, under);
    let end = SystemTime::now();
    let (method, route) = (entry.method_name(), entry.route_name());
    let size = i64::try_from(entry.bytes).unwrap_or(i64::MAX);
    // The names are those of OpenTelemetry's semantic conventions for HTTP servers.
    let builder = tracer
        .span_builder(format!("{method} {route}"))
        .with_kind(SpanKind::Server)
        .with_start_time(end - entry.took)
        .with_attributes([
            KeyValue::new("http.request.method", method.to_owned()),
            KeyValue::new("http.route", route),
            KeyValue::new(
                "http.response.status_code",
                i64::from(entry.status.as_u16()),
            ),
            KeyValue::new("http.response.body.size", size),
            KeyValue::new("rowhouse.tenant", entry.tenant.to_owned()),
            KeyValue::new("rowhouse.request_id", entry.id.to_owned()),
        ]);
    let mut span = tracer.build_with_context(builder, &context);
    span.end_with_timestamp(end);
    let made = span.span_context();
    Trace {
        id: u128::from_be_bytes(made.trace_id().to_bytes()),
        parent: u64::from_be_bytes(made.span_id().to_bytes()),
        sampled: made.is_sampled(),
    }
}

fn under(trace: Trace) -> Context {
    let flags = TraceFlags::default().with_sampled(trace.sampled);
    Context::new().with_remote_span_context(SpanContext::new(
        trace.id.into(),
        trace.parent.into(),
        flags,
        true,
        TraceState::NONE,
    ))
}
