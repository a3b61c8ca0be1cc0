//! The certificate state of every host in the snapshot, for `/certificates`, `/tenants` and the metrics.
//!
//! **Invariant:** plain values, computed only on request.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::attempts::{FailureKind, OrderWait};
use super::config::Tls;
use crate::snapshot_store::SnapshotStore;

/// The certificate state of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateLine {
    /// The host.
    pub host: String,
    /// The state that visitors see.
    pub state: CertificateState,
    /// The source of the certificate, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<CertificateSource>,
    /// End of the validity, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_after: Option<u64>,
    /// Whether an order is in flight.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub ordering: bool,
    /// Why an order that is due has not begun.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting: Option<OrderWait>,
    /// When this process last began an order for the host, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_try: Option<u64>,
    /// When the next order may begin, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_try: Option<u64>,
    /// Why the last order failed, if it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<CertificateProblem>,
}

/// The certificate state that visitors of a host see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateState {
    /// The certificate is valid.
    Valid,
    /// The certificate has expired, or is not valid yet. Browsers show a warning.
    Expired,
    /// There is no certificate. Handshakes end with an alert.
    Missing,
}

/// The source of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateSource {
    /// A file of the operators.
    File,
    /// A CA.
    Authority,
}

/// Why the last order failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateProblem {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The CA's message.
    pub detail: String,
}

/// Returns the certificate state of every host, ordered by host.
#[must_use]
pub fn overview(snapshots: &SnapshotStore, tls: &Tls) -> Vec<CertificateLine> {
    let snapshot = snapshots.current();
    let mut hosts: Vec<&str> = snapshot.hosts.keys().map(|host| &**host).collect();
    hosts.sort_unstable();
    hosts.into_iter().map(|host| line(host, tls)).collect()
}

/// Returns the certificate state of a host.
pub(crate) fn line(host: &str, tls: &Tls) -> CertificateLine {
    let now = SystemTime::now();
    let certificate = tls.certificates.find(host);
    let state = match &certificate {
        None => CertificateState::Missing,
        Some(one) if one.not_before <= now && now <= one.not_after => CertificateState::Valid,
        Some(_) => CertificateState::Expired,
    };
    let source = match tls.certificates.find_file(host) {
        Some(_) => CertificateSource::File,
        None => CertificateSource::Authority,
    };
    let attempts = tls.attempts.get(host);
    CertificateLine {
        host: host.to_owned(),
        state,
        source: certificate.as_ref().map(|_| source),
        not_after: certificate.map(|certificate| seconds(certificate.not_after)),
        ordering: attempts.is_in_flight,
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
