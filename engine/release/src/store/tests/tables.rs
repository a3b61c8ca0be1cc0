//! Tables come back as they were written, or not at all.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::super::{FORGOTTEN, Keep, Rows, Store, USED};
use super::damage::damages;
use super::{PLENTY, blobs, long, open, release};

const KEPT: Keep = Keep {
    releases: 3,
    bytes: PLENTY,
};

/// A small value and a large one.
fn rows(text: &str) -> Rows {
    let large = long(text);
    [("small", text.to_owned()), ("large", large)]
        .map(|(key, value)| (key.into(), value.into()))
        .into()
}

fn written(folder: &Path) -> Store {
    let store = open(folder.to_owned(), 3, PLENTY);
    store.write_table("one".to_owned(), None, || rows("a"));
    store.finish();
    store
}

#[test]
fn a_table_outlives_its_process() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(written(folder.path()));
    let store = open(folder.path().to_owned(), 3, PLENTY);
    assert_eq!(store.table("one"), Some(rows("a")));
    assert_eq!(store.table("two"), None);
    assert_eq!(store.tables("o"), ["ne"]);
    assert!(store.has_table("one") && !store.has_table("two"));
    store.remove_table("one".to_owned());
    store.finish();
    assert_eq!(store.table("one"), None);
}

#[test]
fn a_mark_is_read_without_the_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = written(folder.path());
    assert_eq!((store.mark("one"), store.mark("two")), (None, None));
    store.write_table("one".to_owned(), Some([7; 32]), || rows("b"));
    store.finish();
    assert_eq!(store.mark("one"), Some([7; 32]));
    assert_eq!(store.table("one"), Some(rows("b")));
    let path = folder.path().join("tables/one");
    let whole = fs::read(&path).expect("a file");
    for damaged in damages(&whole) {
        fs::write(&path, &damaged).expect("a file");
        assert!(store.mark("one").is_none_or(|mark| mark == [7; 32]));
    }
    store.write_table("one".to_owned(), None, || rows("c"));
    store.finish();
    assert_eq!(store.mark("one"), None);
}

#[test]
fn the_last_of_several_versions_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    for number in 0..100_u8 {
        let row = (Bytes::new(), vec![number].into());
        store.write_table("one".to_owned(), None, move || vec![row]);
    }
    store.finish();
    let expected = (Bytes::new(), vec![99].into());
    assert_eq!(store.table("one"), Some(vec![expected]));
}

#[test]
fn what_is_cut_short_damaged_or_foreign_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = written(folder.path());
    let large = blobs(folder.path()).pop_first().expect("a blob");
    let path = folder.path().join("tables/one");
    let whole = fs::read(&path).expect("a file");
    for damaged in damages(&whole) {
        fs::write(&path, &damaged).expect("a file");
        assert_eq!(store.table("one"), None);
    }
    fs::write(&path, [0xff; 4096]).expect("a file");
    assert_eq!(store.table("one"), None);
    fs::write(&path, whole).expect("a file");
    assert!(store.table("one").is_some());
    fs::write(&large, "another").expect("a file");
    assert_eq!(store.table("one"), None);
    store.finish();
    assert!(!large.exists(), "so that it is written again");
}

#[test]
fn what_a_table_names_stays_and_is_shared_with_releases() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, 0);
    let page = long("b");
    store.record("corner", release(1, &[("/", &page)]));
    store.finish();
    let before = blobs(folder.path()).len();
    store.write_table("one".to_owned(), None, || rows("b"));
    store.finish();
    assert_eq!(blobs(folder.path()).len(), before, "the same bytes");
    store.forget("corner");
    // Else files go while their names are read.
    store.finish();
    store.collect();
    store.finish();
    assert_eq!(blobs(folder.path()).len(), 1);
    assert_eq!(store.table("one"), Some(rows("b")));
    store.remove_table("one".to_owned());
    store.collect();
    store.finish();
    assert!(blobs(folder.path()).is_empty());
}

#[test]
fn only_deployments_that_are_long_gone_are_forgotten() {
    let directory = tempfile::tempdir().expect("a folder");
    let directory = directory.path();
    let here = || Store::of_deployment(directory, "here", KEPT);
    let first = here();
    first.write_table("one".to_owned(), None, || rows("a"));
    drop(first);
    let there = Store::of_deployment(directory, "there", KEPT);
    assert_eq!(there.table("one"), None);
    assert!(here().table("one").is_some());
    let strange = directory.join("strange");
    fs::create_dir(&strange).expect("a folder");
    let folder = Store::place(directory, "here");
    let used = fs::File::create(folder.join(USED)).expect("a file");
    used.set_modified(SystemTime::now() - FORGOTTEN - Duration::from_secs(1))
        .expect("a time");
    drop(Store::of_deployment(directory, "elsewhere", KEPT));
    assert!(!folder.exists(), "a deployment that is gone");
    assert!(strange.exists(), "what others put there");
    assert!(Store::place(directory, "there").exists());
}
