//! Claims a state folder for writing, or says why that is not possible.
//!
//! **Invariant:** changes nothing except missing folders, the lock file and the file that says when the folder was used.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
use rustix::process::geteuid;
use thiserror::Error;

use super::disk;

/// The file whose modification time says when a process last used a state folder.
pub(super) const USED_FILE: &str = "used";

/// The reason that this process cannot write to a state folder.
#[derive(Debug, Error)]
pub enum AccessError {
    /// Another process has the lock. It may be an older process that is about to end.
    #[error("another process writes to `{}`, such as a former server that still drains", .0.display())]
    InUse(PathBuf),
    /// The path, or a part of it, is a file.
    #[error("`{}` is a file, not a folder", .0.display())]
    NotFolder(PathBuf),
    /// The folder belongs to another user.
    #[error("`{}` belongs to user {owner}, but this process runs as user {user}", path.display())]
    ForeignOwner {
        /// The folder or file.
        path: PathBuf,
        /// The numeric id of its owner.
        owner: u32,
        /// The numeric id of the user that runs this process.
        user: u32,
    },
    /// The disk or its permissions prevent writes.
    #[error("`{}`: {error}", path.display())]
    Disk {
        /// The folder or file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

impl AccessError {
    /// Returns whether only an operator can remove the cause. A full disk or the lock of another process may end by itself.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::InUse(_) => false,
            Self::NotFolder(_) | Self::ForeignOwner { .. } => true,
            Self::Disk { error, .. } => matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ),
        }
    }

    /// Finds the reason behind an error of the system.
    pub(super) fn of(path: &Path, error: io::Error) -> Self {
        let present = path.ancestors().find(|path| path.exists());
        let present = present.unwrap_or(path);
        let metadata = fs::metadata(present).ok();
        let owner = metadata.as_ref().map(MetadataExt::uid);
        let user = geteuid().as_raw();
        let is_file = metadata.is_some_and(|metadata| !metadata.is_dir());
        match (error.kind(), owner) {
            (io::ErrorKind::PermissionDenied, Some(owner)) if owner != user => Self::ForeignOwner {
                path: present.to_owned(),
                owner,
                user,
            },
            (io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists, _) if is_file => {
                Self::NotFolder(present.to_owned())
            }
            _ => Self::Disk {
                path: path.to_owned(),
                error,
            },
        }
    }
}

/// Creates the folders, proves that files can be created in them, and locks `folder`. Closing the file, or killing the process, releases the lock.
pub(super) fn claim(folder: &Path, inner: &[&Path]) -> Result<File, AccessError> {
    let folders = || std::iter::once(folder).chain(inner.iter().copied());
    for folder in folders() {
        disk::make_folder(folder).map_err(|error| AccessError::of(folder, error))?;
    }
    let path = folder.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        // Fail on a FIFO of this name rather than block.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(&path)
        .map_err(|error| AccessError::of(&path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(AccessError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => return Err(AccessError::of(&path, error)),
    }
    for folder in folders() {
        match disk::probe(folder, &[]) {
            // A full disk is an alarm of the writing thread, which waits for free space.
            Err(error) if !disk::is_full(&error) => return Err(AccessError::of(folder, error)),
            _ => {}
        }
    }
    Ok(file)
}

/// Records that the folder is in use. The content of the file stays.
pub(super) fn mark_used(folder: &Path) -> io::Result<()> {
    let file = File::options()
        .create(true)
        .append(true)
        // Fail on a FIFO of this name rather than block.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(folder.join(USED_FILE))?;
    file.set_modified(SystemTime::now())
}
