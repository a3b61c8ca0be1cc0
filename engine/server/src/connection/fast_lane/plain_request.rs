//! Parses a plain request with hyper's parser, in place.
//!
//! A request is plain if it is complete, uses GET or HEAD and HTTP/1.1, has a path as its target and exactly one `Host`, and has no field that changes the connection, announces content or asks for a part of the body.
//!
//! **Invariant:** decides nothing about a request that is not plain.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
    IF_NONE_MATCH, REFERER, USER_AGENT,
};
use http::{Method, Uri};

use crate::request::forwarded::X_FORWARDED_FOR;
use crate::request::request_fields::SEC_PURPOSE;
use crate::request::trace::TRACEPARENT;
use crate::settings::Limits;
use release::snapshot::fields::X_REQUEST_ID;

/// Maximum number of fields of a plain request.
const MAX_FIELDS: usize = 64;

/// A plain request.
#[derive(Debug)]
pub(super) struct PlainRequest {
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// Bytes of the request, with the empty line.
    pub(super) length: usize,
}

/// The part that a field has in the response.
enum FieldUse {
    /// The response depends on the field.
    Read(HeaderName),
    /// No rule reads the field.
    Ignored,
    /// `Connection`, which is plain if it only asks for the default.
    Connection,
    /// The request is not plain.
    Unusual,
}

/// Parses the request at the front of `bytes`, if it is plain. Replaces `fields` by the fields that the response depends on; they are empty if the request is not plain.
pub(super) fn parse(
    bytes: &Bytes,
    limits: &Limits,
    fields: &mut HeaderMap,
) -> Option<PlainRequest> {
    // A request that ended with a panic has left its fields.
    fields.clear();
    let request = parse_into(bytes, limits, fields);
    if request.is_none() {
        fields.clear();
    }
    request
}

fn parse_into(bytes: &Bytes, limits: &Limits, fields: &mut HeaderMap) -> Option<PlainRequest> {
    // The parser skips empty lines before a request.
    if !matches!(bytes.first(), Some(b'G' | b'H')) {
        return None;
    }
    let mut lines = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let lines = &mut lines[..limits.header_fields.min(MAX_FIELDS)];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, lines).ok()?;
    let httparse::Status::Complete(length) = parsed else {
        return None;
    };
    let method = match request.method {
        Some("GET") => Method::GET,
        Some("HEAD") => Method::HEAD,
        _ => return None,
    };
    let target = request.path.filter(|path| path.starts_with('/'))?;
    if request.version != Some(1) || length > limits.header_bytes {
        return None;
    }
    let mut hosts = 0;
    for line in request.headers.iter() {
        match field_use(line.name) {
            FieldUse::Read(name) => {
                hosts += usize::from(name == HOST);
                let value = HeaderValue::from_maybe_shared(bytes.slice_ref(line.value)).ok()?;
                fields.try_append(name, value).ok()?;
            }
            FieldUse::Ignored => {}
            FieldUse::Connection if line.value.eq_ignore_ascii_case(b"keep-alive") => {}
            FieldUse::Connection | FieldUse::Unusual => return None,
        }
    }
    let uri = Uri::from_maybe_shared(bytes.slice_ref(target.as_bytes())).ok()?;
    (hosts == 1).then_some(PlainRequest {
        method,
        uri,
        length,
    })
}

/// Returns the use of a field. The length of the name decides most comparisons.
fn field_use(name: &str) -> FieldUse {
    use FieldUse::{Connection, Ignored, Read, Unusual};
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    match name.len() {
        4 if is("host") => Read(HOST),
        5 if is("range") => Unusual,
        6 if is("expect") => Unusual,
        7 if is("referer") => Read(REFERER),
        7 if is("upgrade") => Unusual,
        8 if is("if-match") => Read(IF_MATCH),
        8 if is("if-range") => Unusual,
        10 if is("user-agent") => Read(USER_AGENT),
        10 if is("connection") => Connection,
        11 if is("sec-purpose") => Read(SEC_PURPOSE),
        11 if is("traceparent") => Read(TRACEPARENT),
        12 if is("x-request-id") => Read(X_REQUEST_ID),
        13 if is("if-none-match") => Read(IF_NONE_MATCH),
        13 if is("authorization") => Read(AUTHORIZATION),
        14 if is("content-length") => Unusual,
        15 if is("accept-encoding") => Read(ACCEPT_ENCODING),
        15 if is("x-forwarded-for") => Read(X_FORWARDED_FOR),
        17 if is("transfer-encoding") => Unusual,
        _ => Ignored,
    }
}
