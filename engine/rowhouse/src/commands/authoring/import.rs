//! `rowhouse import`: settings of other servers as lines of a manifest.

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::{ImportArguments, ImportKind, ImportRedirectsArguments};
use crate::commands::output::{counted, print, print_message};
use crate::import::read;

/// Converts settings.
pub(crate) fn run(arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    match &arguments.kind {
        ImportKind::Redirects(arguments) => redirects(arguments),
    }
}

/// Prints the redirects of all files to stdout, and each line that is not carried over to stderr.
fn redirects(arguments: &ImportRedirectsArguments) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    let (mut carried, mut left) = (0_usize, 0_usize);
    for file in &arguments.files {
        let name = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read `{name}`"))?;
        let imported = read(&text);
        carried += imported.redirects.len();
        left += imported.problems.len();
        lines.extend(imported.redirects.iter().map(ToString::to_string));
        for problem in imported.problems {
            let (line, column) = (problem.line, problem.column);
            print_message(&format!("{name}:{line}:{column}: {}", problem.message));
            print_message(&format!("  hint: {}", problem.hint));
        }
    }
    if !lines.is_empty() {
        print("redirects:");
    }
    for line in lines {
        print(&line);
    }
    print_message(&format!(
        "{}, {} about lines that differ",
        counted(carried, "redirect"),
        counted(left, "note")
    ));
    Ok(ExitCode::SUCCESS)
}
