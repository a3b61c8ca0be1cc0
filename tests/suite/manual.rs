//! The manual: it passes its own check, and is served and written as it should be.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use rowhouse_tests::{TestServer, Visitor, address_in, binary, fixture, reserved_address};
use serde_json::Value as Json;

use crate::program::{run, stderr, stdout};
use crate::reference::pages;

#[test]
fn the_manual_passes_its_own_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = run(folder.path(), &["manual", "--write", "tenants/manual"]);
    assert!(written.status.success(), "{}", stderr(&written));
    let check = run(folder.path(), &["check"]);
    assert_eq!(
        stdout(&check),
        "",
        "its links lead somewhere, and nothing is to be said of it"
    );
    assert!(
        stderr(&check).contains("1 tenant: 0 errors, 0 warnings"),
        "{}",
        stderr(&check)
    );
    let again = run(folder.path(), &["manual", "--write", "tenants/manual"]);
    assert_eq!(again.status.code(), Some(2), "what is there is not touched");
}

#[test]
fn every_block_of_yaml_or_json_in_the_manual_can_be_read() {
    let mut blocks = 0;
    for (path, text) in pages() {
        for block in text.split("```yaml\n").skip(1) {
            let yaml = block.split("\n```").next().expect("an end");
            let read = serde_saphyr::from_str::<Json>(yaml);
            // The tutorial adds lines to a file.
            assert!(read.is_ok(), "{path}: {read:?}\n{yaml}");
            blocks += 1;
        }
    }
    assert!(blocks > 50, "{blocks}");
}

#[test]
fn the_manual_is_served_whatever_the_environment_says_of_another_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let scratch = folder.path().join("scratch");
    fs::create_dir(&scratch).expect("a folder");
    let left = || fs::read_dir(&scratch).expect("a folder").count();
    let child = Command::new(binary())
        .args(["manual", "--listen", &reserved_address().to_string()])
        .current_dir(folder.path())
        .env("TMPDIR", &scratch)
        .env("ROWHOUSE_STATE", &state)
        .env("ROWHOUSE_ORIGIN", "https://other.example")
        .stderr(Stdio::piped())
        .spawn()
        .expect("rowhouse");
    let mut child = Ended(child);
    let log = child.0.stderr.take().expect("a log");
    let mut lines = BufReader::new(log)
        .lines()
        .map(|line| line.expect("a line"));
    let line = lines
        .find(|line| line.contains("\"serving\""))
        .expect("it serves");
    let address = address_in(&line, "listen").expect("an address");
    let host = format!("localhost:{}", address.port());
    let get = |path: &str| {
        let answer = Visitor::new(address).get(&host, path, &[]);
        answer.expect("an answer")
    };
    let tutorial = get("/tutorial");
    assert_eq!(tutorial.status, 200);
    let text = tutorial.text();
    assert!(
        text.contains("<span class=\"code-name\">"),
        "code is highlighted"
    );
    assert!(!text.contains(" style="), "by classes alone");
    let index = get("/search.json");
    assert!(index.body.len() <= 50_000, "{}", index.body.len());
    assert!(index.text().contains("max-connections"), "flags are found");
    assert!(
        !state.exists(),
        "the state of another server is not touched"
    );
    assert_eq!(left(), 1, "the folder that it is served from");
    let id = child.0.id().to_string();
    let told = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(told.expect("kill").success());
    assert!(child.0.wait().expect("an end").success());
    assert_eq!(left(), 0, "nothing is left behind");
}

#[test]
fn only_who_asks_for_a_search_has_an_index() {
    let server = TestServer::start(&fixture("sites"), &[]);
    assert_eq!(server.get(&server.domain(), "/search.json").status, 404);
}

#[test]
fn the_manual_is_written_as_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "manual",
        "--export",
        "out",
        "--origin",
        "https://manual.example",
    ];
    let output = run(folder.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = folder
        .path()
        .join("out/manual.example/reference/commands.html");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("--max-connections"));
}

/// A program that ends with the test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
