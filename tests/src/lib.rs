//! What the end-to-end tests stand on: a copied fixture to change ([`TestSite`]) and the real binary ([`TestServer`]).

#![expect(clippy::expect_used, reason = "a test's helper fails by panicking")]

mod bad_disk;
mod client;
pub mod hostile;
mod measure;
mod playwright;
mod server;
mod site;
pub mod state;

use std::io::Write as _;
use std::path::{Path, PathBuf};

pub use bad_disk::BadDisk;
pub use client::Visitor;
pub use measure::{Process, Times};
pub use playwright::{must_succeed, playwright};
pub use server::{Answer, TestServer, address_in, binary, reserved_address};
pub use site::{NOW, TestSite, copy, expect_text, text_of};

/// The repository.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned)
}

/// Whether tests that could go on for long do so: `ROWHOUSE_LONG` is set, and not to nothing.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("ROWHOUSE_LONG").is_some_and(|value| !value.is_empty())
}

/// A folder below `tests/fixtures`.
#[must_use]
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(path)
}

/// Says that a test is left out, and why. Where the variable `CI` is set, and not to nothing, and `must` says so, that is a failure.
pub fn skip(why: &str, must: bool) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!(is_ci && must), "{why}");
    // Past the test harness, which keeps what a passing test prints to itself.
    let _ = std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes());
}
