//! `rowhouse check --live`: diagnostics of the certificates of a running server.
//!
//! **Invariant:** only reads from the server, and changes nothing. Control characters in its responses do not reach the output.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use serde::Deserialize;

use crate::commands::operations::admin_client::{ask, no_server};
use crate::commands::operations::certificates::fetch;
use crate::commands::output::print_message;
use content::report::{Code, Diagnostic};
use server::tls::order_status::{FailureKind, OrderWait};
use server::tls::overview::{CertificateLine, CertificateSource, CertificateState};

/// The timeout of each step of a request to the admin listener.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// A tenant in the response of `/tenants`.
#[derive(Debug, Deserialize)]
struct ServedTenant {
    id: String,
    hosts: Vec<String>,
}

/// Returns the diagnostics of the certificates of all hosts. The file of each is the folder of the tenant that has the host.
///
/// # Errors
/// Fails if no server responds at `admin`, or the response is not from this version of rowhouse.
pub(crate) fn diagnostics(admin: SocketAddr, tenants: &Path) -> anyhow::Result<Vec<Diagnostic>> {
    let Some(lines) = fetch(admin)? else {
        print_message("note: HTTPS is off on the running server, so no certificate is checked");
        return Ok(Vec::new());
    };
    let response = ask(admin, "GET", "/tenants", "", STEP_TIMEOUT)
        .map_err(|error| anyhow!(no_server(admin, &error, "rowhouse serve")))?;
    ensure!(
        response.status == 200,
        "the server responds with status {}",
        response.status
    );
    let served: Vec<ServedTenant> = serde_json::from_str(&response.text)
        .context("the response is not from this version of rowhouse")?;
    let folder = |host: &str| {
        let mut owners = served.iter();
        let owner = owners.find(|tenant| tenant.hosts.iter().any(|one| one == host));
        // `www.` of the domain has no owner: it redirects to the root tenant.
        let folder = owner.map_or_else(|| tenants.to_owned(), |owner| tenants.join(&owner.id));
        folder.display().to_string()
    };
    Ok(lines
        .iter()
        .filter_map(|line| diagnostic(line, folder(&line.host)))
        .collect())
}

/// Returns the diagnostic of one host; `None` if its certificate is valid and the last order did not fail.
fn diagnostic(line: &CertificateLine, folder: String) -> Option<Diagnostic> {
    let host = &line.host;
    let is_valid = line.state == CertificateState::Valid;
    let message = match line.state {
        CertificateState::Valid => format!("the certificate of `{host}` cannot be renewed"),
        CertificateState::Expired => format!("the certificate of `{host}` is not valid now"),
        CertificateState::Missing => format!("`{host}` has no certificate"),
    };
    let Some(error) = &line.error else {
        if is_valid {
            return None;
        }
        // An order in flight is not an error yet.
        if line.ordering {
            let hint = "check again in a minute; the certificate is being ordered";
            return Some(Diagnostic::warning(Code::Certificate, folder, message).hint(hint));
        }
        if let Some(wait) = line.waiting {
            let found = Diagnostic::warning(Code::Certificate, folder, message);
            return Some(found.hint(waiting_hint(wait)));
        }
        let hint = match line.source {
            Some(CertificateSource::File) => {
                "replace the file of `--certificate` with a new certificate"
            }
            _ => {
                "add a certificate for this host with `--certificate`, or order one with `--acme-contact`"
            }
        };
        return Some(Diagnostic::error(Code::Certificate, folder, message).hint(hint));
    };
    let message = match error.kind {
        FailureKind::Storage => format!(
            "the certificate of `{host}` cannot be stored: {}",
            error.detail
        ),
        kind => format!("{message}: {}: {}", kind.name(), error.detail),
    };
    let found = match is_valid {
        true => Diagnostic::warning(Code::Certificate, folder, message),
        false => Diagnostic::error(Code::Certificate, folder, message),
    };
    Some(found.hint(hint(error.kind)))
}

/// Returns the hint for a host that waits for an order.
const fn waiting_hint(wait: OrderWait) -> &'static str {
    match wait {
        OrderWait::Share => {
            "wait until the tenant's share has a free order, or use your own certificate for all names of the domain"
        }
        OrderWait::Total => {
            "wait until the CA allows another order, or use your own certificate for all names of the domain"
        }
    }
}

/// Returns the hint for a failed order.
const fn hint(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Dns => "add an address record for the name to its DNS zone",
        FailureKind::Elsewhere => {
            "change the DNS record of the name, which points at another machine"
        }
        FailureKind::Unreachable => "open ports 80 and 443 to the internet",
        FailureKind::RateLimited => "wait, or use your own certificate for all names of the domain",
        FailureKind::Refused => "ask the CA for the reason, or use another CA (`--acme-directory`)",
        FailureKind::Authority => "wait; the order is repeated automatically",
        FailureKind::Account => "check `--acme-contact`, `--acme-eab-kid` and `--acme-eab-key`",
        FailureKind::Program => "report this bug in rowhouse, with the log",
        FailureKind::Storage => {
            "check the disk; after a restart, an unsaved certificate is ordered again"
        }
    }
}

#[cfg(test)]
mod tests {
    use content::report::Severity;
    use server::tls::overview::CertificateProblem;

    use super::*;

    fn line(state: CertificateState, kind: Option<FailureKind>) -> CertificateLine {
        CertificateLine {
            host: "own.example".to_owned(),
            state,
            file_names: Vec::new(),
            source: None,
            not_after: None,
            ordering: false,
            waiting: None,
            last_try: None,
            next_try: None,
            error: kind.map(|kind| CertificateProblem {
                kind,
                detail: "no\u{1b} address".to_owned(),
            }),
        }
    }

    fn reported(line: &CertificateLine) -> Option<(Severity, String)> {
        let found = diagnostic(line, "tenants/own".to_owned())?;
        assert_eq!(
            (found.code, &*found.file),
            (Code::Certificate, "tenants/own")
        );
        assert!(found.hint.is_some());
        Some((found.severity, found.message))
    }

    #[test]
    fn missing_certificate_is_an_error_and_failed_renewal_a_warning() {
        use CertificateState::{Expired, Missing, Valid};
        assert_eq!(reported(&line(Valid, None)), None);
        let (severity, message) = reported(&line(Missing, Some(FailureKind::Dns))).unwrap();
        assert_eq!(severity, Severity::Error);
        assert!(message.starts_with("`own.example` has no certificate: dns: no"));
        assert!(!message.contains('\u{1b}'), "{message:?}");
        let (severity, message) = reported(&line(Valid, Some(FailureKind::RateLimited))).unwrap();
        assert_eq!(severity, Severity::Warning);
        assert!(
            message.contains("cannot be renewed: rate-limited"),
            "{message}"
        );
        let (severity, _) = reported(&line(Valid, Some(FailureKind::Storage))).unwrap();
        assert_eq!(severity, Severity::Warning);
        for state in [Expired, Missing] {
            let (severity, _) = reported(&line(state, None)).unwrap();
            assert_eq!(severity, Severity::Error);
        }
        let ordered = CertificateLine {
            ordering: true,
            ..line(Missing, None)
        };
        assert_eq!(reported(&ordered).unwrap().0, Severity::Warning);
    }
}
