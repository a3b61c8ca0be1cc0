//! `rowhouse certificates`: the state of the certificates of all hosts of a running server.
//!
//! **Invariant:** everything that it prints comes from the admin listener, without control characters.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;

use crate::cli::{CertificatesArguments, ListFormat};
use crate::commands::operations::admin_client::ask;
use crate::commands::output::{ERRORS, print, say};
use server::tls::attempts::OrderWait;
use server::tls::overview::{CertificateLine, CertificateSource, CertificateState};

/// The timeout of each step of the request.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Prints a line for each host. The exit code is 1 if a host has no valid certificate.
pub(crate) fn run(arguments: &CertificatesArguments) -> anyhow::Result<ExitCode> {
    let Some(lines) = fetch(arguments.server.admin)? else {
        say("error: HTTPS is off: the server was started without `--https`");
        return Ok(ExitCode::from(ERRORS));
    };
    match arguments.format {
        ListFormat::Json => print(&serde_json::to_string_pretty(&lines)?),
        ListFormat::Text => print(table(&lines, Timestamp::now().as_second()).trim_end()),
    }
    let is_valid = |line: &CertificateLine| line.state == CertificateState::Valid;
    Ok(match lines.iter().all(is_valid) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(ERRORS),
    })
}

/// Returns the certificates of all hosts of the server; `None` if HTTPS is off.
///
/// # Errors
/// Fails if no server responds at `admin`, or the response is not from this version of rowhouse.
pub(crate) fn fetch(admin: SocketAddr) -> anyhow::Result<Option<Vec<CertificateLine>>> {
    let response = ask(admin, "GET", "/certificates", "", STEP_TIMEOUT)
        .with_context(|| format!("no server responds at `{admin}`"))?;
    match response.status {
        404 => Ok(None),
        200 => serde_json::from_str(&response.text)
            .map(Some)
            .context("the response is not from this version of rowhouse"),
        status => Err(anyhow!("the server responds with status {status}")),
    }
}

/// Returns the lines as columns.
fn table(lines: &[CertificateLine], now: i64) -> String {
    let width = lines.iter().map(|line| line.host.len()).max().unwrap_or(0);
    let row = |line: &CertificateLine| {
        let (host, state, details) = (&line.host, state(line), details(line, now));
        format!("{host:width$}  {state:7}  {details}\n")
    };
    lines.iter().map(row).collect()
}

const fn state(line: &CertificateLine) -> &'static str {
    match line.state {
        CertificateState::Valid => "valid",
        CertificateState::Expired => "expired",
        CertificateState::Missing => "missing",
    }
}

fn details(line: &CertificateLine, now: i64) -> String {
    let mut parts = Vec::new();
    match line.source {
        Some(CertificateSource::File) => parts.push("from a file".to_owned()),
        Some(CertificateSource::Authority) => parts.push("from the CA".to_owned()),
        None => {}
    }
    let until = |at: u64| i64::try_from(at).unwrap_or(i64::MAX).saturating_sub(now);
    if let Some(end) = line.not_after {
        let end = until(end);
        let verb = if end < 0 { "expired" } else { "expires" };
        parts.push(format!("{verb} {}", span(end)));
    }
    if line.ordering {
        parts.push("being ordered".to_owned());
    }
    match line.waiting {
        Some(OrderWait::Share) => {
            parts.push("waiting: the site has used its share of orders".to_owned())
        }
        Some(OrderWait::Total) => parts.push("waiting: all orders of the CA are used".to_owned()),
        None => {}
    }
    if let Some(error) = &line.error {
        let detail = error.detail.chars();
        let detail: String = detail.filter(|one| !one.is_control()).collect();
        parts.push(format!("{}: {detail}", error.kind.name()));
        if let Some(next) = line.next_try.filter(|_| !line.ordering) {
            parts.push(match until(next) {
                next @ 1.. => format!("next try {}", span(next)),
                // The server tries again as soon as an order is free.
                _ => "next try is due".to_owned(),
            });
        }
    }
    parts.join(", ")
}

/// Returns a time relative to now, such as `in 10 min` or `2 h ago`.
fn span(seconds: i64) -> String {
    let (length, unit) = match seconds.abs() {
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

#[cfg(test)]
mod tests {
    use server::tls::attempts::FailureKind;
    use server::tls::overview::CertificateProblem;

    use super::*;

    #[test]
    fn line_has_state_source_and_expiry() {
        let line = CertificateLine {
            host: "studio.example".to_owned(),
            state: CertificateState::Valid,
            source: Some(CertificateSource::Authority),
            not_after: Some(1_000_000 + 90 * 86_400),
            ordering: false,
            waiting: None,
            last_try: None,
            next_try: None,
            error: None,
        };
        let missing = CertificateLine {
            host: "own.example".to_owned(),
            state: CertificateState::Missing,
            source: None,
            not_after: None,
            next_try: Some(1_000_000 + 600),
            error: Some(CertificateProblem {
                kind: FailureKind::Dns,
                detail: "no\u{1b} address".to_owned(),
            }),
            ..line.clone()
        };
        assert_eq!(
            table(&[line, missing], 1_000_000),
            "studio.example  valid    from the CA, expires in 90 days\n\
             own.example     missing  dns: no address, next try in 10 min\n"
        );
        assert_eq!(span(-7_200), "2 h ago");
    }

    #[test]
    fn past_retry_is_due_and_not_in_the_future() {
        let line = CertificateLine {
            host: "own.example".to_owned(),
            state: CertificateState::Expired,
            source: Some(CertificateSource::Authority),
            not_after: Some(1_000_000 - 7_200),
            ordering: false,
            waiting: None,
            last_try: Some(1_000_000 - 600),
            next_try: Some(1_000_000 - 12),
            error: Some(CertificateProblem {
                kind: FailureKind::Dns,
                detail: "no address".to_owned(),
            }),
        };
        let text = details(&line, 1_000_000);
        assert_eq!(
            text,
            "from the CA, expired 2 h ago, dns: no address, next try is due"
        );
        for now in 999_980..1_000_020 {
            let text = details(&line, now);
            assert!(
                !text.contains("next try") || !text.ends_with("ago"),
                "{text}"
            );
        }
    }
}
