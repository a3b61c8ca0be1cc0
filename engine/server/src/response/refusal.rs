//! Refuses requests for protected tenants, and marks the responses that are allowed, and the responses of previews.
//!
//! A refusal has no page, no name and no file of the tenant: the status as plain text. It is the same for every path and method.
//!
//! **Invariant:** decides nothing.

use std::time::Duration;

use http::header::{
    CACHE_CONTROL, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};

use crate::access::decision::AccessDecision;
use crate::response::response_body::ResponseBody;
use crate::response::routed_response::{RequestHead, ResponseOwner, Route, RoutedResponse, plain};
use release::snapshot::fields::set;
use release::snapshot::{ContentEncoding, Mount};

const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
const NO_INDEX: HeaderValue = HeaderValue::from_static("noindex");

/// The caching of protected content. A shared cache must not store it, since it would give it to visitors without a credential. A browser may store it, and asks the server before each use (RFC 9111, sections 5.2.2.4 and 5.2.2.7), so a credential that was removed or has expired also ends the use of the stored content.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Seconds until a request for a closed tenant is worth another try.
const CLOSED_RETRY: Duration = Duration::from_secs(30);

/// Returns the response of a decision, or `None` if the request may have the content.
pub(crate) fn refusal<'s>(
    decision: AccessDecision,
    mount: &'s Mount,
    request: &RequestHead<'_>,
) -> Option<RoutedResponse<'s>> {
    let response = match decision {
        AccessDecision::Allow => return None,
        AccessDecision::Challenge | AccessDecision::Fail => challenge(&mount.prefix),
        AccessDecision::Limit(wait) => later(StatusCode::TOO_MANY_REQUESTS, wait),
        AccessDecision::Close => later(StatusCode::SERVICE_UNAVAILABLE, CLOSED_RETRY),
        AccessDecision::Refuse => plain(StatusCode::FORBIDDEN),
        AccessDecision::RedirectToHttps(port) => to_https(port, request),
    };
    let mut answer = RoutedResponse {
        response: response.into(),
        owner: ResponseOwner::Tenant(mount),
        route: Route {
            prefix: &mount.prefix,
            path: "",
            rest: "/*",
        },
        encoding: ContentEncoding::Identity,
    };
    set(answer.response.headers_mut(), &X_ROBOTS_TAG, NO_INDEX);
    Some(answer)
}

/// Keeps an allowed response out of shared caches and search engines.
pub(crate) fn mark_private(answer: &mut RoutedResponse<'_>) {
    let fields = answer.response.headers_mut();
    let is_stored = fields
        .get(CACHE_CONTROL)
        .is_none_or(|value| value != "no-store");
    if is_stored {
        set(fields, &CACHE_CONTROL, PRIVATE);
    }
    mark_unindexed(answer);
}

/// Keeps a response out of search engines.
pub(crate) fn mark_unindexed(answer: &mut RoutedResponse<'_>) {
    set(answer.response.headers_mut(), &X_ROBOTS_TAG, NO_INDEX);
}

/// Returns 401 with the prefix as the realm. Browsers send a credential to all paths of a realm, so tenants of one host have different realms.
fn challenge(prefix: &str) -> Response<ResponseBody> {
    let mut response = plain(StatusCode::UNAUTHORIZED);
    // A prefix consists of letters, digits and marks that need no escape.
    let realm = format!("Basic realm=\"{prefix}/\", charset=\"UTF-8\"");
    if let Ok(realm) = HeaderValue::try_from(realm) {
        response.headers_mut().insert(WWW_AUTHENTICATE, realm);
    }
    response
}

fn later(status: StatusCode, wait: Duration) -> Response<ResponseBody> {
    let mut response = plain(status);
    let seconds = HeaderValue::from(wait.as_secs().max(1));
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// Redirects to the same address over HTTPS. No cache stores the redirect: it ends with the protection.
fn to_https(port: Option<u16>, request: &RequestHead<'_>) -> Response<ResponseBody> {
    let Ok(host) = request.host() else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let target = request.uri.path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let Ok(location) = HeaderValue::try_from(format!("https://{host}{port}{target}")) else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let mut response = plain(StatusCode::TEMPORARY_REDIRECT);
    response.headers_mut().insert(LOCATION, location);
    response
}
