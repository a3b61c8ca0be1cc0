//! Opens files beneath a folder and never outside it, even if links or files are exchanged meanwhile.
//!
//! Each path component is opened from the handle of its parent folder, without following links. A link's target replaces the component.
//! An exchange between two steps therefore cannot lead out of the folder. Linux's `openat2` does the same in one call, but refuses all absolute links. Older kernels, sandboxes that forbid it, and other systems would still need this code.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

/// The largest number of links in one path, as on Linux (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// Flags to open a file or folder for reading. `NONBLOCK` avoids waiting for the writer of a FIFO.
const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// Flags to open an intermediate folder. `PATH` needs no permission to list the folder, and triggers no watch on it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const TRAVERSE_FLAGS: OFlags = READ_FLAGS.union(OFlags::DIRECTORY).union(OFlags::PATH);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const TRAVERSE_FLAGS: OFlags = READ_FLAGS.union(OFlags::DIRECTORY);

/// An open folder, as the root for opening files.
#[derive(Debug)]
pub(super) struct FolderRoot {
    root: File,
    /// The folder's resolved path and the path that the caller gave. Absolute links may begin with either.
    names: [PathBuf; 2],
}

/// The reason why a path beneath a folder cannot be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// A link points out of the folder. Holds the link's target.
    Foreign(PathBuf),
    /// The system error.
    System(io::Error),
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

impl FolderRoot {
    /// Opens the folder itself. `resolved` is its path after following links, which may lead anywhere.
    pub(super) fn new(directory: &Path, resolved: PathBuf) -> io::Result<Self> {
        let root = openat(
            rustix::fs::CWD,
            &resolved,
            READ_FLAGS.union(OFlags::DIRECTORY),
            Mode::empty(),
        )?;
        Ok(Self {
            root: root.into(),
            names: [resolved, std::path::absolute(directory)?],
        })
    }

    /// Returns the path that the caller gave, which may be a link.
    pub(super) fn given_path(&self) -> &Path {
        &self.names[1]
    }

    /// Returns the resolved path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.names[0]
    }

    /// Returns the resolved path of the folder, and the path that the caller gave.
    pub(super) const fn names(&self) -> &[PathBuf; 2] {
        &self.names
    }

    /// Opens a file or folder for reading. The handle may also belong to a FIFO or a device.
    pub(super) fn open(&self, path: &Path) -> Result<File, OpenError> {
        let mut rest = reversed_components(path);
        let mut passed: Vec<File> = Vec::new();
        let mut links = 0;
        let mut target = path.to_owned();
        while let Some(step) = rest.pop() {
            if step == ".." {
                let left = passed.pop();
                left.ok_or_else(|| OpenError::Foreign(target.clone()))?;
                continue;
            }
            let here = passed.last().unwrap_or(&self.root);
            let is_last = rest.is_empty();
            let flags = if is_last { READ_FLAGS } else { TRAVERSE_FLAGS };
            let error = match openat(here, &step, flags, Mode::empty()) {
                Ok(opened) if is_last => return Ok(opened.into()),
                Ok(opened) => {
                    passed.push(opened.into());
                    continue;
                }
                Err(error) => error,
            };
            // Systems report different errors for a link, but all of them fail `readlinkat` for anything else.
            let Ok(text) = readlinkat(here, &step, Vec::new()) else {
                return Err(error.into());
            };
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            target = PathBuf::from(OsString::from_vec(text.into_bytes()));
            if target.is_absolute() {
                let mut names = self.names.iter();
                let within = names.find_map(|name| target.strip_prefix(name).ok());
                rest.extend(reversed_components(
                    within.ok_or_else(|| OpenError::Foreign(target.clone()))?,
                ));
                passed.clear();
            } else {
                rest.extend(reversed_components(&target));
            }
        }
        // The path is the folder itself, or ends in a link to a parent. The open handle may only be usable for traversal, so open it for reading.
        let here = passed.last().unwrap_or(&self.root);
        let flags = READ_FLAGS.union(OFlags::DIRECTORY);
        Ok(openat(here, ".", flags, Mode::empty())?.into())
    }
}

/// Returns the components of a path, the last one first.
fn reversed_components(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir))
        .map(|component| component.as_os_str().to_owned())
        .collect()
}
