//! The interface to a tracing backend: makes a span of each request.
//!
//! **Invariant:** knows no collector and no protocol; the binary supplies the implementation.

use std::fmt;

pub use crate::access_log::AccessEntry;
pub use crate::request::trace::Trace;

/// Makes a span of each request.
///
/// The method is called when the response is ready, since all fields are known then. An implementation must not block.
pub trait RequestSpans: fmt::Debug + Send + Sync {
    /// Records the span of a request and returns its trace. The span continues the trace that a trusted proxy named, or begins a new trace.
    fn record(&self, entry: &AccessEntry<'_>) -> Trace;
}
