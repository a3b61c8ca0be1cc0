//! Kills a process that records releases at random moments, and checks that the state stays valid.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::hash_map::RandomState;
use std::env;
use std::fs;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use release::snapshot::fields::Fields;
use release::snapshot::{Body, ContentEncoding, MountPages, Resource, Variant};
use release::store::{AddressPages, NewRelease, RetentionLimits, Rows, Store};

/// The environment variable with the folder in which the child records.
const FOLDER: &str = "ROWHOUSE_KILLED_FOLDER";
const MAX_RELEASES: usize = 4;
/// A budget below the size of all releases, so that some are dropped.
const BUDGET: u64 = 850_000;
const TENANTS: [&str; 3] = ["a", "b", "c"];
const PATHS: u64 = 6;

/// Returns the body at a path in the release with this key. Most bodies equal those of the previous release.
fn text(tenant: &str, key: u64, path: u64) -> String {
    let changed = (key + path) / PATHS;
    // Some bodies are large enough to be blobs.
    let times = if path < 3 { 9_000 } else { 500 };
    format!("{tenant} {path} {changed};").repeat(times + path as usize)
}

fn page(text: String) -> Arc<Resource> {
    let mut given = HeaderMap::new();
    given.insert("content-type", HeaderValue::from_static("text/plain"));
    Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields: Arc::new(Fields::new(given, false, false)),
        cache_tag: None,
        variants: [Variant {
            encoding: ContentEncoding::Identity,
            bytes: text.into(),
            etag: HeaderValue::from_static("\"x\""),
        }]
        .into(),
    }))
}

fn release(tenant: &str, key: u64) -> NewRelease {
    let error = page("error".to_owned());
    let resources = (0..PATHS).map(|path| {
        let name = format!("/{path}").into();
        (name, page(text(tenant, key, path)))
    });
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&key.to_le_bytes());
    NewRelease {
        at: SystemTime::now(),
        cause: vec![key.to_string()],
        pages: PATHS as usize,
        key: hash,
        addresses: vec![AddressPages {
            host: "here.example".to_owned(),
            prefix: String::new(),
            pages: MountPages {
                resources: resources.collect(),
                not_found: vec![("".into(), error.clone())],
                method_not_allowed: vec![("".into(), error)],
                redirects: Arc::default(),
            },
        }],
    }
}

/// Returns a table with the key in each value.
fn table(key: u64) -> impl FnOnce() -> Rows {
    move || {
        let row = |length| (Bytes::from("key"), key.to_string().repeat(length).into());
        [1, 3_000, 50_000].map(row).into()
    }
}

fn limits() -> RetentionLimits {
    RetentionLimits {
        releases: MAX_RELEASES,
        bytes: BUDGET,
    }
}

fn open(folder: &Path) -> Store {
    let store = Store::open(folder.to_owned(), limits());
    assert!(store.is_writable(), "the killed process has the lock");
    store
}

fn newest_key(store: &Store, tenant: &str) -> u64 {
    let newest = store.list(tenant).into_iter().next();
    newest.map_or(0, |entry| entry.cause[0].parse().expect("a key"))
}

#[test]
#[ignore = "it is started, and killed, by the other test"]
fn process_records_releases_until_it_is_killed() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let store = open(Path::new(&folder));
    let mut keys = TENANTS.map(|tenant| newest_key(&store, tenant));
    for (tenant, key) in TENANTS.iter().zip(keys) {
        store.write_table((*tenant).to_owned(), None, table(key));
    }
    loop {
        for (tenant, key) in TENANTS.iter().zip(&mut keys) {
            *key += 1;
            store.record(tenant, release(tenant, *key));
            store.write_table((*tenant).to_owned(), None, table(*key));
            match *key % 7 {
                0 => store.collect(),
                1 => {
                    store.finish();
                    let newest = store.list(tenant)[0].number;
                    store.pin(tenant, newest).expect("pinned");
                }
                2 => store.finish(),
                3 if *tenant == "c" => store.unpin(tenant).expect("unpinned"),
                _ => {}
            }
        }
    }
}

/// Checks that every release is exactly as recorded. Returns the number of releases.
fn check(folder: &Path, store: &Store) -> usize {
    let mut releases = 0;
    for tenant in TENANTS {
        let entries = store.list(tenant);
        let names = files(&folder.join("releases").join(tenant));
        let is_number = |path: &&PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.parse::<u64>().is_ok())
        };
        assert_eq!(names.iter().filter(is_number).count(), entries.len());
        // A release may be written before the oldest is dropped; a pinned one comes on top.
        assert!(
            entries.len() <= MAX_RELEASES + 2,
            "{} releases",
            entries.len()
        );
        if let Some(pinned) = store.pinned(tenant) {
            assert!(store.load(tenant, pinned).is_some(), "{tenant}'s pin");
        }
        // The table is queued after its release, and may be written before the next release.
        let newest = entries.first().map_or([0; 32], |entry| entry.key);
        let newest = u64::from_le_bytes(newest[..8].try_into().expect("8 bytes"));
        let rows = store.table(tenant).unwrap_or_else(table(0));
        let key = rows[0].1.in_memory().expect("a small value");
        let key: u64 = String::from_utf8_lossy(key).parse().expect("a key");
        assert!(
            key + 1 >= newest && rows == table(key)(),
            "{tenant}: {key} and {newest}"
        );
        for entry in entries {
            let loaded = store.load(tenant, entry.number).expect("a release");
            assert_eq!(loaded.entry, entry);
            let key = u64::from_le_bytes(entry.key[..8].try_into().expect("8 bytes"));
            let pages = &loaded.addresses[0].pages;
            assert_eq!(pages.resources.iter().count() as u64, PATHS);
            for path in 0..PATHS {
                let Resource::Body(body) = &*pages.resources[&*format!("/{path}")] else {
                    panic!("a redirect");
                };
                let identity = body.variants.identity().expect("the body");
                assert_eq!(identity.bytes, text(tenant, key, path).into());
            }
            releases += 1;
        }
    }
    releases
}

/// Checks the state that a killed process left, without changing it.
fn check_left(folder: &Path) -> usize {
    // A process without the lock changes nothing.
    fs::create_dir_all(folder).expect("a folder");
    let lock = fs::File::create(folder.join("lock")).expect("a file");
    lock.try_lock().expect("the killed process has no lock");
    check(folder, &Store::open(folder.to_owned(), limits()))
}

/// Checks the state after the collection with which the next process begins.
fn check_collected(folder: &Path) {
    let store = open(folder);
    store.finish();
    check(folder, &store);
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn killed_process_leaves_only_complete_releases() {
    let is_long = env::var_os("ROWHOUSE_LONG").is_some();
    let kills = if is_long { 1000 } else { 30 };
    let folder = tempfile::tempdir().expect("a folder");
    let mut releases = 0;
    for kill in 0..kills {
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args([
                "--ignored",
                "--exact",
                "process_records_releases_until_it_is_killed",
            ])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("a child");
        let millis = 5 + RandomState::new().hash_one(kill) % 150;
        thread::sleep(Duration::from_millis(millis));
        let ended = child.try_wait().expect("a child");
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(ended.is_none(), "the child ended by itself: {ended:?}");
        releases += check_left(folder.path());
        // Otherwise the next child collects, and may be killed meanwhile.
        if kill % 2 == 0 {
            check_collected(folder.path());
        }
    }
    assert!(releases > 0, "no release was recorded before a kill");
    let store = open(folder.path());
    let recorded: u64 = TENANTS
        .map(|tenant| newest_key(&store, tenant))
        .iter()
        .sum();
    let blobs = files(&folder.path().join("blobs")).len();
    println!(
        "{kills} kills, {recorded} releases recorded, {releases} looked at, {blobs} blobs left"
    );
}
