//! Every command with its arguments, flags and variables, from the command line's own definition.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::markdown::{block, definition, open, prose};
use super::page::ReferencePage;
use crate::cli::Cli;
use crate::cli::exit_codes::EXIT_CODES;

/// The page.
pub(super) fn page() -> ReferencePage {
    let mut program = Cli::command();
    program.build();
    let mut body = String::from(
        "Data goes to stdout, messages and logs to stderr. Every flag of `serve` has an environment variable; a flag overrides its variable. `rowhouse` without a command is `rowhouse serve`.\n\n",
    );
    body += &exit_codes();
    for command in program.get_subcommands() {
        if command.get_name() != "help" {
            body += &one(command);
        }
    }
    ReferencePage {
        name: "commands".to_owned(),
        title: "Commands".to_owned(),
        description: "Every command of rowhouse with its arguments, its flags, their environment variables and their defaults.".to_owned(),
        body,
    }
}

/// The exit codes as a table.
fn exit_codes() -> String {
    let mut text = String::from("| exit code | of | meaning |\n|---:|---|---|\n");
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

fn one(command: &Command) -> String {
    let name = command.get_name();
    let about = command.get_about().map(ToString::to_string);
    let mut text = format!("## `rowhouse {name}` {{#{name}}}\n\n");
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
            let id = own.to_lowercase();
            let _ = write!(text, "### {own} {{#{name}-{id}}}\n\n");
        }
        heading = own;
        text += &definition(&term(argument), &meaning(argument));
    }
    text
}

/// How an argument is written.
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

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// What it does, its choices, its variable and its default.
fn meaning(argument: &Arg) -> String {
    let short = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    // Some defaults are told in words.
    let (short, told) = match short.split_once(" [default: ") {
        Some((short, told)) => (
            short.to_owned(),
            Some(told.trim_end_matches(']').to_owned()),
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
            format!("`{}` ({})", choice.get_name(), lower(&prose(&help)))
        });
        let listed: Vec<String> = listed.collect();
        let _ = write!(text, " One of {}.", listed.join(", "));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, " Variable: `{}`.", variable.display());
    }
    let defaults = argument.get_default_values();
    let defaults: Vec<String> = defaults.iter().map(|it| it.display().to_string()).collect();
    match (told, defaults.is_empty() || !takes_value(argument)) {
        (Some(told), _) => {
            let _ = write!(text, " Default: {}.", prose(&told));
        }
        (None, false) => {
            let _ = write!(text, " Default: `{}`.", defaults.join(","));
        }
        (None, true) => {}
    }
    text
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
