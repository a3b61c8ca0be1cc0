//! Parses the command line, runs the command, and ends with its exit code.

use std::process::ExitCode;

use clap::Parser as _;
use rowhouse::cli::Cli;
use rowhouse::commands;

fn main() -> ExitCode {
    commands::run(Cli::parse())
}
