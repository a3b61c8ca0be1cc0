//! The files of a tenant that its pages show or offer: files under `assets`, and files beside its pages.
//!
//! Each file has a key: its path below `assets`, in Unicode form NFC (UAX 15). A name is thus the same however a disk or an editor encodes it. The key of a file beside a page is, for example, `../pages/blog/hall.jpg`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use percent_encoding::percent_decode_str;

use super::role::{ASSETS as FOLDER, FileRole, PAGES, role_of};
use crate::formats::link::beside;
use crate::name::reserved::ASSETS;
use crate::name::{folded, nfc};
use crate::report::{Code, Diagnostic, Report};
use crate::source::{Folder, LargeSourceFile};

/// The start of the keys of files beside pages. No file under `assets` has such a path.
const BESIDE_PAGES_PREFIX: &str = "../";

/// Returns the path within the tenant's folder of the file with a key.
#[must_use]
pub fn file_of(key: &str) -> String {
    match key.strip_prefix(BESIDE_PAGES_PREFIX) {
        Some(file) => file.to_owned(),
        None => format!("{FOLDER}{key}"),
    }
}

/// Returns the key of a file within the tenant's folder, if pages can show or offer it.
fn key_of(file: &str) -> Option<Cow<'_, str>> {
    match file.strip_prefix(FOLDER) {
        _ if role_of(file) != FileRole::Asset => None,
        Some(below) => Some(nfc(below)),
        None => Some(Cow::Owned(format!("{BESIDE_PAGES_PREFIX}{}", nfc(file)))),
    }
}

/// Returns the files of a folder by key: the files in memory, and the files that are too large for memory.
pub(super) fn read(
    folder: &Folder,
    report: &mut Report,
) -> (BTreeMap<String, Bytes>, BTreeMap<String, LargeSourceFile>) {
    let mut files = BTreeMap::new();
    let mut large = BTreeMap::new();
    let mut alike: HashMap<String, &str> = HashMap::new();
    for path in folder.files.keys().chain(folder.large.keys()) {
        let Some(key) = key_of(path) else {
            continue;
        };
        if let Some(other) = alike.insert(folded(&key), path) {
            let message = match nfc(other) == nfc(path) {
                true => {
                    "two files have names that look the same and differ only in their Unicode form"
                        .to_owned()
                }
                false => format!(
                    "`{other}` differs only in upper and lower case, and is the same file on many disks"
                ),
            };
            let diagnostic =
                Diagnostic::error(Code::PathTwice, folder.name_of(&nfc(path)), message);
            report.push(diagnostic.hint("remove or rename one of the two files"));
        }
        if let Some(bytes) = folder.files.get(path) {
            files.insert(key.into_owned(), bytes.clone());
        } else if let Some(file) = folder.large.get(path) {
            large.insert(key.into_owned(), file.clone());
        }
    }
    (files, large)
}

/// Finds the file that a text in `file` names, beside `file` or below `assets`. Tries the name as written, then percent-decoded (WHATWG URL, section 1.3).
#[must_use]
pub fn named<'a, T>(
    files: &'a BTreeMap<String, T>,
    written: &str,
    file: &str,
) -> Option<(&'a str, &'a T)> {
    if let Some(below) = written.strip_prefix(ASSETS) {
        return keyed(files, below);
    }
    let beside = beside(written, file);
    beside
        .as_deref()
        .and_then(|path| at(files, path))
        .or_else(|| keyed(files, written))
}

/// Finds the file that a link from the tenant's root points to. Also returns the part of the link behind the file's path.
#[must_use]
pub fn linked<'a, 'l, T>(
    files: &'a BTreeMap<String, T>,
    link: &'l str,
) -> Option<(&'a str, &'a T, &'l str)> {
    let path = link.strip_prefix('/')?;
    // A file name may contain characters that end the path of a URL.
    let end = path.find(['?', '#']).unwrap_or(path.len());
    [path.len(), end].into_iter().find_map(|end| {
        let (key, found) = at(files, &path[..end])?;
        Some((key, found, &path[end..]))
    })
}

/// Finds the file at a path in the tenant's folder.
fn at<'a, T>(files: &'a BTreeMap<String, T>, path: &str) -> Option<(&'a str, &'a T)> {
    match path.strip_prefix(FOLDER) {
        Some(below) => keyed(files, below),
        None if path.starts_with(PAGES) => keyed(files, &format!("{BESIDE_PAGES_PREFIX}{path}")),
        None => None,
    }
}

fn keyed<'a, T>(files: &'a BTreeMap<String, T>, key: &str) -> Option<(&'a str, &'a T)> {
    let find = |key: &str| files.get_key_value(nfc(key).as_ref());
    let found = find(key).or_else(|| {
        let decoded = percent_decode_str(key).decode_utf8().ok()?;
        find(&decoded)
    });
    found.map(|(key, value)| (key.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> BTreeMap<String, u8> {
        let keys = [
            "50% off.png",
            "a#b.png",
            "sp\u{e4}ti & caf\u{e9}.jpg",
            "hall.jpg",
            "../pages/blog/hall.jpg",
        ];
        keys.into_iter().map(str::to_owned).zip(0..).collect()
    }

    #[test]
    fn file_is_found_by_every_spelling_of_its_name() {
        let files = files();
        let found = |written: &str, file: &str| named(&files, written, file).map(|(_, at)| *at);
        for (written, at) in [
            ("50% off.png", 0),
            ("50%25%20off.png", 0),
            ("../assets/50%25%20off.png", 0),
            ("/assets/50%25%20off.png", 0),
            ("a#b.png", 1),
            ("a%23b.png", 1),
            ("sp\u{e4}ti & caf\u{e9}.jpg", 2),
            ("spa\u{308}ti & cafe\u{301}.jpg", 2),
            ("sp%C3%A4ti%20%26%20caf%C3%A9.jpg", 2),
            ("spa%CC%88ti%20&%20cafe%CC%81.jpg", 2),
            ("hall.jpg", 3),
        ] {
            assert_eq!(found(written, "pages/index.md"), Some(at), "{written}");
        }
        assert_eq!(found("hall.jpg", "pages/blog/first.md"), Some(4));
        assert_eq!(
            found("../../assets/hall.jpg", "pages/blog/first.md"),
            Some(3)
        );
        assert_eq!(found("assets/hall.jpg", "tenant.yaml"), Some(3));
        assert_eq!(found("../hall.jpg", "tenant.yaml"), None);
        assert_eq!(found("other.jpg", "pages/index.md"), None);
    }

    #[test]
    fn link_to_a_file_keeps_its_query_and_fragment() {
        let files = files();
        let found = |link: &'static str| linked(&files, link).map(|(_, at, tail)| (*at, tail));
        assert_eq!(found("/assets/hall.jpg#x"), Some((3, "#x")));
        assert_eq!(found("/assets/a#b.png"), Some((1, "")));
        assert_eq!(found("/assets/a%23b.png?c"), Some((1, "?c")));
        assert_eq!(found("/pages/blog/hall.jpg"), Some((4, "")));
        assert_eq!(found("/hall.jpg"), None);
    }
}
