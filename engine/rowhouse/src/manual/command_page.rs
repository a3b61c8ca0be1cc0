//! The reference of commands, arguments, flags and variables, from the definition of the command line.
//!
//! **Invariant:** lists every command and flag that `--help` lists.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::markdown::{block, definition, open, prose};
use super::page::ReferencePage;
use crate::cli::Cli;
use crate::cli::exit_codes::EXIT_CODES;
use crate::cli::signals::SIGNALS;

/// Returns the page.
pub(super) fn page() -> ReferencePage {
    let mut program = Cli::command();
    program.build();
    let mut body = String::from(
        "Data goes to stdout, messages and logs to stderr. Every flag of `serve` has an environment variable. A flag overrides its variable, and an empty variable counts as unset. `rowhouse` without a command is `rowhouse serve`.\n\n| value | examples |\n|---|---|\n| `SIZE` | `512MiB` (1,024-based), `512MB` (1,000-based), or a plain number of bytes |\n| `DURATION` | `200ms`, `10s`, `5m`, `24h`, `7d`, or a plain number of seconds |\n| `ADDRESS` | `127.0.0.1:8080`, `[::]:8080` (every address), or `8080` (this machine only) |\n\n`--https` and `--http-redirect` need an address with a port, since a port alone listens on this machine only.\n\n",
    );
    body += &exit_codes();
    body += &signals();
    for command in program.get_subcommands() {
        if command.get_name() == "help" {
            continue;
        }
        body += &command_section(command.get_name(), command);
        for below in command.get_subcommands() {
            if below.get_name() != "help" {
                let name = format!("{} {}", command.get_name(), below.get_name());
                body += &command_section(&name, below);
            }
        }
    }
    ReferencePage {
        name: "commands".to_owned(),
        title: "Commands".to_owned(),
        description: "Every command of rowhouse with its arguments, its flags, their environment variables and their defaults.".to_owned(),
        body,
    }
}

/// Returns the exit codes as a table.
fn exit_codes() -> String {
    let mut text = String::from("| exit code | commands | meaning |\n|---:|---|---|\n");
    for (code, commands, meaning) in EXIT_CODES {
        let commands: Vec<String> = commands.iter().map(|name| format!("`{name}`")).collect();
        let commands = match commands.is_empty() {
            true => "all commands".to_owned(),
            false => commands.join(", "),
        };
        let _ = writeln!(text, "| {code} | {commands} | {meaning} |");
    }
    text.push('\n');
    text
}

/// Returns the signals of `serve` as a table.
fn signals() -> String {
    let mut text = String::from("| signal to `serve` | effect | exit code |\n|---|---|---:|\n");
    for (signal, effect, code) in SIGNALS {
        let code = code.map_or_else(|| "keeps running".to_owned(), |code| code.to_string());
        let _ = writeln!(text, "| {signal} | {effect} | {code} |");
    }
    text.push('\n');
    text
}

/// Returns the section of a command with its full name: `certificates renew`.
fn command_section(name: &str, command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    let id = name.replace(' ', "-");
    let mut text = format!("## `rowhouse {name}` {{#{id}}}\n\n");
    let _ = write!(text, "{}.\n\n", prose(&about.unwrap_or_default()));
    let usage = command.clone().render_usage().to_string();
    text += &block("text", usage.trim_start_matches("Usage: "));
    let mut heading = None;
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    for argument in shown.filter(|argument| argument.get_id() != "help") {
        let own = argument.get_help_heading();
        if own.is_some() && own != heading {
            let own = own.unwrap_or_default();
            let own_id = own.to_lowercase();
            let _ = write!(text, "### {own} {{#{id}-{own_id}}}\n\n");
        }
        heading = own;
        text += &definition(&term(argument), &meaning(argument));
    }
    text
}

/// Returns an argument as it is written: `--listen ADDRESS`.
fn term(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.first().map(ToString::to_string).unwrap_or_default();
    let Some(long) = argument.get_long() else {
        return format!("`{value}`");
    };
    match takes_value(argument) {
        true => format!("`--{long} {value}`"),
        false => format!("`--{long}`"),
    }
}

/// Returns whether a flag has a value.
fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Returns the meaning of an argument with its choices, its variable and its default.
fn meaning(argument: &Arg) -> String {
    let short = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    // Some defaults are in the help text, as `[default: …]`.
    let (short, worded_default) = match short.split_once(" [default: ") {
        Some((short, default)) => (
            short.to_owned(),
            Some(default.trim_end_matches(']').to_owned()),
        ),
        None => (short, None),
    };
    let mut text = format!("{}.", open(&prose(&short)));
    if let Some(long) = argument.get_long_help().map(ToString::to_string)
        && let Some((_, rest)) = long.split_once("\n\n")
    {
        let _ = write!(text, " {}", prose(rest));
    }
    let choices = argument.get_possible_values();
    if takes_value(argument) && !choices.is_empty() {
        let listed = choices.iter().map(|choice| {
            let help = choice
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let name = choice.get_name();
            match &*help {
                "" => format!("`{name}`"),
                help => format!("`{name}` ({})", prose(help)),
            }
        });
        let listed: Vec<String> = listed.collect();
        let _ = write!(text, " One of {}.", listed.join(", "));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, " Variable: `{}`.", variable.display());
    }
    let defaults = argument.get_default_values();
    let defaults: Vec<String> = defaults.iter().map(|it| it.display().to_string()).collect();
    match (
        worded_default,
        defaults.is_empty() || !takes_value(argument),
    ) {
        (Some(default), _) => {
            let _ = write!(text, " Default: {}.", prose(&default));
        }
        (None, false) => {
            let _ = write!(text, " Default: `{}`.", defaults.join(","));
        }
        (None, true) => {}
    }
    text
}
