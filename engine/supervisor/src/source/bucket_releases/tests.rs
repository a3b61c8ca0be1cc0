//! Replicas that share releases through a bucket in memory.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use tempfile::TempDir;

use content::name::TenantId;
use fleet::exchange::{Answer, Request};
use fleet::key::{ObjectKey, RELEASES, RENDER_LEASES};
use release::pack::{pack, unpack};
use release::snapshot::resources::ResourceWalk;
use release::snapshot::{ContentEncoding, Resource};
use release::store::RetentionLimits;
use render::{CachePolicy, Islands};
use rowhouse_ui::Bundle;

use super::*;
use crate::jobs::shared_release::{MAX_STORE_WAIT, MAX_WAIT, SharedBuild};
use crate::model::event::Event;
use crate::model::tenant::BuildKey;
use crate::runner::catalog::tenant::BuildInputs;
use crate::runner::threads::background::BackgroundWorker;
use crate::runner::threads::background::order::{self, MAX_SEARCHES};
use crate::{DeploymentConfig, PersistedState, Registry};
use bucket::store::Uploads;

const NOW: &str = "2026-11-21T12:00:00Z";

/// The files of all tenants and of a theme, in one folder for all replicas.
const FILES: [(&str, &str); 6] = [
    ("deployment.yaml", "root: home\n"),
    (
        "tenants/home/tenant.yaml",
        "name: Home\ndescription: The home.\ncompany:\n  name: Home\n  legal_name: Home LLC\n  description: A home.\n  email: post@home.example\n",
    ),
    (
        "tenants/home/pages/index.md",
        "---\ntitle: Home\n---\nWelcome.\n",
    ),
    (
        "tenants/app/tenant.yaml",
        "name: App\ndescription: An app.\n",
    ),
    (
        "tenants/app/pages/index.md",
        "---\ntitle: App\n---\nAn app.\n",
    ),
    (
        "tenants/app/pages/terms.md",
        "---\ntitle: Terms\n---\nThe terms.\n",
    ),
];

/// The number of tenants in [`FILES`].
const TENANTS: u64 = 2;

/// The folders of a deployment.
struct Folders(TempDir);

impl Folders {
    fn new() -> Self {
        let folders = Self(TempDir::new().expect("a folder"));
        for (path, text) in FILES {
            folders.write(path, text);
        }
        for themes in ["themes", "moved/themes"] {
            let theme = "name: child\nparent: base\n";
            folders.write(&format!("{themes}/child/theme.yaml"), theme);
        }
        folders
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn config(&self, themes: &str) -> DeploymentConfig {
        DeploymentConfig {
            tenants: self.path("tenants"),
            themes: Some(self.path(themes)),
            deployment: Some(self.path("deployment.yaml")),
            origin: "https://studio.example".parse().expect("an origin"),
            hsts: None,
            caching: CachePolicy::default(),
        }
    }
}

/// A replica that has not read its tenants yet.
struct Replica {
    registry: Registry,
    counts: SharedReleaseCounts,
}

/// The entity tag and the bytes of a body, by tenant and path and by content encoding.
type Bodies = BTreeMap<(String, String), Vec<(ContentEncoding, String, Bytes)>>;

impl Replica {
    fn new(config: &DeploymentConfig, bucket: Option<&Bucket>) -> Self {
        let islands = Islands::new(Bundle::embedded().expect("the islands"), true);
        let mut registry = Registry::new(config.clone(), Arc::new(islands));
        let counts = SharedReleaseCounts::default();
        registry.settings.shared_releases = bucket.map(|bucket| {
            let shared = BucketReleases::start(bucket.clone(), counts.clone());
            Arc::new(shared.expect("a thread")) as Arc<dyn SharedReleases>
        });
        Self { registry, counts }
    }

    fn with_state(mut self, state: &Path, config: &DeploymentConfig) -> Self {
        let limits = RetentionLimits {
            releases: 10,
            bytes: 1 << 30,
        };
        let persisted = PersistedState::open(state, config, limits);
        self.registry = self.registry.with_persisted(persisted);
        self
    }

    /// Builds all tenants, and returns their bodies.
    fn bodies(&mut self, now: &str) -> Bodies {
        let now: Timestamp = now.parse().expect("a time");
        self.registry.reload(now).expect("the folders");
        self.current_bodies()
    }

    /// Runs background jobs once, as if requests waited for all tenants.
    fn order_jobs(&mut self, worker: &BackgroundWorker) {
        for id in self.registry.catalog.tenants.keys() {
            self.registry.demands.images.add(id.as_str());
        }
        worker.order(order::order(&mut self.registry));
    }

    /// Returns whether all bodies have their best encodings.
    fn has_best_encodings(&self) -> bool {
        let mut tenants = self.registry.catalog.tenants.values();
        tenants.all(|tenant| {
            let compiled = tenant.compiled().expect("pages");
            compiled.compress_tasks().next().is_none()
        })
    }

    /// Returns the bodies of the last build.
    fn current_bodies(&self) -> Bodies {
        let mut bodies = Bodies::new();
        for (id, tenant) in &self.registry.catalog.tenants {
            let compiled = tenant.compiled().expect("pages");
            let mut walk = ResourceWalk::default();
            for placed in &compiled.mounts {
                let pages = placed.pages().expect("pages in memory");
                let errors = pages.not_found.iter().chain(&pages.method_not_allowed);
                let errors = errors.map(|(area, page)| (&**area, page));
                let place = placed.address.key();
                for (path, resource) in walk.visit(&pages.resources).chain(errors) {
                    if let Resource::Body(body) = &**resource {
                        let variants = body.variants.iter().map(|variant| {
                            let tag = format!("{:?}", variant.etag);
                            (
                                variant.encoding,
                                tag,
                                variant.bytes.to_bytes().expect("bytes"),
                            )
                        });
                        let name = (format!("{id} {place}"), format!("{} {path}", body.status));
                        bodies.insert(name, variants.collect());
                    }
                }
            }
        }
        bodies
    }

    fn inputs(&self, tenant: &str) -> BuildInputs {
        let id = TenantId::new(tenant).expect("a name");
        let registry = &self.registry;
        let key = BuildKey::default();
        let inputs = registry.catalog.inputs(&id, key, &registry.settings);
        inputs.expect("the inputs of a build")
    }

    fn key(&self, tenant: &str) -> CacheKey {
        self.inputs(tenant).key().expect("a key")
    }

    fn shared(&self) -> &dyn SharedReleases {
        let shared = self.registry.settings.shared_releases.as_deref();
        shared.expect("a replica with a bucket")
    }

    fn count(&self, of: SharedReleaseUse) -> u64 {
        self.counts.get(of)
    }

    /// Waits until the replica has created this many releases.
    fn wait_for_created(&self, count: u64) {
        let begin = Instant::now();
        while self.count(SharedReleaseUse::Created) < count {
            assert!(begin.elapsed() < MAX_WAIT, "the releases are not created");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs background jobs of all replicas until each has its best encodings, and has shared them.
fn improve(replicas: &mut [&mut Replica]) {
    let workers: Vec<_> = replicas.iter().map(|_| BackgroundWorker::start()).collect();
    let begin = Instant::now();
    let mut is_last = false;
    while !is_last {
        assert!(begin.elapsed() < 4 * MAX_WAIT, "no best encodings");
        is_last = replicas.iter().all(|replica| replica.has_best_encodings());
        for (replica, worker) in replicas.iter_mut().zip(&workers) {
            replica.order_jobs(worker);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the state of the releases in the bucket.
fn states(bucket: &Bucket) -> Vec<ReleaseState> {
    let keys = listed(bucket, RELEASES);
    let names = keys
        .iter()
        .map(|key| key.as_str().trim_start_matches(RELEASES));
    let states = names.map(|name| run(releases::state(bucket, name)).expect("answered"));
    states.collect()
}

/// Waits until all releases in the bucket have their best encodings.
fn wait_for_complete(bucket: &Bucket) {
    let begin = Instant::now();
    let is_complete = |state: &ReleaseState| *state == ReleaseState::Complete;
    while !states(bucket).iter().all(is_complete) {
        assert!(begin.elapsed() < MAX_WAIT, "the releases are not complete");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Replaces the best encodings of all releases in the bucket with `marked`, to see whether they are used.
fn mark_encodings(bucket: &Bucket) {
    for key in listed(bucket, RELEASES) {
        let name = key.as_str().trim_start_matches(RELEASES);
        let Ok(ReleaseLookup::Found(release)) = run(releases::find(bucket, name)) else {
            panic!("no release");
        };
        let best = unpack(&best_encodings(&release).expect("complete")).expect("packed");
        let best = best.iter().map(|(key, _)| (&key[..], &b"marked"[..]));
        let parts = unpack(&release).expect("packed");
        let quick = parts[..4].iter().map(|(name, part)| (&name[..], &part[..]));
        send(bucket, Request::Delete(key.clone()));
        assert!(run(releases::create(bucket, name, &pack(quick))).expect("answered"));
        let added = pack([(&b""[..], &pack(best)[..])]);
        assert!(run(releases::complete(bucket, name, &added)).expect("answered"));
    }
}

/// Returns the number of bodies whose best encoding is `marked`.
fn marked(bodies: &Bodies) -> usize {
    let best = bodies.values().filter_map(|variants| variants.first());
    best.filter(|(_, _, bytes)| bytes == "marked").count()
}

/// Returns a store that accepts connections and answers no request. The listener must live as long as the store.
fn silent_store() -> (TcpListener, Bucket) {
    // A connection is accepted by the system, and no request is read.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "here".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let bucket = Bucket::open_with("s3://bucket/sites", variables).expect("an address");
    (listener, bucket)
}

/// Runs requests of a test.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("an event loop").block_on(future)
}

fn send(bucket: &Bucket, request: Request) -> Answer {
    run(bucket.send(&request, &Uploads::new())).expect("the store in memory answers")
}

fn listed(bucket: &Bucket, prefix: &str) -> Vec<ObjectKey> {
    match send(bucket, Request::List(prefix.to_owned())) {
        Answer::Listed(keys) => keys,
        answer => panic!("{answer:?}"),
    }
}

fn assert_same(one: &Bodies, other: &Bodies) {
    let names = |bodies: &Bodies| bodies.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other));
    for (name, body) in one {
        assert!(body == &other[name], "{name:?} differs");
    }
}

#[test]
fn second_replica_reuses_all_pages_with_their_encodings_and_keeps_them() {
    let folders = Folders::new();
    let bucket = Bucket::in_memory();
    let config = folders.config("themes");
    let alone = Replica::new(&config, None).bodies(NOW);
    let encodings = |bodies: &Bodies| bodies.values().map(Vec::len).sum::<usize>();
    assert!(encodings(&alone) > alone.len(), "no body is compressed");
    let mut first = Replica::new(&config, Some(&bucket));
    assert_same(&first.bodies(NOW), &alone);
    first.wait_for_created(TENANTS);
    // The folder of themes is elsewhere on the second machine.
    let config = folders.config("moved/themes");
    let state = folders.path("state");
    let mut second = Replica::new(&config, Some(&bucket)).with_state(&state, &config);
    assert_same(&second.bodies(NOW), &alone);
    assert_eq!(second.count(SharedReleaseUse::Reused), TENANTS);
    second.registry.persist();
    second.registry.finish_persisting();
    assert_eq!(second.count(SharedReleaseUse::Created), 0);
    drop(second);
    // A restart without the bucket.
    let mut restarted = Replica::new(&config, None).with_state(&state, &config);
    assert_same(&restarted.bodies(NOW), &alone);
    assert_eq!(restarted.registry.store_status().recalls, TENANTS);
    let begin = Instant::now();
    while !listed(&bucket, RENDER_LEASES).is_empty() {
        assert!(begin.elapsed() < MAX_WAIT, "a lease stays");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn every_input_of_the_pages_changes_the_key_and_the_folder_of_themes_does_not() {
    let folders = Folders::new();
    let mut keys = Vec::new();
    let mut add = |config: &DeploymentConfig, now: &str| {
        let mut replica = Replica::new(config, None);
        replica.bodies(now);
        keys.push(replica.key("app"));
    };
    let config = folders.config("themes");
    add(&config, NOW);
    add(&config, "2027-11-21T12:00:00Z");
    let origin = "https://other.example".parse().expect("an origin");
    add(&DeploymentConfig { origin, ..config }, NOW);
    let config = folders.config("themes");
    folders.write(
        "tenants/app/pages/terms.md",
        "---\ntitle: Terms\n---\nNew terms.\n",
    );
    add(&config, NOW);
    let manifest = "name: App\ndescription: An app.\naliases: [/apps/app]\n";
    folders.write("tenants/app/tenant.yaml", manifest);
    add(&config, NOW);
    let (_, manifest) = FILES[1];
    folders.write(
        "tenants/home/tenant.yaml",
        &manifest.replace("post@", "mail@"),
    );
    add(&config, NOW);
    let theme = "# The theme.\nname: child\nparent: base\n";
    folders.write("tenants/app/tenant.yaml", "name: App\ntheme: child\n");
    add(&config, NOW);
    add(&folders.config("moved/themes"), NOW);
    folders.write("themes/child/theme.yaml", theme);
    add(&config, NOW);
    let moved = keys.remove(7);
    assert_eq!(keys[6], moved);
    for (number, key) in keys.iter().enumerate() {
        assert!(!keys[..number].contains(key), "{number}");
    }
}

#[test]
fn damaged_release_is_rendered() {
    let folders = Folders::new();
    let config = folders.config("themes");
    let alone = Replica::new(&config, None).bodies(NOW);
    let bucket = Bucket::in_memory();
    let mut first = Replica::new(&config, Some(&bucket));
    first.bodies(NOW);
    first.wait_for_created(TENANTS);
    let objects = listed(&bucket, RELEASES);
    assert_eq!(objects.len(), 2);
    // One object with a wrong hash, and one whose content is no release.
    for key in &objects {
        send(&bucket, Request::Delete(key.clone()));
    }
    let garbage = Bytes::from("garbage");
    send(&bucket, Request::Create(objects[0].clone(), garbage));
    let name = objects[1].as_str().trim_start_matches(RELEASES);
    assert!(run(releases::create(&bucket, name, b"garbage")).expect("answered"));
    let mut second = Replica::new(&config, Some(&bucket));
    assert_same(&second.bodies(NOW), &alone);
    assert_eq!(second.count(SharedReleaseUse::Damaged), TENANTS);
    assert_eq!(second.count(SharedReleaseUse::Reused), 0);
}

#[test]
fn replica_waits_for_another_one_and_visitors_do_not() {
    let folders = Folders::new();
    let bucket = Bucket::in_memory();
    let mut replica = Replica::new(&folders.config("themes"), Some(&bucket));
    // Without the bucket, to have the inputs of the builds.
    let shared = replica.registry.settings.shared_releases.take();
    replica.bodies(NOW);
    replica.registry.settings.shared_releases = shared;
    let (inputs, key) = (replica.inputs("app"), replica.key("app"));
    let mut other = releases::render_lease(bucket.clone(), &hexadecimal(&key));
    assert!(run(other.advance()).expect("answered"));
    let begin = Instant::now();
    let awaited = inputs.find_shared(replica.shared(), true);
    assert!(matches!(awaited, SharedBuild::Render(Some(_))));
    assert!(begin.elapsed() < MAX_STORE_WAIT);
    drop(awaited);
    let second = replica.inputs("app");
    let rendered = replica.registry.catalog.tenants["app"].compiled().cloned();
    let rendered = rendered.expect("pages");
    let shared = replica.shared();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            let report = content::report::Report::default();
            second.share(shared, None, &rendered, &report);
        });
        let found = inputs.find_shared(shared, false);
        assert!(matches!(found, SharedBuild::Reused(..)));
        assert!(begin.elapsed() < MAX_WAIT / 2);
    });
}

#[test]
fn replica_renders_in_place_of_one_that_has_ended() {
    let folders = Folders::new();
    let bucket = Bucket::in_memory();
    let config = folders.config("themes");
    let mut known = Replica::new(&config, None);
    let alone = known.bodies(NOW);
    let name = hexadecimal(&known.key("app"));
    let mut ended = releases::render_lease(bucket.clone(), &name);
    assert!(run(ended.advance()).expect("answered"));
    let begin = Instant::now();
    let mut replica = Replica::new(&config, Some(&bucket));
    assert_same(&replica.bodies(NOW), &alone);
    let took = begin.elapsed();
    assert!(
        took > releases::RENDER_LEASE / 2,
        "{took:?}: the lease is ignored"
    );
    assert!(took < MAX_WAIT + MAX_WAIT / 2, "{took:?}");
    replica.wait_for_created(TENANTS);
}

#[test]
fn store_that_does_not_answer_delays_the_first_tenant_only() {
    let folders = Folders::new();
    for number in 0..30 {
        let manifest = format!("name: Tenant {number}\n");
        folders.write(&format!("tenants/t{number}/tenant.yaml"), &manifest);
        let page = "---\ntitle: Page\n---\nA page.\n";
        folders.write(&format!("tenants/t{number}/pages/index.md"), page);
    }
    let config = folders.config("themes");
    let begin = Instant::now();
    let alone = Replica::new(&config, None).bodies(NOW);
    let without = begin.elapsed();
    let (_listener, bucket) = silent_store();
    let begin = Instant::now();
    let mut replica = Replica::new(&config, Some(&bucket));
    assert_same(&replica.bodies(NOW), &alone);
    let took = begin.elapsed();
    assert!(
        took < 3 * without + 4 * MAX_STORE_WAIT,
        "{took:?}, alone {without:?}"
    );
    assert!(replica.count(SharedReleaseUse::Failed) >= 30);
}

#[test]
fn one_replica_makes_the_best_encodings_and_all_send_equal_tags() {
    let folders = Folders::new();
    let config = folders.config("themes");
    let mut alone = Replica::new(&config, None);
    let quick = alone.bodies(NOW);
    improve(&mut [&mut alone]);
    let alone = alone.current_bodies();
    assert!(quick != alone, "no body has a better encoding");
    let bucket = Bucket::in_memory();
    let mut first = Replica::new(&config, Some(&bucket));
    assert_same(&first.bodies(NOW), &quick);
    first.wait_for_created(TENANTS);
    let mut second = Replica::new(&config, Some(&bucket));
    assert_same(&second.bodies(NOW), &quick);
    improve(&mut [&mut first, &mut second]);
    assert_same(&first.current_bodies(), &alone);
    assert_same(&second.current_bodies(), &alone);
    wait_for_complete(&bucket);
    let sum = |of| first.count(of) + second.count(of);
    assert_eq!(sum(SharedReleaseUse::EncodingsCreated), TENANTS);
    assert_eq!(sum(SharedReleaseUse::EncodingsReused), TENANTS);
    // A replica that starts later has the best encodings at once.
    let mut third = Replica::new(&config, Some(&bucket));
    assert_same(&third.bodies(NOW), &alone);
    assert!(third.has_best_encodings());
}

#[test]
fn found_encodings_are_reused_and_kept() {
    let folders = Folders::new();
    let config = folders.config("themes");
    let bucket = Bucket::in_memory();
    let mut first = Replica::new(&config, Some(&bucket));
    let quick = first.bodies(NOW);
    first.wait_for_created(TENANTS);
    let state = folders.path("state");
    let mut second = Replica::new(&config, Some(&bucket)).with_state(&state, &config);
    assert_same(&second.bodies(NOW), &quick);
    improve(&mut [&mut first]);
    let best = first.current_bodies();
    let improved = best.iter().filter(|(name, body)| **body != quick[*name]);
    let improved = improved.count();
    wait_for_complete(&bucket);
    mark_encodings(&bucket);
    improve(&mut [&mut second]);
    assert_eq!(marked(&second.current_bodies()), improved);
    let grown = second.registry.catalog.tenants.keys().cloned().collect();
    let now = second.registry.catalog.now;
    second.registry.handle(Event::DataAdded(grown), now);
    second.registry.persist();
    second.registry.finish_persisting();
    drop(second);
    // A restart without the bucket.
    let mut restarted = Replica::new(&config, None).with_state(&state, &config);
    assert_eq!(marked(&restarted.bodies(NOW)), improved);
    // A replica that starts later.
    let state = folders.path("state of the third");
    let mut third = Replica::new(&config, Some(&bucket)).with_state(&state, &config);
    assert_eq!(marked(&third.bodies(NOW)), improved);
    third.registry.persist();
    third.registry.finish_persisting();
    drop(third);
    let mut restarted = Replica::new(&config, None).with_state(&state, &config);
    assert_eq!(marked(&restarted.bodies(NOW)), improved);
}

#[test]
fn replica_makes_encodings_in_place_of_one_that_has_ended() {
    let folders = Folders::new();
    let config = folders.config("themes");
    let bucket = Bucket::in_memory();
    let mut replica = Replica::new(&config, Some(&bucket));
    replica.bodies(NOW);
    replica.wait_for_created(TENANTS);
    let name = hexadecimal(&replica.key("app"));
    let mut ended = releases::encodings_lease(bucket.clone(), &name);
    assert!(run(ended.advance()).expect("answered"));
    let begin = Instant::now();
    improve(&mut [&mut replica]);
    let took = begin.elapsed();
    assert!(
        took > releases::RENDER_LEASE,
        "{took:?}: the lease is ignored"
    );
    wait_for_complete(&bucket);
    assert_eq!(replica.count(SharedReleaseUse::EncodingsCreated), TENANTS);
}

#[test]
fn replica_that_waits_for_others_searches_for_few_tenants_and_orders_nothing() {
    let folders = Folders::new();
    for number in 0..MAX_SEARCHES {
        folders.write(&format!("tenants/t{number}/tenant.yaml"), "name: Tenant\n");
        let page = "---\ntitle: Page\n---\nA page.\n";
        folders.write(&format!("tenants/t{number}/pages/index.md"), page);
    }
    let bucket = Bucket::in_memory();
    let mut replica = Replica::new(&folders.config("themes"), Some(&bucket));
    replica.bodies(NOW);
    let ids: Vec<String> = (replica.registry.catalog.tenants.keys())
        .map(|id| id.as_str().to_owned())
        .collect();
    let names = ids.iter().map(|id| hexadecimal(&replica.key(id)));
    let mut others: Vec<Lease> = names
        .map(|name| releases::encodings_lease(bucket.clone(), &name))
        .collect();
    let worker = BackgroundWorker::start();
    let begin = Instant::now();
    loop {
        for (id, other) in ids.iter().zip(&mut others) {
            assert!(run(other.advance()).expect("answered"));
            replica.registry.demands.images.add(id);
        }
        replica.registry.demands.ordered_tenants.clear();
        let jobs = order::order(&mut replica.registry);
        // Images do not wait for other replicas.
        if jobs.is_empty() {
            break;
        }
        worker.order(jobs);
        assert!(begin.elapsed() < MAX_WAIT, "the images are not rendered");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(replica.registry.demands.ordered_tenants.is_empty());
    let tenants = replica.registry.catalog.tenants.values();
    let searches = tenants.filter(|tenant| tenant.demand.encodings.is_some());
    assert_eq!(searches.count(), MAX_SEARCHES);
}

#[test]
fn encodings_of_damaged_releases_are_made_by_each_replica() {
    let folders = Folders::new();
    let config = folders.config("themes");
    let bucket = Bucket::in_memory();
    let mut replicas = [(); 2].map(|()| Replica::new(&config, Some(&bucket)));
    for replica in &mut replicas {
        replica.bodies(NOW);
    }
    replicas[0].wait_for_created(TENANTS);
    // One object that does not begin like a release, and one that is complete with a wrong hash.
    for (key, object) in listed(&bucket, RELEASES)
        .into_iter()
        .zip([&b"garbage"[..], b"rowhouse-complete-release-1\ngarbage"])
    {
        send(&bucket, Request::Delete(key.clone()));
        send(&bucket, Request::Create(key, Bytes::from_static(object)));
    }
    let [first, second] = &mut replicas;
    improve(&mut [first, second]);
    assert_same(&first.current_bodies(), &second.current_bodies());
    for replica in &replicas {
        assert_eq!(replica.count(SharedReleaseUse::Damaged), TENANTS);
        assert_eq!(replica.count(SharedReleaseUse::EncodingsCreated), 0);
        assert_eq!(replica.count(SharedReleaseUse::EncodingsReused), 0);
    }
}

#[test]
fn store_that_falls_silent_leaves_the_encodings_to_each_replica() {
    let folders = Folders::new();
    let config = folders.config("themes");
    let bucket = Bucket::in_memory();
    let mut replica = Replica::new(&config, Some(&bucket));
    replica.bodies(NOW);
    replica.wait_for_created(TENANTS);
    let (_listener, silent) = silent_store();
    let shared = BucketReleases::start(silent, replica.counts.clone()).expect("a thread");
    replica.registry.settings.shared_releases = Some(Arc::new(shared));
    let begin = Instant::now();
    improve(&mut [&mut replica]);
    let took = begin.elapsed();
    assert!(took < MAX_WAIT, "{took:?}");
    assert!(replica.count(SharedReleaseUse::Failed) > 0);
}

#[test]
fn search_ends_with_the_encodings_or_with_their_maker() {
    use ReleaseState::{Complete, Damaged, Incomplete, Missing};
    const LATER: Duration = Duration::from_secs(30);
    for (state, is_holder, elapsed, step) in [
        (Complete, false, Duration::ZERO, SearchStep::Read),
        (Complete, true, MAX_SEARCH_TIME, SearchStep::Read),
        (Incomplete, false, LATER, SearchStep::Claim),
        (Incomplete, true, LATER, SearchStep::Make),
        (Incomplete, false, MAX_SEARCH_TIME, SearchStep::End),
        (Missing, false, Duration::ZERO, SearchStep::Wait),
        (Missing, false, LATER, SearchStep::End),
        (Damaged, false, Duration::ZERO, SearchStep::Read),
    ] {
        let next = SearchStep::after(state, is_holder, elapsed);
        assert_eq!(next, step, "{state:?} {is_holder} {elapsed:?}");
    }
}
