//! What stands in the place of the exporter of spans in a build without the feature `otlp`: a clear refusal.

use std::sync::Arc;

use anyhow::bail;
use url::Url;

use server::access_log::spans::RequestSpans;

/// Never there in this build.
#[derive(Debug)]
pub(crate) enum Spans {}

impl Spans {
    /// Says what is missing, rather than to lose spans in silence.
    pub(crate) fn start(_: &Url) -> anyhow::Result<Self> {
        bail!(
            "this build has no OpenTelemetry: leave `--otlp` (ROWHOUSE_OTLP) out, or build rowhouse with `--features otlp`"
        )
    }

    /// What makes spans.
    pub(crate) fn of_requests(&self) -> Arc<dyn RequestSpans> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_collector_is_refused_with_what_to_do() {
        let collector = Url::parse("http://127.0.0.1:4318").unwrap();
        let error = Spans::start(&collector).unwrap_err().to_string();
        for named in ["no OpenTelemetry", "ROWHOUSE_OTLP", "--features otlp"] {
            assert!(error.contains(named), "{error}");
        }
    }
}
