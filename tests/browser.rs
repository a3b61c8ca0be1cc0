//! Starts the real binary and lets Playwright walk through it in a real Chromium.
//!
//! Two servers run: one as it is released, and one whose islands are React's development build, which alone reports a hydration that does not fit.
//! Everything that the walk needs comes from the npm registry: see `browser/chromium.mjs` for where the browser comes from.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use rowhouse_tests::{TestServer, binary, must_succeed, playwright, workspace};

#[test]
fn every_page_holds_in_a_real_browser() {
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
            .env("ROWHOUSE_ADMIN_URL", format!("http://{}", server.operators))
            .env("ROWHOUSE_BINARY", binary())
            .env("ROWHOUSE_ROUTES", &routes),
    );
}

/// A server whose islands are React's development build.
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
