//! Retention, budget and locking of the store.

mod damage;
mod refused_writes;
mod round_trip;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, StatusCode};

use super::blobs::BlobId;
use super::writer::{MAX_WAITING_JOBS, StoreJob};
use super::{AddressPages, NewRelease, RetentionLimits, Store, StoreError, UNKNOWN_RELEASE};
use crate::snapshot::fields::Fields;
use crate::snapshot::{Body, ContentEncoding, MountPages, Resource, Variant};

const PLENTY: u64 = 1 << 40;

fn open(folder: PathBuf, releases: usize, bytes: u64) -> Store {
    Store::open(folder, RetentionLimits { releases, bytes })
}

fn fields() -> Arc<Fields> {
    let mut given = HeaderMap::new();
    given.insert("content-type", HeaderValue::from_static("text/html"));
    given.append("link", HeaderValue::from_static("</a.css>"));
    given.append("link", HeaderValue::from_static("</b.css>"));
    Arc::new(Fields::new(given, true, false))
}

fn variant(encoding: ContentEncoding, bytes: String) -> Variant {
    Variant {
        encoding,
        etag: HeaderValue::from_str(&format!("\"{}\"", bytes.len())).expect("a value"),
        bytes: bytes.into(),
    }
}

/// A text long enough to be a blob.
fn long(text: &str) -> String {
    text.repeat(64 << 10)
}

/// A page in two encodings.
fn page(text: &str) -> Arc<Resource> {
    Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields: fields(),
        cache_tag: None,
        variants: [
            variant(ContentEncoding::Brotli, format!("br:{text}")),
            variant(ContentEncoding::Identity, text.to_owned()),
        ]
        .into(),
    }))
}

/// A release with these pages on one host.
fn release(key: u8, pages: &[(&str, &str)]) -> NewRelease {
    let error = page("error");
    let resources = pages
        .iter()
        .map(|(path, text)| ((*path).into(), page(text)));
    NewRelease {
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(key.into()),
        cause: vec![format!("pages/{key}.md")],
        pages: pages.len(),
        key: [key; 32],
        addresses: vec![AddressPages {
            host: "corner.example".to_owned(),
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

fn numbers(store: &Store, tenant: &str) -> Vec<u64> {
    let entries = store.list(tenant);
    entries.iter().map(|entry| entry.number).collect()
}

/// Returns all files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

fn blobs(folder: &Path) -> BTreeSet<PathBuf> {
    files(&folder.join("blobs"))
}

#[test]
fn release_with_the_newest_key_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 5, PLENTY);
    for key in [1, 1, 2, 2, 1] {
        store.record("corner", release(key, &[("/", "home")]));
    }
    store.finish();
    let keys = store.list("corner").into_iter().map(|entry| entry.key[0]);
    assert_eq!(keys.collect::<Vec<_>>(), [1, 2, 1]);
}

#[test]
fn oldest_releases_are_dropped_but_not_the_pinned_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 2, PLENTY);
    store.record("corner", release(1, &[("/", "1")]));
    store.record("corner", release(2, &[("/", "2")]));
    store.pin("corner", 1).expect("pinned");
    for key in 3..6 {
        store.record("corner", release(key, &[("/", &key.to_string())]));
    }
    store.finish();
    assert_eq!(numbers(&store, "corner"), [5, 4, 1]);
    drop(store);

    let store = open(folder.path().to_owned(), 0, PLENTY);
    assert_eq!(store.pinned("corner"), Some(1));
    assert!(store.load("corner", 1).is_some());
    let unknown = store.pin("corner", 3);
    assert!(matches!(
        unknown,
        Err(StoreError::Unknown { number: 3, .. })
    ));
    store.unpin("corner").expect("unpinned");
    store.unpin("nobody").expect("nothing to unpin");
    assert_eq!(store.pinned("corner"), None);
    store.record("corner", release(6, &[("/", "6")]));
    store.finish();
    assert_eq!(numbers(&store, "corner"), [6]);
}

#[test]
fn pins_of_all_tenants_are_read_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    assert!(store.pins().is_empty());
    for tenant in ["corner", "hall", "loft", "yard"] {
        store.record(tenant, release(1, &[("/", "home")]));
        store.record(tenant, release(2, &[("/", "new")]));
    }
    store.pin("corner", 1).expect("pinned");
    store.pin("hall", 2).expect("pinned");
    store.pin("loft", 1).expect("pinned");
    fs::write(folder.path().join("releases/loft/pinned"), [0xff]).expect("a file");
    let pins = [("corner", 1), ("hall", 2), ("loft", UNKNOWN_RELEASE)];
    let expected = pins.map(|(tenant, number)| (tenant.to_owned(), number));
    let expected = expected.into();
    assert_eq!(store.pins(), expected, "a damaged pin is still a pin");
    let reader = Store::reader(folder.path().to_owned());
    assert_eq!(reader.pins(), expected);
    store.unpin("hall").expect("unpinned");
    store.unpin("loft").expect("unpinned");
    assert_eq!(store.pins(), [("corner".to_owned(), 1)].into());
}

#[test]
fn unreferenced_blob_is_removed_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 1, PLENTY);
    store.record("corner", release(1, &[("/", &long("1"))]));
    store.record("corner", release(2, &[("/", &long("2"))]));
    store.collect();
    store.finish();
    assert_eq!(blobs(folder.path()).len(), 1);
    assert!(store.load("corner", 2).is_some());
}

#[test]
fn oldest_releases_of_all_tenants_are_dropped_beyond_the_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    let again = |budget| open(folder.path().to_owned(), 9, budget);
    let store = again(PLENTY);
    for (key, tenant) in ["a", "b", "a", "b", "a", "b", "old"]
        .into_iter()
        .enumerate()
    {
        let key = if tenant == "old" { 0 } else { key as u8 + 1 };
        let text = format!("{key}").repeat(100_000);
        store.record(tenant, release(key, &[("/", &text)]));
    }
    store.pin("b", 1).expect("pinned");
    drop(store);

    // Five releases of 100,000 bytes. The oldest of `a` (1) and the next unpinned one (3) are dropped.
    let store = again(525_000);
    store.finish();
    assert_eq!(numbers(&store, "a"), [3]);
    assert_eq!(numbers(&store, "b"), [3, 2, 1]);
    assert_eq!(numbers(&store, "old"), [1], "a newest one");
    let left: u64 = blobs(folder.path())
        .iter()
        .map(|path| fs::metadata(path).expect("a file").len())
        .sum();
    assert!(left <= 525_000, "{left} bytes");
    drop(store);

    let store = again(0);
    store.finish();
    assert_eq!(numbers(&store, "b"), [3, 1]);
    for (tenant, number) in [("a", 3), ("b", 3), ("b", 1), ("old", 1)] {
        assert!(store.load(tenant, number).is_some(), "{tenant} {number}");
    }
}

#[test]
fn releases_of_removed_tenants_stay_within_the_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 9, 150_000);
    for (key, tenant) in [(1, "gone"), (2, "here")] {
        let text = format!("{key}").repeat(100_000);
        store.record(tenant, release(key, &[("/", &text)]));
    }
    store.finish();
    for tenants in [vec!["gone", "here"], vec!["here"]] {
        assert_eq!(numbers(&store, "gone"), [1]);
        store.set_tenants(tenants.into_iter().map(ToOwned::to_owned));
        store.collect();
        store.finish();
    }
    assert!(numbers(&store, "gone").is_empty());
    assert_eq!(numbers(&store, "here"), [1]);
}

#[test]
fn second_process_is_read_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = open(folder.path().to_owned(), 3, PLENTY);
    first.record("corner", release(1, &[("/", "home")]));
    first.pin("corner", 1).expect("pinned");
    let second = open(folder.path().to_owned(), 3, 0);
    assert!(first.is_writable() && !second.is_writable());
    second.record("corner", release(2, &[("/", "new")]));
    second.forget("corner");
    second.collect();
    second.finish();
    assert!(matches!(second.pin("corner", 1), Err(StoreError::ReadOnly)));
    assert!(matches!(second.unpin("corner"), Err(StoreError::ReadOnly)));
    assert_eq!(numbers(&second, "corner"), [1]);
    assert_eq!(second.pinned("corner"), Some(1));
    assert!(second.load("corner", 1).is_some());
    drop(first);
    assert!(second.claim().is_ok() && second.is_writable());
}

#[test]
fn unwritable_folder_is_not_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let blocked = folder.path().join("file");
    fs::write(&blocked, "").expect("a file");
    let store = open(blocked, 3, PLENTY);
    assert!(!store.is_writable());
    store.record("corner", release(1, &[("/", "home")]));
    store.finish();
    assert!(store.list("corner").is_empty());
    assert!(store.load("corner", 1).is_none());

    // A write that failed succeeds once the cause is gone.
    let store = open(folder.path().join("other"), 3, PLENTY);
    let blocked = folder.path().join("other/releases/corner");
    fs::write(&blocked, "").expect("a file");
    store.record("corner", release(1, &[("/", "home")]));
    store.finish();
    fs::remove_file(&blocked).expect("a file");
    store.record("corner", release(1, &[("/", "home")]));
    store.finish();
    assert_eq!(numbers(&store, "corner"), [1]);
}

#[test]
fn incomplete_files_are_ignored_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.record("corner", release(1, &[("/", &long("home"))]));
    store.write_table("one".to_owned(), None, || vec![("a".into(), "b".into())]);
    store.finish();
    let blob = blobs(folder.path()).pop_first().expect("a blob");
    let incomplete = [
        blob.with_file_name(".abc123"),
        folder.path().join("releases/corner/.abc123"),
        folder.path().join("tables/.abc123"),
    ];
    for path in &incomplete {
        fs::write(path, "ha").expect("a file");
    }
    assert_eq!(store.tables(""), ["one"]);
    store.collect();
    store.finish();
    assert_eq!(numbers(&store, "corner"), [1]);
    assert_eq!(store.pinned("corner"), None);
    assert!(incomplete.iter().all(|path| !path.exists()));
    assert!(store.load("corner", 1).is_some() && store.has_table("one"));
}

#[test]
fn forgotten_tenant_has_no_releases() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    for tenant in ["corner", "other"] {
        store.record(tenant, release(1, &[("/", "home")]));
        store.pin(tenant, 1).expect("pinned");
    }
    store.forget("corner");
    store.forget("nobody");
    store.finish();
    assert!(store.list("corner").is_empty());
    assert_eq!(store.pinned("corner"), None);
    assert_eq!(numbers(&store, "other"), [1]);
}

#[test]
fn invalid_tenant_name_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().join("here"), 3, PLENTY);
    for name in ["", ".", "..", "a/b", "/", "../other", "a.b"] {
        store.record(name, release(1, &[("/", "home")]));
        store.forget(name);
        store.finish();
        assert!(store.list(name).is_empty());
        assert!(store.load(name, 1).is_none());
        assert!(matches!(
            store.pin(name, 1),
            Err(StoreError::InvalidTenant(_))
        ));
    }
    let lock = folder.path().join("here/lock");
    assert_eq!(files(folder.path()), BTreeSet::from([lock]));
}

#[test]
fn collection_runs_after_a_number_of_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 1, PLENTY);
    let stray = folder.path().join("blobs/00").join("0".repeat(62));
    store.finish();
    fs::create_dir_all(folder.path().join("blobs/00")).expect("a folder");
    fs::write(&stray, "stray").expect("a file");
    for key in 0..64 {
        assert!(stray.exists(), "{key}");
        store.record("corner", release(key, &[("/", "home")]));
        store.finish();
    }
    assert!(!stray.exists());
}

#[test]
fn reader_does_not_wait_for_a_collection() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 5, PLENTY);
    store.record("corner", release(1, &[("/", &long("home"))]));
    store.forget("corner");
    drop(store);
    drop(open(folder.path().to_owned(), 5, PLENTY));
    assert_eq!(
        blobs(folder.path()).len(),
        1,
        "the blob is not collected yet"
    );
    open(folder.path().to_owned(), 5, PLENTY).finish();
    assert!(blobs(folder.path()).is_empty());
}

#[test]
fn panicking_job_does_not_stop_other_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.record("corner", release(1, &[("/", "home")]));
    store.write_table("one".to_owned(), None, || panic!("a test"));
    store.record("corner", release(2, &[("/", "new")]));
    store.finish();
    assert_eq!(store.queued(), 0);
    assert_eq!(numbers(&store, "corner"), [2, 1]);
    assert_eq!(store.panics(), 1);
    assert_eq!(store.failing_job().as_deref(), Some("table one"));
    store.pin("corner", 1).expect("pinned");
    store.write_table("one".to_owned(), None, Vec::new);
    store.finish();
    assert_eq!((store.failing_job(), store.panics()), (None, 1));
    assert!(store.has_table("one"));
}

#[test]
fn names_similar_to_temporary_files_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let tenants = ["half", "corner", "1-half", "tmp", "pinned"];
    let store = open(folder.path().to_owned(), 3, PLENTY);
    for tenant in tenants {
        store.record(tenant, release(1, &[("/", "home")]));
        let table = format!("good.tenant.{tenant}");
        store.write_table(table, None, || vec![("a".into(), "b".into())]);
    }
    store.collect();
    drop(store);
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.collect();
    store.finish();
    let mut sorted = tenants;
    sorted.sort_unstable();
    assert_eq!(store.tables("good.tenant."), sorted);
    for tenant in tenants {
        assert_eq!(numbers(&store, tenant), [1], "{tenant}");
        assert!(store.table(&format!("good.tenant.{tenant}")).is_some());
    }
}

#[test]
fn state_stays_within_its_budget_between_collections() {
    const BUDGET: u64 = 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 10, BUDGET);
    for key in 0..20 {
        let page = format!("{key:02}").repeat(100_000);
        store.record("corner", release(key, &[("/", &page)]));
        store.finish();
        let sizes = files(folder.path()).into_iter();
        let sizes = sizes.map(|path| fs::metadata(path).expect("a file").len());
        let bytes: u64 = sizes.sum();
        assert!(bytes <= BUDGET + BUDGET / 4, "{bytes} bytes after {key}");
    }
    assert!(store.load("corner", 20).is_some());
}

#[test]
fn fifo_does_not_block_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    let home = long("home");
    store.record("corner", release(1, &[("/", &home)]));
    store.write_table("one".to_owned(), None, || vec![("a".into(), "b".into())]);
    store.finish();
    let fifo = |path: &Path| {
        fs::remove_file(path).expect("removed");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).expect("a FIFO");
    };
    let blob = blobs(folder.path()).pop_first().expect("a blob");
    fifo(&blob);
    assert!(store.load("corner", 1).is_none());
    store.finish();
    store.record("corner", release(2, &[("/", &home)]));
    store.finish();
    assert!(
        store.load("corner", 2).is_some(),
        "the blob is written again"
    );
    fifo(&folder.path().join("tables/records"));
    let reader = Store::reader(folder.path().to_owned());
    assert!(reader.table("one").is_none() && reader.mark("one").is_none());
    store.write_table("two".to_owned(), None, || vec![("a".into(), "b".into())]);
    store.finish();
    let reader = Store::reader(folder.path().to_owned());
    assert_eq!(
        reader.tables(""),
        ["one", "two"],
        "the table is written again"
    );
    fifo(&folder.path().join("releases/corner/2"));
    assert!(store.load("corner", 2).is_none());
    store.pin("corner", 1).expect("pinned");
    fifo(&folder.path().join("releases/corner/pinned"));
    assert_eq!(store.pinned("corner"), Some(UNKNOWN_RELEASE));
    store.collect();
    store.finish();
}

#[test]
fn jobs_queued_behind_a_slow_disk_are_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.record("corner", release(1, &[("/", "home")]));
    let (begin, has_begun) = channel();
    let (open_gate, gate) = channel::<()>();
    store.write_table("slow".to_owned(), None, move || {
        begin.send(()).expect("the test");
        let _ = gate.recv();
        Vec::new()
    });
    has_begun.recv().expect("the writing thread");
    let mut checks = (0..2 * MAX_WAITING_JOBS).map(|number: usize| {
        let name = BlobId::of(&number.to_le_bytes());
        store.send(StoreJob::Check(name))
    });
    assert!(
        checks
            .by_ref()
            .take(MAX_WAITING_JOBS)
            .all(|is_taken| is_taken)
    );
    assert!(!checks.any(|is_taken| is_taken));
    assert!(matches!(store.pin("corner", 1), Err(StoreError::Busy)));
    drop(open_gate);
    store.finish();
    store.pin("corner", 1).expect("pinned");
}
