//! What a command prints, and the codes that it ends with.

use std::io::Write as _;

pub(super) use crate::cli::exit_codes::{ERRORS, FAILED};

/// A line for people, to stderr.
pub(super) fn say(line: &str) {
    anstream::eprintln!("{line}");
}

/// Data, to stdout; colours only where these are taken. A reader that went away is not a failure.
pub(super) fn print(text: &str) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}

/// The same, byte for byte.
pub(super) fn write(bytes: &[u8]) {
    let _ = std::io::stdout().lock().write_all(bytes);
}
