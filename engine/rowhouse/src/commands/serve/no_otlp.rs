//! Refuses `--otlp` in a build without the feature `otlp`.
//!
//! **Invariant:** has the same items as the module for builds with the feature.

use std::sync::Arc;

use anyhow::bail;
use url::Url;

use server::access_log::spans::RequestSpans;

/// The exporter of spans. This build has none.
#[derive(Debug)]
pub(crate) enum Spans {}

impl Spans {
    /// Fails, so that no span is lost silently.
    pub(crate) fn start(_: &Url) -> anyhow::Result<Self> {
        bail!(
            "this build has no OpenTelemetry: remove `--otlp` (ROWHOUSE_OTLP), or build rowhouse with `--features otlp`"
        )
    }

    /// Returns the recorder of spans.
    pub(crate) fn of_requests(&self) -> Arc<dyn RequestSpans> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn collector_is_refused_with_a_hint() {
        let collector = Url::parse("http://127.0.0.1:4318").unwrap();
        let error = Spans::start(&collector).unwrap_err().to_string();
        for named in ["no OpenTelemetry", "ROWHOUSE_OTLP", "--features otlp"] {
            assert!(error.contains(named), "{error}");
        }
    }
}
