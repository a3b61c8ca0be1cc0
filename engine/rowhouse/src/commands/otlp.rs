//! Sends the spans of requests to a collector, over HTTP (OTLP, `http/protobuf`).
//!
//! A thread of its own collects and sends them, some at a time. What it cannot send in time is lost, and no request waits for it.

use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};
use tracing::warn;
use url::Url;

/// How long a collector may take to answer, and the last spans to be sent at the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends spans for as long as it lives, and the last of them when it is dropped.
#[derive(Debug)]
pub(super) struct Spans(SdkTracerProvider);

impl Spans {
    /// Begins to send to `collector`.
    pub(super) fn start(collector: &Url) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the event loop for `--otlp`")?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client {
                runtime,
                inner: HyperClient::with_default_connector(PATIENCE, None),
            })
            .with_endpoint(endpoint(collector))
            .with_timeout(PATIENCE)
            .build()
            .context("cannot send to the collector of `--otlp`")?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(Resource::builder().with_service_name("rowhouse").build())
            .build();
        Ok(Self(provider))
    }

    /// What makes spans.
    pub(super) fn tracer(&self) -> SdkTracer {
        self.0.tracer("rowhouse")
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(PATIENCE) {
            warn!(%error, "the last spans could not be sent");
        }
    }
}

/// Where traces go: below the address of a collector, unless a path is given.
fn endpoint(collector: &Url) -> String {
    match collector.path() {
        "" | "/" => format!("{}v1/traces", collector),
        _ => collector.to_string(),
    }
}

/// The thread that sends has no event loop: this brings one along.
#[derive(Debug)]
struct Client {
    runtime: Runtime,
    inner: HyperClient,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.block_on(self.inner.send_bytes(request))
    }
}
