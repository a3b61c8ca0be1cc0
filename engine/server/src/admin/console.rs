//! The pages that operators look at in a browser, as the admin listener reaches them.
//!
//! **Invariant:** knows no page. The admin listener passes on what it does not answer itself, and whoever makes the pages knows no listener.

use std::fmt;

use bytes::Bytes;
use http::{Response, StatusCode};

/// Who makes the pages. The methods may block, and are called on threads where that is allowed, some at a time.
pub trait Console: fmt::Debug + Send + Sync {
    /// What a path answers; 404 where there is nothing. `query` is what follows the `?`.
    fn page(&self, path: &str, query: &str) -> Response<Bytes>;

    /// The page that says why a command for a tenant was not done.
    fn refusal(&self, tenant: &str, status: StatusCode, error: &str) -> Response<Bytes>;
}
