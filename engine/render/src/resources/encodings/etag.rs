//! ETags of responses (RFC 9110, section 8.8.3).

use http::HeaderValue;

use crate::resources::asset::hex;

/// Returns the ETag of a body with this SHA-256 digest.
pub(super) fn etag(digest: &[u8]) -> HeaderValue {
    let tag = format!("\"{}\"", hex(&digest[..12]));
    HeaderValue::from_str(&tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}
