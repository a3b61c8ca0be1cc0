//! Files on disk: only what changed is written, and only what an earlier export wrote is ever replaced or removed.
//!
//! 1. Everything is looked at first: a folder or file of somebody else ends the export before anything is written.
//! 2. Files that changed are written whole beside the folder's content. Up to here a failure leaves the last export as it was.
//! 3. They are renamed into place, files that pages refer to before the pages, and what is gone is removed last.
//!
//! The list of what was written lies in the folder as `.rowhouse-export`. It names the old and the new files while they change, so that an export that was cut short can be continued by the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use thiserror::Error;

/// The list of files that are this program's.
const LIST: &str = ".rowhouse-export";
/// Where files are written before they take their place.
const STAGING: &str = ".rowhouse-export.new";
/// A checkout of a branch that is published may be exported into.
const PASSED_OVER: &str = ".git";
const TITLE: &str =
    "# What `rowhouse export` wrote here. It replaces and removes nothing else: keep this file.";

/// Why nothing, or not everything, was written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// Somebody else's folder.
    #[error("`{}` is not empty and no export wrote it: name an empty folder, or one that is not there yet", .0.display())]
    NotOurs(PathBuf),
    /// Somebody else's file in an exported folder.
    #[error("`{}` is there and no export wrote it: move it away", .0.display())]
    Stranger(PathBuf),
    /// Two exports into one folder.
    #[error("another export is writing into `{}`: wait until it has ended", .0.display())]
    Busy(PathBuf),
    /// The system would not.
    #[error("cannot write `{}`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// What an export did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Files that are new or changed.
    pub written: usize,
    /// Files that were as they should be.
    pub unchanged: usize,
    /// Files that are gone.
    pub removed: usize,
}

/// Makes `directory` hold `files`, by their paths with `/` between segments.
///
/// # Errors
/// When the folder is somebody else's, holds a stranger's file where one is to be, or cannot be written.
pub fn write(directory: &Path, files: &BTreeMap<String, Bytes>) -> Result<Done, WriteError> {
    fs::create_dir_all(directory).map_err(at(directory))?;
    let lock = File::open(directory).map_err(at(directory))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(WriteError::Busy(directory.to_owned())),
        Err(TryLockError::Error(error)) => return Err(at(directory)(error)),
    }
    let folder = Folder { directory };
    let ours = folder.list()?;
    for file in files.keys() {
        folder.is_free(file, &ours)?;
    }
    let changed: Vec<(&String, &Bytes)> = files
        .iter()
        .filter(|(file, bytes)| !folder.holds(file, bytes))
        .collect();
    let gone: BTreeSet<&String> = ours
        .iter()
        .filter(|file| !files.contains_key(*file))
        .collect();

    let staged = folder.stage(&changed);
    if staged.is_err() {
        folder.clear_staging()?;
    }
    staged?;

    folder.keep_list(files.keys().chain(ours.iter()))?;
    // A file gives way to a folder of its name, and a folder to a file.
    let (first, last): (Vec<&String>, Vec<&String>) = gone.iter().copied().partition(|gone| {
        let mut new = changed.iter();
        new.any(|(file, _)| is_above(gone, file) || is_above(file, gone))
    });
    for file in first {
        folder.remove(file)?;
    }
    let mut order: Vec<usize> = (0..changed.len()).collect();
    order.sort_by_key(|index| {
        changed
            .get(*index)
            .is_some_and(|(file, _)| file.ends_with(".html"))
    });
    for index in order {
        if let Some((file, _)) = changed.get(index) {
            folder.place(index, file)?;
        }
    }
    for file in last {
        folder.remove(file)?;
    }
    folder.keep_list(files.keys())?;
    folder.clear_staging()?;
    Ok(Done {
        written: changed.len(),
        unchanged: files.len() - changed.len(),
        removed: gone.len(),
    })
}

struct Folder<'a> {
    directory: &'a Path,
}

impl Folder<'_> {
    /// The files that an earlier export wrote.
    fn list(&self) -> Result<BTreeSet<String>, WriteError> {
        let path = self.directory.join(LIST);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let lines = text.lines().filter(|line| !line.starts_with('#'));
                Ok(lines
                    .filter(|line| is_inside(line))
                    .map(ToOwned::to_owned)
                    .collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                for entry in fs::read_dir(self.directory).map_err(at(self.directory))? {
                    let name = entry.map_err(at(self.directory))?.file_name();
                    // Without a list, an export cut short has placed nothing.
                    if name != PASSED_OVER && name != STAGING {
                        return Err(WriteError::NotOurs(self.directory.to_owned()));
                    }
                }
                Ok(BTreeSet::new())
            }
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn keep_list<'f>(&self, files: impl Iterator<Item = &'f String>) -> Result<(), WriteError> {
        let files: BTreeSet<&str> = files.map(String::as_str).collect();
        let mut text = format!("{TITLE}\n");
        for file in files {
            text.push_str(file);
            text.push('\n');
        }
        let path = self.directory.join(LIST);
        if fs::read_to_string(&path).is_ok_and(|before| before == text) {
            return Ok(());
        }
        let new = self.directory.join(STAGING).join("list");
        fs::create_dir_all(self.directory.join(STAGING)).map_err(at(&new))?;
        fs::write(&new, text).map_err(at(&new))?;
        fs::rename(&new, &path).map_err(at(&path))
    }

    /// Whether a file may be put at a path: everything above it is a real folder, and nobody else's file is there.
    fn is_free(&self, file: &str, ours: &BTreeSet<String>) -> Result<(), WriteError> {
        let ends = file
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([file.len()]);
        for end in ends {
            let part = &file[..end];
            let path = self.directory.join(part);
            let Ok(found) = fs::symlink_metadata(&path) else {
                return Ok(());
            };
            let is_ours = ours.contains(part);
            let fits = if found.is_dir() {
                // A folder where a file is to be goes only if all in it is ours.
                end < file.len() || self.strangers(&path, ours)?.is_none()
            } else {
                found.is_file() && is_ours
            };
            if !fits {
                let stranger = found
                    .is_dir()
                    .then(|| self.strangers(&path, ours))
                    .transpose()?;
                return Err(WriteError::Stranger(stranger.flatten().unwrap_or(path)));
            }
        }
        Ok(())
    }

    /// A file below a folder that no export wrote.
    fn strangers(
        &self,
        folder: &Path,
        ours: &BTreeSet<String>,
    ) -> Result<Option<PathBuf>, WriteError> {
        for entry in fs::read_dir(folder).map_err(at(folder))? {
            let path = entry.map_err(at(folder))?.path();
            let kind = fs::symlink_metadata(&path).map_err(at(&path))?;
            let name = path.strip_prefix(self.directory).unwrap_or(&path);
            let found = if kind.is_dir() {
                self.strangers(&path, ours)?
            } else {
                let is_ours = name.to_str().is_some_and(|name| ours.contains(name));
                (!is_ours).then(|| path.clone())
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn holds(&self, file: &str, bytes: &Bytes) -> bool {
        let path = self.directory.join(file);
        let length = fs::metadata(&path).map_or(u64::MAX, |found| found.len());
        length == bytes.len() as u64 && fs::read(&path).is_ok_and(|found| found == *bytes)
    }

    /// Writes each file under its number.
    fn stage(&self, files: &[(&String, &Bytes)]) -> Result<(), WriteError> {
        let staging = self.directory.join(STAGING);
        self.clear_staging()?;
        fs::create_dir(&staging).map_err(at(&staging))?;
        for (index, (file, bytes)) in files.iter().enumerate() {
            fs::write(staging.join(index.to_string()), bytes)
                .map_err(at(&self.directory.join(file)))?;
        }
        Ok(())
    }

    fn place(&self, index: usize, file: &str) -> Result<(), WriteError> {
        let path = self.directory.join(file);
        let parent = path.parent().unwrap_or(self.directory);
        fs::create_dir_all(parent).map_err(at(parent))?;
        let staged = self.directory.join(STAGING).join(index.to_string());
        fs::rename(staged, &path).map_err(at(&path))
    }

    /// Removes a file, and the folders above it that hold nothing else.
    fn remove(&self, file: &str) -> Result<(), WriteError> {
        let path = self.directory.join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
        let above = path.ancestors().skip(1);
        for folder in above.take_while(|folder| *folder != self.directory) {
            // It is not empty, which is well.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn clear_staging(&self) -> Result<(), WriteError> {
        let staging = self.directory.join(STAGING);
        match fs::remove_dir_all(&staging) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&staging)(error)),
            _ => Ok(()),
        }
    }
}

/// Whether a line of the list names a file below the folder: the list is only a file, and anybody can write it.
fn is_inside(line: &str) -> bool {
    let mut parts = Path::new(line).components();
    !line.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn is_above(folder: &str, file: &str) -> bool {
    file.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::Io { path, source }
}
