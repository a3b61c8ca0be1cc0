//! What a running server says of the sites that it serves, for `rowhouse check --live`.
//!
//! **Invariant:** asks, and changes nothing; whatever comes from the server is text without control characters.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::commands::operations::admin_client::ask;
use crate::commands::operations::certificates::asked;
use crate::commands::output::say;
use content::report::{Code, Diagnostic};
use server::tls::attempts::{FailureKind, OrderWait};
use server::tls::overview::{CertificateLine, CertificateSource, CertificateState};

/// For each step of the question.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// What is asked of `/tenants`.
#[derive(Debug, Deserialize)]
struct ServedTenant {
    id: String,
    hosts: Vec<String>,
}

/// What is to say about the certificates of all hosts, each in the folder of the tenant that has the host.
///
/// # Errors
/// When nobody answers at this address, or something else than this version of rowhouse.
pub(crate) fn diagnostics(admin: SocketAddr, tenants: &Path) -> anyhow::Result<Vec<Diagnostic>> {
    let Some(lines) = asked(admin)? else {
        say("note: the running server does not speak HTTPS, and has no certificates");
        return Ok(Vec::new());
    };
    let answer = ask(admin, "GET", "/tenants", "", STEP_TIMEOUT)
        .with_context(|| format!("nobody answers at `{admin}`"))?;
    ensure!(answer.status == 200, "the server answers {}", answer.status);
    let served: Vec<ServedTenant> = serde_json::from_str(&answer.text)
        .context("the answer is not what this version of rowhouse understands")?;
    let folder = |host: &str| {
        let mut owners = served.iter();
        let owner = owners.find(|tenant| tenant.hosts.iter().any(|one| one == host));
        // `www.` of the domain is nobody's: it leads to the root tenant.
        let folder = owner.map_or_else(|| tenants.to_owned(), |owner| tenants.join(&owner.id));
        folder.display().to_string()
    };
    let said = lines.iter();
    Ok(said
        .filter_map(|line| diagnostic(line, folder(&line.host)))
        .collect())
}

/// What is to say about one host: nothing where it has a valid certificate, and the last order did not fail.
fn diagnostic(line: &CertificateLine, folder: String) -> Option<Diagnostic> {
    let host = &line.host;
    let is_valid = line.state == CertificateState::Valid;
    let what = match line.state {
        CertificateState::Valid => format!("the certificate of `{host}` cannot be renewed"),
        CertificateState::Expired => format!("the certificate of `{host}` is not valid now"),
        CertificateState::Missing => format!("`{host}` has no certificate"),
    };
    let Some(error) = &line.error else {
        if is_valid {
            return None;
        }
        // An order that is in flight is no error yet.
        if line.ordering {
            let hint = "it is being ordered: ask again in a minute";
            return Some(Diagnostic::warning(Code::Certificate, folder, what).hint(hint));
        }
        if let Some(wait) = line.waiting {
            let found = Diagnostic::warning(Code::Certificate, folder, what);
            return Some(found.hint(waiting_hint(wait)));
        }
        let hint = match line.source {
            Some(CertificateSource::File) => {
                "put a new one in place of the file of `--certificate`"
            }
            _ => "`--certificate` takes one that covers it, and `--acme-contact` has one ordered",
        };
        return Some(Diagnostic::error(Code::Certificate, folder, what).hint(hint));
    };
    let message = match error.kind {
        FailureKind::Storage => format!(
            "the certificate of `{host}` cannot be kept: {}",
            error.detail
        ),
        kind => format!("{what}: {}: {}", kind.name(), error.detail),
    };
    let found = match is_valid {
        true => Diagnostic::warning(Code::Certificate, folder, message),
        false => Diagnostic::error(Code::Certificate, folder, message),
    };
    Some(found.hint(hint(error.kind)))
}

/// What to do about a host that waits.
const fn waiting_hint(wait: OrderWait) -> &'static str {
    match wait {
        OrderWait::Share => {
            "wait: the tenant has used its share of the orders; or use a certificate of your own for all names of the domain"
        }
        OrderWait::Total => {
            "wait: all orders that the authority allows are used; or use a certificate of your own for all names of the domain"
        }
    }
}

/// What to do about it.
const fn hint(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Dns => "add an address for the name to its DNS",
        FailureKind::Elsewhere => {
            "the name leads to another machine: change its address in the DNS"
        }
        FailureKind::Unreachable => "open ports 80 and 443 to everybody",
        FailureKind::RateLimited => {
            "wait, or use a certificate of your own for all names of the domain"
        }
        FailureKind::Refused => "ask the authority why, or take another one (`--acme-directory`)",
        FailureKind::Authority => "wait: it is asked again by itself",
        FailureKind::Account => "look at `--acme-contact`, `--acme-eab-kid` and `--acme-eab-key`",
        FailureKind::Program => "report it with the log: the fault is in rowhouse",
        FailureKind::Storage => "look at the disk: after a restart it would be ordered again",
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

    fn said(line: &CertificateLine) -> Option<(Severity, String)> {
        let found = diagnostic(line, "tenants/own".to_owned())?;
        assert_eq!(
            (found.code, &*found.file),
            (Code::Certificate, "tenants/own")
        );
        assert!(found.hint.is_some());
        Some((found.severity, found.message))
    }

    #[test]
    fn what_visitors_do_not_get_is_an_error_and_what_they_may_lose_a_warning() {
        use CertificateState::{Expired, Missing, Valid};
        assert_eq!(said(&line(Valid, None)), None);
        let (severity, message) = said(&line(Missing, Some(FailureKind::Dns))).unwrap();
        assert_eq!(severity, Severity::Error);
        assert!(message.starts_with("`own.example` has no certificate: dns: no"));
        assert!(!message.contains('\u{1b}'), "{message:?}");
        let (severity, message) = said(&line(Valid, Some(FailureKind::RateLimited))).unwrap();
        assert_eq!(severity, Severity::Warning);
        assert!(
            message.contains("cannot be renewed: rate-limited"),
            "{message}"
        );
        let (severity, _) = said(&line(Valid, Some(FailureKind::Storage))).unwrap();
        assert_eq!(severity, Severity::Warning);
        for state in [Expired, Missing] {
            let (severity, _) = said(&line(state, None)).unwrap();
            assert_eq!(severity, Severity::Error);
        }
        let ordered = CertificateLine {
            ordering: true,
            ..line(Missing, None)
        };
        assert_eq!(said(&ordered).unwrap().0, Severity::Warning);
    }
}
