//! The packages of the browser tests, and the program that runs them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::workspace;

/// Returns a command that runs the specs in `tests/browser`. Installs its packages if needed. The caller sets the environment of the specs: `browser/support/environment.ts`.
///
/// # Panics
/// Panics if the packages cannot be installed.
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

/// Installs the packages if their lock file has changed.
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
/// Panics if the program is missing or fails.
pub fn must_succeed(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| {
        panic!("cannot run {command:?}: {error}; the browser tests need Node 20 or later")
    });
    assert!(status.success(), "{command:?} failed: {status}");
}
