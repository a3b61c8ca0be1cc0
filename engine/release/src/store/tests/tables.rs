//! Tables are read as written, or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::super::frame::encode_header;
use super::super::{DEPLOYMENT_RETENTION, RetentionLimits, Rows, Store, USED_FILE, rows_in_memory};
use super::damage::damages;
use super::{PLENTY, blobs, files, long, open, release};

const LIMITS: RetentionLimits = RetentionLimits {
    releases: 3,
    bytes: PLENTY,
};

/// Rows with a small value and a large one.
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
fn table_outlives_its_process() {
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
fn mark_is_read_without_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = written(folder.path());
    assert_eq!((store.mark("one"), store.mark("two")), (None, None));
    store.write_table("one".to_owned(), Some([7; 32]), || rows("b"));
    store.finish();
    for store in [store, Store::reader(folder.path().to_owned())] {
        assert_eq!(store.mark("one"), Some([7; 32]));
        assert_eq!(store.marked_table("one", &[7; 32]), Some(rows("b")));
        assert_eq!(store.marked_table("one", &[8; 32]), None);
        assert_eq!(store.table("one"), Some(rows("b")));
    }
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.write_table("one".to_owned(), None, || rows("c"));
    store.finish();
    assert_eq!(store.mark("one"), None);
}

#[test]
fn last_of_several_versions_is_written() {
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

/// Writes three small tables, the last in two versions.
fn write_three_tables(folder: &Path) -> PathBuf {
    let store = open(folder.to_owned(), 3, PLENTY);
    for (name, text) in [("a", "old"), ("b", "b"), ("c", "c"), ("a", "a")] {
        let row = (Bytes::from("key"), text.to_owned().into());
        store.write_table(name.to_owned(), Some([1; 32]), move || vec![row]);
        store.finish();
    }
    folder.join("tables/records")
}

/// Returns the tables as a newly started process reads them.
fn tables_read(folder: &Path) -> Vec<String> {
    let store = Store::reader(folder.to_owned());
    let text = |name| {
        let rows = rows_in_memory(store.table(name)?)?;
        String::from_utf8(rows.first()?.1.to_vec()).ok()
    };
    ["a", "b", "c"].into_iter().filter_map(text).collect()
}

#[test]
fn tables_are_read_from_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = write_three_tables(folder.path());
    assert_eq!(tables_read(folder.path()), ["a", "b", "c"]);
    assert_eq!(files(&folder.path().join("tables")), [records].into());
}

#[test]
fn damaged_table_does_not_affect_other_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = write_three_tables(folder.path());
    let whole = fs::read(&records).expect("a file");
    for damaged in damages(&whole) {
        let place = (0..whole.len()).find(|place| damaged.get(*place) != whole.get(*place));
        fs::write(&records, &damaged).expect("a file");
        let tables_read = tables_read(folder.path());
        let expected = ["a", "old", "b", "c"];
        assert!(
            tables_read.iter().all(|text| expected.contains(&&**text)),
            "{tables_read:?}"
        );
        if damaged.len() == whole.len() {
            let is_begin = place.is_some_and(|place| place < 35);
            assert!(
                tables_read.len() == 3 || tables_read.len() == 2 || is_begin,
                "{place:?}: {tables_read:?}"
            );
        }
    }
    fs::write(&records, [0xff; 4096]).expect("a file");
    assert!(tables_read(folder.path()).is_empty());
    open(folder.path().to_owned(), 3, PLENTY).finish();
    write_three_tables(folder.path());
    assert_eq!(
        tables_read(folder.path()),
        ["a", "b", "c"],
        "the table is written again"
    );
}

#[test]
fn table_with_a_damaged_blob_counts_as_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = written(folder.path());
    let large = blobs(folder.path()).pop_first().expect("a blob");
    fs::write(&large, "another").expect("a file");
    assert_eq!(store.table("one"), None);
    store.finish();
    assert!(!large.exists(), "the damaged blob is removed");
}

#[test]
fn unfinished_frame_is_cut_off_and_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = write_three_tables(folder.path());
    let whole = fs::read(&records).expect("a file");
    for length in (whole.len() - 141..whole.len()).step_by(7) {
        fs::write(&records, &whole[..length]).expect("a file");
        assert_eq!(
            tables_read(folder.path()),
            ["old", "b", "c"],
            "cut at {length}"
        );
        let store = open(folder.path().to_owned(), 3, PLENTY);
        let row = (Bytes::from("key"), "new".to_owned().into());
        store.write_table("b".to_owned(), None, || vec![row]);
        drop(store);
        assert_eq!(
            tables_read(folder.path()),
            ["old", "new", "c"],
            "cut at {length}"
        );
    }
}

#[test]
fn content_cannot_imitate_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = write_three_tables(folder.path());
    let forged = fs::read(&records).expect("a file");
    fs::remove_file(&records).expect("removed");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.write_table("b".to_owned(), None, || vec![("key".into(), "true".into())]);
    store.write_table("d".to_owned(), None, || vec![("key".into(), forged.into())]);
    drop(store);
    let mut bytes = fs::read(&records).expect("a file");
    let place = bytes
        .windows(3)
        .rposition(|bytes| bytes == b"\x01d\0")
        .expect("the metadata of `d`");
    bytes[place] ^= 1;
    fs::write(&records, bytes).expect("a file");
    assert_eq!(tables_read(folder.path()), ["true"]);
}

#[test]
fn file_is_rewritten_once_most_of_it_is_superseded() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = write_three_tables(folder.path());
    let store = open(folder.path().to_owned(), 3, PLENTY);
    let mut largest = 0;
    for number in 0..200_u8 {
        let row = (Bytes::from("key"), vec![number; 60_000].into());
        store.write_table("large".to_owned(), None, || vec![row]);
        store.finish();
        largest = largest.max(fs::metadata(&records).expect("a file").len());
    }
    assert!(largest > 1 << 20 && largest < 2 << 20, "{largest} bytes");
    let row = (Bytes::from("key"), vec![199; 60_000].into());
    assert_eq!(store.table("large"), Some(vec![row]));
    assert_eq!(tables_read(folder.path()), ["a", "b", "c"]);
}

#[test]
fn removed_or_replaced_file_is_rewritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = write_three_tables(folder.path());
    let store = open(folder.path().to_owned(), 3, PLENTY);
    assert!(store.has_table("a"));
    for damage in ["", "removed", "another file"] {
        fs::remove_file(&records).expect("removed");
        if damage != "removed" {
            fs::write(&records, damage).expect("a file");
        }
        let row = (Bytes::from("key"), "new".to_owned().into());
        store.write_table("b".to_owned(), None, || vec![row]);
        store.finish();
        assert_eq!(tables_read(folder.path()), ["a", "new", "c"], "{damage}");
    }
}

#[test]
fn process_that_claims_later_sees_earlier_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    write_three_tables(folder.path());
    let first = open(folder.path().to_owned(), 3, PLENTY);
    let second = open(folder.path().to_owned(), 3, PLENTY);
    assert!(second.has_table("c"));
    first.remove_table("c".to_owned());
    first.write_table("d".to_owned(), None, || rows("d"));
    drop(first);
    second.claim().expect("claimed");
    assert!(!second.has_table("c"));
    assert_eq!(second.table("d"), Some(rows("d")));
    second.write_table("e".to_owned(), None, || rows("e"));
    drop(second);
    let store = Store::reader(folder.path().to_owned());
    assert_eq!(store.tables(""), ["a", "b", "d", "e"]);
}

#[test]
fn tables_of_older_programs_are_read_and_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = folder.path().join("tables");
    fs::create_dir(&tables).expect("a folder");
    // The bytes of a table with the mark 7, 7, ... and one row.
    let rest = [&[1][..], b"\x03key", b"\0", b"\x04text"].concat();
    let metadata = [&[0, 32][..], &[7; 32]].concat();
    let older = [encode_header(b"rowhouse-table-1\n", &metadata, &rest), rest].concat();
    fs::write(tables.join("older"), &older).expect("a file");
    fs::write(tables.join("damaged"), &older[..older.len() - 1]).expect("a file");
    let expected: Rows = vec![("key".into(), "text".into())];
    let store = Store::reader(folder.path().to_owned());
    assert_eq!(
        store.marked_table("older", &[7; 32]),
        Some(expected.clone())
    );
    assert_eq!(store.table("damaged"), None);
    let store = open(folder.path().to_owned(), 3, PLENTY);
    assert_eq!(
        store.table("older"),
        Some(expected.clone()),
        "before it is moved"
    );
    store.finish();
    assert_eq!(files(&tables), [tables.join("records")].into());
    for store in [store, Store::reader(folder.path().to_owned())] {
        assert_eq!(store.tables(""), ["older"]);
        assert_eq!(store.mark("older"), Some([7; 32]));
        assert_eq!(store.table("older"), Some(expected.clone()));
    }
}

#[test]
fn blobs_of_tables_stay_and_are_shared_with_releases() {
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
    // Files must not be removed while their names are read.
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
fn only_long_unused_deployments_are_removed() {
    let directory = tempfile::tempdir().expect("a folder");
    let directory = directory.path();
    let of = |name| Store::of_deployment(directory, name, format!("of {name}"), LIMITS);
    let here = || of("here");
    let first = here();
    first.write_table("one".to_owned(), None, || rows("a"));
    drop(first);
    let there = of("there");
    assert_eq!(there.table("one"), None);
    assert!(here().table("one").is_some());
    let strange = directory.join("strange");
    fs::create_dir(&strange).expect("a folder");
    let folder = directory.join("here");
    let used = fs::File::create(folder.join(USED_FILE)).expect("a file");
    used.set_modified(SystemTime::now() - DEPLOYMENT_RETENTION - Duration::from_secs(1))
        .expect("a time");
    let labels = Store::deployments(directory).into_iter();
    let labels: BTreeSet<_> = labels.filter_map(|folder| folder.label).collect();
    assert_eq!(
        labels,
        ["of here", "of there"].map(ToOwned::to_owned).into()
    );
    drop(of("elsewhere"));
    assert!(
        !folder.exists(),
        "the folder of an unused deployment is removed"
    );
    assert!(strange.exists(), "folders of other programs stay");
    assert!(directory.join("there").exists());
}
