//! `--state DIR`: listing, comparing and restoring the last releases of each tenant, by the commands for operators.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use release::snapshot::Resource;
use release::store::{Release, Store};
use rowhouse_tests::{TestServer, binary};

use crate::state::stateful_deployment::{RETENTION_LIMITS, StatefulDeployment};

const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the exit code and the output of a command.
pub(crate) fn run(server: &TestServer, command: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .args(command)
        .args(["--admin", &server.admin.to_string()])
        .output()
        .expect("rowhouse");
    let both = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&both).into_owned(),
    )
}

pub(crate) fn run_successfully(server: &TestServer, command: &[&str]) -> String {
    let (code, text) = run(server, command);
    assert_eq!(code, Some(0), "{command:?}\n{text}\n{}", server.log());
    text
}

/// Returns the releases of the tenant, newest first.
fn releases(server: &TestServer) -> Vec<serde_json::Value> {
    let text = run_successfully(server, &["releases", "app", "--format", "json"]);
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the numbers of the stored releases, newest first.
pub(crate) fn numbers(server: &TestServer) -> Vec<u64> {
    let numbers = releases(server).into_iter();
    let numbers = numbers.map(|release| release["number"].as_u64());
    numbers.map(|number| number.expect("a number")).collect()
}

fn get_terms(server: &TestServer) -> String {
    let answer = server.get(&server.domain(), "/app/terms");
    assert_eq!(answer.status, 200);
    answer.text()
}

pub(crate) fn serves_words(server: &TestServer, words: &str) -> bool {
    get_terms(server).contains(words)
}

pub(crate) fn save_terms(deployment: &StatefulDeployment, words: &str) {
    deployment.write(
        "tenants/app/pages/terms.md",
        &format!("---\ntitle: Terms\n---\nThe words are {words}.\n"),
    );
}

/// Starts a server whose tenant has three releases: the fixture, `first` and `second`.
pub(crate) fn serve_three_releases(deployment: &StatefulDeployment) -> TestServer {
    let server = deployment.serve();
    wait("the release of the start", || numbers(&server) == [1]);
    for (words, all) in [("first", vec![2, 1]), ("second", vec![3, 2, 1])] {
        save_terms(deployment, words);
        wait(words, || serves_words(&server, words));
        wait("its release", || numbers(&server) == all);
    }
    server
}

#[test]
fn releases_are_listed_with_causes_and_compared_by_page() {
    let deployment = StatefulDeployment::new();
    let server = serve_three_releases(&deployment);
    let list = run_successfully(&server, &["releases", "app"]);
    assert!(list.contains("pages/terms.md"), "{list}");
    let changed = run_successfully(&server, &["diff", "app"]);
    let paths: Vec<&str> = changed
        .lines()
        .filter(|line| line.starts_with("changed ") || line.starts_with("added "))
        .collect();
    assert_eq!(paths, ["changed /terms"], "{changed}");
    for words in ["first", "second"] {
        assert!(
            changed.contains(&format!("The words are {words}.")),
            "{changed}"
        );
    }
    assert!(
        !changed.contains('<'),
        "readers see no tags, styles and scripts\n{changed}"
    );
    assert!(run_successfully(&server, &["diff", "app", "3", "3"]).contains("nothing changed"));
    for (command, code) in [
        (&["diff", "app", "7"][..], 1),
        (&["releases", "nobody"], 1),
        (&["rollback", "app", "9"], 1),
    ] {
        let (exit, said) = run(&server, command);
        assert_eq!(exit, Some(code), "{command:?}: {said}");
    }
}

#[test]
fn diff_shows_what_readers_see_and_metadata_in_one_line() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    wait("the release of the start", || numbers(&server) == [1]);
    deployment.write(
        "tenants/app/pages/terms.md",
        "---\ntitle: Terms\ndescription: The new words of the terms, for machines.\n---\nRead [the help](/).\n",
    );
    wait("its release", || numbers(&server) == [2, 1]);
    let shown = run_successfully(&server, &["diff", "app"]);
    assert!(shown.contains("\n    +Read the help [link: "), "{shown}");
    assert!(!shown.contains("for machines"), "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    let is_metadata = |line: &&&str| line.starts_with("metadata of ");
    assert_eq!(lines.iter().filter(is_metadata).count(), 1, "{shown}");
    assert!(is_metadata(&lines.last().expect("a line")), "{shown}");
    let all = run_successfully(&server, &["diff", "app", "--all"]);
    assert!(all.contains("\n  metadata\n"), "{all}");
    assert!(
        all.contains("The new words of the terms, for machines."),
        "{all}"
    );
    assert!(all.contains("\n    +Read the help [link: "), "{all}");
}

#[test]
fn rollback_serves_release_until_resume() {
    let deployment = StatefulDeployment::new();
    let server = serve_three_releases(&deployment);
    let is_over = AtomicBool::new(false);
    let asked = thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut asked = 0_u32;
            while !is_over.load(Relaxed) {
                let page = get_terms(&server);
                assert!(page.contains("first") || page.contains("second"), "{page}");
                asked += 1;
            }
            asked
        });
        let begin = Instant::now();
        run_successfully(&server, &["rollback", "app"]);
        assert!(
            serves_words(&server, "first"),
            "it is served when the command ends"
        );
        let took = begin.elapsed();
        is_over.store(true, Relaxed);
        // Ten times the measured time, since the machine is busy.
        assert!(took < Duration::from_secs(10), "{took:?}");
        load.join().expect("no request failed")
    });
    assert!(asked > 0);
    // The folder is read and reported, but not served.
    save_terms(&deployment, "third");
    wait("the release of the folder", || numbers(&server)[0] == 4);
    assert!(serves_words(&server, "first"));
    assert!(server.get_admin("/tenants").text().contains("\"pinned\":2"));
    assert!(
        server
            .get_admin("/metrics")
            .text()
            .contains("\nrowhouse_tenants_pinned 1\n")
    );
    let warning = "warning[pinned]: release 2 is pinned; changes of this folder are not served";
    assert!(
        checked(&deployment).contains(warning),
        "{}",
        checked(&deployment)
    );
    // A new process continues with the pinned release and its theme.
    let drawing = |page: &str| {
        let (_, rest) = page.split_once("url(\"").expect("an address");
        rest.split('"').next().expect("an end").to_owned()
    };
    let old = drawing(&get_terms(&server));
    drop(server);
    let dot = deployment.path("themes/base/icons/dot.svg");
    let svg = std::fs::read_to_string(&dot).expect("a drawing");
    std::fs::write(&dot, svg + "\n").expect("a drawing");
    let server = deployment.serve();
    assert!(serves_words(&server, "first"), "{}", server.log());
    assert_eq!(drawing(&get_terms(&server)), old);
    let other = server.get(&server.domain(), "/").text();
    assert_ne!(drawing(&other), old, "the theme went on");
    assert_eq!(server.get(&server.domain(), &old).status, 200);
    run_successfully(&server, &["resume", "app"]);
    assert!(serves_words(&server, "third"));
    assert!(!server.get_admin("/tenants").text().contains("pinned"));
    assert!(!checked(&deployment).contains("pinned"));
}

/// Returns the output of `check` for the folders and the state.
fn checked(deployment: &StatefulDeployment) -> String {
    let output = Command::new(binary())
        .args(["check", "--state", "state"])
        .current_dir(deployment.path(""))
        .output()
        .expect("rowhouse");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn commands_report_missing_state_or_server() {
    let deployment = StatefulDeployment::new();
    let server = TestServer::start(&deployment.path(""), &[]);
    let (code, said) = run(&server, &["rollback", "app"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("--state"), "{said}");
    let output = Command::new(binary())
        .args(["releases", "app", "--admin", "127.0.0.1:9"])
        .output()
        .expect("rowhouse");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("rowhouse serve"), "{said}");
}

/// Returns the number of the pinned release.
pub(crate) fn pinned(server: &TestServer) -> Option<u64> {
    let releases = releases(server);
    let pinned = releases.iter().find(|release| release["is_pinned"] == true);
    pinned?["number"].as_u64()
}

#[test]
fn failed_rollback_leaves_tenant_unpinned() {
    let deployment = StatefulDeployment::new();
    let serve = |origin: &str| {
        let flags = ["--state", "state", "--origin", origin];
        TestServer::start(&deployment.path(""), &flags)
    };
    let server = serve("http://before.example");
    wait("the release of the start", || numbers(&server) == [1]);
    drop(server);
    // None of the addresses existed in release 1.
    let server = serve("http://after.example");
    wait("the release of the new addresses", || {
        numbers(&server) == [2, 1]
    });
    let (code, said) = run(&server, &["rollback", "app", "1"]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(pinned(&server), None, "{said}");
}

#[test]
fn tenant_whose_folder_returns_serves_its_pinned_release() {
    let deployment = StatefulDeployment::new();
    let server = serve_three_releases(&deployment);
    run_successfully(&server, &["rollback", "app", "2"]);
    assert!(serves_words(&server, "first"));
    let (folder, elsewhere) = (deployment.path("tenants/app"), deployment.path("app"));
    std::fs::rename(&folder, &elsewhere).expect("a folder");
    let status = || server.get(&server.domain(), "/app/terms").status;
    wait("the end of its pages", || status() == 404);
    std::fs::rename(&elsewhere, &folder).expect("a folder");
    wait("its pages", || status() == 200);
    assert!(serves_words(&server, "first"), "{}", get_terms(&server));
    assert_eq!(pinned(&server), Some(2));
}

/// Enough tenants to fill the queue of the store.
const TENANTS: usize = 96;

#[test]
fn releases_in_the_queue_are_written_before_the_process_ends() {
    let deployment = StatefulDeployment::new();
    let name = |number: usize| format!("t{number}");
    let write = |number: usize, words: &str| {
        deployment.write(
            &format!("tenants/{}/pages/index.md", name(number)),
            &format!("---\ntitle: Home\n---\n{words}\n"),
        );
    };
    for number in 0..TENANTS {
        let pages = deployment.path(&format!("tenants/{}/pages", name(number)));
        std::fs::create_dir_all(pages).expect("a folder");
        let manifest = format!("tenants/{}/tenant.yaml", name(number));
        deployment.write(&manifest, "name: One of many\n");
        write(number, "Before.");
    }
    let mut server = deployment.serve();
    let body = |number: usize| server.get(&server.domain(), &format!("/{}", name(number)));
    (0..TENANTS).for_each(|number| write(number, "After."));
    for number in 0..TENANTS {
        wait("the change", || body(number).text().contains("After."));
    }
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    let folders = std::fs::read_dir(deployment.path("state")).expect("the state");
    let state = folders
        .flatten()
        .find(|entry| entry.path().join("releases").is_dir());
    let store = Store::open(state.expect("a deployment").path(), RETENTION_LIMITS);
    let missing: Vec<String> = (0..TENANTS)
        .map(name)
        .filter(|name| {
            let newest = store.list(name).first().map(|entry| entry.number);
            let release = newest.and_then(|newest| store.load(name, newest));
            release.is_none_or(|release| !has_words(&release, "After."))
        })
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// Whether a page of a release contains some words.
fn has_words(release: &Release, words: &str) -> bool {
    let pages = release
        .addresses
        .iter()
        .flat_map(|place| place.pages.resources.values());
    let mut bodies = pages.filter_map(|resource| match &**resource {
        Resource::Body(body) => body.variants.identity(),
        Resource::Redirect(_) => None,
    });
    bodies.any(|body| {
        let bytes = body.bytes.to_bytes().expect("bytes");
        String::from_utf8_lossy(&bytes).contains(words)
    })
}

#[test]
fn added_or_removed_tenant_makes_no_release_of_unchanged_tenant() {
    let deployment = StatefulDeployment::new();
    let home = deployment.path("tenants/home/tenant.yaml");
    let manifest = std::fs::read_to_string(&home).expect("a manifest");
    let listed = "    - {tenant: app, name: App}\n";
    assert!(manifest.contains(listed));
    let manifest = manifest.replace(
        listed,
        &format!("{listed}    - {{tenant: late, name: Late}}\n"),
    );
    std::fs::write(&home, manifest).expect("a manifest");
    let create = |id: &str| {
        std::fs::create_dir_all(deployment.path(&format!("tenants/{id}/pages"))).expect("a folder");
        deployment.write(
            &format!("tenants/{id}/pages/index.md"),
            "---\ntitle: Home\n---\nWords.\n",
        );
        deployment.write(&format!("tenants/{id}/tenant.yaml"), "name: Guest\n");
    };
    create("late");
    let server = deployment.serve();
    wait("the release of the start", || numbers(&server) == [1]);
    let before = get_terms(&server);
    assert!(
        before.contains("Late"),
        "it names the other tenant: {before}"
    );
    // One tenant that the company lists, and one that no page names.
    for id in ["late", "guest"] {
        let status = || server.get(&server.domain(), &format!("/{id}")).status;
        for _ in 0..2 {
            create(id);
            wait("its page", || status() == 200);
            std::fs::remove_dir_all(deployment.path(&format!("tenants/{id}"))).expect("a folder");
            wait("the end of its page", || status() == 404);
        }
    }
    assert_eq!(get_terms(&server), before);
    // Releases are recorded in order, so an earlier one would exist by then.
    save_terms(&deployment, "marked");
    wait("the saved page", || serves_words(&server, "marked"));
    wait("its release", || numbers(&server).len() > 1);
    assert_eq!(
        numbers(&server),
        [2, 1],
        "{}",
        run_successfully(&server, &["releases", "app"])
    );
}

#[test]
fn restarted_server_has_images_of_pinned_release() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    let is_drawn = |server: &TestServer| {
        // The host of the tenant, where the path of the icon is fixed.
        let host = format!("app.{}", server.domain());
        server.get(&host, "/favicon.ico").status == 200
    };
    wait("the image", || is_drawn(&server));
    wait("a release", || numbers(&server) == [1]);
    run_successfully(&server, &["rollback", "app", "1"]);
    drop(server);
    // The release is loaded while the folder is rendered, in either order.
    for restart in 1..=6 {
        let server = deployment.serve();
        assert!(server.get_admin("/tenants").text().contains("\"pinned\":1"));
        wait(&format!("the image after restart {restart}"), || {
            is_drawn(&server)
        });
    }
}
