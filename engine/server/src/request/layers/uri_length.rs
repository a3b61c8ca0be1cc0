//! Refuses request targets that are too long with 414.
//!
//! hyper enforces the other limits, since it refuses larger requests before they reach a layer.
//!
//! **Invariant:** knows no path and no tenant.

use http::{StatusCode, Uri};

use crate::response::routed_response::{RoutedResponse, refused};

/// Returns the refusal of a request target of more than `limit` bytes.
pub(crate) fn refusal<'s>(target: &Uri, limit: usize) -> Option<RoutedResponse<'s>> {
    let target = target.path_and_query()?;
    (target.as_str().len() > limit).then(|| refused(StatusCode::URI_TOO_LONG))
}
