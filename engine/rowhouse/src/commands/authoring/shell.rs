//! `rowhouse completions SHELL` and `rowhouse man [COMMAND]`: completion scripts and manual pages from the definition of the command line.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::generate;
use clap_mangen::Man;

use crate::cli::{Cli, CompletionsArguments, ManArguments};

/// Prints the completion script of a shell.
pub(crate) fn completions(arguments: &CompletionsArguments) -> ExitCode {
    let mut script = Vec::new();
    generate(
        arguments.shell,
        &mut Cli::command(),
        "rowhouse",
        &mut script,
    );
    crate::commands::output::write(&script);
    ExitCode::SUCCESS
}

/// Prints the manual page of the program or of a command.
pub(crate) fn man(arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    if let Some(name) = &arguments.command {
        command = command
            .find_subcommand(name)
            .with_context(|| {
                format!("unknown command `{name}`: `rowhouse help` lists all commands")
            })?
            .clone();
    }
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(io::Error::other)?;
    crate::commands::output::write(&page);
    Ok(ExitCode::SUCCESS)
}
