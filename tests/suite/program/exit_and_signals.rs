//! The tables of exit codes and of signals in the manual: each row is run for real, and the program has no other codes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use release::store::Store;
use rowhouse_tests::{TestServer, binary, fixture, reserved_address, state};
use tempfile::TempDir;

use crate::manual::reference::pages;
use crate::state::rollback::{numbers, run, save_terms, serve_three_releases, serves_words, wait};
use crate::state::stateful_deployment::StatefulDeployment;

/// Returns the cells of the rows below a heading of a table.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let rows = page.lines().skip_while(|line| *line != heading);
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "{heading}");
    rows
}

fn commands_page() -> String {
    pages().remove("reference/commands.md").expect("a page")
}

/// Returns the names of all commands, from the headings of the page.
fn commands(page: &str) -> BTreeSet<String> {
    let headings = page
        .lines()
        .filter_map(|line| line.strip_prefix("## `rowhouse "));
    let names = headings.filter_map(|rest| rest.split('`').next());
    names.map(ToOwned::to_owned).collect()
}

/// The exit codes that the manual names: code, command (`*`: all of them) and meaning.
type Rows = BTreeSet<(i32, String, String)>;

fn exit_rows(page: &str) -> Rows {
    let mut rows = Rows::new();
    for row in table(page, "| exit code | commands | meaning |") {
        let [code, commands, meaning] = row.try_into().expect("three cells");
        let code: i32 = code.parse().expect("a number");
        if commands == "all commands" {
            rows.insert((code, "*".to_owned(), meaning));
            continue;
        }
        for command in commands.split(", ") {
            let command = command.trim_matches('`').to_owned();
            rows.insert((code, command, meaning.clone()));
        }
    }
    rows
}

/// Runs the program in a folder, and returns its exit code and its messages.
fn exit(folder: &std::path::Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new("timeout")
        .arg("120")
        .arg(binary())
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("rowhouse");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code().expect("an exit code"), text)
}

/// The rows that were run.
struct Proof {
    table: Rows,
    proven: Rows,
}

impl Proof {
    /// Records that a command ended with a code. The table must have the row.
    fn add(&mut self, command: &str, (code, text): (i32, String), expected: i32, meaning: &str) {
        assert_eq!(code, expected, "{command}: {meaning}\n{text}");
        let row = |command: &str| (code, command.to_owned(), meaning.to_owned());
        let known = [row(command), row("*")];
        let known = known.into_iter().find(|row| self.table.contains(row));
        let known = known.unwrap_or_else(|| panic!("no row: {code} {command}: {meaning}"));
        self.proven.insert(known);
    }
}

const SUCCESS: &str = "success";
const FOUND: &str = "errors were found";
const KEPT: &str = "errors were found; the tenants with errors keep their version";
const REFUSED: &str = "the server refused";
const NOT_READY: &str = "the server is not ready or not reachable, or HTTPS fails";
const NO_CERTIFICATE: &str = "no valid certificate, no new certificate, or HTTPS is off";
const NOT_RUN: &str = "could not run: a wrong flag, an unreadable file, no server";

#[test]
fn every_exit_code_of_the_manual_is_that_of_the_program() {
    let page = commands_page();
    let mut proof = Proof {
        table: exit_rows(&page),
        proven: Rows::new(),
    };
    let commands = commands(&page);
    assert!(commands.len() >= 16, "{commands:?}");
    let folder = fixture("sites");
    for command in &commands {
        let wrong = [command.split(' ').collect(), vec!["--no-such-flag"]].concat();
        proof.add(command, exit(&folder, &wrong), 2, NOT_RUN);
    }
    let unused_address = reserved_address().to_string();
    for command in [
        "releases", "diff", "rollback", "resume", "restore", "visits",
    ] {
        let no_server = [command, "app", "--admin", &unused_address];
        proof.add(command, exit(&folder, &no_server), 2, NOT_RUN);
    }
    proof.add(
        "certificates",
        exit(&folder, &["certificates", "--admin", &unused_address]),
        2,
        NOT_RUN,
    );
    proof.add(
        "probe",
        exit(&folder, &["probe", "--admin", &unused_address]),
        1,
        NOT_READY,
    );
    for command in ["check", "routes", "export out"] {
        let unreadable = [command.split(' ').collect(), vec!["--tenants", "nowhere"]].concat();
        proof.add(command, exit(&folder, &unreadable), 2, NOT_RUN);
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let taken = taken.local_addr().expect("an address").to_string();
    proof.add(
        "serve",
        exit(&folder, &["serve", "--listen", &taken]),
        2,
        NOT_RUN,
    );

    let out = TempDir::new().expect("a folder");
    let tenants = folder.join("tenants").display().to_string();
    let themes = folder.join("themes").display().to_string();
    let content = ["--tenants", &tenants, "--themes", &themes];
    for (command, flags) in [
        ("check", &content[..]),
        ("routes", &content),
        ("export exported", &content),
        ("new corner --kind blog", &["--tenants", "own"]),
        ("schema schemas", &["--tenants", &tenants]),
        ("completions bash", &[]),
        ("man", &[]),
        ("manual --export manual", &[]),
    ] {
        let arguments = [command.split(' ').collect(), flags.to_vec()].concat();
        proof.add(command, exit(out.path(), &arguments), 0, SUCCESS);
    }
    prove_with_errors(&mut proof);
    prove_with_server(&mut proof);
    prove_second_signal(&mut proof);
    // The tests of `deploy/` prove these rows, with an object store. A race ends `rollback` and `resume` as it ends `publish`.
    let is_of_store = |row: &&(i32, String, String)| {
        row.0 == 3
            || row.1 == "store" && row.0 == 1
            || row.1 == "unpublish" && row.0 == 2
            || row.2.starts_with("with `--store`")
    };
    let of_store: Vec<_> = proof.table.iter().filter(is_of_store).cloned().collect();
    assert_eq!(of_store.len(), 10, "{of_store:?}");
    proof.proven.extend(of_store);
    let unproven: Vec<_> = proof.table.difference(&proof.proven).collect();
    assert!(unproven.is_empty(), "rows that no run proves: {unproven:?}");
}

/// Proves the rows of folders with errors.
fn prove_with_errors(proof: &mut Proof) {
    let broken = StatefulDeployment::new();
    broken.write("tenants/app/pages/terms.md", "---\ntitle: [\n---\n");
    proof.add("check", exit(&broken.path(""), &["check"]), 1, FOUND);
    proof.add(
        "export",
        exit(&broken.path(""), &["export", "out"]),
        1,
        FOUND,
    );
    let publish = ["publish", "app", "--store", "s3://bucket/prefix"];
    proof.add("publish", exit(&broken.path(""), &publish), 1, KEPT);
    let partly = ["export", "out", "--despite-errors"];
    proof.add("export", exit(&broken.path(""), &partly), 0, SUCCESS);
}

/// Proves the rows of commands for a running server.
fn prove_with_server(proof: &mut Proof) {
    let deployment = StatefulDeployment::new();
    let server = serve_three_releases(&deployment);
    let ran = |command: &[&str]| {
        let (code, text) = run(&server, command);
        (code.expect("an exit code"), text)
    };
    for command in [
        &["probe"][..],
        &["releases", "app"],
        &["diff", "app"],
        &["rollback", "app", "1"],
        &["resume", "app"],
        &["visits", "app"],
    ] {
        proof.add(command[0], ran(command), 0, SUCCESS);
    }
    for command in [
        &["releases", "missing"][..],
        &["diff", "app", "1", "77"],
        &["rollback", "app", "77"],
        &["resume", "missing"],
        &["restore", "app"],
        &["visits", "missing"],
    ] {
        proof.add(command[0], ran(command), 1, REFUSED);
    }
    proof.add("certificates", ran(&["certificates"]), 1, NO_CERTIFICATE);
    fs::rename(deployment.path("tenants/app"), deployment.path("away")).expect("moved");
    wait("the removal", || ran(&["restore", "app"]).0 == 0);
    proof.add("restore", ran(&["restore", "app"]), 0, SUCCESS);
}

/// Proves the row of a server that got two signals.
fn prove_second_signal(proof: &mut Proof) {
    let meaning = "a second signal ended the process at once";
    let code = end(&["TERM", "TERM"]);
    proof.add("serve", (code, String::new()), 2, meaning);
    let code = end(&["INT"]);
    proof.add("serve", (code, String::new()), 0, SUCCESS);
}

/// Opens a request whose header fields are incomplete, so that it is in flight.
fn incomplete_request(server: &TestServer) -> TcpStream {
    let mut socket = TcpStream::connect(server.visitors).expect("a connection");
    write!(socket, "GET /app/terms HTTP/1.1\r\n").expect("half a request");
    wait("the connection", || {
        let metrics = server.get_admin("/metrics").text();
        metrics.contains("\nrowhouse_connections_open 1\n")
    });
    socket
}

/// Sends signals to a server with a request in flight, and returns the exit code as a shell reports it.
///
/// After a single signal that drains, the request is completed, and a change that was saved just before is in the state.
fn end(signals: &[&str]) -> i32 {
    let deployment = StatefulDeployment::new();
    let mut server = TestServer::start(
        &deployment.path(""),
        &["--state", "state", "--grace", "100"],
    );
    wait("the first release", || numbers(&server) == [1]);
    save_terms(&deployment, "newest");
    wait("the change", || serves_words(&server, "newest"));
    let mut socket = incomplete_request(&server);
    server.signal(signals[0]);
    let drains = matches!(signals[0], "TERM" | "INT");
    if drains {
        wait("the shutdown", || server.log().contains("\"draining\""));
        wait("refused connections", || {
            TcpStream::connect(server.visitors).is_err()
        });
    }
    match signals.get(1) {
        Some(second) => server.signal(second),
        None if drains => {
            let host = server.domain();
            write!(socket, "host: {host}\r\n\r\n").expect("the rest");
            let mut response = String::new();
            socket.read_to_string(&mut response).expect("a response");
            assert!(response.contains("newest"), "{response}");
        }
        None => {}
    }
    let status = server.wait_for_status();
    let status = status.unwrap_or_else(|| panic!("{signals:?}: no end\n{}", server.log()));
    drop(server);
    // The state can be read in any case, and a graceful shutdown writes everything.
    let folder = state::deployments(&deployment.path("state")).remove(0);
    let newest = Store::reader(folder).newest("app");
    let flushed = drains && signals.len() == 1;
    assert!(
        newest >= Some(if flushed { 2 } else { 1 }),
        "{signals:?}: {newest:?}"
    );
    let server = deployment.serve();
    assert!(numbers(&server).contains(&1), "{signals:?}");
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.expect("a code or a signal")
}

/// Returns whether this process, and so every server that it starts, ignores SIGQUIT.
///
/// Shells without job control start background commands that way (POSIX, Shell Command Language, section 2.12), and an ignored signal stays ignored in the programs that such a command starts.
fn ignores_quit() -> bool {
    const QUIT_BIT: u64 = 1 << 2;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & QUIT_BIT != 0)
}

/// Changes a page that no one watches, and lets SIGHUP publish the change.
fn reload() {
    let deployment = StatefulDeployment::new();
    let mut server = TestServer::start(&deployment.path(""), &["--watch", "off"]);
    save_terms(&deployment, "reloaded");
    assert!(!serves_words(&server, "reloaded"));
    server.signal("HUP");
    wait("the change", || serves_words(&server, "reloaded"));
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "the server kept running until now");
}

#[test]
fn every_signal_of_the_manual_has_its_effect_and_exit_code() {
    for row in table(
        &commands_page(),
        "| signal to `serve` | effect | exit code |",
    ) {
        let [signals, effect, code] = row.try_into().expect("three cells");
        let runs: &[&[&str]] = match &*signals {
            "`SIGHUP`" => {
                assert_eq!(code, "keeps running");
                reload();
                continue;
            }
            "`SIGTERM`, `SIGINT`" => &[&["TERM"], &["INT"]],
            "a second `SIGTERM` or `SIGINT`" => &[&["TERM", "INT"]],
            "`SIGQUIT`" if ignores_quit() => {
                println!("not proven: the parent of the tests ignores SIGQUIT");
                continue;
            }
            "`SIGQUIT`" => &[&["QUIT"]],
            "`SIGKILL`" => &[&["KILL"]],
            other => panic!("no run proves the row of {other}"),
        };
        let drains = effect.contains("finishes the requests in flight");
        assert_eq!(drains, code == "0", "{signals}: {effect}");
        for run in runs {
            assert_eq!(end(run).to_string(), code, "{run:?}");
        }
    }
}
