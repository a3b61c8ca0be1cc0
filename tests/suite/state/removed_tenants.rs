//! A tenant whose folder was removed: operators are told, its history stays for a time, and `rowhouse restore` serves it again.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, binary};

use crate::state::stateful_deployment::StatefulDeployment;

const TIMEOUT: Duration = Duration::from_secs(60);

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the exit code and the output of a command for the running server.
fn run(server: &TestServer, command: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .args(command)
        .args(["--admin", &server.admin.to_string()])
        .output()
        .expect("rowhouse");
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    (output.status.code(), text)
}

fn run_successfully(server: &TestServer, command: &[&str]) -> String {
    let (code, text) = run(server, command);
    assert_eq!(code, Some(0), "{command:?}\n{text}\n{}", server.log());
    text
}

/// Runs `restore --to` beside the running server.
fn write_folder(deployment: &StatefulDeployment, to: &str) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .current_dir(deployment.path(""))
        .args(["restore", "app", "--to", to, "--state", "state"])
        .output()
        .expect("rowhouse");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

/// Returns the numbers of the releases of a tenant, newest first.
fn numbers(server: &TestServer, tenant: &str) -> Vec<u64> {
    let (_, text) = run(server, &["releases", tenant, "--format", "json"]);
    let releases: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
    let numbers = releases.iter().map(|release| release["number"].as_u64());
    numbers.map(|number| number.expect("a number")).collect()
}

/// Returns the line of a tenant in `/tenants`.
fn line(server: &TestServer, tenant: &str) -> serde_json::Value {
    let lines: Vec<serde_json::Value> =
        serde_json::from_slice(&server.get_admin("/tenants").body).expect("JSON");
    let line = lines.into_iter().find(|line| line["id"] == tenant);
    line.unwrap_or_default()
}

fn state_of(server: &TestServer, tenant: &str) -> String {
    line(server, tenant)["state"]
        .as_str()
        .unwrap_or("")
        .to_owned()
}

fn terms(server: &TestServer) -> u16 {
    server.get(&server.domain(), "/app/terms").status
}

/// Starts a server whose tenants are persisted, and moves the folder of `app` away.
fn serve_without_app(deployment: &StatefulDeployment, flags: &[&str]) -> TestServer {
    let flags = [&["--state", "state"], flags].concat();
    let server = TestServer::start(&deployment.path(""), &flags);
    wait("releases of both", || {
        numbers(&server, "app") == [1] && numbers(&server, "home") == [1]
    });
    fs::rename(deployment.path("tenants/app"), deployment.path("away")).expect("moved");
    wait("the removal", || terms(&server) == 404);
    server
}

#[test]
fn removal_is_told_and_history_stays() {
    let deployment = StatefulDeployment::new();
    let server = serve_without_app(&deployment, &[]);
    wait("its state", || state_of(&server, "app") == "removed");
    let log = server.log();
    let told = log.lines().find(|line| line.contains("folder removed"));
    let told = told.unwrap_or_else(|| panic!("{log}"));
    assert!(
        told.contains("\"app\"") && told.contains("rowhouse restore"),
        "{told}"
    );
    let ready = server.get_admin("/readyz");
    assert_eq!(ready.status, 200);
    assert!(ready.text().contains("app: removed"), "{}", ready.text());
    let metrics = server.get_admin("/metrics").text();
    assert!(
        metrics.contains("rowhouse_tenants{state=\"removed\"} 1"),
        "{metrics}"
    );
    let console = server.get_admin("/").text();
    assert!(
        console.contains("Removed sites") && console.contains("rowhouse restore app"),
        "{console}"
    );
    let page = server.get_admin("/sites/app").text();
    assert!(page.contains("app was removed"), "{page}");

    let list = run_successfully(&server, &["releases", "app"]);
    assert!(
        list.contains("is not served, because its folder was removed"),
        "{list}"
    );
    assert_eq!(line(&server, "home")["state"], "live");
    for command in [["rollback", "app"], ["resume", "app"]] {
        let (code, text) = run(&server, &command);
        assert_eq!(code, Some(1), "{command:?}");
        assert!(
            text.contains("was removed: serve its last valid pages"),
            "{text}"
        );
    }
    let (code, text) = run(&server, &["restore", "home"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("the folder of `home` exists"), "{text}");
    let (code, text) = run(&server, &["restore", "nobody"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("unknown tenant `nobody`"), "{text}");
    drop(server);

    // A restart does not forget the removal, and does not tell it again.
    let server = deployment.serve();
    assert_eq!(state_of(&server, "app"), "removed");
    assert!(!server.log().contains("folder removed"), "{}", server.log());
    assert_eq!(numbers(&server, "app"), [1]);
}

#[test]
fn removal_while_no_server_runs_is_told_at_startup() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    wait("a release", || numbers(&server, "app") == [1]);
    drop(server);
    fs::rename(deployment.path("tenants/app"), deployment.path("away")).expect("moved");
    let server = deployment.serve();
    assert_eq!(state_of(&server, "app"), "removed");
    assert!(server.log().contains("folder removed"), "{}", server.log());
    assert_eq!(terms(&server), 404);
    run_successfully(&server, &["restore", "app"]);
    wait("its pages", || terms(&server) == 200);
}

#[test]
fn restored_tenant_is_served_until_its_folder_is_back() {
    let deployment = StatefulDeployment::new();
    let server = serve_without_app(&deployment, &[]);
    let before = fs::read_to_string(deployment.path("away/pages/terms.md")).expect("a page");
    run_successfully(&server, &["restore", "app"]);
    wait("its pages", || terms(&server) == 200);
    run_successfully(&server, &["restore", "app"]);
    assert_eq!(state_of(&server, "app"), "degraded");
    let errors = line(&server, "app")["errors"].to_string();
    assert!(errors.contains("the folder is gone"), "{errors}");
    // The process is killed without a moment to write its state.
    drop(server);
    let server = deployment.serve();
    assert_eq!(
        terms(&server),
        200,
        "restored over a restart: {}",
        server.log()
    );
    // A change of another tenant lists the folders again, and does not remove the restored tenant.
    deployment.write("tenants/home/pages/new.md", "---\ntitle: New\n---\n");
    wait("the page", || {
        server.get(&server.domain(), "/new").status == 200
    });
    server.signal("HUP");
    assert_eq!(terms(&server), 200);

    let (code, text) = write_folder(&deployment, "tenants/home");
    assert_eq!(code, Some(2));
    assert!(text.contains("the folder has files"), "{text}");
    let (code, text) = write_folder(&deployment, "tenants/app");
    assert_eq!(code, Some(0), "{text}");
    let after = fs::read_to_string(deployment.path("tenants/app/pages/terms.md"));
    assert_eq!(after.expect("a page"), before);
    let differs = Command::new("diff")
        .args(["-r", "away", "tenants/app"])
        .current_dir(deployment.path(""))
        .status();
    assert!(differs.expect("diff").success(), "every file is back");
    wait("the folder", || state_of(&server, "app") == "live");
    // The list of folders may follow the reading of the folder.
    wait("the line in the log", || {
        server.log().contains("folder of a removed tenant is back")
    });
    let moved = "---\ntitle: Terms\n---\nThe folder counts again.\n";
    deployment.write("tenants/app/pages/terms.md", moved);
    wait("the change", || {
        let page = server.get(&server.domain(), "/app/terms").text();
        page.contains("The folder counts again.")
    });
}

#[test]
fn pin_of_a_removed_tenant_counts_when_it_is_restored() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    wait("a release", || numbers(&server, "app") == [1]);
    let withdrawn = "---\ntitle: Terms\n---\nThese words were withdrawn.\n";
    deployment.write("tenants/app/pages/terms.md", withdrawn);
    wait("the second release", || numbers(&server, "app") == [2, 1]);
    run_successfully(&server, &["rollback", "app"]);
    fs::rename(deployment.path("tenants/app"), deployment.path("away")).expect("moved");
    wait("the removal", || terms(&server) == 404);
    run_successfully(&server, &["restore", "app"]);
    wait("its pages", || terms(&server) == 200);
    let page = server.get(&server.domain(), "/app/terms").text();
    assert!(!page.contains("withdrawn"), "{page}");
    wait("the pin", || line(&server, "app")["pinned"] == 1);
}

#[test]
fn removal_and_return_make_no_release_of_any_tenant() {
    let deployment = StatefulDeployment::new();
    let server = serve_without_app(&deployment, &[]);
    fs::rename(deployment.path("away"), deployment.path("tenants/app")).expect("moved");
    wait("its return", || state_of(&server, "app") == "live");
    // The next release of the root tenant is its second: none was recorded meanwhile.
    deployment.write("tenants/home/pages/new.md", "---\ntitle: New\n---\n");
    wait("a release", || numbers(&server, "home").len() > 1);
    assert_eq!(numbers(&server, "home"), [2, 1]);
    let list = run_successfully(&server, &["releases", "home"]);
    assert!(list.contains("pages/new.md"), "{list}");
    assert_eq!(numbers(&server, "app"), [1]);
}

#[test]
fn history_is_deleted_after_its_time_but_not_that_of_a_restored_tenant() {
    let deployment = StatefulDeployment::new();
    let server = serve_without_app(&deployment, &["--keep-removed", "1s"]);
    wait("the end of its history", || {
        run(&server, &["releases", "app"])
            .1
            .contains("unknown tenant")
    });
    wait("the end of its data", || {
        let tables = deployment.tables();
        !tables.iter().any(|table| table.ends_with("tenant.app"))
    });
    assert_eq!(numbers(&server, "home"), [1]);
    let (code, _) = run(&server, &["restore", "app"]);
    assert_eq!(code, Some(1));
    drop(server);

    let deployment = StatefulDeployment::new();
    let server = serve_without_app(&deployment, &[]);
    run_successfully(&server, &["restore", "app"]);
    drop(server);
    let flags = ["--state", "state", "--keep-removed", "0s"];
    let server = TestServer::start(&deployment.path(""), &flags);
    assert_eq!(terms(&server), 200, "{}", server.log());
    // The second server has another port, so its pages may be a release of their own.
    assert!(numbers(&server, "app").contains(&1));
}

#[test]
fn tenant_that_was_never_valid_cannot_be_restored() {
    let deployment = StatefulDeployment::new();
    fs::create_dir(deployment.path("tenants/bad")).expect("a folder");
    let server = deployment.serve();
    fs::remove_dir(deployment.path("tenants/bad")).expect("removed");
    wait("its state", || state_of(&server, "bad") == "removed");
    let (code, text) = run(&server, &["restore", "bad"]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("the state has no valid folder of `bad`"),
        "{text}"
    );
}
