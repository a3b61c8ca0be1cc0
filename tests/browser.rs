//! Starts the real binary and lets Playwright walk through it in a real Chromium.
//!
//! Two servers run: one as it is released, and one whose islands are React's development build, which alone reports a hydration that does not fit.
//! Everything that the walk needs comes from the npm registry: see `browser/chromium.mjs` for where the browser comes from.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use rowhouse_tests::{TestServer, binary, workspace};

#[test]
fn every_page_holds_in_a_real_browser() {
    let workspace = workspace();
    let browser = workspace.join("tests/browser");
    install(&browser);
    let scratch = tempfile::tempdir().expect("a folder");
    let development = scratch.path().join("ui");
    run(Command::new("node")
        .args(["build.mjs", "--dev", "--out"])
        .arg(&development)
        .current_dir(workspace.join("ui")));

    let server = TestServer::start(&workspace, &[]);
    let development = development.display().to_string();
    let development = TestServer::start(&workspace, &["--ui-dist", &development]);
    let routes = scratch.path().join("routes.json");
    fs::write(&routes, routes_of(&server, &workspace)).expect("a written file");

    run(Command::new("npx")
        .args(["--no-install", "playwright", "test"])
        .current_dir(&browser)
        .env("ROWHOUSE_URL", format!("http://{}", server.domain()))
        .env(
            "ROWHOUSE_DEV_UI_URL",
            format!("http://{}", development.domain()),
        )
        .env("ROWHOUSE_ADMIN_URL", format!("http://{}", server.operators))
        .env("ROWHOUSE_BINARY", binary())
        .env("ROWHOUSE_ROUTES", &routes));
}

/// Who answers what on that server, as `rowhouse routes` says.
fn routes_of(server: &TestServer, workspace: &Path) -> Vec<u8> {
    let output = Command::new(binary())
        .args(["routes", "--format", "json", "--origin"])
        .arg(format!("http://{}", server.domain()))
        .current_dir(workspace)
        .output()
        .expect("rowhouse");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Installs the browser tests' packages when their lock file changed since the last time.
fn install(browser: &Path) {
    let lock = fs::read(browser.join("package-lock.json")).expect("a lock file");
    let stamp = browser.join("node_modules/.installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return;
    }
    run(Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund"])
        .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
        .current_dir(browser));
    fs::write(stamp, lock).expect("a written file");
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| {
        panic!("cannot run {command:?}: {error}; the browser tests need Node 20 or later")
    });
    assert!(status.success(), "{command:?} failed: {status}");
}
