//! `--state DIR`: the last releases of each tenant, to list, compare and go back to, by the commands that operators have.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, binary};

use crate::state::Street;

const PATIENCE: Duration = Duration::from_secs(60);

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what} never came");
        thread::sleep(Duration::from_millis(20));
    }
}

/// What a command prints, and its exit code.
fn run(server: &TestServer, command: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .args(command)
        .args(["--admin", &server.operators.to_string()])
        .output()
        .expect("rowhouse");
    let both = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&both).into_owned(),
    )
}

fn done(server: &TestServer, command: &[&str]) -> String {
    let (code, text) = run(server, command);
    assert_eq!(code, Some(0), "{command:?}\n{text}\n{}", server.log());
    text
}

/// The numbers of the releases that are kept, newest first.
fn numbers(server: &TestServer) -> Vec<u64> {
    let text = done(server, &["releases", "app", "--format", "json"]);
    let lines: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    let numbers = lines.iter().map(|line| line["number"].as_u64());
    numbers.map(|number| number.expect("a number")).collect()
}

fn text(server: &TestServer) -> String {
    let answer = server.get(&server.domain(), "/app/terms");
    assert_eq!(answer.status, 200);
    answer.text()
}

fn says(server: &TestServer, words: &str) -> bool {
    text(server).contains(words)
}

fn save(street: &Street, words: &str) {
    street.write(
        "tenants/app/pages/terms.md",
        &format!("---\ntitle: Terms\n---\nThe words are {words}.\n"),
    );
}

/// A server whose tenant has three releases: as it was, `first` and `second`.
fn served(street: &Street) -> TestServer {
    let server = street.serve();
    wait("the release of the start", || numbers(&server) == [1]);
    for (words, all) in [("first", vec![2, 1]), ("second", vec![3, 2, 1])] {
        save(street, words);
        wait(words, || says(&server, words));
        wait("its release", || numbers(&server) == all);
    }
    server
}

#[test]
fn releases_are_listed_with_their_causes_and_compared_page_by_page() {
    let street = Street::new();
    let server = served(&street);
    let list = done(&server, &["releases", "app"]);
    assert!(list.contains("pages/terms.md"), "{list}");
    let changed = done(&server, &["diff", "app"]);
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
    assert!(done(&server, &["diff", "app", "3", "3"]).contains("nothing changed"));
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
fn an_older_release_is_served_at_once_and_stays_until_the_folder_is_followed_again() {
    let street = Street::new();
    let server = served(&street);
    let is_over = AtomicBool::new(false);
    let asked = thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut asked = 0_u32;
            while !is_over.load(Relaxed) {
                let page = text(&server);
                assert!(page.contains("first") || page.contains("second"), "{page}");
                asked += 1;
            }
            asked
        });
        let begin = Instant::now();
        done(&server, &["rollback", "app"]);
        assert!(says(&server, "first"), "it is served when the command ends");
        let took = begin.elapsed();
        is_over.store(true, Relaxed);
        // Measured at a tenth of it; this machine has others to serve.
        assert!(took < Duration::from_secs(10), "{took:?}");
        load.join().expect("no request failed")
    });
    assert!(asked > 0);
    // The folder is read and reported, and not served.
    save(&street, "third");
    wait("the release of the folder", || numbers(&server)[0] == 4);
    assert!(says(&server, "first"));
    assert!(server.operator("/tenants").text().contains("\"pinned\":2"));
    assert!(
        server
            .operator("/metrics")
            .text()
            .contains("\nrowhouse_tenants_pinned 1\n")
    );
    let warning = "warning[pinned]: release 2 is served, whatever this folder says";
    assert!(checked(&street).contains(warning), "{}", checked(&street));
    // A new process goes on with it, theme and all.
    let drawing = |page: &str| {
        let (_, rest) = page.split_once("url(\"").expect("an address");
        rest.split('"').next().expect("an end").to_owned()
    };
    let old = drawing(&text(&server));
    drop(server);
    let dot = street.path("themes/base/icons/dot.svg");
    let svg = std::fs::read_to_string(&dot).expect("a drawing");
    std::fs::write(&dot, svg + "\n").expect("a drawing");
    let server = street.serve();
    assert!(says(&server, "first"), "{}", server.log());
    assert_eq!(drawing(&text(&server)), old);
    let other = server.get(&server.domain(), "/").text();
    assert_ne!(drawing(&other), old, "the theme went on");
    assert_eq!(server.get(&server.domain(), &old).status, 200);
    done(&server, &["resume", "app"]);
    assert!(says(&server, "third"));
    assert!(!server.operator("/tenants").text().contains("pinned"));
    assert!(!checked(&street).contains("pinned"));
}

/// What `check` says of the folders and the state.
fn checked(street: &Street) -> String {
    let output = Command::new(binary())
        .args(["check", "--state", "state"])
        .current_dir(street.path(""))
        .output()
        .expect("rowhouse");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn without_a_state_or_a_server_the_commands_say_so() {
    let street = Street::new();
    let server = TestServer::start(&street.path(""), &[]);
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
