//! How it stands with the certificate of every host that is served, for `/certificates`, `/tenants` and the metrics.
//!
//! **Invariant:** plain values; put together only when somebody asks.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::attempts::{FailureKind, OrderWait};
use super::config::Tls;
use crate::snapshot_store::SnapshotStore;

/// How it stands with a host's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateLine {
    /// The host.
    pub host: String,
    /// What visitors get.
    pub state: CertificateState,
    /// Where it comes from, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<CertificateSource>,
    /// Until when it is valid, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_after: Option<u64>,
    /// Whether an order is in flight.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub ordering: bool,
    /// Why an order that is due does not begin.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting: Option<OrderWait>,
    /// When the last order of this process began, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_try: Option<u64>,
    /// When the next one may begin, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_try: Option<u64>,
    /// Why the last one failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<CertificateProblem>,
}

/// What visitors of a host get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateState {
    /// A certificate that is valid now.
    Valid,
    /// One that is not valid any more, or not yet: a warning of their browser.
    Expired,
    /// None: an alert.
    Missing,
}

/// Where a certificate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateSource {
    /// A file of the operators.
    File,
    /// An authority.
    Authority,
}

/// Why there is no new certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateProblem {
    /// The kind.
    pub kind: FailureKind,
    /// The authority's words.
    pub detail: String,
}

/// One line a host, in order.
#[must_use]
pub fn overview(snapshots: &SnapshotStore, tls: &Tls) -> Vec<CertificateLine> {
    let snapshot = snapshots.current();
    let mut hosts: Vec<&str> = snapshot.hosts.keys().map(|host| &**host).collect();
    hosts.sort_unstable();
    hosts.into_iter().map(|host| line(host, tls)).collect()
}

/// How it stands with one host.
pub(crate) fn line(host: &str, tls: &Tls) -> CertificateLine {
    let now = SystemTime::now();
    let certificate = tls.certificates.find(host);
    let state = match &certificate {
        None => CertificateState::Missing,
        Some(one) if one.not_before <= now && now <= one.not_after => CertificateState::Valid,
        Some(_) => CertificateState::Expired,
    };
    let source = match tls.certificates.file(host) {
        Some(_) => CertificateSource::File,
        None => CertificateSource::Authority,
    };
    let attempts = tls.attempts.of(host);
    CertificateLine {
        host: host.to_owned(),
        state,
        source: certificate.as_ref().map(|_| source),
        not_after: certificate.map(|certificate| seconds(certificate.not_after)),
        ordering: attempts.is_under_way,
        waiting: attempts.order_wait,
        last_try: attempts.last.map(seconds),
        next_try: attempts.next.map(seconds),
        error: attempts
            .failure
            .map(|(kind, detail)| CertificateProblem { kind, detail }),
    }
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
