//! Where a request is sent on to: another host, the path without the slashes at its end, another path.
//!
//! A redirect may be kept for a while, so it names what it is thrown away by, as pages do.
//!
//! **Invariant:** pure, as [`respond`](super::respond) is.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION, STRICT_TRANSPORT_SECURITY};
use http::{Response, StatusCode};

use super::answer::{Answer, Owner, RequestHead, Route, plain};
use release::snapshot::fields::{CACHE_TAG, cache_tag};
use release::snapshot::{Coding, Mount, Moved};

/// How long a redirect may be kept. Browsers keep a 308 without this for good, and could never be told otherwise.
const CACHING: HeaderValue = HeaderValue::from_static("max-age=3600");

/// 308 with what it is thrown away by.
pub(super) fn to(location: HeaderValue, tag: Option<HeaderValue>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CACHE_CONTROL, CACHING);
    if let Some(tag) = tag {
        headers.insert(CACHE_TAG, tag);
    }
    response
}

/// What a redirect of a tenant is thrown away by.
pub(super) fn tag(tenant: &str, path: &str) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::from(cache_tag(tenant, path))).ok()
}

/// The same path of another origin.
pub(super) fn host<'s>(moved: &Moved, request: &RequestHead<'_>) -> Answer<'s> {
    let target = request
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    // `*` (of OPTIONS) is no path.
    let target = if target.starts_with('/') { target } else { "/" };
    let location = [moved.origin.as_bytes(), target.as_bytes()].concat();
    let mut response = built(location, moved.cache_tag.clone());
    if let Some(hsts) = &moved.hsts {
        let fields = response.headers_mut();
        fields.insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
    }
    Answer {
        response,
        owner: Owner::Host,
        route: Route {
            rest: "/*",
            ..Route::default()
        },
        coding: Coding::Identity,
    }
}

/// The path as it came, without the slashes at its end. What comes before them names the resource `key`, so it cannot begin with two slashes and lead to another host.
pub(super) fn without_slashes<'s>(
    mount: &'s Mount,
    key: &'s str,
    request: &RequestHead<'_>,
) -> Answer<'s> {
    let mut location = match request.uri.path().trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    };
    if let Some(query) = request.uri.query() {
        location.push('?');
        location.push_str(query);
    }
    Answer {
        response: built(location.into_bytes(), tag(&mount.tenant, key)),
        owner: Owner::Tenant(mount),
        route: Route {
            prefix: &mount.prefix,
            path: key,
            rest: "/",
        },
        coding: Coding::Identity,
    }
}

pub(super) fn built(location: Vec<u8>, tag: Option<HeaderValue>) -> Response<Bytes> {
    match HeaderValue::from_maybe_shared(Bytes::from(location)) {
        Ok(location) => to(location, tag),
        Err(_) => plain(StatusCode::BAD_REQUEST),
    }
}
