//! Measures a replica of a bucket with a million tenants, in memory.
//!
//! Prints the time until the replica is ready, its memory beyond that of the store, and the reads and the time of the first response of a cold host. `ROWHOUSE_POINTERS` sets the number of tenants.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bucket::packed::{PackedFolder, compress, hash};
use bucket::store::{Bucket, Uploads, random_nonce};
use fleet::exchange::Request;
use fleet::head::Head;
use fleet::key::{Nonce, ObjectKey};
use fleet::pointer::{Cause, ContentObject, NextVersion, Pointer};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use jiff::Timestamp;
use release::snapshot::HostEntry;
use render::{CachePolicy, Islands};
use rowhouse_ui::Bundle;
use server::admin::status::StatusBoard;
use server::response::respond::{RequestHead, respond};
use server::snapshot_store::{RequestNotice, RequestedAddress, SnapshotStore};
use supervisor::source::bucket::BucketFollower;
use supervisor::source::watch::{DetectionMethod, Watch};
use supervisor::{DeploymentConfig, Inbox, Registry, ReloadLoop, ReloadSender};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The number of tenants, unless the environment sets it.
const POINTERS: usize = 1_000_000;

/// The tenants whose content the replica has.
const MAX_AWAKE: usize = 100;

/// The cold hosts that are requested. Another replica has rendered their tenants.
const COLD: usize = 20;

/// The time without reads after which a replica has rendered its awake tenants.
const IDLE_TIME: Duration = Duration::from_secs(3);

fn main() {
    let pointers = std::env::var("ROWHOUSE_POINTERS").ok();
    let pointers = pointers.map_or(POINTERS, |text| text.parse().unwrap());
    let bucket = Bucket::in_memory();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(fill_cold(&bucket));
    share_releases(&bucket, &runtime);
    let empty = memory();
    runtime.block_on(fill(&bucket, pointers));
    let filled = memory();
    println!("tenants in the bucket     {pointers:>10}");
    println!("memory of the store       {:>10} MB", filled - empty);

    let state = TempDir::new().unwrap();
    let begun = Instant::now();
    let follower = follow(&bucket, &state, MAX_AWAKE);
    let mut registry = registry(&follower).serving();
    let snapshot = registry.reload(Timestamp::now()).unwrap();
    println!(
        "ready after a cold start  {:>10.1} s",
        begun.elapsed().as_secs_f64()
    );
    println!("memory beyond the store   {:>10} MB", memory() - filled);
    drop((follower, registry, snapshot));

    let begun = Instant::now();
    let follower = follow(&bucket, &state, MAX_AWAKE);
    let mut registry = self::registry(&follower).serving();
    let snapshot = registry.reload(Timestamp::now()).unwrap();
    println!(
        "ready after a warm start  {:>10.1} s",
        begun.elapsed().as_secs_f64()
    );

    let snapshots = Arc::new(SnapshotStore::new(snapshot));
    registry.set_served();
    let notify = registry.prioritise();
    let reloads = ReloadLoop {
        registry,
        snapshots: Arc::clone(&snapshots),
        board: Arc::default(),
        events: None,
        inbox: Inbox::default(),
    }
    .start(Watch::new(DetectionMethod::Off, Vec::new()));
    follower.start_waker(reloads);
    wait_until_idle(&bucket);
    let mut times = Vec::new();
    let before = reads(&bucket);
    for number in 0..COLD {
        let host = format!("z-cold-{number}.studio.example");
        let begun = Instant::now();
        request(&snapshots, &host, &notify);
        times.push(begun.elapsed());
    }
    times.sort();
    let per_host = (reads(&bucket) - before) / u64::try_from(COLD).unwrap();
    println!("reads of a cold host      {per_host:>10}");
    println!(
        "its first response        {:>10} ms, the median of {COLD}",
        times[COLD / 2].as_millis()
    );
    println!("memory beyond the store   {:>10} MB", memory() - filled);
}

/// Writes the pointers of tenants with content of their own, which are listed last.
async fn fill_cold(bucket: &Bucket) {
    for number in 0..COLD {
        let object = upload(bucket, &format!("Cold {number}")).await;
        write_pointer(bucket, &format!("z-cold-{number}"), object).await;
    }
}

/// Writes the pointers of tenants that all have the same content, and the head.
async fn fill(bucket: &Bucket, pointers: usize) {
    let object = upload(bucket, "Text").await;
    for number in 0..pointers {
        write_pointer(bucket, &format!("tenant-{number}"), object.clone()).await;
    }
    let head = Head::default().after("tenant-0", 1).to_bytes();
    let create = Request::Create(ObjectKey::head(), head);
    bucket.send(&create, &Uploads::new()).await.unwrap();
}

/// Renders the tenants with content of their own, as another replica.
fn share_releases(bucket: &Bucket, runtime: &Runtime) {
    let state = TempDir::new().unwrap();
    let follower = follow(bucket, &state, COLD);
    registry(&follower).reload(Timestamp::now()).unwrap();
    let listed = || runtime.block_on(bucket.list_tagged("v1/releases/"));
    while listed().unwrap().len() < COLD {
        thread::sleep(Duration::from_millis(10));
    }
}

fn wait_until_idle(bucket: &Bucket) {
    let (mut seen, mut since) = (reads(bucket), Instant::now());
    while since.elapsed() < IDLE_TIME {
        thread::sleep(Duration::from_millis(100));
        if reads(bucket) != seen {
            (seen, since) = (reads(bucket), Instant::now());
        }
    }
}

/// Uploads a folder with one page.
async fn upload(bucket: &Bucket, text: &str) -> ContentObject {
    let page = format!("---\ntitle: Page\ndescription: A page.\n---\n{text}\n");
    let manifest = "name: Tenant\ndescription: A tenant.\n".to_owned();
    let files = [("tenant.yaml", manifest), ("pages/index.md", page)];
    let files = files.map(|(path, text)| (path.to_owned(), text.into()));
    let folder = PackedFolder {
        files: files.into(),
        ..PackedFolder::default()
    };
    let content = folder.to_bytes();
    let hash = hash(&content);
    let object = ObjectKey::content(&hash, &Nonce("0".repeat(32)));
    let uploads = Uploads::from([(hash.clone(), compress(&content).unwrap())]);
    let upload = Request::Upload(object.clone(), hash.clone());
    bucket.send(&upload, &uploads).await.unwrap();
    ContentObject {
        hash,
        object,
        addresses: Vec::new(),
    }
}

async fn write_pointer(bucket: &Bucket, tenant: &str, object: ContentObject) {
    let content = ContentObject {
        addresses: vec![format!("www.{tenant}.example")],
        ..object
    };
    let next = NextVersion {
        nonce: random_nonce(),
        content: vec![content],
        pin: None,
        at: 0,
        author: "ann@desk".to_owned(),
        cause: Cause::Publish,
    };
    let body = Pointer::next(None, next).to_bytes();
    let create = Request::Create(ObjectKey::pointer(tenant), body);
    bucket.send(&create, &Uploads::new()).await.unwrap();
}

fn follow(bucket: &Bucket, state: &TempDir, max_awake: usize) -> BucketFollower {
    let buckets = [bucket.clone(), bucket.clone(), bucket.clone()];
    let limits = (Duration::from_secs(3_600), max_awake);
    let board = StatusBoard::default();
    let mut follower =
        BucketFollower::follow(buckets, state.path(), limits, "host", &board).unwrap();
    let is_known = || board.bucket().as_ref().as_ref().unwrap().is_known;
    while !is_known() {
        // The start has a limit, and goes on while the process runs.
        follower.step(&board, &ReloadSender::default());
    }
    follower
}

fn registry(follower: &BucketFollower) -> Registry {
    let config = DeploymentConfig {
        tenants: PathBuf::from("memory:"),
        themes: None,
        deployment: None,
        origin: "https://studio.example".parse().unwrap(),
        hsts: None,
        caching: CachePolicy::default(),
    };
    let islands = Islands::new(Bundle::embedded().unwrap(), true);
    Registry::new(config, Arc::new(islands)).with_bucket(follower, None)
}

/// Waits for the pages of a host as a request does.
fn request(snapshots: &SnapshotStore, host: &str, notify: &impl Fn(RequestNotice<'_>)) {
    let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
    let uri = Uri::from_static("/");
    let head = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
    loop {
        let snapshot = snapshots.current();
        if respond(&snapshot, &head).response.status() == StatusCode::OK {
            return;
        }
        match snapshot.hosts.get(host) {
            Some(HostEntry::Site(routes)) => {
                let tenant = &routes.root.as_ref().unwrap().tenant;
                notify(RequestNotice::Pages(tenant));
            }
            _ => {
                let address = RequestedAddress::Host(host, "/");
                notify(RequestNotice::Dormant(&snapshots.dormant(address).unwrap()));
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn reads(bucket: &Bucket) -> u64 {
    bucket.metrics().counts().requests[0].iter().sum()
}

/// Returns the memory of the process that is not in files, in megabytes.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.map_or(0, |number| number.parse::<u64>().unwrap() / 1_000)
}
