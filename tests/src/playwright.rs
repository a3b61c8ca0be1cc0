//! The browser tests' packages, and the program that runs them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::workspace;

/// A command that runs the specs in `tests/browser`; its packages are installed where they are not. What the specs read of the environment is its caller's: `browser/support/environment.ts`.
///
/// # Panics
/// When the packages cannot be installed.
#[must_use]
pub fn playwright() -> Command {
    let browser = workspace().join("tests/browser");
    install(&browser);
    let mut command = Command::new("npx");
    command
        .args(["--no-install", "playwright", "test"])
        .current_dir(browser);
    command
}

/// Installs the packages when their lock file changed since the last time.
fn install(browser: &Path) {
    let lock = fs::read(browser.join("package-lock.json")).expect("a lock file");
    let stamp = browser.join("node_modules/.installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return;
    }
    must_succeed(
        Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund"])
            .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
            .current_dir(browser),
    );
    fs::write(stamp, lock).expect("a written file");
}

/// Runs a program of the browser tests, with its output on the terminal.
///
/// # Panics
/// When it is not there, or fails.
pub fn must_succeed(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| {
        panic!("cannot run {command:?}: {error}; the browser tests need Node 20 or later")
    });
    assert!(status.success(), "{command:?} failed: {status}");
}
