//! `rowhouse probe`: checks whether a running server is ready, for health checks of containers without a shell.
//!
//! **Invariant:** ends with 0 or 1, since container engines reserve 2.

use std::process::ExitCode;
use std::time::Duration;

use crate::cli::ProbeArguments;
use crate::commands::operations::admin_client::{ask, no_server};
use crate::commands::output::{ERRORS, print, print_message};
use server::settings::operator_file;
use server::tls::probe::probe;

/// The timeout of each step. A server that takes longer is unhealthy.
const STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Prints the response of `/readyz` and, with `--https`, the result of a handshake for each host.
///
/// The exit code is 1 if the server is not ready, does not respond, or has a certificate that a browser would not trust.
pub(crate) fn run(arguments: &ProbeArguments) -> ExitCode {
    match ask(arguments.server.admin, "GET", "/readyz", "", STEP_TIMEOUT) {
        Ok(response) => {
            print(response.text.trim_end());
            let is_healthy = response.status == 200 && is_secure(arguments);
            match is_healthy {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(ERRORS),
            }
        }
        Err(error) => {
            let message = no_server(arguments.server.admin, &error, "rowhouse serve");
            print_message(&format!("error: {message}"));
            ExitCode::from(ERRORS)
        }
    }
}

/// Returns whether a browser would trust the certificate of every host of `--host`. Prints the result of each.
fn is_secure(arguments: &ProbeArguments) -> bool {
    let Some(address) = arguments.https else {
        return true;
    };
    let roots = match arguments
        .root
        .as_deref()
        .map(operator_file::read)
        .transpose()
    {
        Ok(roots) => roots,
        Err(error) => {
            print_message(&format!("error: cannot read the file of `--root`: {error}"));
            return false;
        }
    };
    let mut is_healthy = true;
    for host in &arguments.host {
        match probe(address, host, roots.as_deref(), STEP_TIMEOUT) {
            Ok(found) => print(&format!(
                "{host}: {} {}, {} days left",
                found.version, found.protocol, found.days
            )),
            Err(error) => {
                is_healthy = false;
                print_message(&format!("error: {host}: {error}"));
            }
        }
    }
    is_healthy
}
