//! Folders on disk, read into memory: the only place that opens content files.
//!
//! A [`Folder`] is plain bytes by path. It may have come from a directory, or from the theme that is built into the program.
//! Symbolic links are followed as long as they stay within the folder's resolved root, so that releases and ConfigMaps work and a tenant is still only its folder.
//!
//! **Invariant:** knows no YAML and no page. Nothing after it opens a content file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::report::{Code, Diagnostic, Report};

/// The most that one folder may hold: enough for any small site, too little to hurt the neighbours.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes in one file.
    pub file: u64,
    /// Bytes in all.
    pub total: u64,
    /// Files in all.
    pub files: usize,
    /// Folders within folders.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 32 << 20,
            total: 256 << 20,
            files: 20_000,
            depth: 16,
        }
    }
}

/// A folder's files in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folder {
    /// How reports name the folder: `tenants/bluedoor`.
    pub label: String,
    /// The files by their path within the folder, with `/` between segments.
    pub files: BTreeMap<String, Bytes>,
}

impl Folder {
    /// How reports name one of its files.
    #[must_use]
    pub fn name_of(&self, path: &str) -> String {
        format!("{}/{path}", self.label)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// A diagnostic when the file is empty or not UTF-8.
    pub fn text<'a>(&self, path: &str, bytes: &'a Bytes) -> Result<&'a str, Diagnostic> {
        let name = self.name_of(path);
        match std::str::from_utf8(bytes) {
            Ok(text) if text.trim().is_empty() => {
                Err(
                    Diagnostic::mistake(Code::EmptyFile, name, "the file is empty")
                        .hint("was it copied whole? Fill it or remove it"),
                )
            }
            Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
            Err(error) => {
                let line = bytes[..error.valid_up_to()]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count()
                    + 1;
                Err(Diagnostic::mistake(
                    Code::NotUtf8,
                    name,
                    format!(
                        "the file is not UTF-8: line {line} holds a byte that fits no character"
                    ),
                )
                .hint("save it as UTF-8"))
            }
        }
    }

    /// A hash of every path and byte: equal folders have equal fingerprints.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (path, bytes) in &self.files {
            hash.update((path.len() as u64).to_le_bytes());
            hash.update(path);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        hash.finalize().into()
    }
}

/// Why a folder could not be read at all.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The directory itself cannot be listed.
    #[error("cannot read the folder `{}`: {source}", path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The folders within `directory`, by name, without those whose names begin with a dot and without plain files.
///
/// # Errors
/// When the directory cannot be listed.
pub fn list(directory: &Path) -> Result<BTreeMap<String, PathBuf>, SourceError> {
    let unreadable = |source| SourceError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    let mut folders = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && entry.path().is_dir() {
            folders.insert(name, entry.path());
        }
    }
    Ok(folders)
}

/// Reads a directory with everything in it, except names that begin with a dot (but `.well-known`).
///
/// What cannot be taken is in the report; the rest is in the folder.
#[must_use]
pub fn read(directory: &Path, label: &str, limits: Limits) -> (Folder, Report) {
    let mut reader = Reader {
        root: PathBuf::new(),
        limits,
        total: 0,
        full: false,
        folder: Folder {
            label: label.to_owned(),
            files: BTreeMap::new(),
        },
        report: Report::default(),
    };
    match fs::canonicalize(directory) {
        Ok(root) => {
            reader.root.clone_from(&root);
            reader.directory(&root, "", 0);
        }
        Err(error) => reader.unreadable(label.to_owned(), &error),
    }
    (reader.folder, reader.report)
}

struct Reader {
    root: PathBuf,
    limits: Limits,
    total: u64,
    full: bool,
    folder: Folder,
    report: Report,
}

impl Reader {
    fn directory(&mut self, directory: &Path, prefix: &str, depth: usize) {
        if depth > self.limits.depth {
            let message = format!("folders are nested more than {} deep", self.limits.depth);
            return self.too_large(prefix, message);
        }
        let entries =
            match fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
                Ok(entries) => entries,
                Err(error) => return self.unreadable(self.folder.name_of(prefix), &error),
            };
        for entry in entries {
            if self.full {
                return;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') && name != ".well-known" {
                continue;
            }
            let path = if prefix.is_empty() {
                name
            } else {
                format!("{prefix}/{name}")
            };
            match fs::canonicalize(entry.path()) {
                Ok(target) if !target.starts_with(&self.root) => self.report.push(
                    Diagnostic::mistake(
                        Code::ForeignSymlink,
                        self.folder.name_of(&path),
                        format!(
                            "the link leads out of the folder, to `{}`",
                            target.display()
                        ),
                    )
                    .hint("copy the file into the folder, or link the whole folder instead"),
                ),
                Ok(target) if target.is_dir() => self.directory(&target, &path, depth + 1),
                Ok(target) => self.file(&target, path),
                Err(error) => self.unreadable(self.folder.name_of(&path), &error),
            }
        }
    }

    fn file(&mut self, target: &Path, path: String) {
        let metadata = match fs::metadata(target) {
            // Reading from a pipe would wait for a writer, and a device may never end.
            Ok(metadata) if !metadata.is_file() => {
                let diagnostic = Diagnostic::mistake(
                    Code::Unreadable,
                    self.folder.name_of(&path),
                    "this is no plain file",
                );
                return self.report.push(
                    diagnostic.hint("remove it: a pipe, a socket or a device has no content"),
                );
            }
            Ok(metadata) => metadata,
            Err(error) => return self.unreadable(self.folder.name_of(&path), &error),
        };
        let size = metadata.len();
        if size > self.limits.file {
            let message = format!(
                "the file has {size} bytes, more than the {} that one file may have",
                self.limits.file
            );
            return self.too_large(&path, message);
        }
        self.total += size;
        if self.total > self.limits.total || self.folder.files.len() >= self.limits.files {
            self.full = true;
            let message = format!(
                "the folder has more than {} files or {} bytes",
                self.limits.files, self.limits.total
            );
            return self.too_large("", message);
        }
        match fs::read(target) {
            Ok(bytes) => {
                self.folder.files.insert(path, bytes.into());
            }
            Err(error) => self.unreadable(self.folder.name_of(&path), &error),
        }
    }

    fn too_large(&mut self, path: &str, message: String) {
        let file = if path.is_empty() {
            self.folder.label.clone()
        } else {
            self.folder.name_of(path)
        };
        self.report.push(
            Diagnostic::mistake(Code::TooLarge, file, message)
                .hint("make it smaller, or keep it outside of the tenants"),
        );
    }

    fn unreadable(&mut self, file: String, error: &io::Error) {
        self.report.push(Diagnostic::mistake(
            Code::Unreadable,
            file,
            format!("cannot be read: {error}"),
        ));
    }
}
