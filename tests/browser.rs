//! Starts the real binary, and runs the Playwright tests against it in Chromium.
//!
//! Two servers run: the released build, and one whose islands are React's development build. Only the latter reports hydration mismatches.
//! The packages come from the npm registry. `browser/chromium.mjs` finds or downloads the browser.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use rowhouse_tests::{TestServer, binary, must_succeed, playwright, workspace};

#[test]
fn every_page_passes_in_a_real_browser() {
    let workspace = workspace();
    let scratch = tempfile::tempdir().expect("a folder");
    let (server, development) = thread::scope(|scope| {
        let development = scope.spawn(|| with_development_build(&workspace, scratch.path()));
        let server = TestServer::start(&workspace, &[]);
        (server, development.join().expect("a server"))
    });
    let routes = scratch.path().join("routes.json");
    fs::write(&routes, routes_of(&server, &workspace)).expect("a written file");

    must_succeed(
        playwright()
            .env("ROWHOUSE_URL", format!("http://{}", server.domain()))
            .env(
                "ROWHOUSE_DEV_UI_URL",
                format!("http://{}", development.domain()),
            )
            .env("ROWHOUSE_ADMIN_URL", format!("http://{}", server.admin))
            .env("ROWHOUSE_BINARY", binary())
            .env("ROWHOUSE_ROUTES", &routes),
    );
}

/// Starts a server whose islands are React's development build.
fn with_development_build(workspace: &Path, scratch: &Path) -> TestServer {
    let islands = scratch.join("ui");
    must_succeed(
        Command::new("node")
            .args(["build.mjs", "--dev", "--out"])
            .arg(&islands)
            .current_dir(workspace.join("ui")),
    );
    TestServer::start(workspace, &["--ui-dist", &islands.display().to_string()])
}

/// Returns the output of `rowhouse routes` for the server.
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
