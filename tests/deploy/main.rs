//! What is in `deploy/`, tried as far as this machine can: units, manifests, rules and proxies against the real binary.
//!
//! A check that needs a program which is not there (`caddy`, `certutil`, `nginx`, `haproxy`, `openssl`, `pebble`, `promtool`, `systemd-analyze`, `kubectl` or `kustomize`, `kubernetes-validate`, a `node` with OpenSSL 3.5) fails where `CI` is set. Elsewhere it prints one line that says so, and passes.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod acme_proxy;
mod archive;
mod authority;
mod browser;
mod caddy;
mod certificate_files;
mod certificate_folder;
mod challenges;
mod container;
mod dashboard;
mod http;
mod kubernetes;
mod load_balancer;
mod metrics;
mod names;
mod observatory;
mod openssl;
mod pebble;
mod renewal;
mod rolling;
mod rules;
mod static_files;
mod strange_authority;
mod support;
mod systemd;
mod tls;
