//! The interface to the console: the pages that operators open in a browser on the admin listener.
//!
//! **Invariant:** knows no page. The admin listener passes unknown paths on; the implementation knows no listener.

use std::fmt;

use bytes::Bytes;
use http::{Response, StatusCode};

/// Renders the console's pages. The methods may block, and are called concurrently on threads where blocking is allowed.
pub trait Console: fmt::Debug + Send + Sync {
    /// Returns the page at a path, or 404. `query` is the part after the `?`.
    fn page(&self, path: &str, query: &str) -> Response<Bytes>;

    /// Returns the page that explains why a command for a tenant was refused.
    fn refusal(&self, tenant: &str, status: StatusCode, error: &str) -> Response<Bytes>;
}
