//! What is in `deploy/`, tried as far as this machine can: units, manifests, rules and proxies against the real binary.
//!
//! A check that needs a program which is not there (`caddy`, `nginx`, `haproxy`, `pebble`, `promtool`, `systemd-analyze`, `kubectl` or `kustomize`) fails where `CI` is set. Elsewhere it prints one line that says so, and passes.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod caddy;
mod container;
mod dashboard;
mod http;
mod kubernetes;
mod metrics;
mod names;
mod pebble;
mod rolling;
mod rules;
mod static_files;
mod support;
mod systemd;
