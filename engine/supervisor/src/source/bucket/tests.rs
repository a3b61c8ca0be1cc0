//! Tests of the rules and themes that replicas take from the bucket.

use std::fs;
use std::sync::Arc;

use jiff::Timestamp;
use tempfile::TempDir;

use bucket::packed::{self, PackedFolder};
use bucket::run;
use bucket::store::Uploads;
use fleet::exchange::{Answer, Request};
use fleet::pointer::Pointer;
use fleet::publish::{Edit, Outcome, Publication};
use release::snapshot::access::AccessRule;
use render::{CachePolicy, Islands};
use rowhouse_ui::Bundle;

use super::*;
use crate::Registry;
use crate::deployment_config::DeploymentConfig;

/// The rules of access to the tenant `secret`.
const RULES: &str = "access: {client: {user: ann, token_sha256: \"0000000000000000000000000000000000000000000000000000000000000000\"}}
tenants: {secret: {access: [client]}}
";

/// A bucket, and the state of a replica that follows it.
struct Fleet {
    bucket: Bucket,
    state: TempDir,
    runtime: Runtime,
}

/// A running replica.
struct Replica {
    follower: BucketFollower,
    registry: Registry,
}

impl Fleet {
    fn new() -> Self {
        Self {
            bucket: Bucket::in_memory(),
            state: TempDir::new().unwrap(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    fn publish(&self, name: &str, files: &[(&str, &str)]) {
        let files = files.iter();
        let files = files.map(|(path, text)| ((*path).to_owned(), (*text).to_owned().into()));
        let folder = PackedFolder {
            files: files.collect(),
            ..PackedFolder::default()
        };
        let content = folder.to_bytes();
        let hash = packed::hash(&content);
        let publication = Publication {
            tenant: name.to_owned(),
            edit: Edit::Publish(vec![hash.clone()]),
            expected: None,
            at: 0,
            author: "Ann".to_owned(),
        };
        let uploads = Uploads::from([(hash, packed::compress(&content).unwrap())]);
        let ended = run::publish(&self.bucket, publication, &uploads, random_nonce());
        let outcome = self.runtime.block_on(ended).unwrap();
        assert!(matches!(outcome, Outcome::Published(_)), "{outcome:?}");
    }

    fn publish_tenant(&self, name: &str) {
        let page = "---\ntitle: Page\ndescription: A page.\n---\nText\n";
        let manifest = format!("name: {name}\ndescription: A tenant.\n");
        let files = [("tenant.yaml", &*manifest), ("pages/index.md", page)];
        self.publish(name, &files);
    }

    /// Publishes `deployment.yaml`, and loses the content.
    fn publish_damaged_rules(&self, text: &str) {
        self.publish(DEPLOYMENT, &[(FILE, text)]);
        let send = |request: Request| {
            let uploads = Uploads::new();
            let sent = self.bucket.send(&request, &uploads);
            self.runtime.block_on(sent).unwrap()
        };
        let Answer::Object(object) = send(Request::Get(ObjectKey::pointer(DEPLOYMENT))) else {
            panic!("no pointer");
        };
        let pointer = Pointer::of_bytes(&object.body).unwrap();
        let lost = pointer.content[0].object.clone();
        assert_eq!(send(Request::Delete(lost)), Answer::Done);
    }

    /// Starts a replica. `themes` and `deployment` are on its machine.
    fn start(&self, themes: Option<PathBuf>, deployment: Option<PathBuf>) -> Replica {
        let board = StatusBoard::default();
        let bucket = self.bucket.clone();
        let interval = Duration::from_secs(2);
        let follower = BucketFollower::follow(
            [bucket.clone(), bucket],
            self.state.path(),
            interval,
            "host",
            &board,
        )
        .unwrap();
        let config = DeploymentConfig {
            tenants: PathBuf::from("memory:"),
            themes: None,
            deployment,
            origin: "https://studio.example".parse().unwrap(),
            hsts: None,
            caching: CachePolicy::default(),
        };
        let islands = Islands::new(Bundle::embedded().unwrap(), true);
        let registry = Registry::new(config, Arc::new(islands)).without_compression();
        let mut registry = registry.with_bucket(&follower, themes);
        registry.reload(Timestamp::now()).unwrap();
        Replica { follower, registry }
    }
}

impl Replica {
    fn poll(&mut self) {
        let board = StatusBoard::default();
        assert!(self.follower.step(&board, &ReloadSender::default()));
        self.registry.reload(Timestamp::now()).unwrap();
    }

    fn rule(&self, tenant: &str) -> Option<&'static str> {
        let access = self.registry.catalog.addresses.access();
        access.rule(tenant).map(|rule| match rule {
            AccessRule::Closed => "closed",
            AccessRule::Credentials(_) => "credentials",
        })
    }

    fn has_theme(&self, name: &str) -> bool {
        self.registry.catalog.themes.get(name).is_some()
    }
}

const OPEN: Option<&str> = None;
const CLOSED: Option<&str> = Some("closed");
const CREDENTIALS: Option<&str> = Some("credentials");

#[test]
fn published_rules_are_in_force_and_without_any_every_tenant_is_open() {
    let fleet = Fleet::new();
    fleet.publish_tenant("secret");
    let mut replica = fleet.start(None, None);
    assert_eq!(replica.rule("secret"), OPEN);
    fleet.publish(DEPLOYMENT, &[(FILE, RULES)]);
    replica.poll();
    assert_eq!(replica.rule("secret"), CREDENTIALS);
    assert_eq!(replica.rule("other"), OPEN);
}

#[test]
fn rules_that_cannot_be_read_close_and_never_open() {
    let fleet = Fleet::new();
    fleet.publish_tenant("secret");
    fleet.publish_damaged_rules(RULES);
    let mut replica = fleet.start(None, None);
    assert_eq!(replica.rule("secret"), CLOSED);
    let alarm = replica.registry.alarm().unwrap();
    assert!(
        alarm.contains("the newest published `deployment.yaml` cannot be read"),
        "{alarm}"
    );
    assert!(alarm.contains("does not exist"), "{alarm}");
    let restarted = fleet.start(None, None);
    assert_eq!(restarted.rule("secret"), CLOSED, "after a restart");
    let others = format!("# Published again.\n{RULES}");
    fleet.publish(DEPLOYMENT, &[(FILE, &others)]);
    replica.poll();
    assert_eq!(replica.rule("secret"), CREDENTIALS);
    fleet.publish_damaged_rules("tenants: {}\n");
    fleet.publish_tenant("added");
    replica.poll();
    assert_eq!(replica.rule("secret"), CREDENTIALS);
    assert_eq!(replica.rule("added"), CLOSED);
    // A valid file without the rule ends the alarm.
    fleet.publish(DEPLOYMENT, &[("other.yaml", "tenants: {}\n")]);
    replica.poll();
    let alarm = replica.registry.alarm().unwrap();
    assert!(alarm.contains("does not have the file"), "{alarm}");
    assert_eq!(replica.rule("added"), CLOSED);
}

#[test]
fn published_themes_are_used_unless_there_is_a_local_folder() {
    let fleet = Fleet::new();
    fleet.publish_tenant("mill");
    let mut replica = fleet.start(None, None);
    assert!(replica.has_theme("plain") && !replica.has_theme("bakery"));
    let theme = "name: bakery\nparent: plain\n";
    fleet.publish(THEMES, &[("bakery/theme.yaml", theme)]);
    replica.poll();
    assert!(replica.has_theme("plain") && replica.has_theme("bakery"));
    fleet.publish(THEMES, &[("bakery/theme.yaml", "parent: [\n")]);
    replica.poll();
    assert!(replica.has_theme("bakery"), "the last valid templates stay");
    let report = replica.registry.report();
    let is_named = report
        .iter()
        .any(|error| error.file == "@themes/bakery/theme.yaml");
    assert!(is_named, "{report:?}");
    let local = TempDir::new().unwrap();
    fs::create_dir(local.path().join("local")).unwrap();
    fs::write(
        local.path().join("local/theme.yaml"),
        "name: local\nparent: plain\n",
    )
    .unwrap();
    let replica = fleet.start(Some(local.path().to_owned()), None);
    assert!(replica.has_theme("local") && !replica.has_theme("bakery"));
}

#[test]
fn local_deployment_file_wins() {
    let fleet = Fleet::new();
    fleet.publish_tenant("secret");
    fleet.publish(DEPLOYMENT, &[(FILE, "tenants: {}\n")]);
    let local = TempDir::new().unwrap();
    let file = local.path().join("rules.yaml");
    fs::write(&file, RULES).unwrap();
    let replica = fleet.start(None, Some(file));
    assert_eq!(replica.rule("secret"), CREDENTIALS);
}

#[test]
fn metrics_have_the_names_and_bounds_of_the_store() {
    use bucket::metrics::{LATENCY_BOUNDS, RESULTS, RequestKind};
    assert_eq!(BucketTraffic::KINDS, RequestKind::NAMES);
    assert_eq!(BucketTraffic::RESULTS, RESULTS);
    assert_eq!(BucketTraffic::LATENCY_BOUNDS, LATENCY_BOUNDS);
}
