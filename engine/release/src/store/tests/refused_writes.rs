//! A disk that refuses writes for a while.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{PLENTY, numbers, open, release};
use crate::store::{AccessError, Store, StoreError};

const TIMEOUT: Duration = Duration::from_secs(60);

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Puts a file in place of a folder, which no user can write to, not even root. Returns a function that undoes it.
fn block(folder: &Path) -> impl FnOnce() + use<> {
    let away = folder.with_extension("away");
    fs::rename(folder, &away).expect("a folder");
    fs::write(folder, "").expect("a file");
    let folder = folder.to_owned();
    move || {
        fs::remove_file(&folder).expect("a file");
        fs::rename(away, folder).expect("a folder");
    }
}

#[test]
fn refused_writes_wait_in_order_until_the_disk_takes_them() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("state");
    let store = open(folder.clone(), 5, PLENTY);
    store.record("corner", release(1, &[("/", "1")]));
    store.finish();
    assert_eq!((store.problem(), store.failures()), (None, 0));
    let unblock = block(&folder);
    for key in 2..4 {
        store.record("corner", release(key, &[("/", &key.to_string())]));
        store.write_table("one".to_owned(), None, move || {
            vec![("key".into(), key.to_string().into())]
        });
    }
    store.finish();
    assert!(store.problem().is_some());
    assert!(store.failures() > 0);
    assert_eq!(store.queued(), 2);
    assert!(store.queued_bytes() > 0);
    assert!(matches!(store.pin("corner", 1), Err(StoreError::Disk(_))));
    unblock();
    wait("the writes", || store.queued() == 0 && !store.has_problem());
    store.finish();
    let keys = store.list("corner").into_iter().map(|entry| entry.key[0]);
    assert_eq!(keys.collect::<Vec<_>>(), [3, 2, 1]);
    let newest = vec![("key".into(), "3".to_owned().into())];
    assert_eq!(store.table("one"), Some(newest));
    assert_eq!(store.queued_bytes(), 0);
    assert_eq!(store.failing_job(), None);
    store.pin("corner", 1).expect("pinned");
}

#[test]
fn refused_writes_are_tried_once_more_at_the_end() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("state");
    let store = open(folder.clone(), 5, PLENTY);
    store.finish();
    let unblock = block(&folder);
    store.record("corner", release(1, &[("/", "1")]));
    store.finish();
    assert!(store.has_problem());
    unblock();
    drop(store);
    assert_eq!(numbers(&Store::reader(folder), "corner"), [1]);
}

#[test]
fn failure_of_one_tenant_delays_no_other() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("state");
    let store = open(folder.clone(), 5, PLENTY);
    let blocked = folder.join("releases/corner");
    fs::write(&blocked, "").expect("a file");
    store.record("corner", release(1, &[("/", "1")]));
    store.record("hall", release(1, &[("/", "1")]));
    store.finish();
    assert_eq!(numbers(&store, "hall"), [1]);
    assert_eq!(store.problem(), None, "the disk takes writes");
    assert!(store.failing_job().is_some());
    fs::remove_file(&blocked).expect("a file");
    store.record("corner", release(1, &[("/", "1")]));
    store.collect();
    store.finish();
    assert_eq!(store.failing_job(), None);
}

#[test]
fn file_in_place_of_a_folder_is_a_permanent_problem() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("file");
    fs::write(&file, "").expect("a file");
    for folder in [file.clone(), file.join("below")] {
        let store = open(folder, 3, PLENTY);
        let error = store.claim().expect_err("a file");
        assert!(error.is_permanent(), "{error}");
        assert!(matches!(&error, AccessError::NotFolder(path) if *path == file));
        assert_eq!(store.problem(), Some(error.to_string()));
    }
    let folder = place.path().join("state");
    let first = open(folder.clone(), 3, PLENTY);
    let second = open(folder, 3, PLENTY);
    let error = second.claim().expect_err("a lock");
    assert!(matches!(&error, AccessError::InUse(_)) && !error.is_permanent());
    assert!(second.has_problem());
    drop(first);
    second.claim().expect("claimed");
    assert_eq!(second.problem(), None);
}
