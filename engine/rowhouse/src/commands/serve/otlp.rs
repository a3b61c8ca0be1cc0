//! Exports the spans of requests to a collector, over HTTP (OTLP, `http/protobuf`).
//!
//! One thread collects spans and sends them in batches. A batch that cannot be sent in time is lost. Only builds with the feature `otlp` have this module; `cargo dist` turns the feature on.
//!
//! **Invariant:** no request waits for the collector.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use async_trait::async_trait;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanKind, TraceContextExt as _, TraceFlags, TraceState, Tracer as _,
    TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};
use tracing::warn;
use url::Url;

use server::access_log::spans::{AccessEntry, RequestSpans, Trace};

/// The timeout of one export, and of the last export at shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The exporter of spans. Dropping the exporter sends the last spans.
#[derive(Debug)]
pub(crate) struct Spans(SdkTracerProvider);

impl Spans {
    /// Starts to export to `collector`.
    pub(crate) fn start(collector: &Url) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the event loop for `--otlp`")?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient {
                runtime,
                inner: HyperClient::with_default_connector(EXPORT_TIMEOUT, None),
            })
            .with_endpoint(endpoint(collector))
            .with_timeout(EXPORT_TIMEOUT)
            .build()
            .context("cannot send to the collector of `--otlp`")?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(Resource::builder().with_service_name("rowhouse").build())
            .build();
        Ok(Self(provider))
    }

    /// Returns the recorder of spans.
    pub(crate) fn of_requests(&self) -> Arc<dyn RequestSpans> {
        Arc::new(Tracer(self.0.tracer("rowhouse")))
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(EXPORT_TIMEOUT) {
            warn!(%error, "sending the last spans to the collector failed; the spans are lost");
        }
    }
}

/// Adds spans to the queue of the exporting thread. A full queue drops them.
#[derive(Debug)]
struct Tracer(SdkTracer);

impl RequestSpans for Tracer {
    fn record(&self, entry: &AccessEntry<'_>) -> Trace {
        let context = entry.trace.map_or_else(Context::new, under);
        let end = SystemTime::now();
        let (method, route) = (entry.method_name(), entry.route_name());
        let size = i64::try_from(entry.bytes).unwrap_or(i64::MAX);
        // The names are those of OpenTelemetry's semantic conventions for HTTP servers.
        let builder = self
            .0
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
        let mut span = self.0.build_with_context(builder, &context);
        span.end_with_timestamp(end);
        let made = span.span_context();
        Trace {
            id: u128::from_be_bytes(made.trace_id().to_bytes()),
            parent: u64::from_be_bytes(made.span_id().to_bytes()),
            sampled: made.is_sampled(),
        }
    }
}

/// Returns the context with the span of the proxy as the parent.
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

/// Returns the URL for traces: `/v1/traces` of the collector, unless its URL has a path.
fn endpoint(collector: &Url) -> String {
    match collector.path() {
        "" | "/" => format!("{}v1/traces", collector),
        _ => collector.to_string(),
    }
}

/// An HTTP client with its own event loop, since the exporting thread has none.
#[derive(Debug)]
struct CollectorClient {
    runtime: Runtime,
    inner: HyperClient,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.block_on(self.inner.send_bytes(request))
    }
}
