//! Builds redirects: to another host, to the path without trailing slashes, to another path as the author wrote, and from other names of this machine.
//!
//! Caches may store a redirect, so it has a cache tag to be purged by, as pages have.
//!
//! **Invariant:** pure, as [`respond`](crate::response::respond) is.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION, STRICT_TRANSPORT_SECURITY};
use http::{Response, StatusCode};

use crate::response::response_body::ResponseBody;
use crate::response::routed_response::{RequestHead, ResponseOwner, Route, RoutedResponse, plain};
use release::snapshot::fields::{CACHE_TAG, cache_tag};
use release::snapshot::redirects::RedirectRule;
use release::snapshot::{ContentEncoding, HostRedirect, Mount};

/// Time for which redirects may be cached: one hour. Browsers cache a 308 without this field indefinitely, and could not be corrected.
const REDIRECT_CACHE_CONTROL: HeaderValue = HeaderValue::from_static("max-age=3600");

/// Returns a 308 with a cache tag.
pub(crate) fn permanent(location: HeaderValue, tag: Option<HeaderValue>) -> Response<ResponseBody> {
    with_status(StatusCode::PERMANENT_REDIRECT, location, tag)
}

/// Returns a redirect with a cache tag. Caches do not store a temporary redirect.
fn with_status(
    status: StatusCode,
    location: HeaderValue,
    tag: Option<HeaderValue>,
) -> Response<ResponseBody> {
    let caching = match status {
        StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT => HeaderValue::from_static("no-store"),
        _ => REDIRECT_CACHE_CONTROL,
    };
    let mut response = Response::new(Bytes::new().into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CACHE_CONTROL, caching);
    if let Some(tag) = tag {
        headers.insert(CACHE_TAG, tag);
    }
    response
}

/// Returns the route of a redirect that the author wrote.
pub(crate) fn route<'s>(mount: &'s Mount, rule: &'s RedirectRule) -> Route<'s> {
    Route {
        prefix: &mount.prefix,
        path: &rule.path,
        rest: if rule.is_wildcard { "/*" } else { "" },
    }
}

/// Redirects as the author wrote.
pub(crate) fn by_author<'s>(
    mount: &'s Mount,
    rule: &'s RedirectRule,
    (status, location): (StatusCode, HeaderValue),
) -> RoutedResponse<'s> {
    RoutedResponse {
        response: with_status(status, location, tag(&mount.tenant, &rule.path)).into(),
        owner: ResponseOwner::Tenant(mount),
        route: route(mount, rule),
        encoding: ContentEncoding::Identity,
    }
}

/// Returns the cache tag of a tenant's redirect.
pub(crate) fn tag(tenant: &str, path: &str) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::from(cache_tag(tenant, path))).ok()
}

/// Returns whether a host is a name of this machine that every machine has: `localhost`, or an address such as `127.0.0.1` or `[::1]`.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Redirects a request for another name of this machine to the origin of the sites. Browsers do not cache the redirect, because the next program on this port may be another one.
pub(crate) fn from_loopback<'s>(
    origin: &HeaderValue,
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    let mut response = to_origin(origin, None, request);
    if response.status() == StatusCode::PERMANENT_REDIRECT {
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        let no_store = HeaderValue::from_static("no-store");
        response.headers_mut().insert(CACHE_CONTROL, no_store);
    }
    of_host(response)
}

/// Redirects to the same path on another origin.
pub(crate) fn host<'s>(moved: &HostRedirect, request: &RequestHead<'_>) -> RoutedResponse<'s> {
    let mut response = to_origin(&moved.origin, moved.cache_tag.clone(), request);
    if let Some(hsts) = &moved.hsts {
        let fields = response.headers_mut();
        fields.insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
    }
    of_host(response)
}

/// Returns a 308 to the requested path and query on another origin.
fn to_origin(
    origin: &HeaderValue,
    tag: Option<HeaderValue>,
    request: &RequestHead<'_>,
) -> Response<ResponseBody> {
    let target = request
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    // `*` (in OPTIONS) is not a path.
    let target = if target.starts_with('/') { target } else { "/" };
    from_bytes([origin.as_bytes(), target.as_bytes()].concat(), tag)
}

fn of_host<'s>(response: Response<ResponseBody>) -> RoutedResponse<'s> {
    RoutedResponse {
        response: response.into(),
        owner: ResponseOwner::Host,
        route: Route {
            rest: "/*",
            ..Route::default()
        },
        encoding: ContentEncoding::Identity,
    }
}

/// Redirects to the same path without trailing slashes. The rest of the path names the resource `key`. It therefore cannot begin with two slashes, which would redirect to another host.
pub(crate) fn without_slashes<'s>(
    mount: &'s Mount,
    key: &'s str,
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    let mut location = match request.uri.path().trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    };
    if let Some(query) = request.uri.query() {
        location.push('?');
        location.push_str(query);
    }
    RoutedResponse {
        response: from_bytes(location.into_bytes(), tag(&mount.tenant, key)).into(),
        owner: ResponseOwner::Tenant(mount),
        route: Route {
            prefix: &mount.prefix,
            path: key,
            rest: "/",
        },
        encoding: ContentEncoding::Identity,
    }
}

pub(crate) fn from_bytes(location: Vec<u8>, tag: Option<HeaderValue>) -> Response<ResponseBody> {
    match HeaderValue::from_maybe_shared(Bytes::from(location)) {
        Ok(location) => permanent(location, tag),
        Err(_) => plain(StatusCode::BAD_REQUEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_hosts_are_localhost_and_loopback_addresses() {
        for (host, expected) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("127.8.9.1", true),
            ("[::1]", true),
            ("corner.localhost", false),
            ("localhost.example", false),
            ("192.168.1.5", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("[::ffff:10.0.0.1]", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
