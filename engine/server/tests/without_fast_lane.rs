//! Runs the HTTP/1.1 tests with all requests at hyper. The other tests run them in the fast lane.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_used
)]

#[path = "support/sample.rs"]
mod sample;
#[path = "support/wire.rs"]
mod wire;

#[path = "listener/protocols/http1.rs"]
mod http1;
#[path = "listener/connections/limits.rs"]
mod limits;
#[path = "listener/requests/log_and_traces.rs"]
mod log_and_traces;
#[path = "listener/requests/negotiation.rs"]
mod negotiation;
#[path = "listener/connections/reuse_and_timeouts.rs"]
mod reuse_and_timeouts;
