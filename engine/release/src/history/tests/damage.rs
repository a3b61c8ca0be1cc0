//! What is damaged is not there, and takes nothing else with it.

use std::fs;

use super::{PLENTY, blobs, numbers, release};
use crate::history::History;

/// Every way to cut a file short, and one flipped bit in each byte of it.
fn damages(whole: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    cut.chain((0..whole.len()).map(|place| {
        let mut damaged = whole.to_vec();
        damaged[place] ^= 1 << (place % 8);
        damaged
    }))
}

#[test]
fn a_damaged_release_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = History::open(folder.path().to_owned(), 3, PLENTY);
    history.record("corner", release(1, &[("/", "home")]));
    history.finish();
    let path = history.releases.path("corner", 1);
    let whole = fs::read(&path).expect("a file");
    for damaged in damages(&whole) {
        fs::write(&path, &damaged).expect("a file");
        assert!(history.load("corner", 1).is_none());
        if damaged.len() < whole.len() {
            assert!(history.list("corner").is_empty());
        }
    }
    // Under another number it is not what it says.
    fs::write(&path, &whole).expect("a file");
    fs::rename(&path, history.releases.path("corner", 7)).expect("a file");
    assert!(history.load("corner", 7).is_none());
    history.record("corner", release(2, &[("/", "home")]));
    history.finish();
    assert_eq!(numbers(&history, "corner"), [8], "no number comes twice");
}

#[test]
fn a_release_with_a_damaged_blob_is_not_loaded_and_the_blob_is_written_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = History::open(folder.path().to_owned(), 3, PLENTY);
    history.record("corner", release(1, &[("/", "home")]));
    history.finish();
    for path in blobs(folder.path()) {
        let whole = fs::read(&path).expect("a file");
        for damaged in damages(&whole) {
            fs::write(&path, &damaged).expect("a file");
            assert!(history.load("corner", 1).is_none());
            history.finish();
            assert!(!path.exists());
        }
        assert!(history.load("corner", 1).is_none(), "a missing blob");
        history.record("corner", release(2, &[("/", "home")]));
        history.finish();
        assert_eq!(fs::read(&path).expect("a file"), whole);
        history.forget("corner");
        history.record("corner", release(1, &[("/", "home")]));
        history.finish();
        assert!(history.load("corner", 1).is_some());
    }
}

#[test]
fn a_pin_that_cannot_be_read_keeps_every_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = History::open(folder.path().to_owned(), 1, 0);
    history.record("corner", release(1, &[("/", "1")]));
    history.pin("corner", 1).expect("pinned");
    fs::write(folder.path().join("releases/corner/pinned"), [0xff]).expect("a file");
    history.record("corner", release(2, &[("/", "2")]));
    history.collect();
    history.finish();
    assert_eq!(history.pinned("corner"), None);
    assert_eq!(numbers(&history, "corner"), [2, 1]);
}
