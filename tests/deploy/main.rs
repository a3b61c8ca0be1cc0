//! Tests of `deploy/` with the real binary, as far as this machine can run them: units, manifests, rules and proxies.
//!
//! Some tests need other programs (`caddy`, `certutil`, `nginx`, `haproxy`, `openssl`, `pebble`, `promtool`, `systemd-analyze`, `kubectl` or `kustomize`, `kubernetes-validate`, `rclone`, `weed` (SeaweedFS), a `node` with OpenSSL 3.5). Without the program, a test fails if `CI` is set. Otherwise it prints one line and passes.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod certificates;
mod fleet;
mod http;
mod https;
mod monitoring;
mod packaging;
mod proxies;
mod support;
mod takeover;
mod tls;
