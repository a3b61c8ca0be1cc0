//! Who makes a span of each request, for whoever collects them.
//!
//! **Invariant:** knows no collector and no protocol: the binary brings what makes spans, where it is built with it.

use std::fmt;

pub use crate::access_log::AccessEntry;
pub use crate::request::trace::Trace;

/// Makes a span of each request.
///
/// It is asked when the request is answered, since by then all is known, and must not wait for anybody.
pub trait RequestSpans: fmt::Debug + Send + Sync {
    /// Records the span of a request: a part of the trace that a trusted proxy named, or the first of a new one. Returns the trace.
    fn record(&self, entry: &AccessEntry<'_>) -> Trace;
}
