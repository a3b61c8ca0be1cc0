//! Compares the files of two versions of a folder.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use server::admin::control::{ChangeKind, PageChange};

use super::lines::text_lines;
use super::{Difference, MAX_COMPARED_BYTES, MAX_DIFF_BYTES, ReleaseDiff, changed_lines};

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// The bytes.
    Bytes(Bytes),
    /// The hash of a large file, whose bytes are not at hand.
    Hash(String),
}

impl FileContent {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Bytes(bytes) if bytes.len() <= MAX_COMPARED_BYTES => {
                std::str::from_utf8(bytes).ok()
            }
            Self::Bytes(_) | Self::Hash(_) => None,
        }
    }

    fn summary(&self) -> String {
        match self {
            Self::Bytes(bytes) => {
                let plural = if bytes.len() == 1 { "" } else { "s" };
                format!("{} byte{plural}", bytes.len())
            }
            Self::Hash(hash) => format!("large file {hash}"),
        }
    }
}

/// Returns the changes from one version of a folder to another, sorted by path.
#[must_use]
pub fn compare_files(
    from: &BTreeMap<String, FileContent>,
    to: &BTreeMap<String, FileContent>,
) -> Vec<PageChange> {
    let mut changes = ReleaseDiff::default();
    for path in from.keys().chain(to.keys()).collect::<BTreeSet<_>>() {
        let (change, difference) = match (from.get(path), to.get(path)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) if changes.text < MAX_DIFF_BYTES => {
                (ChangeKind::Changed, difference(old, new))
            }
            (Some(_), Some(_)) => (ChangeKind::Changed, Difference::too_many()),
            (None, _) => (ChangeKind::Added, Difference::default()),
            (_, None) => (ChangeKind::Removed, Difference::default()),
        };
        changes.add(path.clone(), change, difference);
    }
    changes.list
}

/// Returns the changed lines of two texts, or else the sizes of both files.
fn difference(old: &FileContent, new: &FileContent) -> Difference {
    let lines = match (old.text(), new.text()) {
        (Some(before), Some(after)) => changed_lines(&text_lines(before), &text_lines(after)),
        _ => String::new(),
    };
    // Without a changed line, only white space differs.
    Difference::shown(match lines.is_empty() {
        true => format!("-{}\n+{}\n", old.summary(), new.summary()),
        false => lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &'static [u8])]) -> BTreeMap<String, FileContent> {
        let files = files.iter();
        let files = files.map(|(path, bytes)| {
            let content = FileContent::Bytes(Bytes::from_static(bytes));
            ((*path).to_owned(), content)
        });
        files.collect()
    }

    #[test]
    fn texts_differ_by_lines_and_other_files_by_size() {
        let mut from = folder(&[
            ("assets/logo.png", b"\xff1"),
            ("old.md", b"old"),
            ("pages/index.md", b"one\ntwo\nthree\n"),
            ("same.md", b"same"),
        ]);
        let mut to = folder(&[
            ("assets/logo.png", b"\xff22"),
            ("new.md", b"new"),
            ("pages/index.md", b"one\n2\nthree\n"),
            ("same.md", b"same"),
        ]);
        from.insert("film.mp4".to_owned(), FileContent::Hash("a".to_owned()));
        to.insert("film.mp4".to_owned(), FileContent::Hash("b".to_owned()));
        let changes = compare_files(&from, &to);
        let of = |change: &PageChange| (change.path.clone(), change.change, change.text.clone());
        let line = |path: &str, change, text: &str| (path.to_owned(), change, text.to_owned());
        assert_eq!(
            changes.iter().map(of).collect::<Vec<_>>(),
            [
                line(
                    "assets/logo.png",
                    ChangeKind::Changed,
                    "-2 bytes\n+3 bytes\n"
                ),
                line(
                    "film.mp4",
                    ChangeKind::Changed,
                    "-large file a\n+large file b\n"
                ),
                line("new.md", ChangeKind::Added, ""),
                line("old.md", ChangeKind::Removed, ""),
                line(
                    "pages/index.md",
                    ChangeKind::Changed,
                    " one\n-two\n+2\n three\n"
                ),
            ]
        );
        assert!(changes.iter().all(|change| change.metadata.is_empty()));
    }
}
