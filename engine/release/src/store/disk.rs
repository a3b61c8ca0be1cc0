//! Files that are whole or not there, also after a power cut.
//!
//! **Invariant:** knows nothing of what the files hold, and no lock: who calls has seen to it that nobody else writes the same name.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// The beginning of the names of files that are not complete yet. No name of content begins like this.
const TEMPORARY: &str = ".";

/// When what is written is on the disk, whatever happens to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// When writing returns.
    Now,
    /// When the system finds the time.
    Later,
}

/// Writes a file: under a temporary name first, then under its own. Its folder is made when it is not there.
///
/// The name of what is to be on the disk now is there after [`sync`] of the folder.
///
/// # Errors
///
/// When `path` has the name of a temporary file, `fill` fails, or the disk refuses.
pub(super) fn write(
    path: &Path,
    durability: Durability,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let named = path.parent().zip(path.file_name());
    let (folder, _) = named
        .filter(|(_, name)| !name.to_str().is_some_and(is_temporary))
        .ok_or_else(|| io::Error::other("this is not a name of content"))?;
    make_folder(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        // As for any other file: the process's mask takes off what others may not.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    fill(file.as_file_mut())?;
    if durability == Durability::Now {
        // Before it gets its name: otherwise a power cut could leave the name with nothing behind it.
        file.as_file().sync_all()?;
    }
    file.persist(path)?;
    Ok(())
}

/// Opens a regular file. Anything else of that name counts as damaged, and is not waited for: opening a FIFO would wait for a writer.
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

/// Makes a folder, and those above it. It is on the disk when this returns, if only its own name was missing.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    folder.parent().map_or(Ok(()), sync)
}

/// Puts the names in a folder on the disk.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes a file; one that is not there is no error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    present(fs::remove_file(path)).map(drop)
}

/// What a name stands for, or `None` when there is nothing of that name.
pub(super) fn present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the contents that were read, or `None` where the file is damaged or missing.
pub(super) fn readable<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidData => Ok(None),
            _ => Err(error),
        },
    }
}

/// The names in a folder, in no order. A folder that is not there has none, and names that are not UTF-8 are not ours.
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

/// Whether a file of this name is not complete yet.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

/// Removes the incomplete files that a killed process left in a folder. To be called by the process that writes, between two files, when no incomplete file is its own.
pub(super) fn remove_temporary(folder: &Path) -> io::Result<()> {
    for name in names(folder)? {
        if is_temporary(&name) {
            remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// What is wrong with a file that is cut short, damaged, or of another program or version.
pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged or foreign")
}
