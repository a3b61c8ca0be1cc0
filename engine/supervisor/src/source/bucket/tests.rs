//! Tests of the rules and themes that replicas take from the bucket.

use std::fs;
use std::sync::Arc;

use jiff::Timestamp;
use tempfile::TempDir;

use bucket::packed::{self, PackedFolder};
use bucket::run;
use bucket::store::Uploads;
use fleet::exchange::{Answer, Request};
use fleet::key::ContentHash;
use fleet::pointer::Pointer;
use fleet::publish::{Edit, Outcome, Publication};
use release::snapshot::HostEntry;
use release::snapshot::access::AccessRule;
use release::store::RetentionLimits;
use render::{CachePolicy, Islands};
use rowhouse_ui::Bundle;
use server::snapshot_store::{RequestedAddress, SnapshotStore};

use super::*;
use crate::deployment_config::DeploymentConfig;
use crate::runner::operator::Inbox;
use crate::runner::reload_queue::ReloadQueue;
use crate::source::watch::{DetectionMethod, Watch};
use crate::state::tables::PersistedState;
use crate::{Registry, ReloadLoop};

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

/// Packs a folder.
fn packed(files: &[(&str, &str)]) -> (ContentHash, Uploads) {
    let files = files.iter();
    let files = files.map(|(path, text)| ((*path).to_owned(), (*text).to_owned().into()));
    let folder = PackedFolder {
        files: files.collect(),
        ..PackedFolder::default()
    };
    let content = folder.to_bytes();
    let hash = packed::hash(&content);
    let uploads = Uploads::from([(hash.clone(), packed::compress(&content).unwrap())]);
    (hash, uploads)
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
        let (hash, uploads) = packed(files);
        self.change(name, 0, Edit::Publish(vec![hash]), &uploads);
    }

    fn change(&self, name: &str, at: u64, edit: Edit, uploads: &Uploads) {
        let publication = Publication {
            tenant: name.to_owned(),
            edit,
            addresses: Vec::new(),
            expected: None,
            at,
            author: "Ann".to_owned(),
        };
        let ended = run::publish(&self.bucket, publication, uploads, random_nonce());
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
        let read = Request::Get(ObjectKey::pointer(DEPLOYMENT));
        let Answer::Object(object) = self.send(&read) else {
            panic!("no pointer");
        };
        let pointer = Pointer::of_bytes(&object.body).unwrap();
        let lost = pointer.content[0].object.clone();
        assert_eq!(self.send(&Request::Delete(lost)), Answer::Done);
    }

    fn send(&self, request: &Request) -> Answer {
        let uploads = Uploads::new();
        let sent = self.bucket.send(request, &uploads);
        self.runtime.block_on(sent).unwrap()
    }

    fn withdraw(&self, name: &str) {
        self.change(name, 0, Edit::Unpublish, &Uploads::new());
    }

    /// Publishes a preview, always with the same content.
    fn publish_preview(&self, name: &str, at: u64) {
        let (hash, uploads) = packed(&[
            ("tenant.yaml", "name: Preview\n"),
            (
                "pages/index.md",
                "---\ntitle: Page\ndescription: A page.\n---\nText\n",
            ),
        ]);
        self.change(name, at, Edit::Renew(vec![hash]), &uploads);
    }

    /// Starts a replica. `themes` and `deployment` are on its machine.
    fn start(&self, themes: Option<PathBuf>, deployment: Option<PathBuf>) -> Replica {
        let follower = self.follow(self.state.path(), 1_000);
        self.replica(follower, themes, deployment)
    }

    /// Follows the bucket with a limit on awake tenants.
    fn follow(&self, state: &Path, max_awake: usize) -> BucketFollower {
        let bucket = self.bucket.clone();
        // Longer than a test.
        let interval = Duration::from_secs(3_600);
        BucketFollower::follow(
            [bucket.clone(), bucket.clone(), bucket],
            state,
            (interval, max_awake),
            "host",
            &StatusBoard::default(),
        )
        .unwrap()
    }

    /// Returns a replica with the tenants of a follower.
    fn replica(
        &self,
        follower: BucketFollower,
        themes: Option<PathBuf>,
        deployment: Option<PathBuf>,
    ) -> Replica {
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

/// A replica that serves, with its threads.
struct Server {
    snapshots: Arc<SnapshotStore>,
    dormant: Arc<dyn DormantTenants>,
}

impl Server {
    fn start(follower: BucketFollower, registry: Registry) -> Self {
        let mut registry = registry.serving();
        let snapshot = registry.reload(Timestamp::now()).unwrap();
        let dormant = registry.settings.dormant.clone().unwrap();
        let snapshots = Arc::new(SnapshotStore::new(snapshot));
        registry.set_served();
        let board = Arc::new(StatusBoard::default());
        let reloads = ReloadLoop {
            registry,
            snapshots: Arc::clone(&snapshots),
            board: Arc::clone(&board),
            events: None,
            inbox: Inbox::default(),
        }
        .start(Watch::new(DetectionMethod::Off, Vec::new()));
        follower.start_waker(reloads);
        Self { snapshots, dormant }
    }

    fn find(&self, host: &str) -> Option<Arc<str>> {
        self.dormant.find(RequestedAddress::Host(host, "/"))
    }

    fn has(&self, host: &str) -> bool {
        let snapshot = self.snapshots.current();
        match snapshot.hosts.get(host) {
            Some(HostEntry::Site(routes)) => {
                let root = routes.root.as_ref();
                root.is_some_and(|mount| mount.pages.get().is_some())
            }
            _ => false,
        }
    }

    /// Waits for the pages of a host as a request does.
    fn request(&self, host: &str) {
        let begun = Instant::now();
        while !self.has(host) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{host}");
            let notice = self.snapshots.current().hosts.contains_key(host);
            let tenant = self.find(host);
            assert!(
                notice || tenant.is_some(),
                "{host} is unknown while it wakes"
            );
            if let Some(tenant) = tenant.filter(|_| !notice) {
                self.dormant.request(&tenant);
            }
            thread::sleep(Duration::from_millis(5));
        }
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

fn reads(bucket: &Bucket) -> u64 {
    bucket.metrics().counts().requests[0].iter().sum()
}

#[test]
fn request_wakes_a_dormant_tenant_with_two_reads_and_the_quietest_goes_to_sleep() {
    let fleet = Fleet::new();
    for tenant in ["bakery", "corner", "mill"] {
        fleet.publish_tenant(tenant);
    }
    // Another replica has rendered all tenants.
    let other = TempDir::new().unwrap();
    let follower = fleet.follow(other.path(), 1_000);
    let mut rendered = fleet.replica(follower, None, None);
    rendered.registry.reload(Timestamp::now()).unwrap();
    let listed = || {
        fleet
            .runtime
            .block_on(fleet.bucket.list_tagged("v1/releases/"))
    };
    while listed().unwrap().len() < 3 {
        thread::sleep(Duration::from_millis(5));
    }
    let follower = fleet.follow(fleet.state.path(), 1);
    let replica = fleet.replica(follower, None, None);
    let awake: Vec<TenantId> = replica.registry.catalog.tenants.keys().cloned().collect();
    assert_eq!(awake.len(), 1);
    let awake = format!("{}.studio.example", awake[0]);
    let server = Server::start(replica.follower, replica.registry);
    let hosts = ["bakery", "corner", "mill"].map(|name| format!("{name}.studio.example"));
    let cold = hosts.iter().find(|host| **host != awake).unwrap();
    server.request(&awake);
    let before = reads(&fleet.bucket);
    server.request(cold);
    assert_eq!(
        reads(&fleet.bucket) - before,
        2,
        "the source and the release"
    );
    while server.has(&awake) {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(server.find(&awake).is_some());
    assert_eq!(server.find("other.studio.example"), None);
    assert_eq!(
        reads(&fleet.bucket) - before,
        2,
        "an unknown host is not looked for"
    );
}

/// Starts a replica of two tenants that has room for one, and persists its data.
fn start_with_one_awake(fleet: &Fleet) -> Replica {
    let limits = RetentionLimits {
        bytes: 1 << 30,
        releases: 10,
    };
    let follower = fleet.follow(fleet.state.path(), 1);
    let mut replica = fleet.replica(follower, None, None);
    let state = fleet.state.path().join("persisted");
    let persisted = PersistedState::open(&state, replica.registry.config(), limits);
    replica.registry = replica.registry.with_persisted(persisted);
    replica.registry.reload(Timestamp::now()).unwrap();
    replica.registry.persist();
    replica.registry.finish_persisting();
    replica
}

/// Publishes two tenants, and starts a replica that has had one of them awake, and then the other. Returns the one that went to sleep.
fn fall_asleep(fleet: &Fleet) -> (Replica, TenantId) {
    for tenant in ["corner", "mill"] {
        fleet.publish_tenant(tenant);
    }
    let mut replica = start_with_one_awake(fleet);
    let awake: Vec<TenantId> = replica.registry.catalog.tenants.keys().cloned().collect();
    let cold = match awake[0].as_str() {
        "corner" => "mill",
        _ => "corner",
    };
    let waker = replica.follower.follower.waker(fleet.bucket.clone());
    assert!(waker.request(cold).is_fetched);
    fleet.runtime.block_on(waker.fetch(cold)).unwrap();
    replica.poll();
    assert!(has(&replica, cold) && !has(&replica, awake[0].as_str()));
    (replica, awake[0].clone())
}

fn has(replica: &Replica, id: &str) -> bool {
    replica.registry.catalog.tenants.contains_key(id)
}

fn releases(replica: &Replica, id: &TenantId) -> usize {
    let store = Arc::clone(replica.registry.store().unwrap());
    store.list(id.as_str()).len()
}

#[test]
fn tenant_that_goes_to_sleep_is_not_removed_and_keeps_its_data() {
    let fleet = Fleet::new();
    let (replica, asleep) = fall_asleep(&fleet);
    assert!(replica.registry.world.removed().is_empty());
    assert_eq!(releases(&replica, &asleep), 1);
    drop(replica);
    // A start does not note the removal either.
    let replica = start_with_one_awake(&fleet);
    assert!(!has(&replica, asleep.as_str()));
    assert!(replica.registry.world.removed().is_empty());
    assert_eq!(releases(&replica, &asleep), 1);
}

#[test]
fn dormant_tenant_that_is_withdrawn_is_removed_at_once_as_an_awake_one() {
    let fleet = Fleet::new();
    let (mut replica, asleep) = fall_asleep(&fleet);
    fleet.withdraw(asleep.as_str());
    replica.poll();
    assert!(replica.registry.world.removed().contains_key(&asleep));
    assert_eq!(releases(&replica, &asleep), 1, "an operator may restore it");
    replica = Replica {
        registry: replica.registry.with_removed_retention(Duration::ZERO),
        ..replica
    };
    replica.poll();
    replica.registry.finish_persisting();
    assert!(replica.registry.world.removed().is_empty());
    assert_eq!(releases(&replica, &asleep), 0);
}

#[test]
fn preview_is_as_old_as_its_publication_on_each_machine_and_after_each_start() {
    let fleet = Fleet::new();
    let id = TenantId::of_preview("corner", "spring").unwrap();
    let begun = |replica: &Replica| {
        let age = replica.registry.world.previews().age(&id).unwrap();
        age.changed
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_millis()
    };
    fleet.publish_tenant("corner");
    fleet.publish_preview(id.as_str(), 1_700_000_000_000);
    let mut replica = fleet.start(None, None);
    assert_eq!(begun(&replica), 1_700_000_000_000);
    fleet.publish_preview(id.as_str(), 1_700_000_100_000);
    replica.poll();
    assert_eq!(begun(&replica), 1_700_000_100_000, "without a change");
    let restarted = fleet.start(None, None);
    assert_eq!(begun(&restarted), 1_700_000_100_000);
    let elsewhere = TempDir::new().unwrap();
    let follower = fleet.follow(elsewhere.path(), 1_000);
    let other = fleet.replica(follower, None, None);
    assert_eq!(begun(&other), 1_700_000_100_000);
    // The clock of the next publisher is slow.
    fleet.publish_preview(id.as_str(), 1_700_000_050_000);
    replica.poll();
    assert_eq!(begun(&replica), 1_700_000_050_000);
    let restarted = fleet.start(None, None);
    assert_eq!(begun(&restarted), 1_700_000_050_000);
}

#[test]
fn preview_that_wakes_is_as_old_as_its_publication() {
    let fleet = Fleet::new();
    fleet.publish_preview("corner@spring", 1_700_000_000_000);
    fleet.publish_tenant("corner");
    let follower = fleet.follow(fleet.state.path(), 1);
    let view = follower.view.clone();
    let dormant = follower.dormant("studio.example");
    let reloads = ReloadQueue::default();
    follower.start_waker(reloads.sender());
    for tenant in ["corner", "corner@spring"] {
        let begun = Instant::now();
        let is_awake = || {
            let view = view.lock();
            let tenants = view.tenants.as_ref().unwrap();
            tenants.contains_key(tenant).then(|| view.published[tenant])
        };
        let published = loop {
            assert!(begun.elapsed() < Duration::from_secs(60), "{tenant}");
            if let Some(published) = is_awake() {
                break published;
            }
            dormant.request(tenant);
            dormant.note_answered(tenant);
            thread::sleep(Duration::from_millis(5));
        };
        let millis = published
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_millis();
        assert_eq!(millis > 0, tenant == "corner@spring");
    }
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
    use bucket::store::metrics::{LATENCY_BOUNDS, RESULTS, RequestKind};
    assert_eq!(BucketTraffic::KINDS, RequestKind::NAMES);
    assert_eq!(BucketTraffic::RESULTS, RESULTS);
    assert_eq!(BucketTraffic::LATENCY_BOUNDS, LATENCY_BOUNDS);
}
