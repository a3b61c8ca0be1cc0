//! The command line: parses arguments and environment variables into a [`Cli`].
//!
//! | module | contents |
//! |---|---|
//! | [`serve`] | `serve`, with its flags for alerts |
//! | [`authoring`] | `check`, `export`, `manual` and other commands for authors |
//! | [`operations`] | `releases`, `rollback`, `visits` and other commands for operators |
//! | `fleet` | `publish`, `unpublish` and `store`; in builds with the feature `bucket` |
//! | [`flags`] | the folders and the origin, limits and caching |
//! | [`https`] | HTTPS, `certificates` and `probe` |
//! | [`running`] | the address and the token of a running server |
//! | `starter` | the arguments of `new` |
//! | `values` | parsers of sizes, durations, addresses and the origin |
//! | `exit_codes`, `signals` | the lists of exit codes and signals |
//! | `version` | the version and the commit |
//!
//! **Invariant:** decides nothing; it only turns text into values.

pub mod authoring;
pub(crate) mod exit_codes;
pub mod flags;
#[cfg(feature = "bucket")]
pub mod fleet;
pub mod https;
pub mod operations;
pub mod running;
pub mod serve;
pub(crate) mod signals;
mod starter;
mod values;
mod version;

use std::env;

use clap::{Arg, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub use authoring::{
    CheckArguments, CheckFormat, CompletionsArguments, ExportArguments, ImportArguments,
    ImportKind, ImportRedirectsArguments, MANUAL_LISTEN, ManArguments, ManualArguments,
    RoutesArguments, SchemaArguments, StaticHost, manual_origin,
};
pub use flags::ContentFlags;
pub use https::{CertificatesArguments, CertificatesCommand, ProbeArguments, RenewArguments};
pub use operations::{
    DiffArguments, ReleasesArguments, RestoreArguments, ResumeArguments, RollbackArguments,
    TokenArguments, VisitsArguments, VisitsFormat,
};
pub use running::{AdminTokenFlag, ListFormat, RunningServer};
pub use serve::{AccessLogFlag, ServeArguments, WatchMethod};
pub use starter::{
    Colour, NewArguments, NewThemeArguments, StarterKind, StarterLanguage, plain_name,
};
pub use version::VERSION;

#[cfg(feature = "bucket")]
pub use fleet::PublishArguments;
#[cfg(feature = "bucket")]
use fleet::{StoreArguments, UnpublishArguments};

/// Serves many small sites from one program: a site is a folder.
#[derive(Debug, Parser)]
#[command(
    name = "rowhouse",
    version = VERSION,
    about,
    max_term_width = 79,
    after_help = exit_codes::help(),
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    /// The command; `serve` if there is none.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags of `serve`.
    #[command(flatten)]
    pub serve: ServeArguments,
}

impl Cli {
    /// Parses the arguments and the variables of this process. Prints help, the version or an error and exits, if one of them is due.
    ///
    /// An empty variable counts as unset: service managers and container engines often have them.
    #[must_use]
    pub fn from_process() -> Self {
        let command = without_empty_variables(Self::command());
        let matches = command.get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Removes empty variables from the arguments of a command and of its subcommands.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |argument: &Arg| {
        let value = argument.get_env().and_then(env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let ignored = |argument: Arg| match is_empty(&argument) {
        true => argument.env(None::<&'static str>),
        false => argument,
    };
    command
        .mut_args(ignored)
        .mut_subcommands(|subcommand| subcommand.mut_args(ignored))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve all tenants, with live reload of folders (the default)
    Serve(Box<ServeArguments>),
    /// Print every error and warning in the tenants' folders
    Check(CheckArguments),
    /// List every page with its host, path, tenant and file
    ///
    /// The JSON also has the path of each page's Markdown form (`/terms.md`).
    Routes(RoutesArguments),
    /// List the releases of a tenant on a running server
    Releases(ReleasesArguments),
    /// Publish tenants to the object store of a fleet
    ///
    /// Checks the folders, uploads what the store lacks, and replaces the version of each changed tenant at once. A tenant with errors is left as it is. Two commands may run at once: at most one replaces a version, and the other ends with exit code 3.
    #[cfg(feature = "bucket")]
    Publish(PublishArguments),
    /// Withdraw a tenant from the object store of a fleet
    #[cfg(feature = "bucket")]
    Unpublish(UnpublishArguments),
    /// Check the object store of a fleet, or delete its garbage
    #[cfg(feature = "bucket")]
    Store(StoreArguments),
    /// Show the changes between two releases of a tenant
    Diff(DiffArguments),
    /// Serve an earlier release of a tenant until `resume`
    Rollback(RollbackArguments),
    /// Serve a tenant's folder again after `rollback`
    Resume(ResumeArguments),
    /// Serve a tenant again after its folder was removed
    Restore(RestoreArguments),
    /// Count the visits of a tenant by day, without cookies
    ///
    /// The counts come from the running server, and are stored in the folder of its `--state`.
    Visits(VisitsArguments),
    /// Create a token for a protected site, and the lines to add
    ///
    /// Prints a new random token, and the lines for `deployment.yaml` that protect a tenant with it. The file has the hash of the token only, and the token is not stored.
    Token(TokenArguments),
    /// List the certificates of a running server, or renew one
    Certificates(CertificatesArguments),
    /// Write all sites as files for a static host or CDN
    ///
    /// Previews (folders `<id>@<label>`) and protected tenants are left out.
    Export(ExportArguments),
    /// Convert settings of another server for a manifest
    Import(ImportArguments),
    /// Create the folder of a new tenant
    New(NewArguments),
    /// Create the folder of a new theme with a parent
    ///
    /// The theme has only its differences from the parent: colours, a style sheet, and one replaced file as an example.
    NewTheme(NewThemeArguments),
    /// Check whether a running server is ready
    Probe(ProbeArguments),
    /// Write JSON Schemas with which editors complete and check YAML
    Schema(SchemaArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Print the manual page of the program or of a command
    Man(ManArguments),
    /// Serve the manual on this machine, or write it as files
    Manual(ManualArguments),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widest line of a help text, in characters.
    const MAX_HELP_WIDTH: usize = 79;

    /// The widest description of a command that fits a line of the list of commands, in characters.
    const MAX_ABOUT_WIDTH: usize = 63;

    fn commands() -> Vec<clap::Command> {
        let mut program = Cli::command();
        program.build();
        let subcommands: Vec<_> = program.get_subcommands().cloned().collect();
        [vec![program], subcommands].concat()
    }

    #[test]
    fn definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_line_is_short() {
        for mut command in commands() {
            let name = command.get_name().to_owned();
            for text in [command.render_help(), command.render_long_help()] {
                for line in text.to_string().lines() {
                    assert!(line.chars().count() <= MAX_HELP_WIDTH, "{name}: {line}");
                }
            }
            let about = command.get_about().map(ToString::to_string);
            let width = about.as_ref().map_or(0, |about| about.chars().count());
            assert!(width <= MAX_ABOUT_WIDTH, "{name}: {about:?}");
            let arguments = command.get_arguments().map(|argument| {
                let help = argument.get_help().map(ToString::to_string);
                (argument.get_id().to_string(), help.unwrap_or_default())
            });
            for (id, help) in arguments.chain([("about".to_owned(), about.unwrap_or_default())]) {
                assert!(!help.is_empty(), "{name} {id}");
                assert!(
                    help.chars().count() <= MAX_HELP_WIDTH,
                    "{name} {id}: {help}"
                );
            }
        }
    }

    #[test]
    fn exit_codes_name_commands_that_exist() {
        let known = commands();
        for (_, commands, meaning) in exit_codes::EXIT_CODES {
            for command in commands {
                let is_known = known.iter().any(|known| known.get_name() == *command);
                assert!(is_known, "{command}: {meaning}");
            }
        }
    }

    #[test]
    fn human_values_and_plain_numbers_mean_the_same() {
        let serve = |flags: &[&str]| {
            let cli = Cli::try_parse_from([&["rowhouse"][..], flags].concat()).unwrap();
            let serve = cli.serve;
            (
                serve.memory,
                serve.state_size,
                serve.grace,
                serve.keep_assets,
                serve.listen,
            )
        };
        let plain = serve(&[
            "--memory=536870912",
            "--state-size=1073741824",
            "--grace=20",
            "--keep-assets=86400",
            "--listen=127.0.0.1:8080",
        ]);
        assert_eq!(serve(&["--memory=512MiB"]), plain);
        let written = serve(&[
            "--memory=512MiB",
            "--state-size=1GiB",
            "--grace=20s",
            "--keep-assets=24h",
            "--listen=8080",
        ]);
        assert_eq!(written, plain);
    }

    #[test]
    fn wrong_values_are_refused_with_the_right_form() {
        for (flag, form) in [
            ("--origin=studio.example", "write `https://studio.example`"),
            ("--listen=:8080", "`[::]:8080` for every address"),
            ("--https=443", "`[::]:443` for every address"),
            ("--memory=much", "such as 512MiB"),
            ("--memory=", "such as 512MiB"),
            ("--grace=200ms", "whole seconds"),
        ] {
            let error = Cli::try_parse_from(["rowhouse", flag])
                .unwrap_err()
                .to_string();
            assert!(error.contains(form), "{flag}: {error}");
        }
    }
}
