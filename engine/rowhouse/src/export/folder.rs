//! A folder on disk as the destination of an export.
//!
//! 1. Changed files are written to a staging folder. A file that no export wrote, at the path of an exported file, ends the export. A failure up to here leaves the last export unchanged.
//! 2. The staged files are renamed into place, first the files that pages refer to, then the pages. Files that are no longer exported are removed last.
//!
//! The file `.rowhouse-export` in the folder lists the exported files. During step 2 it lists the old and the new files, so that the next export can continue an interrupted one.
//!
//! **Invariant:** replaces and removes only files that an earlier export wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use release::payload::Payload;

use super::sink::{Sink, WriteError};

/// The list of exported files.
const LIST: &str = ".rowhouse-export";
/// The staging folder.
const STAGING: &str = ".rowhouse-export.new";
/// The folder of a repository, which is ignored: an export may be written to the checkout of a published branch.
const IGNORED: &str = ".git";
const TITLE: &str =
    "# What `rowhouse export` wrote here. It replaces and removes nothing else: keep this file.";

/// The number of files that an export changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// New and changed files.
    pub written: usize,
    /// Files that had the right bytes already.
    pub unchanged: usize,
    /// Removed files.
    pub removed: usize,
}

/// A writer to a folder. No exported file changes before [`ExportWriter::finish`].
#[derive(Debug)]
pub struct ExportWriter {
    folder: OutputFolder,
    /// The lock of the folder, held until the writer is dropped.
    _lock: File,
    /// The files of an earlier export.
    ours: BTreeSet<String>,
    /// All files. A changed file has its number in the staging folder.
    files: BTreeMap<String, Option<usize>>,
    changed: usize,
}

impl ExportWriter {
    /// Opens a folder for an export, and creates the folder if needed.
    ///
    /// # Errors
    /// Fails if the folder has other files and no list, another export is writing to it, or it cannot be written.
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

    /// Renames all staged files into place, and removes files that are no longer exported.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
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
        folder.write_list(files.keys().chain(ours.iter()))?;
        // A removed file may have the name of a new folder, and a removed folder that of a new file.
        let (first, last): (Vec<&String>, Vec<&String>) = gone
            .iter()
            .copied()
            .partition(|gone| blocks_new_file(gone, &new));
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
        folder.write_list(files.keys())?;
        Ok(ExportSummary {
            written: *changed,
            unchanged: files.len() - changed,
            removed: gone.len(),
        })
    }
}

impl Sink for ExportWriter {
    /// Writes a file to the staging folder, unless the folder has the same bytes already.
    fn put(&mut self, file: String, bytes: &Payload) -> Result<(), WriteError> {
        self.folder.check_free(&file, &self.ours)?;
        let number = match self.folder.has(&file, bytes) {
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
        // If clearing fails, the next export clears the staging folder.
        let _ = self.folder.clear_staging();
    }
}

/// A folder with an export.
#[derive(Debug)]
struct OutputFolder {
    directory: PathBuf,
}

impl OutputFolder {
    /// Returns the files of an earlier export; fails if the folder has other files and no list.
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
                    // Without a list, an interrupted export has renamed nothing.
                    if name != IGNORED && name != STAGING {
                        return Err(WriteError::NotAnExport(self.directory.clone()));
                    }
                }
                Ok(BTreeSet::new())
            }
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn write_list<'f>(&self, files: impl Iterator<Item = &'f String>) -> Result<(), WriteError> {
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

    /// Fails if a file cannot be put at a path: a part of the path is a link, or a file that no export wrote is in the way.
    fn check_free(&self, file: &str, ours: &BTreeSet<String>) -> Result<(), WriteError> {
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
                // A folder in the place of a file is removed only if exports wrote everything in it.
                end < file.len() || self.foreign_file(&path, ours)?.is_none()
            } else {
                found.is_file() && is_ours
            };
            if !fits {
                let foreign = found
                    .is_dir()
                    .then(|| self.foreign_file(&path, ours))
                    .transpose()?;
                return Err(WriteError::ForeignFile(foreign.flatten().unwrap_or(path)));
            }
        }
        Ok(())
    }

    /// Returns a file in a folder that no export wrote, if there is one.
    fn foreign_file(
        &self,
        folder: &Path,
        ours: &BTreeSet<String>,
    ) -> Result<Option<PathBuf>, WriteError> {
        for entry in fs::read_dir(folder).map_err(at(folder))? {
            let path = entry.map_err(at(folder))?.path();
            let kind = fs::symlink_metadata(&path).map_err(at(&path))?;
            let name = path.strip_prefix(&self.directory).unwrap_or(&path);
            let found = if kind.is_dir() {
                self.foreign_file(&path, ours)?
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

    /// Returns whether a file of the folder has these bytes.
    fn has(&self, file: &str, bytes: &Payload) -> bool {
        let path = self.directory.join(file);
        let length = fs::metadata(&path).map_or(u64::MAX, |found| found.len());
        length == bytes.len() && is_same(&path, bytes).unwrap_or(false)
    }

    /// Writes a file to the staging folder, under its number.
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

    /// Renames a staged file into place.
    fn place(&self, number: usize, file: &str) -> Result<(), WriteError> {
        let path = self.directory.join(file);
        let parent = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent).map_err(at(parent))?;
        let staged = self.directory.join(STAGING).join(number.to_string());
        fs::rename(staged, &path).map_err(at(&path))
    }

    /// Removes a file, and the folders above it that are empty then.
    fn remove(&self, file: &str) -> Result<(), WriteError> {
        let path = self.directory.join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
        let above = path.ancestors().skip(1);
        for folder in above.take_while(|folder| *folder != self.directory.as_path()) {
            // An error means that the folder is not empty.
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

/// Returns whether a file has exactly these bytes.
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

/// Returns whether a line of the list names a file below the folder. The list is a file that anyone may have edited.
fn is_inside(line: &str) -> bool {
    let mut parts = Path::new(line).components();
    !line.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Returns whether a file is at the path of a new folder, or in a folder at the path of a new file.
fn blocks_new_file(file: &str, new: &BTreeMap<&str, usize>) -> bool {
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
