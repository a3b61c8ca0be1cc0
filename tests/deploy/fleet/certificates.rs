//! Certificates of a fleet: replicas share them in the bucket, and any replica answers the challenge.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use bucket::store::{Bucket, Uploads};
use fleet::exchange::{Answer, Request};
use rowhouse_tests::binary;
use serde_json::json;

use crate::certificates::authority::{Authority, DOMAIN, all_valid};
use crate::fleet::object_store::ObjectStore;
use crate::support::{Rowhouse, run, tenant};
use crate::tls::Signer;

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
            .arg(format!(
                "--acme-directory=https://{}/dir",
                authority.directory
            ))
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

/// Checks that no object about certificates has a private key in clear text.
fn assert_no_key_in(bucket: &Bucket) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let send = |request| {
        let sent = runtime.block_on(bucket.send(&request, &Uploads::new()));
        sent.expect("an answer")
    };
    let Answer::Listed(objects) = send(Request::List("v1/acme/".to_owned())) else {
        panic!("no list");
    };
    // The account and the certificates.
    assert_eq!(objects.len(), 1 + HOSTS, "{objects:?}");
    for name in objects {
        let Answer::Object(object) = send(Request::Get(name.clone())) else {
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
