//! The admin listener, for operators and other programs. Visitors must never be able to reach the listener.
//!
//! | path | response |
//! |---|---|
//! | `/livez` | 200 while the process runs |
//! | `/readyz` | 200 once every folder has been read, or has taken ten seconds, and addresses are assigned; 503 before that and while draining. Lists alarms, the hosts without a valid certificate, and the tenants that are not live |
//! | `/metrics` | counters in the OpenMetrics text format |
//! | `/tenants` | the status of every tenant, as JSON |
//! | `/tenants/{id}/releases` | the persisted releases of a tenant, as JSON |
//! | `/tenants/{id}/diff?from=&to=` | the changes between two releases, as JSON |
//! | `/tenants/{id}/visits?days=` | the visits of a tenant by day, as JSON |
//! | `POST /tenants/{id}/rollback?release=` | makes a release current and pins it |
//! | `POST /tenants/{id}/resume` | unpins the tenant, so that its folder is served again |
//! | `POST /tenants/{id}/restore` | serves a removed tenant from its last valid folder |
//! | `POST /tenants/{id}/read` | reads the tenant's folder again |
//! | `/events` | server-sent events that say that the status or the charts changed |
//! | `/` and other paths | the pages of the [`Console`] |
//! | `/certificates` | the certificate state of every host, as JSON; 404 without `--https` |
//! | `POST /certificates/{host}/renew` | orders a new certificate for a host |
//! | `/tls/ask?domain=` | 200 for a host that a tenant claims, else 404: the endpoint that Caddy asks before it orders a certificate |
//!
//! Requests must name an IP address, `localhost` or one of [`Admin::hosts`]; other requests get 421. The check stops DNS rebinding, where the host name of a foreign web page resolves to this listener. Requests from web pages of another origin are refused by the fields that browsers send. Commands need a header field that no web page can send ([`COMMAND`]) or, if configured, the [`AdminToken`].
//! The router is axum's. Layers of tower-http limit the time of a response, refuse content, and set the fields that all responses have.
//! The listener accepts connections itself. `axum::serve` has no connection limit, no timeout for header fields and no timeout for a client that does not read. Here each connection serves one request within a time limit. At the connection limit the oldest connection is closed for a new one, so stalled clients cannot block other clients.
//!
//! A degraded tenant does not make the process unready. Its visitors get the last valid release, and an unready process would take the other tenants offline.
//!
//! [`conditions`] lists what needs an operator. [`alerts`] sends these conditions to a webhook.
//!
//! **Invariant:** changes nothing itself; shows the snapshot store and the status board, and passes commands to the [`Control`].

mod access;
pub mod alerts;
mod certificates;
pub mod conditions;
pub mod console;
pub mod control;
mod pages;
mod query_number;
mod refusal;
mod releases;
pub mod replicas;
pub mod status;
pub mod visits;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::State as Shared;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;
use tower::ServiceBuilder;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;

use self::access::guard;
pub use self::access::token::AdminToken;
use self::certificates::CertificateRoutes;
use self::pages::EventSources;
pub use self::pages::version;
pub use self::releases::COMMAND;
use self::releases::CommandAccess;
use self::visits::VisitSources;
use super::listen;
use super::metrics::{Counters, MEDIA_TYPE, render};
use super::snapshot_store::SnapshotStore;
use super::tls::Tls;
use super::tls::overview::{CertificateLine, CertificateState, line, overview};
use crate::access_log::AccessLog;
use crate::acme::RenewalRequests;
use crate::admin::conditions::{ConditionKind, server_conditions};
use crate::admin::console::Console;
use crate::admin::control::Control;
use crate::admin::status::{Availability, PreviewStatus, StatusBoard, TenantStatus};
use crate::listen::error::ServeError;
use crate::metrics::history::SAMPLE_INTERVAL;
use crate::metrics::process_memory::ProcessMemory;

/// The hosts without a valid certificate that `/readyz` names. Further hosts are counted.
const MAX_CERTIFICATE_LINES: usize = 20;

/// The state and settings of the admin listener.
#[derive(Debug, Clone)]
pub struct Admin {
    /// The snapshot store, for hosts and counters.
    pub snapshots: Arc<SnapshotStore>,
    /// The status of the tenants.
    pub board: Arc<StatusBoard>,
    /// The access log, whose losses are counted.
    pub access_log: Option<AccessLog>,
    /// The host names of the listener in lower case, as [`host_name`] returns them. IP addresses and `localhost` are always accepted.
    pub hosts: Vec<String>,
    /// The operations on releases; `None` without a supervisor.
    pub control: Option<Arc<dyn Control>>,
    /// The token of commands. With `None`, any program that reaches the listener may give commands, but no browser.
    pub token: Option<AdminToken>,
    /// The console's pages; `None` without a console.
    pub console: Option<Arc<dyn Console>>,
    /// The TLS configuration; `None` if a proxy terminates TLS.
    pub tls: Option<Arc<Tls>>,
    /// The sources of the memory figures of the process.
    pub memory: ProcessMemory,
    /// The way of operators' requests to the ACME client.
    pub renewals: Arc<RenewalRequests>,
}

/// Interval between counts of visits. Within it, the queue of visits has room for about 14,000 requests.
const VISITS_INTERVAL: Duration = Duration::from_secs(1);
/// Open connections. Probes, scrapes and a proxy's questions need a few.
const MAX_CONNECTIONS: usize = 64;
/// Timeout for a request's header fields.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for a response.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a response that the [`Control`] computes. Releases are read from disk, and the supervisor may be busy.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(25);
/// Timeout for a request and its response together, to the last byte.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves `listener` until the future is dropped. There is nothing to drain.
///
/// # Errors
/// When the socket cannot be registered with the event loop.
pub async fn run(listener: TcpListener, admin: Admin) -> Result<(), ServeError> {
    let listener = listen::nonblocking(listener)?;
    let snapshots = Arc::clone(&admin.snapshots);
    let service = TowerToHyperService::new(router(admin));
    tokio::select! {
        () = record_samples(&snapshots) => {}
        () = settle_visits(&snapshots) => {}
        () = accept(&listener, service) => {}
    }
    Ok(())
}

/// Accepts connections and serves them concurrently.
async fn accept(listener: &tokio::net::TcpListener, service: TowerToHyperService<Router>) {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .half_close(true)
        .keep_alive(false);
    let mut open: VecDeque<AbortHandle> = VecDeque::with_capacity(MAX_CONNECTIONS);
    loop {
        let (socket, _) = listen::accept(listener).await;
        open.retain(|connection| !connection.is_finished());
        // Requests are answered at once, so the oldest open connection is most likely stalled.
        if open.len() >= MAX_CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let connection = server.serve_connection(TokioIo::new(socket), service.clone());
        let task = tokio::spawn(async {
            // A client that aborts or stalls is not an error of the server.
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
        });
        open.push_back(task.abort_handle());
        // Lets the earlier connections run before the next one may close them.
        tokio::task::yield_now().await;
    }
}

/// Parses a host name of the admin listener into the form with which requests are compared.
///
/// # Errors
/// When `text` is not a host name, or has a port.
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
        Err("write a host name without scheme and port, as in `rowhouse.monitoring.svc`".to_owned())
    }
}

fn router(admin: Admin) -> Router {
    let hosts: Arc<[String]> = admin.hosts.clone().into();
    let layers = ServiceBuilder::new()
        .layer(fixed_field(CACHE_CONTROL, "no-store"))
        .layer(fixed_field(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(from_fn_with_state(hosts, guard::require_own_host))
        .layer(from_fn(guard::require_own_origin));
    let within = |time| TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, time);
    let access = CommandAccess {
        token: admin.token.clone(),
        console: admin.console.clone(),
    };
    let commands = releases::router(admin.control.clone(), access);
    let certificate_routes = CertificateRoutes {
        snapshots: Arc::clone(&admin.snapshots),
        tls: admin.tls.clone(),
        renewals: Arc::clone(&admin.renewals),
        token: admin.token.clone(),
    };
    let sources = EventSources {
        board: Arc::clone(&admin.board),
        snapshots: Arc::clone(&admin.snapshots),
    };
    let visit_sources = VisitSources {
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
        .merge(certificates::router(certificate_routes))
        .merge(visits::router(visit_sources))
        .layer(within(HANDLER_TIMEOUT))
        .route("/events", get(pages::events).with_state(sources))
        .layer(RequestBodyLimitLayer::new(0))
        .merge(commands.merge(pages).layer(within(CONTROL_TIMEOUT)))
        .layer(layers)
        .with_state(admin)
}

/// Samples all counters every [`SAMPLE_INTERVAL`] until the future is dropped.
async fn record_samples(snapshots: &SnapshotStore) {
    let mut step = tokio::time::interval_at(
        tokio::time::Instant::now() + SAMPLE_INTERVAL,
        SAMPLE_INTERVAL,
    );
    step.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        step.tick().await;
        let took = last.elapsed();
        last = Instant::now();
        snapshots.record_sample(took);
    }
}

/// Counts visits every [`VISITS_INTERVAL`] until the future is dropped.
async fn settle_visits(snapshots: &SnapshotStore) {
    let mut step = tokio::time::interval(VISITS_INTERVAL);
    step.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        step.tick().await;
        snapshots.settle_visits();
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
    // Writing to a `String` does not fail.
    for condition in server_conditions(&admin.board, admin.memory.read()) {
        // Polling has a line of its own.
        if condition.kind != ConditionKind::WatchPolling {
            let _ = writeln!(text, "alarm: {}", condition.message);
        }
    }
    if status.polling {
        let _ = writeln!(
            text,
            "watch: polling, since the system sends no notifications"
        );
    }
    if let Some(tls) = &admin.tls {
        write_certificates(&mut text, &overview(&admin.snapshots, tls));
    }
    let pending = |tenant: &&TenantStatus| tenant.state == Availability::Pending;
    let count = status.tenants().filter(pending).count();
    if count > 0 {
        let _ = writeln!(text, "pending: {count} of {} tenants", status.tenants.len());
    }
    for tenant in status
        .tenants()
        .filter(|tenant| !matches!(tenant.state, Availability::Live | Availability::Pending))
    {
        let doing = if tenant.is_in_flight {
            ", being rendered"
        } else {
            ""
        };
        let files = match &tenant.receiving[..] {
            [] => String::new(),
            files => format!(": {}", files.join(", ")),
        };
        let _ = writeln!(text, "{}: {}{doing}{files}", tenant.id, tenant.state.name());
    }
    for removed in status.recently_removed(SystemTime::now()) {
        let _ = writeln!(text, "{}: {}", removed.id, Availability::Removed.name());
    }
    (code, text)
}

/// Writes a line for each host without a valid certificate, up to [`MAX_CERTIFICATE_LINES`] of them.
fn write_certificates(text: &mut String, lines: &[CertificateLine]) {
    let now = SystemTime::now();
    let is_invalid = |line: &&CertificateLine| line.state != CertificateState::Valid;
    let invalid: Vec<&CertificateLine> = lines.iter().filter(is_invalid).collect();
    for line in invalid.iter().take(MAX_CERTIFICATE_LINES) {
        let state = line.state.name();
        let problem = line.problem(now);
        let problem = problem.map_or_else(String::new, |problem| format!(": {problem}"));
        let _ = writeln!(text, "certificate: {}: {state}{problem}", line.host);
    }
    if let Some(more @ 1..) = invalid.len().checked_sub(MAX_CERTIFICATE_LINES) {
        let _ = writeln!(text, "certificate: {more} more hosts");
    }
}

async fn metrics(Shared(admin): Shared<Admin>) -> impl IntoResponse {
    let tls = admin.tls.as_ref();
    let certificates = tls.map(|tls| overview(&admin.snapshots, tls));
    let counters = Counters {
        snapshots: admin.snapshots,
        board: admin.board,
        access_log: admin.access_log,
        certificates: certificates.unwrap_or_default(),
        memory: admin.memory.read(),
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
    state: Availability,
    /// Seconds since 1970.
    since: u64,
    pages: usize,
    hosts: Vec<String>,
    /// Duration of the last compilation.
    compiled_in_ms: u64,
    /// The job in flight for the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<&'static str>,
    errors: Vec<String>,
    /// The certificate state of the tenant's hosts; empty without HTTPS.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<CertificateLine>,
    /// The number of the pinned release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<u64>,
    /// The number of the pinned release that cannot be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable_pin: Option<u64>,
    /// The files whose upload has not ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    receiving: Vec<String>,
    /// The tenant that a preview shows, and its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<PreviewLine>,
}

#[derive(Debug, Serialize)]
struct PreviewLine {
    of: String,
    /// When the folder last changed, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<u64>,
    /// When the preview is no longer served, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<u64>,
}

impl PreviewLine {
    fn new(preview: &PreviewStatus) -> Self {
        Self {
            of: preview.tenant.clone(),
            changed: preview.changed.map(seconds_since_1970),
            ends: preview.ends.map(seconds_since_1970),
        }
    }
}

async fn tenants(Shared(admin): Shared<Admin>) -> Json<Vec<TenantLine>> {
    let status = admin.board.current();
    let certificates = |tenant: &TenantStatus| match &admin.tls {
        // The list also has prefixes of the domain.
        Some(tls) => {
            let hosts = tenant.hosts.iter().filter(|host| !host.contains('/'));
            hosts.map(|host| line(host, tls)).collect()
        }
        None => Vec::new(),
    };
    let lines = status.tenants().map(|tenant| TenantLine {
        id: tenant.id.to_string(),
        state: tenant.state,
        since: seconds_since_1970(tenant.since),
        pages: tenant.pages,
        hosts: tenant.hosts.to_vec(),
        compiled_in_ms: u64::try_from(tenant.compiled_in.as_millis()).unwrap_or(u64::MAX),
        doing: tenant.is_in_flight.then_some("being rendered"),
        errors: tenant.errors.clone(),
        certificates: certificates(tenant),
        pinned: tenant.pinned,
        unreadable_pin: tenant.unreadable_pin,
        receiving: tenant.receiving.clone(),
        preview: tenant.preview.as_ref().map(PreviewLine::new),
    });
    let removed = status.recently_removed(SystemTime::now());
    let removed = removed.map(|removed| TenantLine {
        id: removed.id.to_string(),
        state: Availability::Removed,
        since: seconds_since_1970(removed.at),
        pages: 0,
        hosts: Vec::new(),
        compiled_in_ms: 0,
        doing: None,
        errors: Vec::new(),
        certificates: Vec::new(),
        pinned: None,
        unreadable_pin: None,
        receiving: Vec::new(),
        preview: None,
    });
    Json(lines.chain(removed).collect())
}

fn seconds_since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
