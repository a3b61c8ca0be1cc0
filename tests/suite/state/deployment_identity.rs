//! The state (`--state`) belongs to a deployment: its releases and pins survive moved folders, and are never mixed with those of another deployment.

use std::fs;
use std::path::Path;
use std::process::Command;

use rowhouse_tests::{TestServer, state};

use crate::state::rollback::{
    numbers, pinned, run_successfully, save_terms, serve_three_releases, serves_words, wait,
};
use crate::state::stateful_deployment::StatefulDeployment;

/// The flags of a deployment that is not on a laptop.
const PUBLIC: [&str; 4] = ["--state", "state", "--origin", "http://studio.example"];

fn serve(deployment: &StatefulDeployment, flags: &[&str]) -> TestServer {
    TestServer::start(&deployment.path(""), flags)
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(done.expect("cp").success());
}

fn terms(server: &TestServer, domain: &str) -> (u16, String) {
    let answer = server.get(domain, "/app/terms");
    (answer.status, answer.text())
}

/// Starts a server at a public origin, whose tenant is pinned to the first of two releases.
fn serve_pinned(deployment: &StatefulDeployment, flags: &[&str]) -> TestServer {
    let server = serve(deployment, flags);
    wait("the first release", || numbers(&server) == [1]);
    save_terms(deployment, "withdrawn");
    wait("the second release", || numbers(&server) == [2, 1]);
    run_successfully(&server, &["rollback", "app", "1"]);
    server
}

#[test]
fn moved_folder_of_tenants_keeps_releases_and_pin() {
    let deployment = StatefulDeployment::new();
    let server = serve_three_releases(&deployment);
    run_successfully(&server, &["rollback", "app", "2"]);
    drop(server);
    fs::rename(deployment.path("tenants"), deployment.path("elsewhere")).expect("a folder");
    let server = serve(&deployment, &["--state", "state", "--tenants", "elsewhere"]);
    assert!(serves_words(&server, "first"), "{}", server.log());
    // The port in the origin has changed, so that there may be a fourth release.
    assert!(numbers(&server).ends_with(&[3, 2, 1]));
    assert_eq!(pinned(&server), Some(2));
    let log = server.log();
    assert!(log.contains("the folder of tenants has moved"), "{log}");
    assert_eq!(state::deployments(&deployment.path("state")).len(), 1);
}

#[test]
fn release_folder_beside_the_former_one_keeps_releases_and_pin() {
    let deployment = StatefulDeployment::new();
    drop(serve_pinned(&deployment, &PUBLIC));
    copy(&deployment.path("tenants"), &deployment.path("tenants-2"));
    let moved = [&PUBLIC[..], &["--tenants", "tenants-2"]].concat();
    let server = serve(&deployment, &moved);
    let (status, text) = terms(&server, "studio.example");
    assert_eq!(status, 200, "{}", server.log());
    assert!(!text.contains("withdrawn"), "{text}");
    assert_eq!((numbers(&server), pinned(&server)), (vec![2, 1], Some(1)));
}

#[test]
fn deployments_with_one_state_folder_have_their_own_releases_and_pins() {
    let deployment = StatefulDeployment::new();
    let server = serve_pinned(&deployment, &PUBLIC);
    copy(&deployment.path("tenants"), &deployment.path("second"));
    let second = [
        "--state",
        "state",
        "--origin",
        "http://second.example",
        "--tenants",
        "second",
    ];
    let other = serve(&deployment, &second);
    wait("its release", || numbers(&other) == [1]);
    assert_eq!(pinned(&other), None);
    let (_, text) = terms(&other, "second.example");
    assert!(text.contains("withdrawn"), "its own folder: {text}");
    let log = other.log();
    assert!(log.contains("no state of this deployment"), "{log}");
    assert!(log.contains("http://studio.example"), "{log}");
    drop((server, other));
    let server = serve(&deployment, &PUBLIC);
    assert_eq!((numbers(&server), pinned(&server)), (vec![2, 1], Some(1)));
}

#[test]
fn state_of_the_former_version_is_adopted_once() {
    let deployment = StatefulDeployment::new();
    drop(serve_pinned(&deployment, &PUBLIC));
    let folder = state::deployments(&deployment.path("state")).remove(0);
    fs::remove_file(folder.join("deployment")).expect("a file");
    let paths = ["tenants", "themes"].map(|path| deployment.path(path).display().to_string());
    fs::write(folder.join("used"), format!("{}\n{}\n", paths[0], paths[1])).expect("a file");
    let server = serve(&deployment, &PUBLIC);
    assert_eq!((numbers(&server), pinned(&server)), (vec![2, 1], Some(1)));
    drop(server);
    let label = fs::read_to_string(folder.join("deployment")).expect("a label");
    assert!(label.contains("origin: http://studio.example\n"), "{label}");
    fs::rename(deployment.path("tenants"), deployment.path("elsewhere")).expect("a folder");
    let moved = [&PUBLIC[..], &["--tenants", "elsewhere"]].concat();
    let server = serve(&deployment, &moved);
    assert_eq!((numbers(&server), pinned(&server)), (vec![2, 1], Some(1)));
}

#[test]
fn pinned_release_that_cannot_be_read_is_an_alarm_and_503() {
    let deployment = StatefulDeployment::new();
    drop(serve_pinned(&deployment, &PUBLIC));
    let folder = state::deployments(&deployment.path("state")).remove(0);
    let (release, pin) = (
        folder.join("releases/app/1"),
        folder.join("releases/app/pinned"),
    );
    for (file, damage) in [(&release, &b"damaged"[..]), (&pin, b"damaged")] {
        let complete = fs::read(file).expect("a file");
        fs::write(file, damage).expect("a file");
        let server = serve(&deployment, &PUBLIC);
        let answer = server.get("studio.example", "/app/terms");
        assert_eq!(answer.status, 503, "{}", server.log());
        assert_eq!(answer.header("retry-after"), "1");
        assert!(!answer.text().contains("withdrawn"));
        assert_eq!(
            server.get("studio.example", "/").status,
            200,
            "another tenant"
        );
        let ready = server.get_admin("/readyz");
        assert_eq!(ready.status, 200);
        let text = ready.text();
        assert!(text.contains("alarm: the pinned release"), "{text}");
        assert!(text.contains("`rowhouse resume app`"), "{text}");
        let metrics = server.get_admin("/metrics").text();
        assert!(metrics.contains("\nrowhouse_tenants_pin_unreadable 1\n"));
        let tenants = server.get_admin("/tenants").text();
        assert!(tenants.contains("\"unreadable_pin\":"), "{tenants}");
        let console = server.get_admin("/").text();
        assert!(console.contains("1 site is unavailable"), "{console}");
        assert!(
            server
                .get_admin("/sites/app")
                .text()
                .contains("cannot be served")
        );
        fs::write(file, complete).expect("a file");
        if *file == release {
            // The next reading of the folder tries the release again.
            server.signal("HUP");
            wait("the pinned release", || {
                terms(&server, "studio.example").0 == 200
            });
            let (_, text) = terms(&server, "studio.example");
            assert!(!text.contains("withdrawn"), "{text}");
            assert_eq!(pinned(&server), Some(1));
        } else {
            run_successfully(&server, &["resume", "app"]);
            let (status, text) = terms(&server, "studio.example");
            assert_eq!(status, 200);
            assert!(text.contains("withdrawn"), "the operator decided: {text}");
        }
        wait("the end of the alarm", || {
            !server.get_admin("/readyz").text().contains("alarm")
        });
    }
}
