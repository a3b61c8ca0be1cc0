//! The commands of the program, one module each.
//!
//! The list of exit codes is in [`crate::cli`]. `probe` ends with 1 if no server responds, since container engines reserve 2.
//!
//! **Invariant:** only these modules print, and no command ends the process.

mod authoring;
#[cfg(feature = "bucket")]
mod fleet;
mod memory;
mod operations;
mod output;
mod progress;
mod serve;
mod setup;

use std::io::ErrorKind;
use std::process::ExitCode;

use self::output::{FAILED, print_message};
use crate::cli::{Cli, Command};
#[cfg(feature = "bucket")]
use crate::cli::{DiffArguments, ReleasesArguments, ResumeArguments, RollbackArguments};
use content::source::SourceError;
use server::ServeError;
use supervisor::ReloadError;

/// Runs the command of `cli` and returns its exit code.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Serve(arguments)) => serve::run(&arguments),
        Some(Command::Check(arguments)) => authoring::check::run(&arguments),
        Some(Command::Export(arguments)) => authoring::export::run(&arguments),
        Some(Command::Routes(arguments)) => authoring::routes::run(&arguments),
        #[cfg(feature = "bucket")]
        Some(Command::Releases(ReleasesArguments {
            tenant,
            format,
            store: Some(store),
            ..
        })) => fleet::history::list(&tenant, format, &store),
        Some(Command::Releases(arguments)) => operations::releases::list(&arguments),
        #[cfg(feature = "bucket")]
        Some(Command::Publish(arguments)) => fleet::publish::publish(&arguments),
        #[cfg(feature = "bucket")]
        Some(Command::Unpublish(arguments)) => fleet::publish::unpublish(&arguments),
        #[cfg(feature = "bucket")]
        Some(Command::Store(arguments)) => fleet::store::run(&arguments),
        #[cfg(feature = "bucket")]
        Some(Command::Diff(DiffArguments {
            tenant,
            from,
            to,
            store: Some(store),
            ..
        })) => fleet::history::diff(&tenant, from, to, &store),
        Some(Command::Diff(arguments)) => operations::releases::diff(&arguments),
        #[cfg(feature = "bucket")]
        Some(Command::Rollback(RollbackArguments {
            tenant,
            release,
            store: Some(store),
            author,
            ..
        })) => fleet::pin::roll_back(&tenant, release, &store, &author),
        Some(Command::Rollback(arguments)) => operations::releases::roll_back(&arguments),
        #[cfg(feature = "bucket")]
        Some(Command::Resume(ResumeArguments {
            tenant,
            store: Some(store),
            author,
            ..
        })) => fleet::pin::resume(&tenant, &store, &author),
        Some(Command::Resume(arguments)) => operations::releases::resume(&arguments),
        Some(Command::Restore(arguments)) => operations::restore::run(&arguments),
        Some(Command::Visits(arguments)) => operations::visits::run(&arguments),
        Some(Command::Token(arguments)) => operations::token::run(&arguments),
        Some(Command::Certificates(arguments)) => operations::certificates::run(&arguments),
        Some(Command::Import(arguments)) => authoring::import::run(&arguments),
        Some(Command::New(arguments)) => authoring::new::run(&arguments),
        Some(Command::NewTheme(arguments)) => authoring::new_theme::run(&arguments),
        Some(Command::Probe(arguments)) => Ok(operations::probe::run(&arguments)),
        Some(Command::Schema(arguments)) => authoring::schema::run(&arguments),
        Some(Command::Completions(arguments)) => Ok(authoring::shell::completions(&arguments)),
        Some(Command::Man(arguments)) => authoring::shell::man(&arguments),
        Some(Command::Manual(arguments)) => authoring::manual::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        print_message(&format!("error: {}{}", joined_causes(&error), hint(&error)));
        ExitCode::from(FAILED)
    })
}

/// Joins an error and its causes. A cause that the error quotes already is left out.
fn joined_causes(error: &anyhow::Error) -> String {
    let mut sentence = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !sentence.ends_with(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
}

/// Returns what to do about an error that many operators meet first; empty for other errors.
fn hint(error: &anyhow::Error) -> &'static str {
    if let Some(ReloadError::Source(SourceError::Unreadable { source, .. })) = error.downcast_ref()
        && source.kind() == ErrorKind::NotFound
    {
        return ": name the folder with `--tenants` or `--themes`, or make a first site with `rowhouse new ID`";
    }
    if let Some(ServeError::Bind { source, .. }) = error.downcast_ref()
        && source.kind() == ErrorKind::AddrInUse
    {
        return ": choose another port, or replace a running rowhouse with `--takeover`";
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_cause_is_not_repeated() {
        let error = anyhow::anyhow!("gone").context("cannot read `a`: gone");
        let error = error.context("cannot start");
        assert_eq!(joined_causes(&error), "cannot start: cannot read `a`: gone");
    }
}
