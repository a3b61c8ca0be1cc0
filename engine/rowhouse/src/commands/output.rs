//! The output of commands: messages to stderr, data to stdout.

use std::io::Write as _;

#[cfg(feature = "bucket")]
pub(super) use crate::cli::exit_codes::CONFLICT;
pub(super) use crate::cli::exit_codes::{ERRORS, FAILED};

/// Prints a message for people, to stderr.
pub(super) fn print_message(line: &str) {
    anstream::eprintln!("{line}");
}

/// Prints data to stdout, with colours if stdout is a terminal. A closed pipe is not an error.
pub(super) fn print(text: &str) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}

/// Returns a number with its noun, such as `1 error` or `2 errors`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Writes bytes to stdout without a change. A closed pipe is not an error.
pub(super) fn write(bytes: &[u8]) {
    let _ = std::io::stdout().lock().write_all(bytes);
}
