//! The process is killed at random moments while pages are saved and tenants are rolled back, resumed, removed and restored: what a command confirmed is in effect after the restart.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use release::store::Store;
use rowhouse_tests::{TestServer, binary, is_long, state};
use serde_json::Value;

use crate::state::rollback::{numbers, run_successfully, save_terms, wait};
use crate::state::stateful_deployment::StatefulDeployment;

/// The facts that commands confirmed to the operator.
struct Confirmed {
    /// The pins that are possible: one, or two after a command without a result.
    pins: Vec<Option<u64>>,
    /// The releases that a command has listed.
    releases: Vec<u64>,
    /// Whether the folder is away.
    is_removed: bool,
    /// Whether `restore` has confirmed that the removed tenant is served.
    is_restored: bool,
}

/// A command without its result.
fn start(server: &TestServer, command: &[&str]) -> Child {
    Command::new(binary())
        .args(command)
        .args(["--admin", &server.admin.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("rowhouse")
}

/// Waits for the exit code of a command.
fn code(mut command: Child) -> Option<i32> {
    command.wait().expect("an end").code()
}

/// Serves the deployment with enough releases that none is deleted between two checks.
fn serve(deployment: &StatefulDeployment) -> TestServer {
    let flags = ["--state", "state", "--keep-releases", "100"];
    TestServer::start(&deployment.path(""), &flags)
}

fn line(server: &TestServer) -> Value {
    let tenants: Vec<Value> =
        serde_json::from_slice(&server.get_admin("/tenants").body).expect("JSON");
    let line = tenants.into_iter().find(|tenant| tenant["id"] == "app");
    line.unwrap_or_default()
}

/// Performs random operations until the process is killed.
fn operate(
    random: &mut Rng,
    deployment: &StatefulDeployment,
    server: &TestServer,
    known: &mut Confirmed,
    is_killed: &AtomicBool,
) {
    let (here, away) = (deployment.path("tenants/app"), deployment.path("away"));
    while !is_killed.load(Relaxed) {
        if known.is_removed {
            match random.u64(..3) {
                0 => {
                    fs::rename(&away, &here).expect("moved");
                    (known.is_removed, known.is_restored) = (false, false);
                }
                _ => known.is_restored |= code(start(server, &["restore", "app"])) == Some(0),
            }
            continue;
        }
        match random.u64(..8) {
            0 => {
                fs::rename(&here, &away).expect("moved");
                known.is_removed = true;
            }
            1..=3 => {
                save_terms(deployment, &format!("version {}", random.u64(..1_000_000)));
                thread::sleep(Duration::from_millis(random.u64(..60)));
            }
            4..=5 => {
                let release = known.releases[random.usize(..known.releases.len())];
                pin(server, known, Some(release));
            }
            _ => pin(server, known, None),
        }
    }
}

/// Rolls the tenant back, or resumes it.
fn pin(server: &TestServer, known: &mut Confirmed, release: Option<u64>) {
    let number = release.map(|number| number.to_string());
    let command = match &number {
        Some(number) => start(server, &["rollback", "app", number]),
        None => start(server, &["resume", "app"]),
    };
    match code(command) {
        Some(0) => known.pins = vec![release],
        // A refused command changes nothing.
        Some(1) => {}
        _ => known.pins.push(release),
    }
}

/// Checks a restarted server against what was confirmed, and learns its state.
fn check(server: &TestServer, deployment: &StatefulDeployment, known: &mut Confirmed) {
    let folder = state::deployments(&deployment.path("state")).remove(0);
    let store = Store::reader(folder);
    let pin = store.pinned("app");
    assert!(known.pins.contains(&pin), "pin {pin:?} of {:?}", known.pins);
    known.pins = vec![pin];
    for release in &known.releases {
        assert!(
            store.load("app", *release).is_some(),
            "release {release} is lost"
        );
    }
    let ready = server.get_admin("/readyz").text();
    assert!(!ready.contains("alarm:"), "{ready}");
    let log = server.log();
    for problem in ["panicked", "is damaged"] {
        assert!(!log.contains(problem), "{log}");
    }
    if known.is_removed && !known.is_restored {
        return;
    }
    wait("the pages", || {
        server.get(&server.domain(), "/app/terms").status == 200
    });
    let expected = match known.is_removed {
        true => "degraded",
        false => "live",
    };
    wait("its state", || line(server)["state"] == expected);
    if !known.is_removed {
        assert_eq!(line(server)["pinned"].as_u64(), pin, "{}", line(server));
    }
}

#[test]
fn confirmed_commands_survive_kills_at_random_moments() {
    let rounds = if is_long() { 100 } else { 8 };
    let deployment = StatefulDeployment::new();
    let mut server = serve(&deployment);
    wait("the first release", || numbers(&server) == [1]);
    deployment.wait_for_table("good.tenant.app", "");
    let mut known = Confirmed {
        pins: vec![None],
        releases: vec![1],
        is_removed: false,
        is_restored: false,
    };
    for seed in 1..=rounds {
        let mut random = Rng::with_seed(seed);
        let moment = Duration::from_millis(100 + random.u64(..900));
        eprintln!("seed {seed}, killed after {moment:?}");
        let is_killed = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(moment);
                server.signal("KILL");
                is_killed.store(true, Relaxed);
            });
            operate(&mut random, &deployment, &server, &mut known, &is_killed);
        });
        assert!(server.wait_for_status().is_some());
        server = serve(&deployment);
        check(&server, &deployment, &mut known);
        if !known.is_removed {
            let text = run_successfully(&server, &["releases", "app", "--format", "json"]);
            let list: Vec<Value> = serde_json::from_str(&text).expect("JSON");
            let list = list.iter().filter_map(|release| release["number"].as_u64());
            known.releases = list.collect();
        }
    }
}
