//! Runs the HTTP/2 tests, with the same limits, over TLS.
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

#[path = "listener/protocols/http2.rs"]
mod http2;
#[path = "listener/protocols/http2_frames.rs"]
mod http2_frames;
