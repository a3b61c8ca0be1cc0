//! `rowhouse probe`: asks a running server whether it is ready, for health checks where there is no other program to ask with.

use std::process::ExitCode;
use std::time::Duration;

use super::admin_client::ask;
use super::output::{print, say};
use crate::cli::ProbeArguments;

/// For each step of the question; a server that takes longer is not well.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints what `/readyz` says: 0 ready, 1 not ready or nobody there.
///
/// Not 2, as for whatever else could not run: container engines keep that one for themselves.
pub(super) fn run(arguments: &ProbeArguments) -> ExitCode {
    match ask(arguments.server.admin, "GET", "/readyz", "", PATIENCE) {
        Ok(answer) => {
            print(answer.text.trim_end());
            ExitCode::from(u8::from(answer.status != 200))
        }
        Err(error) => {
            say(&format!(
                "error: nobody answers at `{}`: {error}",
                arguments.server.admin
            ));
            ExitCode::FAILURE
        }
    }
}
