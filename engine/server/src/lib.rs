//! Answers visitors' requests from the current snapshot in the [`SnapshotStore`](snapshot_store::SnapshotStore), and serves the admin listener.
//!
//! ```text
//! listen       sockets, acceptor, admission; starts and drains the workers
//!   │
//!   ▼
//! connection   worker (a thread, an event loop), stream, timeouts, PROXY protocol, events ◄── tls ◄── acme
//!   │ fast lane, hyper
//!   ▼
//! request      layers (access log, request id, traffic, URI length); host, path, negotiation, preconditions
//!   │
//!   ▼
//! response     look-up in the snapshot, redirects, response body ◄── snapshot_store
//!   │
//!   └─► access    credentials of protected tenants
//!
//! admin        (axum, tower-http) status, releases, console pages ◄── metrics
//! ```
//! [`run`] accepts connections and hands each to the worker with the fewest open connections. When all permits are taken, the connections that have been idle for longest are closed.
//!
//! Clients speak HTTP/1.1, or HTTP/2 if they begin with its preface (RFC 9113, section 3.3). With HTTPS configured, [`tls`] serves both protocols over TLS. Its certificates come from operators' files, or from [`acme`], which orders them for the hosts of the snapshot. Without HTTPS configured, a proxy terminates TLS.
//!
//! # From a request to its response
//! 1. The `fast_lane` parses a plain HTTP/1.1 request on the worker's thread. hyper reads all other requests.
//! 2. `request_service` takes the current snapshot and runs the layers and the look-up.
//! 3. [`respond`](response::respond::respond) looks the response up. The body is shared with the snapshot, not copied.
//!
//! The charts of the console cost a request nothing: [`history`](metrics::history) and [`tenant_history`](metrics::tenant_history) sample the traffic counters at intervals. Only requests for a page or for a missing page are recorded one by one ([`visits`](metrics::visits), [`not_found`](metrics::not_found)).
//!
//! # Own code in place of libraries
//! A request costs a few microseconds, so small overheads matter. `benches/against_peers` holds the budget.
//!
//! | instead of | own code | reason |
//! |---|---|---|
//! | hyper, for plain HTTP/1.1 requests | `fast_lane` | hyper copies all header fields into a map, and a response from its map: half of the work of a request |
//! | hyper, for HTTP/2 | `http2` | hyper starts a task for each request; `http2` uses the same library, `h2`, and needs a task only for a response that must wait |
//! | layers of tower and tower-http | `layers` | tower passes a response by value from layer to layer; tower-http passes the request id in the extensions of request and response: two hash tables to allocate per request |
//! | `TowerToHyperService` | `request_service` | clones its service and moves the request once more, for each request |
//! | `hyper_util::server::conn::auto` | `http2::preface` | its HTTP/1 settings lack `max_header_size`, which `--max-header-size` sets |
//! | `GracefulShutdown` of hyper-util | `worker` | checks a shared channel at each poll of a connection; the worker checks a `Cell`. The trait `GracefulConnection` is used |
//! | a tokio timer per request | `connection_state` | needs a clock reading and a timer for each timeout; here the connection counts its steps, and the worker checks the counts twice a second |
//! | one event loop for all threads | `worker` | needs locks and wake-ups between threads |
//! | `axum::serve` for the admin listener | `admin` accepts connections | has no connection limit and no timeout for header fields |
//!
//! # Invariants
//! This crate does not know
//! * YAML, Markdown, Tera, React, tenants' folders or the origin of the bytes: it sees only a [`Snapshot`](release::snapshot::Snapshot);
//! * the command line: [`ServeSettings`](settings::ServeSettings) are plain values;
//! * OpenTelemetry: a caller that wants spans implements [`RequestSpans`](access_log::spans::RequestSpans).
//!
//! A request takes no lock, opens no file and builds no body. Text that a client invents never becomes a log field, a metric series or lasting state. The exceptions are a bounded number of [`not_found`](metrics::not_found) paths, and of hosts that linked to a page ([`visits`](metrics::visits)).

pub mod access;
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
