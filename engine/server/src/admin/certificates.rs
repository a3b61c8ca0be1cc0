//! The routes for certificates: list, renew, and the question of a proxy before it orders a certificate.
//!
//! **Invariant:** orders nothing; the ACME client does.

use std::sync::Arc;

use axum::extract::{Path, Request, State as Shared};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;

use super::access::token::AdminToken;
use super::query_number::Parameters;
use super::refusal::refusal;
use super::releases::check_permission;
use crate::acme::{RenewalRefusal, RenewalRequests};
use crate::snapshot_store::SnapshotStore;
use crate::tls::Tls;
use crate::tls::overview::{line, overview};

/// The sources of the responses, and the token of commands.
#[derive(Debug, Clone)]
pub(super) struct CertificateRoutes {
    pub(super) snapshots: Arc<SnapshotStore>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) renewals: Arc<RenewalRequests>,
    pub(super) token: Option<AdminToken>,
}

/// Builds the routes. The router has its state, so it can be merged with any other.
pub(super) fn router<S: Clone + Send + Sync + 'static>(routes: CertificateRoutes) -> Router<S> {
    Router::new()
        .route("/certificates", get(list))
        .route("/certificates/{host}/renew", post(renew))
        .route("/tls/ask", get(ask))
        .with_state(routes)
}

/// Lists the certificate state of every host.
async fn list(Shared(routes): Shared<CertificateRoutes>) -> Response {
    match &routes.tls {
        Some(tls) => Json(overview(&routes.snapshots, tls)).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Orders a new certificate for a host, and returns the state of the host once the order has begun or waits for the CA.
async fn renew(
    Shared(routes): Shared<CertificateRoutes>,
    Path(host): Path<String>,
    request: Request,
) -> Response {
    if let Err(refused) = check_permission(routes.token.as_ref(), request).await {
        return refused;
    }
    let host = normal_form(&host);
    let Some(tls) = &routes.tls else {
        let text = "HTTPS is off: the server was started without `--https`";
        return refusal(StatusCode::CONFLICT, text.to_owned());
    };
    match routes.renewals.send(&host).await {
        Ok(()) => Json(line(&host, tls)).into_response(),
        Err(error) => {
            let status = match error {
                RenewalRefusal::UnknownHost(_) => StatusCode::NOT_FOUND,
                RenewalRefusal::Limited { .. } => StatusCode::TOO_MANY_REQUESTS,
                RenewalRefusal::NoClient
                | RenewalRefusal::FromFile(_)
                | RenewalRefusal::NotOrderable(_) => StatusCode::CONFLICT,
            };
            refusal(status, error.to_string())
        }
    }
}

/// Answers whether a tenant claims a host.
async fn ask(Shared(routes): Shared<CertificateRoutes>, parameters: Parameters) -> Response {
    let Some(domain) = parameters.get("domain") else {
        let message = "the host is missing: write `/tls/ask?domain=HOST`";
        return refusal(StatusCode::BAD_REQUEST, message.to_owned());
    };
    let domain = normal_form(domain);
    let status = match routes.snapshots.current().hosts.contains_key(&*domain) {
        true => StatusCode::OK,
        false => StatusCode::NOT_FOUND,
    };
    status.into_response()
}

/// Returns a host as the snapshot names it.
fn normal_form(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}
