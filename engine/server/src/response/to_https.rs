//! Answers requests on the listener that redirects to HTTPS.
//!
//! 1. A path below `/.well-known/acme-challenge/` gets the text of an open challenge (RFC 8555, section 8.3).
//! 2. A host that no tenant claims gets the neutral 421, as on other listeners, and no redirect.
//! 3. Everything else gets a 308 to the same host and path over HTTPS.
//!
//! **Invariant:** serves no page.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode, Uri};

use crate::acme::shared::SharedChallenge;
use crate::response::redirect;
use crate::response::respond::unknown_host;
use crate::response::response_body::ResponseBody;
use crate::response::routed_response::{
    RequestHead, ResponseOwner, Route, RoutedResponse, plain, refused,
};
use crate::tls::Tls;
use release::snapshot::{ContentEncoding, Snapshot};

/// The path prefix of ACME HTTP-01 challenges.
const CHALLENGE_PREFIX: &str = "/.well-known/acme-challenge/";

/// Returns the host whose challenge another replica may have opened, if the request asks for a challenge that this process does not have.
pub(crate) fn shared_challenge_host<'r>(
    request: &'r RequestHead<'_>,
    tls: &Tls,
) -> Option<&'r str> {
    let token = token(request.uri)?;
    if tls.certificates.challenge_text(token).is_some() {
        return None;
    }
    request.host().ok()
}

fn token(uri: &Uri) -> Option<&str> {
    uri.path().strip_prefix(CHALLENGE_PREFIX)
}

/// Redirects a request to HTTPS, or answers a challenge of a certificate authority. `is_claimed` returns whether a tenant claims a host. `shared` is the challenge of the requested host that another replica has opened.
pub(crate) fn to_https<'s>(
    (snapshot, is_claimed): (&'s Snapshot, &dyn Fn(&str) -> bool),
    request: &RequestHead<'_>,
    tls: &Tls,
    shared: Option<&SharedChallenge>,
) -> RoutedResponse<'s> {
    if let Some(token) = token(request.uri) {
        let own = tls.certificates.challenge_text(token);
        let shared = shared.filter(|shared| shared.token == token);
        let response = match (own, shared) {
            (Some(text), _) => challenge(&text),
            (None, Some(shared)) => challenge(&shared.text),
            (None, None) => plain(StatusCode::NOT_FOUND),
        };
        return routed(response, "/.well-known/acme-challenge");
    }
    let Ok(host) = request.host() else {
        return refused(StatusCode::BAD_REQUEST);
    };
    if !is_claimed(host) {
        return unknown_host(snapshot, request);
    }
    let target = request.uri.path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    // `*` (in OPTIONS) is not a path.
    let target = if target.starts_with('/') { target } else { "/" };
    let port = tls.port.map(|port| format!(":{port}")).unwrap_or_default();
    let location = format!("https://{host}{port}{target}");
    routed(redirect::from_bytes(location.into_bytes(), None), "")
}

fn routed<'s>(response: Response<ResponseBody>, path: &'static str) -> RoutedResponse<'s> {
    RoutedResponse {
        response: response.into(),
        owner: ResponseOwner::Host,
        route: Route {
            path,
            rest: "/*",
            ..Route::default()
        },
        encoding: ContentEncoding::Identity,
    }
}

fn challenge(text: &str) -> Response<ResponseBody> {
    let mut response = plain(StatusCode::OK);
    *response.body_mut() = Bytes::copy_from_slice(text.as_bytes()).into();
    let media_type = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
