//! The response for a host that belongs to no tenant: 421 (RFC 9110, section 15.5.20).

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use crate::resources::encodings::compress::{self, CompressionLevel};
use crate::resources::header_fields::{self, BodyKind};
use release::snapshot::{Body, Resource};

/// Makes the response for a host that belongs to no tenant. It names no tenant.
///
/// `words` is the deployment's own text. Without it the body is empty.
#[must_use]
pub fn unknown_host(words: Option<String>, is_secure: bool) -> Arc<Resource> {
    let text = words.map_or_else(String::new, |words| words + "\n");
    let media_type = "text/plain; charset=utf-8";
    Arc::new(Resource::Body(Body {
        status: StatusCode::MISDIRECTED_REQUEST,
        fields: header_fields::fields(&BodyKind::Plain, media_type, is_secure),
        cache_tag: None,
        variants: compress::variants(Bytes::from(text), false, CompressionLevel::Page),
    }))
}
