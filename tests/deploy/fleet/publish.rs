//! `rowhouse publish` with a real object store.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use rowhouse_tests::{binary, reserved_address, stderr, stdout};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::fleet::object_store::ObjectStore;
use crate::fleet::replicas::TestPublisher;
use crate::fleet::slow_store::start_proxy;
use crate::support::{Program, is_there, tenant, wait_for};

/// A folder of tenants, and a store to publish to.
struct Publisher {
    folder: TempDir,
    variables: Vec<(String, String)>,
    address: String,
}

impl Publisher {
    /// Returns a publisher with two tenants.
    fn new(store: &ObjectStore) -> Self {
        let publisher = Self {
            folder: TempDir::new().expect("a folder"),
            variables: store.variables(),
            address: store.address("sites"),
        };
        for name in ["corner", "mill"] {
            tenant(&publisher.tenants().join(name), name, "");
        }
        publisher
    }

    fn tenants(&self) -> std::path::PathBuf {
        self.folder.path().join("tenants")
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.tenants().join(path), text).expect("a file");
    }

    fn page(&self, tenant: &str, text: &str) {
        let page = format!("---\ntitle: Page\n---\n{text}\n");
        self.write(&format!("{tenant}/pages/index.md"), &page);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .envs(self.variables.iter().cloned())
            .env("ROWHOUSE_STORE", &self.address)
            .env("ROWHOUSE_AUTHOR", "ann@desk");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("rowhouse")
    }

    /// Publishes, expects this exit code, and returns name, result and version of each line.
    fn publish(&self, arguments: &[&str], code: i32) -> Vec<(String, String, Option<u64>)> {
        let arguments = [&["publish", "--format=json"][..], arguments].concat();
        let output = self.run(&arguments);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        let lines: Vec<Value> = serde_json::from_str(&stdout(&output)).expect("JSON");
        lines
            .iter()
            .map(|line| {
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                (text("name"), text("result"), line["version"].as_u64())
            })
            .collect()
    }
}

fn line(
    name: &str,
    result: &str,
    version: impl Into<Option<u64>>,
) -> (String, String, Option<u64>) {
    (name.to_owned(), result.to_owned(), version.into())
}

#[test]
fn changed_tenants_and_rules_get_a_new_version_and_tenants_with_errors_keep_theirs() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let publisher = Publisher::new(&store);
    assert_eq!(
        publisher.publish(&[], 0),
        [line("corner", "published", 1), line("mill", "published", 1)]
    );
    publisher.page("mill", "changed");
    assert_eq!(
        publisher.publish(&[], 0),
        [line("corner", "unchanged", 1), line("mill", "published", 2)]
    );
    publisher.page("corner", "changed");
    publisher.write("mill/pages/index.md", "---\ntitl: Wrong\n---\n");
    assert_eq!(
        publisher.publish(&[], 1),
        [line("corner", "published", 2), line("mill", "errors", None)]
    );
    publisher.write("deployment.yaml", "root: mill\n");
    assert_eq!(
        publisher.publish(&["@deployment"], 0),
        [line("@deployment", "published", 1)]
    );
    publisher.write("deployment.yaml", "root: corner\n");
    assert_eq!(
        publisher.publish(&["@deployment", "corner"], 0),
        [
            line("@deployment", "published", 2),
            line("corner", "unchanged", 2)
        ]
    );
    for (arguments, expected) in [
        (&["diff", "@deployment"][..], "+root: corner\n"),
        (
            &["rollback", "@deployment"],
            "version 1 of `@deployment` is served",
        ),
        (&["releases", "@deployment"], "1  20"),
        (
            &["resume", "@deployment"],
            "the newest version of `@deployment`",
        ),
    ] {
        let output = publisher.run(arguments);
        let said = stdout(&output) + &stderr(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let output = publisher.run(&["publish", "corner"]);
    assert_eq!(stdout(&output), "corner  version 2  unchanged\n");
    let output = publisher.run(&["unpublish", "corner", "--expect=1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let output = publisher.run(&["unpublish", "corner"]);
    assert_eq!(
        stdout(&output),
        "corner  version 3\n",
        "{}",
        stderr(&output)
    );
    let output = publisher.run(&["releases", "corner"]);
    let said = stdout(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}{}", stderr(&output));
    assert!(lines[1].starts_with("      3  20"), "{said}");
    assert!(lines[1].ends_with("ann@desk  current, withdrawn"), "{said}");
    assert!(lines[3].ends_with("ann@desk"), "{said}");
    check_previews(&publisher);
    let output = publisher.run(&["unpublish", "cornr"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("never published"),
        "{}",
        stderr(&output)
    );
}

/// Publishes previews of a tenant without errors, beside a tenant with errors.
fn check_previews(publisher: &Publisher) {
    assert_eq!(
        publisher.publish(&["--preview=pr-12"], 1),
        [
            line("corner@pr-12", "published", 1),
            line("mill@pr-12", "errors", None)
        ]
    );
    let output = publisher.run(&["publish", "--preview=pr-12", "corner"]);
    assert_eq!(
        stdout(&output),
        "corner@pr-12  version 2  pr-12--corner.localhost\n",
        "an unchanged preview begins again: {}",
        stderr(&output)
    );
    assert_eq!(
        publisher.publish(&["--preview=pr-12", "corner", "--expect=1"], 3),
        [line("corner@pr-12", "conflict", 2)]
    );
    let long = format!("--preview={}", "a".repeat(56));
    assert_eq!(
        publisher.publish(&[&long, "corner"], 1),
        [line("corner", "errors", None)]
    );
    for (arguments, code, expected) in [
        (&["--preview=pr-12", "@themes"][..], 2, "has no previews"),
        (&["--preview=pr-12", "corner@a"], 2, "is a preview already"),
        (&["--preview=v2", "corner"], 2, "two characters"),
    ] {
        let output = publisher.run(&[&["publish"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains(expected), "{said}");
    }
    let output = publisher.run(&["unpublish", "corner@pr-12"]);
    assert_eq!(stdout(&output), "corner@pr-12  version 3\n");
    for (arguments, code, expected) in [
        (&["corner@pr-13"][..], 0, "nothing to unpublish"),
        (&["corner@pr-13", "--expect=1"], 2, "error: `corner@pr-13`"),
    ] {
        let output = publisher.run(&[&["unpublish"][..], arguments].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(stdout(&output), "");
    }
}

/// A running `publish --watch`, which ends with the test.
struct WatchingPublisher {
    child: Child,
    lines: Receiver<Value>,
    messages: NamedTempFile,
}

impl WatchingPublisher {
    /// Starts a publisher that reaches the store at this address.
    fn start(publisher: &Publisher, store: SocketAddr) -> Self {
        let messages = NamedTempFile::new().expect("a file");
        let mut child = publisher
            .command(&["publish", "--watch", "--format=json"])
            .env("AWS_ENDPOINT_URL", format!("http://{store}"))
            .stdout(Stdio::piped())
            .stderr(messages.reopen().expect("a file"))
            .spawn()
            .expect("rowhouse");
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("JSON");
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            lines,
            messages,
        }
    }

    /// Returns name, result and version of the next line, and the pinned version.
    fn next(&self) -> (String, String, Option<u64>, Option<u64>) {
        let line = self.lines.recv_timeout(Duration::from_secs(60));
        let line = line.expect("a line");
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| line[key].as_u64();
        (
            text("name"),
            text("result"),
            number("version"),
            number("pinned"),
        )
    }

    /// Waits until the publisher has said this, and returns all its messages.
    fn wait_for_message(&self, expected: &str) -> String {
        wait_for(expected, || {
            let messages = fs::read_to_string(self.messages.path()).expect("a file");
            messages.contains(expected).then_some(messages)
        })
    }
}

impl Drop for WatchingPublisher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watching_publisher_follows_the_folders_while_a_version_is_pinned_and_the_store_restarts() {
    let Some(mut store) = ObjectStore::start() else {
        return;
    };
    let publisher = Publisher::new(&store);
    publisher.publish(&[], 0);
    publisher.page("mill", "Second");
    publisher.publish(&["mill"], 0);
    let output = publisher.run(&["diff", "mill"]);
    let said = stdout(&output);
    assert!(said.starts_with("changed pages/index.md\n"), "{said}");
    assert!(said.contains("+Second\n"), "{said}{}", stderr(&output));
    let output = publisher.run(&["rollback", "mill"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("version 1 of `mill` is served and pinned"),
        "{said}"
    );
    for (arguments, reason) in [
        (&["rollback", "mill", "9"][..], "has no version 9"),
        (&["diff", "mill", "7"], "has no version 7"),
        (&["releases", "nowhere"], "was never published"),
        (&["resume", "nowhere"], "was never published"),
    ] {
        let output = publisher.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
    let (proxy, faults) = start_proxy(store.s3());
    let watching = WatchingPublisher::start(&publisher, proxy);
    let of = |name: &str, result: &str, version, pinned| {
        (name.to_owned(), result.to_owned(), version, pinned)
    };
    assert_eq!(watching.next(), of("corner", "unchanged", Some(1), None));
    assert_eq!(watching.next(), of("mill", "unchanged", Some(3), Some(1)));
    publisher.write("mill/pages/index.md", "---\ntitl: Wrong\n---\n");
    assert_eq!(watching.next(), of("mill", "errors", None, None));
    publisher.page("mill", "Third");
    assert_eq!(watching.next(), of("mill", "published", Some(4), Some(1)));
    tenant(&publisher.tenants().join("quay"), "quay", "");
    assert_eq!(watching.next(), of("quay", "published", Some(1), None));
    fs::remove_dir_all(publisher.tenants().join("quay")).expect("removed");
    publisher.page("corner", "Second");
    assert_eq!(watching.next(), of("corner", "published", Some(2), None));
    watching.wait_for_message("quay  folder removed; still published");
    store.stop();
    publisher.page("corner", "Third");
    watching.wait_for_message("the store did not answer");
    store.restart();
    assert_eq!(watching.next(), of("corner", "published", Some(3), None));
    let said = watching.wait_for_message("the store answers again");
    assert_eq!(said.matches("trying again").count(), 1, "{said}");
    // Another publisher is first.
    let requests = faults.requests();
    faults.set(Duration::from_millis(400), 0);
    publisher.page("mill", "Fourth");
    wait_for("a request of the publisher", || {
        (faults.requests() > requests).then_some(())
    });
    TestPublisher::new(store.bucket("sites")).publish("mill", Some("Of Ann"));
    assert_eq!(watching.next(), of("mill", "conflict", Some(5), None));
    faults.set(Duration::ZERO, 0);
    publisher.page("corner", "Fourth");
    assert_eq!(watching.next(), of("corner", "published", Some(4), None));
    assert_eq!(watching.next(), of("mill", "published", Some(6), Some(1)));
    drop(watching);
    let output = publisher.run(&["resume", "mill"]);
    let said = stderr(&output);
    assert!(
        said.contains("the newest version of `mill` is served again"),
        "{said}"
    );
    let output = publisher.run(&["releases", "mill"]);
    assert!(
        stdout(&output).contains("current, resume"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn missing_credentials_are_named_within_seconds() {
    let folder = TempDir::new().expect("a folder");
    let output = Command::new(binary())
        .args(["releases", "corner", "--store=s3://fleet/sites"])
        .current_dir(folder.path())
        .env_clear()
        .env(
            "AWS_METADATA_ENDPOINT",
            format!("http://{}", reserved_address()),
        )
        .output()
        .expect("rowhouse");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("no credentials for the bucket"), "{said}");
    assert!(said.contains("AWS_ACCESS_KEY_ID"), "{said}");
}

#[test]
fn expected_version_that_was_replaced_names_the_winner() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let publisher = Publisher::new(&store);
    publisher.publish(&["corner", "--expect=0"], 0);
    publisher.page("corner", "changed");
    let output = publisher.run(&["publish", "corner", "--expect=0"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("conflict: version 1 is of 20"), "{said}");
    assert!(said.contains("by ann@desk"), "{said}");
    assert_eq!(
        publisher.publish(&["corner", "--expect=1"], 0),
        [line("corner", "published", 2)]
    );
}

#[test]
fn eight_racing_publishers_end_with_one_winner() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let publishers: Vec<Publisher> = (0..8).map(|_| Publisher::new(&store)).collect();
    publishers[0].publish(&["corner"], 0);
    for (number, publisher) in publishers.iter().enumerate() {
        publisher.page("corner", &format!("by publisher {number}"));
    }
    let run = |publisher: &Publisher| publisher.run(&["publish", "corner", "--expect=1"]);
    let codes: Vec<Option<i32>> = thread::scope(|scope| {
        let threads: Vec<_> = publishers
            .iter()
            .map(|publisher| scope.spawn(|| run(publisher).status.code()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a publisher"))
            .collect()
    });
    let count = |code| codes.iter().filter(|found| **found == Some(code)).count();
    assert_eq!((count(0), count(3)), (1, 7), "{codes:?}");
    let winner = codes
        .iter()
        .position(|code| *code == Some(0))
        .expect("a winner");
    assert_eq!(
        publishers[winner].publish(&["corner"], 0),
        [line("corner", "unchanged", 2)]
    );
}

#[test]
fn killed_publisher_leaves_one_of_two_versions() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let publisher = Publisher::new(&store);
    publisher.publish(&["corner"], 0);
    let kills = if rowhouse_tests::is_long() { 200 } else { 12 };
    let mut random = Rng::with_seed(1);
    let mut version = 1;
    for kill in 0..kills {
        publisher.page("corner", &format!("version of attempt {kill}"));
        let mut child = publisher
            .command(&["publish", "corner"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("rowhouse");
        thread::sleep(Duration::from_millis(random.u64(..1_500)));
        let _ = child.kill();
        let _ = child.wait();
        // The publisher was killed before its swap or after it.
        let after = publisher.publish(&["corner"], 0);
        version += 1;
        let is_one_of_two = [
            line("corner", "published", version),
            line("corner", "unchanged", version),
        ]
        .iter()
        .any(|expected| after == [expected.clone()]);
        assert!(is_one_of_two, "kill {kill}: {after:?}");
    }
    let output = publisher.run(&["store", "check"]);
    assert!(
        output.status.success(),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}

#[test]
fn store_that_refuses_or_does_not_answer_is_named_with_a_hint() {
    let Some(mut store) = ObjectStore::start() else {
        return;
    };
    let mut publisher = Publisher::new(&store);
    publisher
        .variables
        .push(("AWS_SECRET_ACCESS_KEY".to_owned(), "wrong".to_owned()));
    let output = publisher.run(&["publish"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("refuses the credentials"), "{said}");
    assert!(said.contains("check the credentials"), "{said}");
    publisher.variables = store.variables();
    store.stop();
    let output = publisher.run(&["publish"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("did not answer"), "{said}");
    assert!(said.contains("check that the store runs"), "{said}");
    publisher.address = "bucket/sites".to_owned();
    let output = publisher.run(&["publish"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("s3://bucket/prefix"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn damaged_object_is_found_with_its_tenant_and_repaired_by_publishing() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let publisher = Publisher::new(&store);
    publisher.publish(&[], 0);
    let output = publisher.run(&["store", "check"]);
    assert!(output.status.success(), "{}", stderr(&output));
    damage(&store, "corner");
    let output = publisher.run(&["store", "check"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(
        said.starts_with("v1/tenants/corner: the object `v1/content/"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    let output = publisher.run(&["store", "collect"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        publisher.publish(&[], 0),
        [line("corner", "repaired", 2), line("mill", "unchanged", 1)]
    );
    // The damaged object is that of the version before.
    let output = publisher.run(&["store", "check"]);
    let said = stdout(&output);
    assert!(said.starts_with("v1/history/corner/1: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Replaces the content object of a tenant by other bytes.
fn damage(store: &ObjectStore, tenant: &str) {
    use bucket::store::Uploads;
    use fleet::exchange::{Answer, Request};
    use fleet::key::ObjectKey;
    use fleet::pointer::Pointer;

    let bucket = store.bucket("sites");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let send = |request: Request| {
        let uploads = Uploads::new();
        let sent = bucket.send(&request, &uploads);
        runtime.block_on(sent).expect("an answer")
    };
    let Answer::Object(pointer) = send(Request::Get(ObjectKey::pointer(tenant))) else {
        panic!("{tenant} has no pointer");
    };
    let pointer = Pointer::of_bytes(&pointer.body).expect("a pointer");
    let object = pointer.content[0].object.clone();
    let Answer::Object(stored) = send(Request::Get(object.clone())) else {
        panic!("{object} is missing");
    };
    let swap = Request::Swap(object, stored.tag, "other bytes".into());
    assert_eq!(send(swap), Answer::Done);
}

#[test]
fn store_without_conditional_writes_is_refused() {
    if !is_there("rclone") {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("fleet")).expect("a folder");
    let address = reserved_address();
    let mut program = Program::start(
        Command::new("rclone")
            .args(["serve", "s3", "--auth-key", "key,secret", "--addr"])
            .arg(address.to_string())
            .arg(&data),
    );
    wait_for("an open port", || {
        program.must_run();
        std::net::TcpStream::connect(address).ok()
    });
    let tenants = folder.path().join("tenants");
    tenant(Path::new(&tenants.join("corner")), "corner", "");
    let output = Command::new(binary())
        .args(["publish", "--store=s3://fleet/sites"])
        .current_dir(folder.path())
        .env("AWS_ENDPOINT_URL", format!("http://{address}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .output()
        .expect("rowhouse");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("`s3://fleet/sites` cannot be used"), "{said}");
}
