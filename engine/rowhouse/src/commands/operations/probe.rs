//! `rowhouse probe`: asks a running server whether it is ready, for health checks where there is no other program to ask with.

use std::process::ExitCode;
use std::time::Duration;

use crate::cli::ProbeArguments;
use crate::commands::operations::admin_client::ask;
use crate::commands::output::{ERRORS, print, say};
use server::settings::operator_file;
use server::tls::probe::probe;

/// For each step of the question; a server that takes longer is not well.
const STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Prints what `/readyz` says, and what a browser finds: 0 ready, 1 not ready, nobody there, or a certificate that is not good.
///
/// Not 2, as for whatever else could not run: container engines keep that one for themselves.
pub(crate) fn run(arguments: &ProbeArguments) -> ExitCode {
    match ask(arguments.server.admin, "GET", "/readyz", "", STEP_TIMEOUT) {
        Ok(answer) => {
            print(answer.text.trim_end());
            let is_healthy = answer.status == 200 && is_secure(arguments);
            match is_healthy {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(ERRORS),
            }
        }
        Err(error) => {
            say(&format!(
                "error: nobody answers at `{}`: {error}",
                arguments.server.admin
            ));
            ExitCode::from(ERRORS)
        }
    }
}

/// Whether a browser would trust every host that is named.
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
            say(&format!(
                "error: the file of `--root` cannot be read: {error}"
            ));
            return false;
        }
    };
    let mut is_well = true;
    for host in &arguments.host {
        match probe(address, host, roots.as_deref(), STEP_TIMEOUT) {
            Ok(found) => print(&format!(
                "{host}: {} {}, {} days left",
                found.version, found.protocol, found.days
            )),
            Err(error) => {
                is_well = false;
                say(&format!("error: {host}: {error}"));
            }
        }
    }
    is_well
}
