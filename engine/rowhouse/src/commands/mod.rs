//! What the command line asks for, one file a verb. Only these print.
//!
//! Exit codes: 0 success, 1 errors in the content, 2 could not run.

mod check;
mod export;
mod greeting;
mod log;
mod new;
#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;
mod output;
mod probe;
mod routes;
mod sarif;
mod schema;
mod serve;
mod setup;
mod shell;
mod supervisor;

use std::process::ExitCode;

use self::output::{FAILED, say};
use crate::cli::{Cli, Command};

/// Runs a command to its end.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Serve(arguments)) => serve::run(&arguments),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Export(arguments)) => export::run(&arguments),
        Some(Command::Routes(arguments)) => routes::run(&arguments),
        Some(Command::New(arguments)) => new::run(&arguments),
        Some(Command::Probe(arguments)) => Ok(probe::run(&arguments)),
        Some(Command::Schema(arguments)) => schema::run(&arguments),
        Some(Command::Completions(arguments)) => Ok(shell::completions(&arguments)),
        Some(Command::Man(arguments)) => shell::man(&arguments),
    };
    result.unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::from(FAILED)
    })
}
