//! Every page of the six sites over HTTPS in a real browser that trusts the test's root certificate.

use std::fs;
use std::process::Command;

use rowhouse_tests::{binary, must_succeed, playwright, reserved_address, workspace};
use tempfile::TempDir;

use crate::support::{Rowhouse, is_there, run};
use crate::tls::{DOMAIN, Signer};

#[test]
fn browser_loads_every_page_over_http2_without_warning() {
    // A tool of NSS. Chromium on Linux reads the NSS store of root certificates in the user's home.
    if !is_there("certutil") {
        return;
    }
    let home = TempDir::new().expect("a folder");
    let signer = Signer::new();
    let files = signer.write(home.path());
    let root = home.path().join("root.pem");
    fs::write(&root, signer.root()).expect("a file");
    let store = home.path().join(".pki/nssdb");
    fs::create_dir_all(&store).expect("a folder");
    let store = format!("sql:{}", store.display());
    let (made, said) = run(Command::new("certutil").args(["-N", "-d", &store, "--empty-password"]));
    assert!(made, "{said}");
    let (added, said) = run(Command::new("certutil")
        .args(["-A", "-d", &store, "-n", "test", "-t", "C,,", "-i"])
        .arg(&root));
    assert!(added, "{said}");

    let address = reserved_address().to_string();
    let mut command = files.serve(&workspace().join("tenants"));
    command
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--https", &address]);
    let _server = Rowhouse::start_with(&mut command);
    let origin = format!("https://{DOMAIN}");
    let routes = home.path().join("routes.json");
    let listed = Command::new(binary())
        .args(["routes", "--format", "json", "--origin", &origin])
        .current_dir(workspace())
        .output()
        .expect("rowhouse");
    assert!(listed.status.success(), "{listed:?}");
    fs::write(&routes, listed.stdout).expect("a file");
    must_succeed(
        playwright()
            .env("HOME", home.path())
            .env("ROWHOUSE_URL", &origin)
            .env("ROWHOUSE_DEV_UI_URL", &origin)
            .env("ROWHOUSE_HTTPS_ADDRESS", &address)
            .env("ROWHOUSE_BINARY", binary())
            .env("ROWHOUSE_ROUTES", &routes),
    );
}
