//! Files on disk: only what changed is written, and only what an earlier export wrote is ever replaced or removed.
//!
//! 1. Files that changed are written whole beside the folder's content, one after the other as they come. A folder or file of somebody else ends the export here. Up to now a failure leaves the last export as it was.
//! 2. They are renamed into place, files that pages refer to before the pages, and what is gone is removed last.
//!
//! The list of what was written lies in the folder as `.rowhouse-export`. It names the old and the new files while they change, so that an export that was cut short can be continued by the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use release::payload::Payload;

use super::sink::{Sink, WriteError};

/// The list of files that are this program's.
const LIST: &str = ".rowhouse-export";
/// Where files are written before they take their place.
const STAGING: &str = ".rowhouse-export.new";
/// A checkout of a branch that is published may be exported into.
const PASSED_OVER: &str = ".git";
const TITLE: &str =
    "# What `rowhouse export` wrote here. It replaces and removes nothing else: keep this file.";

/// What an export did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Files that are new or changed.
    pub written: usize,
    /// Files that were as they should be.
    pub unchanged: usize,
    /// Files that are gone.
    pub removed: usize,
}

/// A folder as it is exported into: nothing in it changes before [`ExportWriter::finish`], and without that nothing at all.
#[derive(Debug)]
pub struct ExportWriter {
    folder: OutputFolder,
    /// Held for as long as this lives.
    _lock: File,
    /// The files that an earlier export wrote.
    ours: BTreeSet<String>,
    /// All files, each with its number among those that changed.
    files: BTreeMap<String, Option<usize>>,
    changed: usize,
}

impl ExportWriter {
    /// Begins to export into a folder.
    ///
    /// # Errors
    /// When it is somebody else's, another export is at work in it, or it cannot be written.
    pub fn begin(directory: &Path) -> Result<Self, WriteError> {
        fs::create_dir_all(directory).map_err(at(directory))?;
        let lock = File::open(directory).map_err(at(directory))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(WriteError::Busy(directory.to_owned())),
            Err(TryLockError::Error(error)) => return Err(at(directory)(error)),
        }
        let folder = OutputFolder {
            directory: directory.to_owned(),
        };
        let ours = folder.list()?;
        folder.clear_staging()?;
        Ok(Self {
            folder,
            _lock: lock,
            ours,
            files: BTreeMap::new(),
            changed: 0,
        })
    }

    /// Lets every file take its place, and removes those of an earlier export that are gone.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn finish(self) -> Result<ExportSummary, WriteError> {
        let Self {
            folder,
            ours,
            files,
            changed,
            ..
        } = &self;
        let new: BTreeMap<&str, usize> = files
            .iter()
            .filter_map(|(file, number)| Some((file.as_str(), (*number)?)))
            .collect();
        let gone: Vec<&String> = ours
            .iter()
            .filter(|file| !files.contains_key(*file))
            .collect();
        folder.keep_list(files.keys().chain(ours.iter()))?;
        // A file gives way to a folder of its name, and a folder to a file.
        let (first, last): (Vec<&String>, Vec<&String>) = gone
            .iter()
            .copied()
            .partition(|gone| is_in_the_way(gone, &new));
        for file in first {
            folder.remove(file)?;
        }
        let (pages, others): (Vec<_>, Vec<_>) =
            new.iter().partition(|(file, _)| file.ends_with(".html"));
        for (file, number) in others.into_iter().chain(pages) {
            folder.place(*number, file)?;
        }
        for file in last {
            folder.remove(file)?;
        }
        folder.keep_list(files.keys())?;
        Ok(ExportSummary {
            written: *changed,
            unchanged: files.len() - changed,
            removed: gone.len(),
        })
    }
}

impl Sink for ExportWriter {
    /// Writes a file beside the folder's content, unless it is there as it should be.
    fn put(&mut self, file: String, bytes: &Payload) -> Result<(), WriteError> {
        self.folder.is_free(&file, &self.ours)?;
        let number = match self.folder.holds(&file, bytes) {
            true => None,
            false => Some(self.changed),
        };
        if let Some(number) = number {
            self.folder.stage(number, &file, bytes)?;
            self.changed += 1;
        }
        self.files.insert(file, number);
        Ok(())
    }
}

impl Drop for ExportWriter {
    fn drop(&mut self) {
        // What is left there is cleared by the next export.
        let _ = self.folder.clear_staging();
    }
}

#[derive(Debug)]
struct OutputFolder {
    directory: PathBuf,
}

impl OutputFolder {
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
                for entry in fs::read_dir(&self.directory).map_err(at(&self.directory))? {
                    let name = entry.map_err(at(&self.directory))?.file_name();
                    // Without a list, an export cut short has placed nothing.
                    if name != PASSED_OVER && name != STAGING {
                        return Err(WriteError::NotOurs(self.directory.clone()));
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
            let name = path.strip_prefix(&self.directory).unwrap_or(&path);
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

    fn holds(&self, file: &str, bytes: &Payload) -> bool {
        let path = self.directory.join(file);
        let length = fs::metadata(&path).map_or(u64::MAX, |found| found.len());
        length == bytes.len() && is_same(&path, bytes).unwrap_or(false)
    }

    /// Writes a file under its number.
    fn stage(&self, number: usize, file: &str, bytes: &Payload) -> Result<(), WriteError> {
        let staging = self.directory.join(STAGING);
        if number == 0 {
            fs::create_dir(&staging).map_err(at(&staging))?;
        }
        let staged = File::create(staging.join(number.to_string()));
        let write = |mut staged: File| bytes.for_each_piece(|piece| staged.write_all(piece));
        staged
            .and_then(write)
            .map_err(at(&self.directory.join(file)))
    }

    fn place(&self, number: usize, file: &str) -> Result<(), WriteError> {
        let path = self.directory.join(file);
        let parent = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent).map_err(at(parent))?;
        let staged = self.directory.join(STAGING).join(number.to_string());
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
        for folder in above.take_while(|folder| *folder != self.directory.as_path()) {
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

/// Whether a file has these bytes.
fn is_same(path: &Path, bytes: &Payload) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut is_same = true;
    bytes.for_each_piece(|piece| {
        let mut found = vec![0; piece.len()];
        file.read_exact(&mut found)?;
        is_same &= found == piece;
        Ok(())
    })?;
    Ok(is_same)
}

/// Whether a line of the list names a file below the folder: the list is only a file, and anybody can write it.
fn is_inside(line: &str) -> bool {
    let mut parts = Path::new(line).components();
    !line.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Whether a file lies where one of these has a folder, or in a folder where one of these is to be.
fn is_in_the_way(file: &str, new: &BTreeMap<&str, usize>) -> bool {
    let inside = format!("{file}/");
    let after = (Bound::Included(inside.as_str()), Bound::Unbounded);
    let next = new.range::<str, _>(after).next();
    let mut above = file.match_indices('/').map(|(end, _)| &file[..end]);
    next.is_some_and(|(next, _)| next.starts_with(&inside))
        || above.any(|above| new.contains_key(above))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::Io { path, source }
}
