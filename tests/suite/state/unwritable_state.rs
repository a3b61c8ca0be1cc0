//! A state (`--state`) that cannot be written: an alarm while the server runs, and a refusal at startup.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};

use rowhouse_tests::{BadDisk, TestServer, binary, state};

use crate::state::rollback::{numbers, run, run_successfully, save_terms, serves_words, wait};
use crate::state::stateful_deployment::StatefulDeployment;

fn ready(server: &TestServer) -> String {
    server.get_admin("/readyz").text()
}

fn has_metric(server: &TestServer, line: &str) -> bool {
    let text = server.get_admin("/metrics").text();
    text.lines().any(|known| known == line)
}

/// Checks the alarm in each place where an operator looks, and that visitors get the newest pages.
fn check_alarm(server: &TestServer, deployment: &StatefulDeployment, reason: &str) {
    save_terms(deployment, "unwritten");
    wait("the saved page", || serves_words(server, "unwritten"));
    wait("the alarm", || {
        let text = ready(server);
        text.contains("alarm: the state cannot be written: ") && text.contains(reason)
    });
    assert_eq!(
        server.get_admin("/readyz").status,
        200,
        "visitors are served"
    );
    assert!(has_metric(server, "rowhouse_state_writable 0"));
    assert!(!has_metric(server, "rowhouse_state_write_failures_total 0"));
    let console = server.get_admin("/").text();
    assert!(console.contains("The state cannot be written"), "{console}");
}

/// Checks that the alarm ends, and that nothing is lost.
fn check_recovery(server: &TestServer) {
    wait("the end of the alarm", || !ready(server).contains("alarm"));
    wait("the release", || {
        run_successfully(server, &["releases", "app"]).contains("pages/terms.md")
    });
    wait("the metrics", || {
        has_metric(server, "rowhouse_state_writable 1")
            && has_metric(server, "rowhouse_state_queued_bytes 0")
    });
    let log = server.log();
    assert!(log.contains("state can be written again"), "{log}");
}

#[test]
fn full_disk_is_an_alarm_until_there_is_space() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    wait("the release of the start", || numbers(&server) == [1]);
    drop(server);
    let Some(disk) = BadDisk::full(&deployment.path("state")) else {
        return;
    };
    let server = TestServer::start_on(&disk, &deployment.path(""), &["--state", "state"]);
    check_alarm(&server, &deployment, "No space left on device");
    disk.free_space(server.id());
    check_recovery(&server);
}

#[test]
fn folder_that_vanishes_is_an_alarm_until_it_is_back() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    wait("the release of the start", || numbers(&server) == [1]);
    let folder = state::deployments(&deployment.path("state")).remove(0);
    let away = deployment.path("away");
    fs::rename(&folder, &away).expect("a folder");
    // Not even root can write below a file.
    fs::write(&folder, "").expect("a file");
    check_alarm(&server, &deployment, "is a file, not a folder");
    let (code, text) = run(&server, &["rollback", "app"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the state cannot be written"), "{text}");
    let (code, text) = run(&server, &["releases", "app"]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("`app` has no releases: the state cannot be written: "),
        "{text}"
    );
    let page = server.get_admin("/sites/app").text();
    assert!(page.contains("the state cannot be written"), "{page}");
    fs::remove_file(&folder).expect("a file");
    fs::rename(&away, &folder).expect("a folder");
    check_recovery(&server);
}

/// Starts a server that is expected to end at once. `command`: the program `timeout`.
fn serve(deployment: &StatefulDeployment, mut command: Command) -> Output {
    let command = command.arg("120").arg(binary());
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let command = command.args(arguments).args(["--state", "state"]);
    let command = command.current_dir(deployment.path(""));
    command.output().expect("rowhouse")
}

/// Checks that a server does not start, and says why.
fn check_refusal(output: &Output, reason: &str) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot use `--state state`: "), "{text}");
    assert!(text.contains(reason), "{text}");
    assert!(text.contains("`--state-optional`"), "{text}");
}

#[test]
fn file_in_place_of_the_state_is_refused_at_startup() {
    let deployment = StatefulDeployment::new();
    deployment.write("state", "a file");
    let output = serve(&deployment, Command::new("timeout"));
    check_refusal(&output, "is a file, not a folder");
    let flags = ["--state", "state", "--state-optional"];
    let server = TestServer::start(&deployment.path(""), &flags);
    assert_eq!(server.get(&server.domain(), "/app/terms").status, 200);
    let text = ready(&server);
    assert!(text.contains("is a file, not a folder"), "{text}");
    assert!(has_metric(&server, "rowhouse_state_writable 0"));
}

#[test]
fn read_only_disk_is_refused_at_startup() {
    let deployment = StatefulDeployment::new();
    fs::create_dir(deployment.path("state")).expect("a folder");
    let Some(disk) = BadDisk::read_only(&deployment.path("state")) else {
        return;
    };
    let output = serve(&deployment, disk.command("timeout"));
    check_refusal(&output, "Read-only file system");
}

/// The user `nobody` of common systems.
const NOBODY: u32 = 65_534;

#[test]
fn state_of_another_user_is_refused_at_startup() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start a program as another user");
        return;
    }
    let deployment = StatefulDeployment::new();
    let state = deployment.path("state");
    fs::create_dir(&state).expect("a folder");
    let access = |folder, mode| {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("a folder");
    };
    access(deployment.path(""), 0o755);
    let mut command = Command::new(binary());
    command.uid(NOBODY).arg("--version");
    let tried = command.current_dir(deployment.path("")).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: another user cannot start {}", binary().display());
        return;
    }
    access(state, 0o755);
    let mut command = Command::new("timeout");
    command.uid(NOBODY);
    let output = serve(&deployment, command);
    let reason = format!("belongs to user 0, but this process runs as user {NOBODY}");
    check_refusal(&output, &reason);
}
