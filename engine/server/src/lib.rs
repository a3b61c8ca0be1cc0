//! Answers requests from the snapshot that is current in the [`SnapshotStore`](snapshot_store::SnapshotStore).
//!
//! ```text
//! listen       sockets, acceptor, admission; starts and drains the workers
//!   │
//!   ▼
//! connection   worker (a thread, an event loop), stream, timeouts, PROXY protocol, events ◄── tls ◄── acme
//!   │ hyper
//!   ▼
//! request      layers (access log, request id, traffic, URI length); host, path, negotiation, preconditions
//!   │
//!   ▼
//! response     look-up in the snapshot, redirects, the body on its way out ◄── snapshot_store
//!
//! admin        (axum, tower-http) status, releases, console pages ◄── metrics
//! ```
//! [`run`] accepts connections and hands each to the worker with the fewest. When all permits are taken, the connections that have been idle for longest make room. It speaks HTTP/1.1, and HTTP/2 to clients that begin with it (RFC 9113, section 3.3). [`tls`] speaks the same over TLS, where the settings have it, with certificates of operators and those that [`acme`] gets for the hosts of the snapshot; else a proxy does.
//!
//! A request: hyper reads its header fields on the worker's thread; `request_service` takes the current snapshot and passes both through the layers to [`respond`](response::respond::respond), which looks the answer up; its bytes are those of the snapshot. What the console shows of requests costs them nothing: [`history`](metrics::history) and [`tenant_history`](metrics::tenant_history) read the counters now and then. Only what a tenant has no page for is noted ([`not_found`](metrics::not_found)).
//!
//! # What is own code, and what that saves
//! A request costs some microseconds, so that small things are a part of it; `benches/against_nginx.rs` holds the budget.
//!
//! | instead of | own | since |
//! |---|---|---|
//! | the layers of tower-http | `layers`, on tower's traits | theirs pass a request id on in the extensions of request and response: two tables to allocate |
//! | `TowerToHyperService` | `request_service` | it copies its service and moves the request once more, each time |
//! | `hyper_util::server::conn::auto` | `protocol` | its HTTP/1 settings have no `max_header_size`, which is `--max-header-size` |
//! | `GracefulShutdown` of hyper-util | `worker` | it looks at a shared channel whenever a connection is polled; here that is a cell. Its trait `GracefulConnection` is used |
//! | a timer of tokio for each request | `connection_state` | a clock and a timer for each of a request's timeouts; here steps are counted, and looked at twice a second |
//! | one event loop for all threads | `worker` | the locks and wake-ups between its threads |
//! | `axum::serve`, for operators | `admin` accepts itself | it has no limit for connections and no time for a request's header fields |
//!
//! # Invariants
//! It does not know
//! * YAML, Markdown, Tera, React, tenants' folders and where bytes came from: it sees only a [`Snapshot`](release::snapshot::Snapshot);
//! * the command line: [`ServeSettings`](settings::ServeSettings) are plain values;
//! * OpenTelemetry: who wants spans brings [`RequestSpans`](access_log::spans::RequestSpans).
//!
//! A request takes no lock, opens no file and builds no body. Nothing that a client makes up becomes a log field, a metric series or state of its own, but for a bounded number of paths that are [`not_found`](metrics::not_found).

pub mod access_log;
pub mod acme;
pub mod admin;
pub mod connection;
pub mod listen;
pub mod metrics;
mod request;
pub mod response;
#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;
pub mod settings;
pub mod snapshot_store;
pub mod tls;

pub use listen::error::ServeError;
pub use listen::serve::run;
