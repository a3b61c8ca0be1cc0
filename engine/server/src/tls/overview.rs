//! The certificate state of every host in the snapshot, for `/certificates`, `/tenants` and the metrics.
//!
//! **Invariant:** plain values, computed only on request.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::config::Tls;
use super::order_status::{FailureKind, OrderWait};
use crate::snapshot_store::SnapshotStore;
use release::snapshot::{HostEntry, HostKind};

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
    /// The names in a certificate file, which may cover many hosts. Empty for other certificates.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub file_names: Vec<Box<str>>,
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

impl CertificateState {
    /// Returns the name in `/readyz` and in the list of certificates.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Expired => "expired",
            Self::Missing => "missing",
        }
    }
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

impl CertificateLine {
    /// Returns the order in flight, the cause of a wait, and the failure of the last order, in words without control characters; `None` if there is none of them.
    #[must_use]
    pub fn problem(&self, now: SystemTime) -> Option<String> {
        let mut parts = Vec::new();
        if self.ordering {
            parts.push("being ordered".to_owned());
        }
        match self.waiting {
            Some(OrderWait::Share) => {
                parts.push("waiting: the site has used its share of orders".to_owned());
            }
            Some(OrderWait::Total) => {
                parts.push("waiting: all orders of the CA are used".to_owned());
            }
            None => {}
        }
        if let Some(error) = &self.error {
            let detail = error.detail.chars();
            let detail: String = detail.filter(|one| !one.is_control()).collect();
            parts.push(format!("{}: {detail}", error.kind.name()));
            if let Some(next) = self.next_try.filter(|_| !self.ordering) {
                parts.push(match seconds_until(next, now) {
                    left @ 1.. => format!("next try {}", relative_time(left)),
                    // The server tries again as soon as an order is free.
                    _ => "next try is due".to_owned(),
                });
            }
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns when the certificate expires, in words; `None` without a certificate.
    #[must_use]
    pub fn expiry(&self, now: SystemTime) -> Option<String> {
        let left = seconds_until(self.not_after?, now);
        let verb = if left < 0 { "expired" } else { "expires" };
        Some(format!("{verb} {}", relative_time(left)))
    }
}

/// Returns the seconds from `now` until `at`, in seconds since 1970; negative for a time in the past.
fn seconds_until(at: u64, now: SystemTime) -> i64 {
    let at = i64::try_from(at).unwrap_or(i64::MAX);
    at.saturating_sub(i64::try_from(seconds(now)).unwrap_or(i64::MAX))
}

/// Returns a time relative to now, such as `in 12 s`, `in 10 min` or `2 h ago`.
fn relative_time(seconds: i64) -> String {
    let (length, unit) = match seconds.unsigned_abs() {
        length @ 0..120 => (length, "s"),
        length @ 120..7_200 => (length / 60, "min"),
        length @ 7_200..172_800 => (length / 3_600, "h"),
        length => (length / 86_400, "days"),
    };
    match seconds {
        0.. => format!("in {length} {unit}"),
        _ => format!("{length} {unit} ago"),
    }
}

/// Returns the certificate state of every host, ordered by host. A preview without a certificate is left out unless one is ordered.
#[must_use]
pub fn overview(snapshots: &SnapshotStore, tls: &Tls) -> Vec<CertificateLine> {
    let snapshot = snapshots.current();
    let mut hosts: Vec<(&str, &HostEntry)> = snapshot
        .hosts
        .iter()
        .map(|(host, entry)| (&**host, entry))
        .collect();
    hosts.sort_unstable_by_key(|(host, _)| *host);
    let lines = hosts
        .into_iter()
        .map(|(host, entry)| (line(host, tls), entry));
    lines
        .filter(|(line, entry)| !is_unordered_preview(line, entry))
        .map(|(line, _)| line)
        .collect()
}

/// Returns whether a host is the host of a preview that gets no certificate.
fn is_unordered_preview(line: &CertificateLine, entry: &HostEntry) -> bool {
    let is_preview = matches!(entry, HostEntry::Site(routes) if routes.kind != HostKind::Tenants);
    is_preview
        && line.state == CertificateState::Missing
        && !line.ordering
        && line.waiting.is_none()
        && line.last_try.is_none()
        && line.error.is_none()
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
    let file = tls.certificates.find_file(host);
    let source = match file {
        Some(_) => CertificateSource::File,
        None => CertificateSource::Authority,
    };
    let attempts = tls.attempts.get(host);
    CertificateLine {
        host: host.to_owned(),
        state,
        source: certificate.as_ref().map(|_| source),
        file_names: file.map_or_else(Vec::new, |file| file.names.clone()),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: u64 = 1_000_000;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn failed(next_try: u64) -> CertificateLine {
        CertificateLine {
            host: "own.example".to_owned(),
            state: CertificateState::Missing,
            source: None,
            file_names: Vec::new(),
            not_after: None,
            ordering: false,
            waiting: None,
            last_try: Some(NOW - 600),
            next_try: Some(next_try),
            error: Some(CertificateProblem {
                kind: FailureKind::Dns,
                detail: "no\u{1b} address".to_owned(),
            }),
        }
    }

    #[test]
    fn next_try_is_in_the_future_or_due() {
        let said = |next| failed(next).problem(at(NOW)).unwrap();
        assert_eq!(said(NOW + 12), "dns: no address, next try in 12 s");
        assert_eq!(said(NOW + 600), "dns: no address, next try in 10 min");
        assert_eq!(said(NOW), "dns: no address, next try is due");
        assert_eq!(said(NOW - 12), "dns: no address, next try is due");
        let ordering = CertificateLine {
            ordering: true,
            ..failed(NOW + 12)
        };
        assert_eq!(
            ordering.problem(at(NOW)).unwrap(),
            "being ordered, dns: no address"
        );
    }

    #[test]
    fn expiry_is_in_words() {
        let line = |not_after| CertificateLine {
            not_after,
            error: None,
            ..failed(NOW)
        };
        let said = |not_after| line(Some(not_after)).expiry(at(NOW)).unwrap();
        assert_eq!(said(NOW + 90 * 86_400), "expires in 90 days");
        assert_eq!(said(NOW - 7_200), "expired 2 h ago");
        assert_eq!(line(None).expiry(at(NOW)), None);
        assert_eq!(line(None).problem(at(NOW)), None);
    }
}
