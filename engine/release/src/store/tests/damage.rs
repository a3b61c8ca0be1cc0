//! Damaged data counts as absent and affects no other data.

use std::fs;

use super::super::UNKNOWN_RELEASE;
use super::{PLENTY, blobs, long, numbers, open, release};

/// Returns all truncations of a file, and for each byte a copy with one bit of that byte flipped.
pub(super) fn damages(whole: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    cut.chain((0..whole.len()).map(|place| {
        let mut damaged = whole.to_vec();
        damaged[place] ^= 1 << (place % 8);
        damaged
    }))
}

#[test]
fn damaged_release_counts_as_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.record("corner", release(1, &[("/", "home")]));
    store.finish();
    let path = store.releases.path("corner", 1);
    let whole = fs::read(&path).expect("a file");
    for damaged in damages(&whole) {
        fs::write(&path, &damaged).expect("a file");
        assert!(store.load("corner", 1).is_none());
        if damaged.len() < whole.len() {
            assert!(store.list("corner").is_empty());
        }
    }
    // A release under another number contradicts its own metadata.
    fs::write(&path, &whole).expect("a file");
    fs::rename(&path, store.releases.path("corner", 7)).expect("a file");
    assert!(store.load("corner", 7).is_none());
    store.record("corner", release(2, &[("/", "home")]));
    store.finish();
    assert_eq!(numbers(&store, "corner"), [8], "release numbers are unique");
}

#[test]
fn damaged_blob_fails_the_load_and_is_rewritten() {
    let home = long("home");
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.record("corner", release(1, &[("/", &home)]));
    store.finish();
    for path in blobs(folder.path()) {
        let whole = fs::read(&path).expect("a file");
        for damaged in damages(&whole).step_by(whole.len() / 50) {
            fs::write(&path, &damaged).expect("a file");
            assert!(store.load("corner", 1).is_none());
            store.finish();
            assert!(!path.exists());
        }
        assert!(store.load("corner", 1).is_none(), "a missing blob");
        store.record("corner", release(2, &[("/", &home)]));
        store.finish();
        assert_eq!(fs::read(&path).expect("a file"), whole);
        store.forget("corner");
        store.record("corner", release(1, &[("/", &home)]));
        store.finish();
        assert!(store.load("corner", 1).is_some());
    }
}

#[test]
fn unreadable_pin_keeps_all_releases() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 1, 0);
    store.record("corner", release(1, &[("/", "1")]));
    store.pin("corner", 1).expect("pinned");
    fs::write(folder.path().join("releases/corner/pinned"), [0xff]).expect("a file");
    store.record("corner", release(2, &[("/", "2")]));
    store.collect();
    store.finish();
    assert_eq!(store.pinned("corner"), Some(UNKNOWN_RELEASE));
    assert_eq!(numbers(&store, "corner"), [2, 1]);
}
