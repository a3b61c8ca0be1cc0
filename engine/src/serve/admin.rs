//! The admin listener: what operators and other programs ask. Never to be reachable from outside.
//!
//! | path | answer |
//! |---|---|
//! | `/livez` | 200 while the process runs |
//! | `/readyz` | 200 once every tenant has been tried, 503 before that and while draining; lists the tenants that are not live, and says where the folders could not be read |
//! | `/metrics` | counters in the OpenMetrics text format |
//! | `/tenants` | how every tenant is, as JSON |
//! | `/tls/ask?domain=` | 200 for a host that a tenant claims, else 404: what Caddy asks before it gets a certificate |
//!
//! A degraded tenant does not make the process unready: its visitors get the last good state, and taking the other tenants away from theirs would help nobody.
//!
//! **Invariant:** changes nothing; what it shows is on the shelf and on the board.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::extract::{Query, State as Shared};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};

use super::ServeError;
use super::access::AccessLog;
use super::metrics;
use super::shelf::Shelf;
use super::status::{State, StatusBoard};

/// What the admin listener shows.
#[derive(Debug, Clone)]
pub struct Admin {
    /// Hosts and counters.
    pub shelf: Arc<Shelf>,
    /// The tenants.
    pub board: Arc<StatusBoard>,
    /// The access log, whose losses are counted.
    pub access_log: Option<AccessLog>,
}

/// Answers on `listener` for as long as the future is polled; it has nothing to drain.
///
/// # Errors
/// When the socket cannot be waited on.
pub async fn run(listener: TcpListener, admin: Admin) -> Result<(), ServeError> {
    listener.set_nonblocking(true).map_err(ServeError::Listen)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(ServeError::Listen)?;
    axum::serve(listener, router(admin))
        .await
        .map_err(ServeError::Listen)
}

fn router(admin: Admin) -> Router {
    Router::new()
        .route("/livez", get(|| async { "live\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render_metrics))
        .route("/tenants", get(tenants))
        .route("/tls/ask", get(tls_ask))
        .with_state(admin)
}

async fn readyz(Shared(admin): Shared<Admin>) -> (StatusCode, String) {
    let status = admin.board.current();
    let (code, mut text) = if status.ready {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned())
    };
    // Writing to a string does not fail.
    if let Some(alarm) = &status.alarm {
        let _ = writeln!(text, "alarm: {alarm}");
    }
    if status.polling {
        let _ = writeln!(
            text,
            "watch: polling, since the system gives no notifications"
        );
    }
    for tenant in status
        .tenants
        .iter()
        .filter(|tenant| tenant.state != State::Live)
    {
        let _ = writeln!(text, "{}: {}", tenant.id, tenant.state.name());
    }
    (code, text)
}

async fn render_metrics(Shared(admin): Shared<Admin>) -> impl IntoResponse {
    match metrics::render(&admin) {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, metrics::MEDIA_TYPE)], text),
        Err(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(CONTENT_TYPE, "text/plain")],
            String::new(),
        ),
    }
}

#[derive(Debug, Serialize)]
struct TenantLine {
    id: String,
    state: State,
    /// Seconds since 1970.
    since: u64,
    pages: usize,
    hosts: Vec<String>,
    /// How long its last compilation took.
    compiled_in_ms: u64,
    mistakes: Vec<String>,
}

async fn tenants(Shared(admin): Shared<Admin>) -> Json<Vec<TenantLine>> {
    let status = admin.board.current();
    let lines = status.tenants.iter().map(|tenant| TenantLine {
        id: tenant.id.to_string(),
        state: tenant.state,
        since: tenant
            .since
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        pages: tenant.pages,
        hosts: tenant.hosts.clone(),
        compiled_in_ms: u64::try_from(tenant.compiled_in.as_millis()).unwrap_or(u64::MAX),
        mistakes: tenant.mistakes.clone(),
    });
    Json(lines.collect())
}

#[derive(Debug, Deserialize)]
struct Ask {
    domain: String,
}

async fn tls_ask(Shared(admin): Shared<Admin>, Query(ask): Query<Ask>) -> StatusCode {
    let domain = ask.domain.trim_end_matches('.').to_ascii_lowercase();
    if admin.shelf.current().hosts.contains_key(&*domain) {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    }
}
