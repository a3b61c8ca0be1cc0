//! The exit codes of the program, in one list for the code, `--help` and the manual.

use std::fmt::Write as _;

/// The exit code of a command that ran and found errors, or that the server refused.
pub(crate) const ERRORS: u8 = 1;
/// The exit code of a command that could not run.
pub(crate) const FAILED: u8 = 2;

/// The exit code of a publication that another publisher has preceded.
#[cfg(feature = "bucket")]
pub(crate) const CONFLICT: u8 = 3;

/// The number of entries in the list: builds with the feature `bucket` have more commands.
const ENTRIES: usize = if cfg!(feature = "bucket") { 12 } else { 7 };

/// Every exit code with the commands that end with it (none: all of them) and its meaning.
pub(crate) const EXIT_CODES: [(u8, &[&str], &str); ENTRIES] = [
    (0, &[], "success"),
    (ERRORS, &["check", "export"], "errors were found"),
    (
        ERRORS,
        &["certificates"],
        "no valid certificate, no new certificate, or HTTPS is off",
    ),
    (
        ERRORS,
        &["probe"],
        "the server is not ready or not reachable, or HTTPS fails",
    ),
    (
        ERRORS,
        &[
            "releases", "diff", "rollback", "resume", "restore", "visits",
        ],
        "the server refused",
    ),
    #[cfg(feature = "bucket")]
    (
        ERRORS,
        &["publish"],
        "errors were found; the tenants with errors keep their version",
    ),
    #[cfg(feature = "bucket")]
    (
        ERRORS,
        &["releases", "diff", "rollback", "resume"],
        "with `--store`: the store has no such tenant or version",
    ),
    #[cfg(feature = "bucket")]
    (ERRORS, &["store"], "an object is damaged or missing"),
    (
        FAILED,
        &[],
        "could not run: a wrong flag, an unreadable file, no server",
    ),
    (
        FAILED,
        &["serve"],
        "a second signal ended the process at once",
    ),
    #[cfg(feature = "bucket")]
    (
        FAILED,
        &["unpublish"],
        "the tenant was never published (0 if it is a preview)",
    ),
    #[cfg(feature = "bucket")]
    (
        CONFLICT,
        &["publish", "unpublish", "rollback", "resume"],
        "another publisher was first; nothing was changed",
    ),
];

/// Returns the list as `--help` prints it.
pub(super) fn help() -> String {
    let mut text = String::from("Exit codes:");
    for (code, commands, meaning) in EXIT_CODES {
        let commands = commands.join(", ");
        let colon = if commands.is_empty() { "" } else { ": " };
        let _ = write!(text, "\n  {code}  {commands}{colon}{meaning}");
    }
    text
}
