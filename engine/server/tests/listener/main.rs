//! Tests of the listeners from the clients' side: a real server on a free local port.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_used
)]

#[path = "../support/admin_listener.rs"]
mod admin_listener;
#[path = "../support/sample.rs"]
mod sample;
#[path = "../support/wire.rs"]
mod wire;

mod admin;
mod connections;
mod protocols;
mod requests;
