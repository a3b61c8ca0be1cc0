//! What the command line asks for, one file a verb. Only these print.
//!
//! Exit codes: 0 success, 1 errors in the content, a server that is not ready or that refused, 2 could not run. `probe` ends with 1 where no server responds, too, since container engines reserve 2.

mod admin_client;
mod admin_token;
mod certificates;
mod check;
mod export;
mod greeting;
mod https;
mod live;
mod log;
mod manual;
mod memory;
mod new;
#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;
mod output;
mod probe;
mod progress;
mod releases;
mod routes;
mod sarif;
mod schema;
mod serve;
mod service_manager;
mod setup;
mod shell;

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
        Some(Command::Releases(arguments)) => releases::list(&arguments),
        Some(Command::Diff(arguments)) => releases::diff(&arguments),
        Some(Command::Rollback(arguments)) => releases::roll_back(&arguments),
        Some(Command::Resume(arguments)) => releases::resume(&arguments),
        Some(Command::Certificates(arguments)) => certificates::run(&arguments),
        Some(Command::New(arguments)) => new::run(&arguments),
        Some(Command::Probe(arguments)) => Ok(probe::run(&arguments)),
        Some(Command::Schema(arguments)) => schema::run(&arguments),
        Some(Command::Completions(arguments)) => Ok(shell::completions(&arguments)),
        Some(Command::Man(arguments)) => shell::man(&arguments),
        Some(Command::Manual(arguments)) => manual::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        say(&format!("error: {}", in_one_sentence(&error)));
        ExitCode::from(FAILED)
    })
}

/// An error with its causes, each of them once: some quote their cause themselves.
fn in_one_sentence(error: &anyhow::Error) -> String {
    let mut sentence = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !sentence.ends_with(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_quotes_is_not_said_again() {
        let error = anyhow::anyhow!("gone").context("cannot read `a`: gone");
        let error = error.context("cannot start");
        assert_eq!(
            in_one_sentence(&error),
            "cannot start: cannot read `a`: gone"
        );
    }
}
