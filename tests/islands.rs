//! Runs the islands' own tests: pure functions, build output, sizes.

use std::process::Command;

use rowhouse_tests::workspace;

#[test]
fn islands_pass_their_own_tests() {
    // The build of the `rowhouse-ui` crate, a dependency of this crate, has installed the packages.
    let status = Command::new("npm")
        .args(["test", "--silent"])
        .current_dir(workspace().join("ui"))
        .status()
        .expect("npm");
    assert!(status.success(), "`npm test` in `ui` failed: {status}");
}
