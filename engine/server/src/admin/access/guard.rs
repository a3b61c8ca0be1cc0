//! Guards the admin listener against DNS rebinding and against web pages of other origins.
//!
//! Browsers declare where a request comes from: `Origin` (RFC 6454) with requests that may change state, `Sec-Fetch-Site` and `Sec-Fetch-Mode` (Fetch Metadata) with every request. Other programs send neither, and pass the guard. [`releases`](crate::admin::releases) decides which commands they may give.
//!
//! **Invariant:** reads only header fields.

use std::net::IpAddr;

use axum::extract::{Request, State as Shared};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, StatusCode};

use crate::request::host::{HostError, requested_host};

/// Passes only requests for a host of this listener: an IP address, `localhost` or one of the configured names. A request without any host passes too, since browsers always send one.
pub(in crate::admin) async fn require_own_host(
    Shared(hosts): Shared<std::sync::Arc<[String]>>,
    request: Request,
    next: Next,
) -> Response {
    let host = requested_host(request.uri(), request.headers(), request.version());
    let is_own = match host {
        Ok(host) => {
            host.is_empty()
                || host == "localhost"
                || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
                || hosts.iter().any(|own| *own == host)
        }
        Err(error) => error == HostError::Missing,
    };
    if is_own {
        return next.run(request).await;
    }
    let text = "421 Misdirected Request: the admin listener accepts IP addresses and `localhost` as its host; add other names with `--admin-host` (ROWHOUSE_ADMIN_HOSTS)\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

/// Refuses requests from web pages of another origin.
pub(in crate::admin) async fn require_own_origin(request: Request, next: Next) -> Response {
    if is_of_own_origin(request.method(), request.headers()) {
        return next.run(request).await;
    }
    let text =
        "403 Forbidden: the admin listener refuses requests from web pages of other origins\n";
    (StatusCode::FORBIDDEN, text).into_response()
}

fn is_of_own_origin(method: &Method, fields: &HeaderMap) -> bool {
    let field = |name: &str| fields.get(name).map(|value| value.to_str().unwrap_or(""));
    let own = field(HOST.as_str());
    if let Some(origin) = field(ORIGIN.as_str())
        && origin.split_once("://").map(|(_, host)| host) != own
    {
        return false;
    }
    match field("sec-fetch-site") {
        None | Some("same-origin" | "none") => true,
        // Another site may link here: the linking page cannot read the page that opens.
        Some(_) => {
            method == Method::GET
                && field("sec-fetch-mode") == Some("navigate")
                && field("sec-fetch-dest") == Some("document")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(method: &Method, fields: &[(&'static str, &'static str)]) -> bool {
        let mut all = HeaderMap::new();
        all.insert(HOST, "localhost:8081".parse().unwrap());
        for (name, value) in fields {
            all.insert(*name, value.parse().unwrap());
        }
        is_of_own_origin(method, &all)
    }

    #[test]
    fn requests_of_other_origins_are_refused_except_links() {
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        for (method, fields, expected) in [
            (Method::GET, &[][..], true),
            (Method::POST, &[], true),
            (Method::POST, &[("origin", "http://localhost:8081")], true),
            (Method::POST, &[("origin", "https://localhost:8081")], true),
            (Method::POST, &[("origin", "http://localhost:8080")], false),
            (Method::GET, &[("origin", "http://evil.example")], false),
            (Method::POST, &[("origin", "null")], false),
            (Method::GET, &[("sec-fetch-site", "same-origin")], true),
            (Method::GET, &[("sec-fetch-site", "none")], true),
            (Method::GET, &[("sec-fetch-site", "same-site")], false),
            (Method::GET, &[("sec-fetch-site", "cross-site")], false),
            (Method::GET, &link, true),
            (Method::POST, &link, false),
            (Method::GET, &link[..2], false),
        ] {
            assert_eq!(is_allowed(&method, fields), expected, "{fields:?}");
        }
    }
}
