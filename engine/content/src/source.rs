//! Reads folders on disk into memory. No other module opens content files.
//!
//! A [`Folder`] maps paths to bytes. It comes from a directory, or from the theme built into the program.
//! Symbolic links are followed within the folder's resolved root. Deployment tools that switch links and Kubernetes ConfigMaps therefore work, but no link leads out of the folder, even if it is exchanged during the read.
//! Each folder is read once, however many links point to it. [`FolderLimits`] bound the listing and the read.
//!
//! **Invariant:** knows no YAML and no pages. Later stages open no content files.

mod activity;
mod folder_root;
mod incomplete;
mod large;
mod limits;
mod recent;
mod stamp;
mod walk;

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use self::activity::Activity;
use self::folder_root::FolderRoot;
pub use self::incomplete::{missing_end, missing_end_of_file};
pub use self::large::{CopyLargeFile, LargeSourceFile};
pub use self::limits::FolderLimits;
use self::limits::is_large_type;
pub use self::recent::RecentFile;
pub use self::stamp::{FileStamp, FolderStamp};
use self::walk::is_folder_of;
pub use self::walk::{FolderIdentity, FolderSizes, FolderTree, is_folder, walk};
use crate::report::{Code, Diagnostic, Report, size_text};

/// The files of a folder, read into memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folder {
    /// The folder's name in reports, for example `tenants/corner`.
    pub label: String,
    /// Files by path within the folder. Segments are separated by `/`.
    pub files: BTreeMap<String, Bytes>,
    /// Files that are too large for memory, by path within the folder.
    pub large: BTreeMap<String, LargeSourceFile>,
}

impl Folder {
    /// Returns the name of a file in reports.
    #[must_use]
    pub fn name_of(&self, path: &str) -> String {
        format!("{}/{path}", self.label)
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// If the file is empty or not UTF-8.
    pub fn text<'a>(&self, path: &str, bytes: &'a Bytes) -> Result<&'a str, Diagnostic> {
        decode(self.name_of(path), bytes)
    }

    /// Returns the hashes of all files.
    #[must_use]
    pub fn hashes(&self) -> FileHashes {
        let (files, large) = (self.files.iter(), self.large.iter());
        FileHashes(
            files
                .map(|(path, bytes)| (path.clone(), Sha256::digest(bytes).into()))
                .chain(large.map(|(path, file)| (path.clone(), file.digest)))
                .collect(),
        )
    }

    /// Returns a hash of all paths and bytes. Equal folders have equal fingerprints.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        self.hashes().fingerprint()
    }
}

/// The SHA-256 of each file of a folder, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileHashes(BTreeMap<String, [u8; 32]>);

impl FileHashes {
    /// Returns the hash of the entire folder, as [`Folder::fingerprint`] does.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (path, file) in &self.0 {
            hash.update((path.len() as u64).to_le_bytes());
            hash.update(path);
            hash.update(file);
        }
        hash.finalize().into()
    }

    /// Returns all paths with their hashes.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &[u8; 32])> {
        self.0.iter()
    }

    /// Returns the paths of files that were added, changed or removed since `before`.
    pub fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a String> {
        let gone = before.0.keys().filter(|path| !self.0.contains_key(*path));
        let other = self.0.iter();
        let other = other.filter(|(path, hash)| before.0.get(*path) != Some(*hash));
        gone.chain(other.map(|(path, _)| path))
    }
}

impl FromIterator<(String, [u8; 32])> for FileHashes {
    fn from_iter<T: IntoIterator<Item = (String, [u8; 32])>>(hashes: T) -> Self {
        Self(hashes.into_iter().collect())
    }
}

/// Decodes the bytes of a file as text, without a byte order mark.
fn decode(name: String, bytes: &[u8]) -> Result<&str, Diagnostic> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => {
            Err(
                Diagnostic::error(Code::EmptyFile, name, "the file is empty")
                    .hint("copy the file again, fill it, or remove it"),
            )
        }
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let line = bytes[..error.valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1;
            let message = format!("the file is not UTF-8: line {line} has an invalid byte");
            Err(Diagnostic::error(Code::NotUtf8, name, message).hint("save the file as UTF-8"))
        }
    }
}

/// Reads the text of a single file of at most `max_bytes` bytes. Returns `None` if the file is absent.
///
/// # Errors
/// If the file cannot be read, is too large, or is not text.
pub fn text(path: &Path, max_bytes: u64) -> Result<Option<String>, Diagnostic> {
    let name = path.display().to_string();
    let read = fs::metadata(path).and_then(|metadata| {
        // A FIFO would block until it has a writer, and a device may never end.
        if !metadata.is_file() {
            return Err(io::Error::other("this is not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?
            .take(max_bytes + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let too_large = |bytes: &Vec<u8>| u64::try_from(bytes.len()).is_ok_and(|size| size > max_bytes);
    match read {
        Ok(bytes) if too_large(&bytes) => {
            let message = format!("the file has more than {}", size_text(max_bytes));
            Err(Diagnostic::error(Code::TooLarge, name, message))
        }
        Ok(bytes) => decode(name, &bytes).map(|text| Some(text.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            Err(Diagnostic::error(Code::Unreadable, name, message))
        }
    }
}

/// The reason why a folder cannot be read at all.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The directory cannot be listed.
    #[error("cannot read the folder `{}`: {source}", path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A remote source has not answered since the start.
    #[error("the {what} of `{address}` are not known yet: {problem}")]
    Unanswered {
        /// The missing part: tenants or themes.
        what: &'static str,
        /// The address of the source.
        address: String,
        /// The reason.
        problem: String,
    },
}

/// Returns the folders in `directory` by name. Omits plain files and names that begin with a dot.
///
/// Includes dangling links: reading one reports the error, and the content last read from the folder is not given up.
///
/// # Errors
/// If the directory cannot be listed.
pub fn list(directory: &Path) -> Result<BTreeMap<String, PathBuf>, SourceError> {
    let unreadable = |source| SourceError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    let mut folders = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Removed since it was listed: not a folder.
        let is_folder = |kind: fs::FileType| is_folder_of(kind, &entry.path());
        if !name.starts_with('.') && entry.file_type().is_ok_and(is_folder) {
            folders.insert(name, entry.path());
        }
    }
    Ok(folders)
}

/// Reads all files of a directory. Skips names that begin with a dot, except `.well-known`.
///
/// Files that cannot be read are in the report. If the directory exceeds a limit on its total, the folder is empty. Without `copy_large`, a file that is too large for memory is an error.
#[must_use]
pub fn read(
    directory: &Path,
    label: &str,
    limits: FolderLimits,
    copy_large: Option<CopyLargeFile<'_>>,
) -> (Folder, Report) {
    let activity = Activity::default();
    walk(directory, label, limits, &activity)
        .read(copy_large, (&BTreeMap::new(), SystemTime::now()))
}

impl FolderTree {
    /// Reads the files that [`walk`] found, as [`read`] does.
    ///
    /// Does not read a large file in `known` that has not changed. `now` must not be later than the start of the read.
    #[must_use]
    pub fn read(
        mut self,
        copy_large: Option<CopyLargeFile<'_>>,
        (known, now): (&BTreeMap<String, LargeSourceFile>, SystemTime),
    ) -> (Folder, Report) {
        let limits = self.limits;
        let mut folder = Folder {
            label: self.label.clone(),
            ..Folder::default()
        };
        if let Some(root) = self.root.take() {
            let mut left = RemainingBytes {
                memory: limits.total,
                large: limits.large_total,
            };
            for path in std::mem::take(&mut self.files) {
                if self.is_cut {
                    break;
                }
                self.activity.begin();
                let take = copy_large.map(|take| (take, known.get(&path), now));
                match read_file(&root, &mut self, &path, take, &mut left) {
                    Some(FileContent::InMemory(bytes)) => drop(folder.files.insert(path, bytes)),
                    Some(FileContent::Large(file)) => drop(folder.large.insert(path, file)),
                    None => {}
                }
            }
        }
        self.activity.end();
        if self.is_cut {
            folder.files.clear();
            folder.large.clear();
        }
        (folder, self.report)
    }
}

/// The bytes that the folder may still use.
struct RemainingBytes {
    memory: u64,
    large: u64,
}

/// A file that was read.
enum FileContent {
    InMemory(Bytes),
    Large(LargeSourceFile),
}

impl FileContent {
    const fn length(&self) -> u64 {
        match self {
            Self::InMemory(bytes) => bytes.len() as u64,
            Self::Large(file) => file.length,
        }
    }
}

/// Reads a file. If the file cannot be read, reports the reason in `tree`.
fn read_file(
    root: &FolderRoot,
    tree: &mut FolderTree,
    path: &str,
    copy_large: Option<(CopyLargeFile<'_>, Option<&LargeSourceFile>, SystemTime)>,
    left: &mut RemainingBytes,
) -> Option<FileContent> {
    let file = match root.open(Path::new(path)) {
        Ok(file) => file,
        Err(error) => {
            tree.report_open_error(path, error);
            return None;
        }
    };
    // The entry may have been exchanged since it was listed.
    let metadata = match file.metadata() {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => {
            tree.report_special_file(path);
            return None;
        }
        Err(error) => {
            tree.unreadable(path, &error);
            return None;
        }
    };
    let (limits, size) = (tree.limits, metadata.len());
    let copy_large = copy_large.filter(|_| size > limits.file && is_large_type(path));
    let (max_file, max_total, left) = match copy_large {
        Some(_) => (limits.large_file, limits.large_total, &mut left.large),
        None => (limits.file, limits.total, &mut left.memory),
    };
    let mut content = None;
    if size <= max_file.min(*left) {
        let read = match copy_large {
            Some(take) => {
                // Copying a large file takes as long as the disk needs, so the call must not count as stalled.
                tree.activity.end();
                copy_or_reuse(file, &metadata, take).map(FileContent::Large)
            }
            None => read_to_memory(file, size, max_file.min(*left)).map(FileContent::InMemory),
        };
        match read {
            Ok(read) => content = Some(read),
            Err(error) => {
                tree.unreadable(path, &error);
                return None;
            }
        }
    }
    let length = content.as_ref().map_or(size, FileContent::length);
    if length > max_file {
        let (length, limit) = (size_text(length), size_text(max_file));
        let message = format!("the file has {length}; the limit of a file is {limit}");
        tree.too_large(path, message);
        return None;
    }
    if length > *left {
        let limit = size_text(max_total);
        tree.stop(format!("the files have more than {limit} in total"));
        return None;
    }
    *left -= length;
    content
}

/// Copies a file that is too large for memory. Returns the `known` copy if the file has not changed since.
fn copy_or_reuse(
    file: File,
    metadata: &Metadata,
    (take, known, now): (CopyLargeFile<'_>, Option<&LargeSourceFile>, SystemTime),
) -> io::Result<LargeSourceFile> {
    // Before the read: a later write gives the file another stamp.
    let stamp = FileStamp::of(metadata, now);
    match known {
        Some(known) if stamp.is_some() && known.stamp == stamp => Ok(known.clone()),
        _ => Ok(LargeSourceFile {
            stamp,
            ..take(file, metadata.len())?
        }),
    }
}

/// Reads a file whose size should be `size`. Reads up to one byte more than `max_bytes`, to detect a file that grows or reports no size.
fn read_to_memory(file: File, size: u64, max_bytes: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    bytes.reserve_exact(usize::try_from(size).unwrap_or_default() + 1);
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests;
