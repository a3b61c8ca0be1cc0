//! A command of the real program, and its output as text.

use std::path::Path;
use std::process::{Command, Output};

use crate::server::binary;

/// Runs a command of the program in a folder, and waits for its end.
///
/// # Panics
/// Panics if the program cannot be started.
#[must_use]
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(binary())
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("rowhouse")
}

/// Returns the standard output as text.
#[must_use]
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the standard error as text.
#[must_use]
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
