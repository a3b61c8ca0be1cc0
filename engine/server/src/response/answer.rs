//! What is looked up, and what comes of it.
//!
//! **Invariant:** plain values; nothing in an answer that is counted or logged comes from the client.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Response, StatusCode, Uri, Version};

use crate::response::response_body::ResponseBody;
use release::snapshot::{Coding, Mount};

/// What the look-up needs of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'r> {
    /// The method.
    pub method: &'r Method,
    /// The request target.
    pub uri: &'r Uri,
    /// The protocol version, which decides how the host is named.
    pub version: Version,
    /// The header fields.
    pub headers: &'r HeaderMap,
    /// Whether the request brings content.
    pub content: bool,
}

/// A response, and what to count it under.
#[derive(Debug)]
pub struct Answer<'s> {
    /// Status, fields and body.
    pub response: Response<ResponseBody>,
    /// Who answered.
    pub owner: Owner<'s>,
    /// Which route answered; nothing of it comes from the client.
    pub route: Route<'s>,
    /// The encoding of the body.
    pub coding: Coding,
}

impl Answer<'_> {
    /// The bytes of the body.
    pub(crate) fn bytes(&self) -> u64 {
        self.response.body().len()
    }
}

/// Who answered a request.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'s> {
    /// A tenant.
    Tenant(&'s Mount),
    /// A known host, for no tenant.
    Host,
    /// The request names no known host, or is not valid.
    Nobody,
}

/// The route that answered, as the snapshot knows it: its parts are to be read one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Route<'s> {
    /// The mount's prefix.
    pub prefix: &'s str,
    /// The resource's path below the prefix.
    pub path: &'s str,
    /// `/*` where anything below is meant.
    pub rest: &'static str,
}

/// The answer to a request that no host and no tenant can be found for: the status and its name as plain text.
#[must_use]
pub(crate) fn refused<'s>(status: StatusCode) -> Answer<'s> {
    Answer {
        response: plain(status),
        owner: Owner::Nobody,
        route: Route::default(),
        coding: Coding::Identity,
    }
}

/// A response with no page of a tenant: the status and its name as plain text.
pub(crate) fn plain(status: StatusCode) -> Response<ResponseBody> {
    let text = Bytes::from_static(match status {
        StatusCode::BAD_REQUEST => b"400 Bad Request\n",
        StatusCode::NOT_FOUND => b"404 Not Found\n",
        StatusCode::METHOD_NOT_ALLOWED => b"405 Method Not Allowed\n",
        StatusCode::PRECONDITION_FAILED => b"412 Precondition Failed\n",
        StatusCode::PAYLOAD_TOO_LARGE => b"413 Content Too Large\n",
        StatusCode::URI_TOO_LONG => b"414 URI Too Long\n",
        StatusCode::RANGE_NOT_SATISFIABLE => b"416 Range Not Satisfiable\n",
        StatusCode::MISDIRECTED_REQUEST => b"421 Misdirected Request\n",
        StatusCode::SERVICE_UNAVAILABLE => b"503 Service Unavailable\n",
        _ => b"",
    });
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
