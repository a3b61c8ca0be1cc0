//! `rowhouse certificates`: lists the certificates of all hosts of a running server, or renews one.
//!
//! **Invariant:** everything that it prints comes from the admin listener, without control characters.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, anyhow};

use crate::cli::{CertificatesArguments, CertificatesCommand, ListFormat, RenewArguments};
use crate::commands::operations::admin_client::{ask, no_server};
use crate::commands::operations::releases::{command, refused};
use crate::commands::output::{ERRORS, print, print_message};
use server::tls::overview::{CertificateLine, CertificateSource, CertificateState};

/// The timeout of each step of the request.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which the result of an order is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The time to wait for an order. CAs take seconds.
const ORDER_TIMEOUT: Duration = Duration::from_secs(180);

/// Lists the certificates, or runs the command for one host.
pub(crate) fn run(arguments: &CertificatesArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Some(CertificatesCommand::Renew(arguments)) => renew(arguments),
        None => list(arguments),
    }
}

/// Orders a new certificate for a host, waits for the result and prints it. The exit code is 1 if no certificate was issued.
fn renew(arguments: &RenewArguments) -> anyhow::Result<ExitCode> {
    let (host, admin) = (&arguments.host, arguments.server.admin);
    let target = format!("/certificates/{host}/renew");
    let begun: Result<CertificateLine, _> = command(arguments.server, &arguments.token, &target)?;
    let mut line = match begun {
        Ok(line) => line,
        Err(refusal) => return Ok(refused(&refusal)),
    };
    print_message(&format!("ordering a certificate for `{host}`"));
    // An order that waits for the CA begins by itself; the command does not wait for it.
    let has_begun = line.ordering;
    let begin = Instant::now();
    while line.ordering && begin.elapsed() < ORDER_TIMEOUT {
        thread::sleep(POLL_INTERVAL);
        let lines = fetch(admin)?.unwrap_or_default();
        let found = lines.into_iter().find(|found| found.host == *host);
        line = found.with_context(|| format!("`{host}` is not served any more"))?;
    }
    let result = outcome(&line, has_begun, SystemTime::now());
    Ok(match result {
        Ok(said) => {
            print_message(&said);
            ExitCode::SUCCESS
        }
        Err(said) => {
            print_message(&format!("error: {said}"));
            ExitCode::from(ERRORS)
        }
    })
}

/// Returns the result of an order in words.
fn outcome(line: &CertificateLine, has_begun: bool, now: SystemTime) -> Result<String, String> {
    let host = &line.host;
    match line.problem(now) {
        None if has_begun => {
            let expiry = line.expiry(now).unwrap_or_default();
            Ok(format!("`{host}` has a new certificate, which {expiry}"))
        }
        problem => {
            let problem = problem.unwrap_or_else(|| "the order waits for the CA".to_owned());
            Err(format!("no new certificate for `{host}` yet: {problem}"))
        }
    }
}

/// Prints a line for each host. The exit code is 1 if a host has no valid certificate.
fn list(arguments: &CertificatesArguments) -> anyhow::Result<ExitCode> {
    let Some(lines) = fetch(arguments.server.admin)? else {
        print_message("error: HTTPS is off: the server was started without `--https`");
        return Ok(ExitCode::from(ERRORS));
    };
    match arguments.format {
        ListFormat::Json => print(&serde_json::to_string_pretty(&lines)?),
        ListFormat::Text => print(table(&lines, SystemTime::now()).trim_end()),
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
        .map_err(|error| anyhow!(no_server(admin, &error, "rowhouse serve")))?;
    match response.status {
        404 => Ok(None),
        200 => serde_json::from_str(&response.text)
            .map(Some)
            .context("the response is not from this version of rowhouse"),
        status => Err(anyhow!("the server responds with status {status}")),
    }
}

/// Returns the lines as columns.
fn table(lines: &[CertificateLine], now: SystemTime) -> String {
    let width = lines.iter().map(|line| line.host.len()).max().unwrap_or(0);
    let row = |line: &CertificateLine| {
        let (host, state, details) = (&line.host, line.state.name(), details(line, now));
        format!("{host:width$}  {state:7}  {details}\n")
    };
    lines.iter().map(row).collect()
}

fn details(line: &CertificateLine, now: SystemTime) -> String {
    let source = line.source.map(|source| match source {
        CertificateSource::File => "from a file".to_owned(),
        CertificateSource::Authority => "from the CA".to_owned(),
    });
    let parts = [source, line.expiry(now), line.problem(now)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use server::tls::order_status::FailureKind;
    use server::tls::overview::CertificateProblem;

    use super::*;

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000)
    }

    fn valid() -> CertificateLine {
        CertificateLine {
            host: "studio.example".to_owned(),
            state: CertificateState::Valid,
            file_names: Vec::new(),
            source: Some(CertificateSource::Authority),
            not_after: Some(1_000_000 + 90 * 86_400),
            ordering: false,
            waiting: None,
            last_try: None,
            next_try: None,
            error: None,
        }
    }

    fn missing() -> CertificateLine {
        CertificateLine {
            host: "own.example".to_owned(),
            state: CertificateState::Missing,
            source: None,
            not_after: None,
            next_try: Some(1_000_000 + 600),
            error: Some(CertificateProblem {
                kind: FailureKind::Dns,
                detail: "no\u{1b} address".to_owned(),
            }),
            ..valid()
        }
    }

    #[test]
    fn line_has_state_source_and_expiry() {
        assert_eq!(
            table(&[valid(), missing()], now()),
            "studio.example  valid    from the CA, expires in 90 days\n\
             own.example     missing  dns: no address, next try in 10 min\n"
        );
    }

    #[test]
    fn outcome_is_new_certificate_or_its_obstacle() {
        assert_eq!(
            outcome(&valid(), true, now()).unwrap(),
            "`studio.example` has a new certificate, which expires in 90 days"
        );
        assert_eq!(
            outcome(&missing(), true, now()).unwrap_err(),
            "no new certificate for `own.example` yet: dns: no address, next try in 10 min"
        );
        assert_eq!(
            outcome(&valid(), false, now()).unwrap_err(),
            "no new certificate for `studio.example` yet: the order waits for the CA"
        );
    }
}
