//! Certificates of a fleet: replicas share them in the bucket, and any replica answers the challenge.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use bucket::store::{Bucket, Uploads};
use fleet::exchange::{Answer, Request};
use fleet::key::ObjectKey;
use rowhouse_tests::{binary, is_long};
use serde_json::json;

use crate::certificates::acme_proxy::{AcmeRequest, AcmeResponse, start_proxy};
use crate::certificates::authority::{Authority, DOMAIN, all_valid, of};
use crate::fleet::object_store::ObjectStore;
use crate::support::{Rowhouse, run, tenant, wait_for};
use crate::tls::Signer;

/// The host whose order the CA has got when its replica is killed.
const SHOP: &str = "shop.studio.example";

/// The beginning of the names of leases of replicas that order certificates.
const ORDER_LEASES: &str = "v1/leases/certificate-";

/// The hosts of the two tenants, and `www.`.
const HOSTS: usize = 4;

struct Fleet {
    store: ObjectStore,
    authority: Authority,
    key: PathBuf,
}

impl Fleet {
    /// Starts the store and the authority, and publishes two tenants. Returns `None` if a program is not installed.
    fn start() -> Option<Self> {
        let (store, authority) = (ObjectStore::start()?, Authority::start(&[], &json!({}))?);
        let key = authority.folder.path().join("store.key");
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&key);
        let written = file.and_then(|mut file| writeln!(file, "{}", "0f".repeat(32)));
        written.expect("a key");
        let fleet = Self {
            store,
            authority,
            key,
        };
        let tenants = fleet.authority.tenants();
        tenant(&tenants.join("home"), "Home", "root: true\n");
        tenant(&tenants.join("shop"), "Shop", "");
        let mut publish = fleet.command("publish");
        let (is_published, said) = run(publish.arg("--tenants").arg(tenants));
        assert!(is_published, "{said}");
        Some(fleet)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(binary());
        command
            .arg(name)
            .current_dir(self.authority.folder.path())
            .envs(self.store.variables())
            .env("ROWHOUSE_STORE", self.store.address("sites"));
        command
    }

    /// Returns the command of a replica that orders certificates.
    fn replica(&self, name: &str, https: &str, redirect: Option<&str>) -> Command {
        let (folder, authority) = (self.authority.folder.path(), &self.authority);
        let mut command = self.command("serve");
        command
            .args(["--listen=127.0.0.1:0", "--admin=127.0.0.1:0"])
            .arg(format!(
                "--origin=https://{DOMAIN}:{}",
                authority.https.port()
            ))
            .arg(format!("--https={https}"))
            .arg("--acme-contact=ops@studio.example")
            .arg(format!("--acme-directory=https://{}/dir", authority.front))
            .arg("--acme-root")
            .arg(folder.join("minica.pem"))
            .arg("--state")
            .arg(folder.join(name))
            .arg("--store-key-file")
            .arg(&self.key);
        command.args(redirect.map(|address| format!("--http-redirect={address}")));
        command
    }
}

/// The first replica is the only one that the authority reaches, and has certificates of its own, so it orders none. The others order, and the authority asks the first one.
fn check_one_order_for_each_host(redirect: bool) {
    let Some(fleet) = Fleet::start() else {
        return;
    };
    let authority = &fleet.authority;
    let folder = authority.folder.path();
    let files = folder.join("files");
    fs::create_dir(&files).expect("a folder");
    let files = Signer::new().write(&files);
    let http = authority.http.to_string();
    let https = authority.https.to_string();
    let mut reached = fleet.replica("reached", &https, redirect.then_some(&http));
    reached.arg("--certificate").arg(&files.certificate);
    reached.arg("--certificate-key").arg(&files.key);
    let _reached = Rowhouse::start_with(&mut reached);
    let redirect = redirect.then_some("127.0.0.1:0");
    let ordering = ["one", "two"].map(|name| fleet.replica(name, "127.0.0.1:0", redirect));
    let mut ordering = ordering.map(|mut command| Rowhouse::start_with(&mut command));
    for server in &mut ordering {
        assert_eq!(all_valid(server, "certificates of the fleet"), HOSTS);
    }
    assert_eq!(authority.orders(), HOSTS);
    let count = |words: &str| {
        let logs = ordering.iter().map(|server| server.program.log());
        logs.map(|log| log.matches(words).count()).sum::<usize>()
    };
    assert_eq!(count(r#""message":"certificate issued""#), HOSTS);
    assert_eq!(count(r#""message":"ACME account created""#), 1);
    let taken = r#""message":"certificate taken from another replica""#;
    assert_eq!(count(taken), HOSTS);

    // A replica with an empty state takes all certificates.
    let mut late = Rowhouse::start_with(&mut fleet.replica("late", "127.0.0.1:0", redirect));
    assert_eq!(all_valid(&mut late, "certificates of the fleet"), HOSTS);
    assert_eq!(authority.orders(), HOSTS);
    assert_eq!(late.program.log().matches(taken).count(), HOSTS);
    assert_no_key_in(&fleet.store.bucket("sites"));
}

/// Sends a request to the bucket.
fn send(bucket: &Bucket, request: Request) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    // Connections belong to the event loop.
    let bucket = bucket.clone();
    let sent = runtime.block_on(async move { bucket.send(&request, &Uploads::new()).await });
    sent.expect("an answer")
}

/// Lists the objects below a prefix.
fn list(bucket: &Bucket, prefix: &str) -> Vec<ObjectKey> {
    match send(bucket, Request::List(prefix.to_owned())) {
        Answer::Listed(objects) => objects,
        answer => panic!("{answer:?}"),
    }
}

/// Checks that no object about certificates has a private key in clear text.
fn assert_no_key_in(bucket: &Bucket) {
    let objects = list(bucket, "v1/acme/");
    // The account and the certificates.
    assert_eq!(objects.len(), 1 + HOSTS, "{objects:?}");
    for name in objects {
        let Answer::Object(object) = send(bucket, Request::Get(name.clone())) else {
            panic!("no {name}");
        };
        let clear = b"PRIVATE KEY";
        let mut parts = object.body.windows(clear.len());
        assert!(!parts.any(|part| part == clear), "{name}");
    }
}

#[test]
fn replicas_order_each_certificate_once_and_another_one_answers_over_http() {
    check_one_order_for_each_host(true);
}

#[test]
fn replicas_order_each_certificate_once_and_another_one_answers_over_tls() {
    check_one_order_for_each_host(false);
}

/// The CA answers no order of the first replica. It has got one of them when the replica is killed.
///
/// The leases of the killed replica end after a minute. Only a long test waits; otherwise the test removes them.
#[test]
fn order_of_a_killed_replica_is_completed_by_another_one_for_all() {
    let Some(mut fleet) = Fleet::start() else {
        return;
    };
    let is_stalling = Arc::new(AtomicBool::new(true));
    let stalls = Arc::clone(&is_stalling);
    let rule = move |question: &AcmeRequest, pass: &dyn Fn() -> AcmeResponse| {
        if question.ordered().is_none() || !stalls.load(Relaxed) {
            return pass();
        }
        if question.ordered() == Some(SHOP) {
            pass();
        }
        // Longer than the test.
        sleep(Duration::from_secs(3_600));
        pass()
    };
    let record = start_proxy(&mut fleet.authority, Box::new(rule));
    let (http, https) = (fleet.authority.http, fleet.authority.https);
    let mut killed = Rowhouse::start_with(&mut fleet.replica("killed", "127.0.0.1:0", None));
    wait_for("the orders of a replica", || {
        killed.program.must_run();
        let orders = record
            .all()
            .iter()
            .filter(|sent| sent.ordered().is_some())
            .count();
        (orders == HOSTS && fleet.authority.orders() == 1).then_some(())
    });
    let bucket = fleet.store.bucket("sites");
    let mut leases = list(&bucket, "v1/leases/");
    leases.retain(|lease| lease.as_str().starts_with(ORDER_LEASES));
    assert_eq!(leases.len(), HOSTS, "{leases:?}");
    assert_eq!(list(&bucket, "v1/acme/").len(), 1, "the account only");

    let start = || {
        // The CA reaches this replica only, which answers the challenges of both.
        let (http, https) = (http.to_string(), https.to_string());
        let reached = fleet.replica("reached", &https, Some(&http));
        let other = fleet.replica("other", "127.0.0.1:0", None);
        [reached, other].map(|mut command| Rowhouse::start_with(&mut command))
    };
    is_stalling.store(false, Relaxed);
    let servers = is_long().then(start);
    killed.program.kill();
    let mut servers = servers.unwrap_or_else(|| {
        for lease in leases {
            send(&bucket, Request::Delete(lease));
        }
        start()
    });
    for server in &mut servers {
        assert_eq!(all_valid(server, "certificates of the fleet"), HOSTS);
    }
    let mut late = Rowhouse::start_with(&mut fleet.replica("late", "127.0.0.1:0", None));
    assert_eq!(all_valid(&mut late, "certificates of the fleet"), HOSTS);
    // The killed replica's order was lost, and no other one.
    assert_eq!(fleet.authority.orders(), HOSTS + 1);
    assert_eq!(record.orders(SHOP).len(), 2);
    let issued = servers.iter().map(|server| {
        let log = server.program.log();
        log.matches(r#""message":"certificate issued""#).count()
    });
    assert_eq!(issued.sum::<usize>(), HOSTS);
    let end = |server: &Rowhouse| of(server, SHOP)["not_after"].clone();
    let ends: Vec<_> = servers.iter().chain([&late]).map(end).collect();
    assert!(
        !ends[0].is_null() && ends.iter().all(|end| *end == ends[0]),
        "{ends:?}"
    );
}

#[test]
fn replica_that_orders_certificates_needs_the_key_of_the_store() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let serve = |key: Option<&str>| {
        let mut command = Command::new(binary());
        command
            .args(["serve", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0"])
            .args(["--https=127.0.0.1:0", "--origin=https://studio.example"])
            .args(["--acme-contact=ops@studio.example", "--state=state"])
            .current_dir(folder.path())
            .envs(store.variables())
            .env("ROWHOUSE_STORE", store.address("sites"));
        command.args(key.map(|key| format!("--store-key-file={key}")));
        run(&mut command)
    };
    fs::write(folder.path().join("short.key"), "0f0f\n").expect("a file");
    for (key, expected) in [
        (None, "openssl rand -hex 32"),
        (Some("none.key"), "--store-key-file none.key"),
        (Some("short.key"), "a key has 64 hexadecimal digits"),
    ] {
        let (is_served, said) = serve(key);
        assert!(!is_served && said.contains(expected), "{key:?}: {said}");
    }
}
