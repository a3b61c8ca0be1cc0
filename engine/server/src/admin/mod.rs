//! The admin listener: what operators and other programs ask. Never to be reachable from outside.
//!
//! | path | answer |
//! |---|---|
//! | `/livez` | 200 while the process runs |
//! | `/readyz` | 200 once every folder has been read, or has taken ten seconds, and addresses are assigned; 503 before that and while draining. Lists the tenants that are not live, and alarms |
//! | `/metrics` | counters in the OpenMetrics text format |
//! | `/tenants` | how every tenant is, as JSON |
//! | `/tenants/{id}/releases` | the releases of a tenant that are kept, as JSON |
//! | `/tenants/{id}/diff?from=&to=` | what changed between two of them, as JSON |
//! | `POST /tenants/{id}/rollback?release=` | serves one of them and stays with it |
//! | `POST /tenants/{id}/resume` | follows the tenant's folder again |
//! | `POST /tenants/{id}/read` | reads the tenant's folder again |
//! | `/events` | that something changed, as server-sent events |
//! | `/`, and whatever else there is | the pages of the [`Console`] |
//! | `/certificates` | how it stands with the certificate of every host, as JSON; 404 without `--https` |
//! | `/tls/ask?domain=` | 200 for a host that a tenant claims, else 404: what Caddy asks before it gets a certificate |
//!
//! It answers only to an IP address, to `localhost` and to the names of [`Admin::hosts`]; anything else gets 421. A web page of somebody else whose name suddenly leads here (DNS rebinding) thus learns nothing. A web page of another origin is refused by what its browser says of it. Commands need a header field that no web page can send ([`COMMAND`]) or, where there is one, the [`AdminToken`].
//! The router is axum's, with layers of tower-http for the time that an answer may take, for content, which nothing here takes, and for the fields that all answers have.
//! Accepting is own code: `axum::serve` has no limit for connections, no time for a request's header fields and none for a client that does not read. Here each connection has one request and a time, and the oldest makes room for the newest, so that clients that stall take neither descriptors nor the place of others.
//!
//! A degraded tenant does not make the process unready: its visitors get the last good state, and taking the other tenants away from theirs would help nobody.
//!
//! **Invariant:** changes nothing itself; what it shows is in the snapshot store and on the status board, and commands are passed on to the [`Control`].

pub mod console;
pub mod control;
mod guard;
mod pages;
mod releases;
pub mod status;
mod token;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use axum::extract::{Query, State as Shared};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;
use tower::ServiceBuilder;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;

use self::pages::Watched;
pub use self::pages::version;
use self::releases::Access;
pub use self::releases::COMMAND;
pub use self::token::AdminToken;
use super::listen;
use super::metrics::{Counters, MEDIA_TYPE, render};
use super::snapshot_store::SnapshotStore;
use super::tls::Tls;
use super::tls::overview::{CertificateLine, line, overview};
use crate::access_log::AccessLog;
use crate::admin::console::Console;
use crate::admin::control::Control;
use crate::admin::status::{State, StatusBoard, TenantStatus};
use crate::listen::error::ServeError;
use crate::metrics::history::STEP;

/// How long the reload loop may be without a heartbeat before `/readyz` says so.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// What the admin listener shows.
#[derive(Debug, Clone)]
pub struct Admin {
    /// Hosts and counters.
    pub snapshots: Arc<SnapshotStore>,
    /// The tenants.
    pub board: Arc<StatusBoard>,
    /// The access log, whose losses are counted.
    pub access_log: Option<AccessLog>,
    /// The names that the listener answers to, besides IP addresses and `localhost`, in lower case: what [`host_name`] makes of them.
    pub hosts: Vec<String>,
    /// Who lists, compares and changes what tenants serve; `None` where nothing is kept.
    pub control: Option<Arc<dyn Control>>,
    /// What commands have to come with; `None` where any program on this side may give them, and no browser.
    pub token: Option<AdminToken>,
    /// Who makes the pages for browsers; `None` where there are none.
    pub console: Option<Arc<dyn Console>>,
    /// What HTTPS is spoken with; `None` where a proxy does it.
    pub tls: Option<Arc<Tls>>,
}

/// Connections at once. Probes, scrapes and questions of a proxy need a few.
const CONNECTIONS: usize = 64;
/// Time for a request's header fields to arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for an answer to be ready.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for an answer about releases, which is read from disk; what is asked of the owner of the tenants waits for what it is doing.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(25);
/// Time for a request and its response together, to the last byte.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers on `listener` for as long as the future is polled; it has nothing to drain.
///
/// # Errors
/// When the socket cannot be waited on.
pub async fn run(listener: TcpListener, admin: Admin) -> Result<(), ServeError> {
    let listener = listen::nonblocking(listener)?;
    let snapshots = Arc::clone(&admin.snapshots);
    let service = TowerToHyperService::new(router(admin));
    tokio::select! {
        () = sample(&snapshots) => {}
        () = accept(&listener, service) => {}
    }
    Ok(())
}

/// Answers one connection beside the other.
async fn accept(listener: &tokio::net::TcpListener, service: TowerToHyperService<Router>) {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .half_close(true)
        .keep_alive(false);
    let mut open: VecDeque<AbortHandle> = VecDeque::with_capacity(CONNECTIONS);
    loop {
        let (socket, _) = listen::accept(listener).await;
        open.retain(|connection| !connection.is_finished());
        // A client that asks is answered at once; a connection that is still open after all others came only holds its place.
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let connection = server.serve_connection(TokioIo::new(socket), service.clone());
        let task = tokio::spawn(async {
            // A client that breaks off or stalls is no error of this side.
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
        });
        open.push_back(task.abort_handle());
        // Those who came before have their turn before the next one may push them out.
        tokio::task::yield_now().await;
    }
}

/// A host name of the admin listener, in the form in which requests are compared with it.
///
/// # Errors
/// When it is no host name, or has a port.
pub fn host_name(text: &str) -> Result<String, String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty()
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if name.split('.').all(is_label) {
        Ok(name)
    } else {
        Err("give a host name without scheme and port, as in `rowhouse.monitoring.svc`".to_owned())
    }
}

fn router(admin: Admin) -> Router {
    let hosts: Arc<[String]> = admin.hosts.clone().into();
    let layers = ServiceBuilder::new()
        .layer(fixed_field(CACHE_CONTROL, "no-store"))
        .layer(fixed_field(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(from_fn_with_state(hosts, guard::own_host))
        .layer(from_fn(guard::own_origin));
    let within = |time| TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, time);
    let access = Access {
        token: admin.token.clone(),
        console: admin.console.clone(),
    };
    let commands = releases::router(admin.control.clone(), access);
    let watched = Watched {
        board: Arc::clone(&admin.board),
        snapshots: Arc::clone(&admin.snapshots),
    };
    let pages = Router::new()
        .fallback(pages::page)
        .with_state(admin.console.clone())
        .layer(RequestBodyLimitLayer::new(0));
    Router::new()
        .route("/livez", get(|| async { "live\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/tenants", get(tenants))
        .route("/certificates", get(certificates))
        .route("/tls/ask", get(tls_ask))
        .layer(within(HANDLER_TIMEOUT))
        .route("/events", get(pages::events).with_state(watched))
        .layer(RequestBodyLimitLayer::new(0))
        .merge(commands.merge(pages).layer(within(CONTROL_TIMEOUT)))
        .layer(layers)
        .with_state(admin)
}

/// Takes a sample of all counters now and then, for as long as it is polled.
async fn sample(snapshots: &SnapshotStore) {
    let mut step = tokio::time::interval_at(tokio::time::Instant::now() + STEP, STEP);
    step.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        step.tick().await;
        let took = last.elapsed();
        last = Instant::now();
        snapshots.sample(took);
    }
}

fn fixed_field(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value))
}

async fn readyz(Shared(admin): Shared<Admin>) -> (StatusCode, String) {
    let status = admin.board.current();
    let (code, mut text) = if admin.board.is_ready() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned())
    };
    // Writing to a string does not fail.
    if let Some(alarm) = &status.alarm {
        let _ = writeln!(text, "alarm: {alarm}");
    }
    if admin.board.store().is_failing {
        text.push_str("alarm: a part of the state is not written, since the program itself failed; the log names it\n");
    }
    let silence = admin.board.silence();
    if silence > MAX_SILENCE {
        let seconds = silence.as_secs();
        let _ = writeln!(text, "alarm: no change has been taken for {seconds} s");
    }
    if status.polling {
        let _ = writeln!(
            text,
            "watch: polling, since the system gives no notifications"
        );
    }
    let pending = |tenant: &&TenantStatus| tenant.state == State::Pending;
    let count = status.tenants().filter(pending).count();
    if count > 0 {
        let _ = writeln!(text, "pending: {count} of {} tenants", status.tenants.len());
    }
    for tenant in status
        .tenants()
        .filter(|tenant| !matches!(tenant.state, State::Live | State::Pending))
    {
        let doing = if tenant.is_under_way {
            ", being rendered"
        } else {
            ""
        };
        let _ = writeln!(text, "{}: {}{doing}", tenant.id, tenant.state.name());
    }
    (code, text)
}

async fn metrics(Shared(admin): Shared<Admin>) -> impl IntoResponse {
    let tls = admin.tls.as_ref();
    let certificates = tls.map(|tls| overview(&admin.snapshots, tls));
    let counters = Counters {
        snapshots: admin.snapshots,
        board: admin.board,
        access_log: admin.access_log,
        certificates: certificates.unwrap_or_default(),
    };
    match render(counters) {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, MEDIA_TYPE)], text),
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
    /// What is being done for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<&'static str>,
    errors: Vec<String>,
    /// How it stands with the certificates of its hosts; nothing without HTTPS.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<CertificateLine>,
    /// The release that is served, whatever the folder says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<u64>,
}

async fn tenants(Shared(admin): Shared<Admin>) -> Json<Vec<TenantLine>> {
    let status = admin.board.current();
    let certificates = |tenant: &TenantStatus| match &admin.tls {
        // Prefixes of the domain are in the list, too.
        Some(tls) => {
            let hosts = tenant.hosts.iter().filter(|host| !host.contains('/'));
            hosts.map(|host| line(host, tls)).collect()
        }
        None => Vec::new(),
    };
    let lines = status.tenants().map(|tenant| TenantLine {
        id: tenant.id.to_string(),
        state: tenant.state,
        since: tenant
            .since
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        pages: tenant.pages,
        hosts: tenant.hosts.to_vec(),
        compiled_in_ms: u64::try_from(tenant.compiled_in.as_millis()).unwrap_or(u64::MAX),
        doing: tenant.is_under_way.then_some("being rendered"),
        errors: tenant.errors.clone(),
        certificates: certificates(tenant),
        pinned: tenant.pinned,
    });
    Json(lines.collect())
}

async fn certificates(Shared(admin): Shared<Admin>) -> Response {
    match &admin.tls {
        Some(tls) => Json(overview(&admin.snapshots, tls)).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[derive(Debug, Deserialize)]
struct TlsQuestion {
    domain: String,
}

async fn tls_ask(Shared(admin): Shared<Admin>, Query(question): Query<TlsQuestion>) -> StatusCode {
    let domain = question.domain.trim_end_matches('.').to_ascii_lowercase();
    if admin.snapshots.current().hosts.contains_key(&*domain) {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    }
}
