//! The input and the result of the look-up.
//!
//! **Invariant:** plain values. The parts of an answer that are counted or logged never come from the client.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Response, StatusCode, Uri, Version};

use crate::request::host::{HostError, named_host};
use crate::request::request_fields::RequestFields;
use crate::response::response_body::ResponseBody;
use crate::response::snapshot_response::SnapshotResponse;
use release::snapshot::{ContentEncoding, Mount};

/// The parts of a request that the look-up reads.
#[derive(Debug)]
pub struct RequestHead<'r> {
    pub(crate) method: &'r Method,
    /// The request target.
    pub(crate) uri: &'r Uri,
    /// The protocol version, which decides how the host is named.
    pub(crate) version: Version,
    /// All header fields.
    pub(crate) headers: &'r HeaderMap,
    pub(crate) has_content: bool,
    /// The header fields that each response depends on.
    pub(crate) fields: RequestFields<'r>,
    host: Result<Cow<'r, str>, HostError>,
}

impl<'r> RequestHead<'r> {
    /// Reads the header fields of a request. `has_content`: whether the request has content.
    #[must_use]
    pub fn new(
        method: &'r Method,
        uri: &'r Uri,
        version: Version,
        headers: &'r HeaderMap,
        has_content: bool,
    ) -> Self {
        let mut fields = RequestFields::read(headers);
        if *method != Method::GET {
            // Only GET has ranges (RFC 9110, section 14.2).
            fields.conditions.range = None;
        }
        Self {
            method,
            uri,
            version,
            headers,
            has_content,
            host: named_host(uri, fields.host, version),
            fields,
        }
    }

    /// Returns the requested host in its normal form.
    ///
    /// # Errors
    /// When the request must be refused with status 400.
    pub(crate) fn host(&self) -> Result<&str, HostError> {
        self.host.as_deref().map_err(|error| *error)
    }
}

/// A response, with the tenant and the route for counters and log.
#[derive(Debug)]
pub struct RoutedResponse<'s> {
    /// Status, fields and body.
    pub response: SnapshotResponse<'s>,
    /// The owner of the response.
    pub owner: ResponseOwner<'s>,
    /// The route of the response.
    pub route: Route<'s>,
    /// The encoding of the body.
    pub encoding: ContentEncoding,
}

impl RoutedResponse<'_> {
    /// Returns the size of the body in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.response.body().len()
    }
}

/// The owner of a response.
#[derive(Debug, Clone, Copy)]
pub enum ResponseOwner<'s> {
    /// A tenant.
    Tenant(&'s Mount),
    /// A known host, but no tenant.
    Host,
    /// No known host, or the request is not valid.
    Unknown,
}

/// The route of a response in the snapshot, as parts to be joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Route<'s> {
    /// The mount's prefix.
    pub prefix: &'s str,
    /// The resource's path below the prefix.
    pub path: &'s str,
    /// `/*` if the route covers all paths below `path`.
    pub rest: &'static str,
}

/// Returns the answer to a request that matches no host and no tenant: the status as plain text.
#[must_use]
pub(crate) fn refused<'s>(status: StatusCode) -> RoutedResponse<'s> {
    RoutedResponse {
        response: plain(status).into(),
        owner: ResponseOwner::Unknown,
        route: Route::default(),
        encoding: ContentEncoding::Identity,
    }
}

/// Returns a response without a page: the status and its name as plain text.
pub(crate) fn plain(status: StatusCode) -> Response<ResponseBody> {
    let text = Bytes::from_static(match status {
        StatusCode::BAD_REQUEST => b"400 Bad Request\n",
        StatusCode::UNAUTHORIZED => b"401 Unauthorized\n",
        StatusCode::FORBIDDEN => b"403 Forbidden\n",
        StatusCode::NOT_FOUND => b"404 Not Found\n",
        StatusCode::METHOD_NOT_ALLOWED => b"405 Method Not Allowed\n",
        StatusCode::GONE => b"410 Gone\n",
        StatusCode::PRECONDITION_FAILED => b"412 Precondition Failed\n",
        StatusCode::PAYLOAD_TOO_LARGE => b"413 Content Too Large\n",
        StatusCode::URI_TOO_LONG => b"414 URI Too Long\n",
        StatusCode::RANGE_NOT_SATISFIABLE => b"416 Range Not Satisfiable\n",
        StatusCode::MISDIRECTED_REQUEST => b"421 Misdirected Request\n",
        StatusCode::TOO_MANY_REQUESTS => b"429 Too Many Requests\n",
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
