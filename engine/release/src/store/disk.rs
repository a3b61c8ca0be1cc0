//! Atomic files: complete or absent, even after a power cut.
//!
//! **Invariant:** does not know what the files contain, and takes no lock. The caller ensures that nothing else writes the same name.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// The first character of the names of incomplete files. No other file name begins with it.
const TEMPORARY: &str = ".";

/// Writes a file under a temporary name, flushes it and renames it. Creates its folder if needed.
///
/// The new name itself is durable only after [`sync`] of the folder.
///
/// # Errors
///
/// If `path` has the name of a temporary file, `fill` fails, or the disk reports an error.
pub(super) fn write(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let named = path.parent().zip(path.file_name());
    let (folder, _) = named
        .filter(|(_, name)| !name.to_str().is_some_and(is_temporary))
        .ok_or_else(|| io::Error::other("the name is reserved for incomplete files"))?;
    make_folder(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        // As for any other file: the process's umask removes permissions.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    fill(file.as_file_mut())?;
    // Before the rename: otherwise a power cut could leave the name without its content.
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Opens a regular file. Anything else counts as damaged, and is opened without blocking: a FIFO would wait for a writer.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(damaged()),
    }
}

/// Reads a regular file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes `content` to a new file in `folder`, and removes the file: proves that the folder can be written.
pub(super) fn probe(folder: &Path, content: &[u8]) -> io::Result<()> {
    let file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(folder)?;
    file.as_file().write_all(content)?;
    if !content.is_empty() {
        // Some file systems reserve space only when they flush.
        file.as_file().sync_all()?;
    }
    Ok(())
}

/// Returns whether an error says that the disk, or the share of a user, is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Creates a folder and its parents. The folder is on disk when the call returns if only its last component was missing.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    folder.parent().map_or(Ok(()), sync)
}

/// Flushes the names in a folder to disk.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes a file. An absent file is not an error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    present(fs::remove_file(path)).map(drop)
}

/// Turns the error for an absent file into `None`.
pub(super) fn present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Turns the error for a damaged or absent file into `None`.
pub(super) fn readable<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidData => Ok(None),
            _ => Err(error),
        },
    }
}

/// Returns the names in a folder, in arbitrary order. An absent folder has none. Names that are not UTF-8 are omitted.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let Some(entries) = present(fs::read_dir(folder))? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Returns whether a file of this name is incomplete.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

/// Removes the incomplete files that a killed process left in a folder.
///
/// Only the process that writes may call this, and only while it writes no file itself.
pub(super) fn remove_temporary(folder: &Path) -> io::Result<()> {
    for name in names(folder)? {
        if is_temporary(&name) {
            remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// Returns the error for a file that is truncated, damaged, or of another program or version.
pub(super) fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the file is damaged, or was written by another program or version",
    )
}
