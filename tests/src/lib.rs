//! The base of the end-to-end tests: a copy of a fixture to change ([`TestSite`]), and the real binary ([`TestServer`]).

#![expect(clippy::expect_used, reason = "a test's helper fails by panicking")]

mod bad_disk;
mod command;
pub mod hostile_folders;
mod measure;
mod playwright;
pub mod redirect_cases;
mod server;
mod site;
pub mod state;
mod visitor;

use std::io::Write as _;
use std::path::{Path, PathBuf};

pub use bad_disk::BadDisk;
pub use command::{run, stderr, stdout};
pub use measure::{Process, Times};
pub use playwright::{must_succeed, playwright};
pub use server::{Answer, TestServer, address_in, binary, reserved_address};
pub use site::{NOW, TestSite, copy, expect_text, text_of};
pub use visitor::Visitor;

/// Returns the folder of the repository.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned)
}

/// Whether long tests run in full: `ROWHOUSE_LONG` is set and not empty.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("ROWHOUSE_LONG").is_some_and(|value| !value.is_empty())
}

/// Returns a folder below `tests/fixtures`.
#[must_use]
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(path)
}

/// Prints that a test is skipped, and the reason. Panics if `must` is set, and the variable `CI` is set and not empty.
pub fn skip(why: &str, must: bool) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!(is_ci && must), "{why}");
    // Written directly, since the test harness hides the output of passing tests.
    let _ = std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes());
}
