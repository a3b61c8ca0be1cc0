//! Parses the command line, runs the command, and ends with its exit code.

use std::process::ExitCode;

use clap::Parser as _;
use rowhouse::cli::Cli;
use rowhouse::commands;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    commands::run(Cli::parse())
}
