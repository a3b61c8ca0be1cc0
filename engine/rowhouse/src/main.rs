//! Parses the command line, runs the command, and ends with its exit code.

use std::process::ExitCode;

use clap::Parser as _;
use rowhouse::cli::Cli;
use rowhouse::commands;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // A server at rest frees nothing that would remind the allocator of giving back what was freed before. Where it has no thread for that, it does so later.
    #[cfg(feature = "jemalloc")]
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    commands::run(Cli::parse())
}
