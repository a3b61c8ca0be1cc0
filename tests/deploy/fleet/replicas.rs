//! Replicas that follow a bucket: new versions, a store that is down, restarts.

use std::net::SocketAddr;
use std::process::Command;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use bucket::packed::{self, PackedFolder};
use bucket::run;
use bucket::store::{Bucket, Uploads, random_nonce};
use bytes::Bytes;
use fleet::exchange::{Answer, Request};
use fleet::key::{DEPLOYMENT, REPLICAS, THEMES};
use fleet::publish::{Edit, Outcome, Publication};
use rowhouse_tests::{binary, is_long};
use tempfile::TempDir;

use crate::fleet::object_store::ObjectStore;
use crate::http;
use crate::support::{self, Program, Rowhouse, wait_for};

/// The limit on the time between a publication and its first response from each replica, for 99 of 100 publications.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// The number of publications after which all content encodings are compared.
const COMPARED: u64 = 5;

/// The number of awake tenants of a replica with the least memory.
const MAX_AWAKE: usize = 16;

/// Rules that protect a tenant.
const RULES: &str = "access: {client: {user: ann, token_sha256: \"0000000000000000000000000000000000000000000000000000000000000000\"}}
tenants: {corner: {access: [client]}, harbour: {}}
";

/// A publisher of tenants with one page.
pub(crate) struct TestPublisher {
    bucket: Bucket,
    runtime: tokio::runtime::Runtime,
}

impl TestPublisher {
    pub(crate) fn new(bucket: Bucket) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Self {
            bucket,
            runtime: runtime.expect("a runtime"),
        }
    }

    /// Publishes a tenant with a text on its page, or unpublishes the tenant.
    pub(crate) fn publish(&self, tenant: &str, text: Option<&str>) {
        let Some(text) = text else {
            return self.publish_folder(tenant, None);
        };
        let page = format!("---\ntitle: {tenant}\n---\n{text}\n");
        let manifest = format!("name: {tenant}\n");
        self.publish_files(
            tenant,
            &[("tenant.yaml", &manifest), ("pages/index.md", &page)],
        );
    }

    /// Returns the number of replicas in the list of the fleet.
    fn replicas(&self) -> usize {
        let list = Request::List(REPLICAS.to_owned());
        let uploads = Uploads::new();
        let sent = self.bucket.send(&list, &uploads);
        match self.runtime.block_on(sent).expect("an answer") {
            Answer::Listed(replicas) => replicas.len(),
            answer => panic!("{answer:?}"),
        }
    }

    /// Publishes files under a name.
    fn publish_files(&self, name: &str, files: &[(&str, &str)]) {
        let files = files.iter();
        let files = files.map(|(path, text)| ((*path).to_owned(), Bytes::from((*text).to_owned())));
        let folder = PackedFolder {
            files: files.collect(),
            ..PackedFolder::default()
        };
        self.publish_folder(name, Some(folder));
    }

    fn publish_folder(&self, tenant: &str, folder: Option<PackedFolder>) {
        let content: Vec<_> = folder.iter().map(PackedFolder::to_bytes).collect();
        let hashes: Vec<_> = content
            .iter()
            .map(|content| packed::hash(content))
            .collect();
        let objects = content
            .iter()
            .map(|content| packed::compress(content).expect("memory"));
        let uploads: Uploads = hashes.iter().cloned().zip(objects).collect();
        let publication = Publication {
            tenant: tenant.to_owned(),
            edit: match hashes.is_empty() {
                true => Edit::Unpublish,
                false => Edit::Publish(hashes),
            },
            addresses: Vec::new(),
            expected: None,
            at: 0,
            author: "Ann".to_owned(),
        };
        let ended = run::publish(&self.bucket, publication, &uploads, random_nonce());
        let outcome = self.runtime.block_on(ended).expect("an answer");
        assert!(matches!(outcome, Outcome::Published(_)), "{outcome:?}");
    }
}

/// Returns the command of a replica with this state.
pub(crate) fn replica(store: &ObjectStore, state: &TempDir) -> Command {
    let mut command = Command::new(binary());
    command
        .arg("serve")
        .current_dir(state.path())
        .envs(store.variables())
        .env("ROWHOUSE_STORE", store.address("sites"))
        .env("ROWHOUSE_STATE", state.path().join("state"))
        .env("ROWHOUSE_ORIGIN", "http://localhost")
        .env("ROWHOUSE_LISTEN", "127.0.0.1:0")
        .env("ROWHOUSE_ADMIN", "127.0.0.1:0");
    command
}

fn page(server: &Rowhouse, tenant: &str) -> Option<(u16, String)> {
    http::ask(server.visitors, &format!("{tenant}.localhost"), "/")
}

fn page_status(server: &Rowhouse, tenant: &str) -> Option<u16> {
    page(server, tenant).map(|(status, _)| status)
}

pub(crate) fn has_text(server: &Rowhouse, tenant: &str, text: &str) -> bool {
    page(server, tenant).is_some_and(|(status, page)| status == 200 && page.contains(text))
}

pub(crate) fn wait_for_text(server: &Rowhouse, tenant: &str, text: &str) {
    wait_for(text, || has_text(server, tenant, text).then_some(()));
}

pub(crate) fn readiness(server: &Rowhouse) -> (u16, String) {
    server.get_admin("/readyz").expect("a response")
}

fn metric(server: &Rowhouse, name: &str) -> Option<String> {
    let (_, metrics) = server.get_admin("/metrics")?;
    let mut lines = metrics.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(found, value)| (found == name).then(|| value.to_owned()))
}

/// Returns the number of tenants that a replica has rendered.
fn rendered(server: &Rowhouse) -> u64 {
    let count = metric(server, "rowhouse_render_duration_seconds_count");
    count.expect("a metric").parse().expect("a number")
}

/// Returns the page of a tenant in each content encoding, with its entity tag.
fn encodings(server: &Rowhouse, tenant: &str) -> Vec<(String, String, Vec<u8>)> {
    let encoded = |encoding: &str| {
        let host = format!("{tenant}.localhost");
        let more = format!("accept-encoding: {encoding}\r\nconnection: close\r\n");
        let mut visitor = http::Visitor::connect(server.visitors).expect("a connection");
        let (encoding, tag, body) = visitor.tagged(&host, "/", &more).expect("a response");
        (encoding, tag, body)
    };
    ["identity", "gzip", "br"].map(encoded).into()
}

#[test]
fn published_version_reaches_three_replicas_and_an_unpublished_tenant_goes_away() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let publisher = TestPublisher::new(store.bucket("sites"));
    publisher.publish("corner", Some("Corner"));
    publisher.publish("mill", Some("Version 0"));
    let states = [(); 3].map(|()| TempDir::new().expect("a folder"));
    let servers: Vec<Rowhouse> = states
        .iter()
        .map(|state| Rowhouse::start_with(&mut replica(&store, state)))
        .collect();
    for server in &servers {
        assert!(has_text(server, "mill", "Version 0"));
        assert_eq!(readiness(server).1, "ready\n");
        assert_eq!(
            metric(server, "rowhouse_bucket_problems").as_deref(),
            Some("0")
        );
    }
    let all = |tenant: &str| -> Vec<_> {
        let pages = servers.iter().map(|server| encodings(server, tenant));
        pages.collect()
    };
    let quick = all("corner");
    let renders = || servers.iter().map(rendered).sum::<u64>();
    let mut before = 0;
    let mut delays = Vec::new();
    let publications = if is_long() { 200 } else { COMPARED };
    for version in 1..=publications {
        let text = format!("Version {version}");
        publisher.publish("mill", Some(&text));
        let published = Instant::now();
        for server in &servers {
            wait_for_text(server, "mill", &text);
        }
        delays.push(published.elapsed());
        if version <= COMPARED {
            // All replicas first send the quick encodings. One of them then makes a better Brotli for all.
            let pages = wait_for("the same responses of all replicas", || {
                let pages = all("mill");
                pages.iter().all(|page| *page == pages[0]).then_some(pages)
            });
            assert!(pages[0].iter().all(|(_, tag, _)| !tag.is_empty()));
        }
        // One replica renders for all. At the start, visitors asked all replicas at once.
        match version {
            1 => before = renders(),
            _ => assert_eq!(renders(), before + version - 1),
        }
    }
    let best = wait_for("the best encodings of an unchanged page", || {
        let pages = all("corner");
        let is_same = pages.iter().all(|page| *page == pages[0]);
        (is_same && pages[0] != quick[0]).then_some(pages)
    });
    let reused = "rowhouse_shared_releases_total{result=\"encodings_reused\"}";
    let reused = servers.iter().filter_map(|server| metric(server, reused));
    let reused = reused.filter_map(|count| count.parse::<u64>().ok());
    assert!(reused.sum::<u64>() >= 2);
    delays.sort();
    let percentile = |percent: usize| delays[(delays.len() * percent).div_ceil(100) - 1];
    let (median, slow) = (percentile(50), percentile(99));
    println!("{publications} publications: median {median:?}, 99th percentile {slow:?}");
    assert!(slow <= MAX_DELAY, "{delays:?}");
    publisher.publish("mill", None);
    for server in &servers {
        // An unknown host.
        wait_for("the end of a tenant", || {
            page(server, "mill").filter(|(status, _)| *status == 421)
        });
        assert!(has_text(server, "corner", "Corner"));
    }
    // A new tenant.
    publisher.publish("harbour", Some("Harbour"));
    for server in &servers {
        wait_for_text(server, "harbour", "Harbour");
    }
    assert_eq!(all("corner"), best, "the encodings have changed again");
    // The rules and the themes.
    publisher.publish_files(DEPLOYMENT, &[("deployment.yaml", RULES)]);
    let theme = "name: harbour\nparent: plain\n";
    publisher.publish_files(THEMES, &[("harbour/theme.yaml", theme)]);
    let manifest = "name: Harbour\ntheme: harbour\n";
    let page = "---\ntitle: Harbour\n---\nNew theme\n";
    let files = [("tenant.yaml", manifest), ("pages/index.md", page)];
    publisher.publish_files("harbour", &files);
    for server in &servers {
        wait_for("a protected tenant", || {
            page_status(server, "corner").filter(|status| *status == 401)
        });
        wait_for_text(server, "harbour", "New theme");
    }
}

/// Requests the page of a host while the test goes on. The thread returns the status, and `Retry-After`.
fn request_in_background(
    server: SocketAddr,
    host: &'static str,
) -> JoinHandle<(u16, Option<String>)> {
    spawn(move || {
        let mut visitor = http::Visitor::connect(server).expect("a connection");
        visitor.retry_after(host, "/").expect("a response")
    })
}

/// Requests a page many times, which never fails. Returns the number of responses.
fn serve_until(server: &Rowhouse, end: Instant) -> u64 {
    let mut responses = 0;
    while Instant::now() < end {
        assert!(has_text(server, "mill", "Version 1"), "after {responses}");
        responses += 1;
        sleep(Duration::from_millis(20));
    }
    responses
}

#[test]
fn replica_serves_and_starts_while_the_store_is_down() {
    let Some(mut store) = ObjectStore::start() else {
        return;
    };
    let publisher = TestPublisher::new(store.bucket("sites"));
    publisher.publish("mill", Some("Version 1"));
    for number in 1..MAX_AWAKE {
        publisher.publish(&format!("other-{number}"), Some("Version 1"));
    }
    let state = TempDir::new().expect("a folder");
    let replica = |store: &ObjectStore, state: &TempDir| {
        let mut command = replica(store, state);
        command.env("ROWHOUSE_MEMORY", "1MiB");
        command
    };
    let mut server = Rowhouse::start_with(&mut replica(&store, &state));
    assert!(has_text(&server, "mill", "Version 1"));
    publisher.publish("dormant", Some("Version 1"));
    wait_for("a dormant tenant", || {
        let dormant = metric(&server, "rowhouse_bucket_dormant_tenants")?;
        (dormant == "1").then_some(())
    });
    store.stop();
    let stopped = Instant::now();
    let outage = Duration::from_secs(if is_long() { 600 } else { 10 });
    let has_alarm = |server: &Rowhouse| {
        let (status, text) = readiness(server);
        assert_eq!(status, 200, "{text}");
        assert!(has_text(server, "mill", "Version 1"));
        let is_told = text.contains("alarm: the bucket `s3://fleet/sites` cannot be read");
        (is_told && text.contains("the store did not answer")).then_some(())
    };
    wait_for("an alarm", || has_alarm(&server));
    assert_eq!(
        metric(&server, "rowhouse_bucket_problems").as_deref(),
        Some("1")
    );
    assert!(metric(&server, "rowhouse_bucket_answer_age_seconds").is_some());
    let responses = serve_until(&server, stopped + outage / 2);
    let begin = Instant::now();
    assert_eq!(server.program.end(), Some(0));
    assert!(begin.elapsed() < MAX_DELAY, "the end waits for the store");
    let server = Rowhouse::start_with(&mut replica(&store, &state));
    assert!(has_text(&server, "mill", "Version 1"));
    wait_for("an alarm", || has_alarm(&server));
    let dormant = request_in_background(server.visitors, "dormant.localhost");
    let responses = responses + serve_until(&server, stopped + outage);
    println!("{responses} responses without an error in {outage:?}");
    // A replica without content waits for the store.
    let empty = TempDir::new().expect("a folder");
    let admin = rowhouse_tests::reserved_address();
    let mut command = replica(&store, &empty);
    command.env("ROWHOUSE_ADMIN", admin.to_string());
    let mut cold = Program::start(&mut command);
    let ask = |path: &str| http::ask(admin, "localhost", path);
    let (_, text) = wait_for("a cold replica", || {
        cold.must_run();
        ask("/readyz").filter(|(_, text)| text.contains("cannot be read"))
    });
    let is_clear = text.contains("the tenants of `s3://fleet/sites` are not known yet");
    assert!(is_clear && text.starts_with("not ready"), "{text}");
    let (status, retry_after) = dormant.join().expect("a response");
    assert_eq!((status, retry_after.as_deref()), (503, Some("1")));
    store.restart();
    wait_for_text(&server, "dormant", "Version 1");
    wait_for("a ready replica", || {
        cold.must_run();
        ask("/readyz").filter(|(status, _)| *status == 200)
    });
    publisher.publish("mill", Some("Version 2"));
    wait_for_text(&server, "mill", "Version 2");
    wait_for("the end of the alarm", || {
        (readiness(&server).1 == "ready\n").then_some(())
    });
}

#[test]
fn stopped_replica_leaves_the_list_and_refused_credentials_are_an_alarm() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let publisher = TestPublisher::new(store.bucket("sites"));
    publisher.publish("mill", Some("Version 1"));
    let state = TempDir::new().expect("a folder");
    let mut server = Rowhouse::start_with(&mut replica(&store, &state));
    wait_for("a heartbeat", || (publisher.replicas() == 1).then_some(()));
    let begin = Instant::now();
    assert_eq!(server.program.end(), Some(0));
    assert!(begin.elapsed() < MAX_DELAY, "the end waits for the store");
    assert_eq!(publisher.replicas(), 0);
    let mut command = replica(&store, &state);
    command.env("AWS_SECRET_ACCESS_KEY", "expired");
    let server = Rowhouse::start_with(&mut command);
    assert!(has_text(&server, "mill", "Version 1"));
    wait_for("an alarm", || {
        let (_, text) = readiness(&server);
        text.contains("the store refuses the credentials")
            .then_some(())
    });
}

#[test]
fn wrong_address_of_the_store_ends_the_start() {
    let state = TempDir::new().expect("a folder");
    let mut command = Command::new(binary());
    command
        .args(["serve", "--store=ftp://fleet/sites", "--state=state"])
        .args(["--listen=127.0.0.1:0", "--admin=127.0.0.1:0"])
        .current_dir(state.path());
    let (is_started, text) = support::run(&mut command);
    assert!(!is_started);
    assert!(
        text.contains("`ftp://fleet/sites`") || text.contains("'ftp://fleet/sites'"),
        "{text}"
    );
    assert!(text.contains("s3://bucket/prefix"), "{text}");
}
