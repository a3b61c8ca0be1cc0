//! Tests of `deploy/` with the real binary, as far as this machine can run them: units, manifests, rules and proxies.
//!
//! Some tests need other programs (`caddy`, `certutil`, `nginx`, `haproxy`, `openssl`, `pebble`, `promtool`, `systemd-analyze`, `kubectl` or `kustomize`, `kubernetes-validate`, a `node` with OpenSSL 3.5). Without the program, a test fails if `CI` is set. Otherwise it prints one line and passes.

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
