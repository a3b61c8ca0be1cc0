//! Files that are whole or not there, also after a power cut.
//!
//! **Invariant:** knows nothing of what the files hold, and no lock: who calls has seen to it that nobody else writes the same name.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process;
use std::time::{Duration, SystemTime};

/// How the name of a file ends that is not whole yet.
const HALF: &str = "half";

/// What is younger than this may belong to a process that is still writing. A living one needs seconds.
pub(super) const YOUNG: Duration = Duration::from_secs(60 * 60);

/// When what is written is on the disk, whatever happens to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// When writing returns.
    Now,
    /// When the system finds the time.
    Later,
}

/// Writes a file of several parts: beside its name first, then under it. Its folder is made when it is not there.
///
/// The name of what is to be on the disk now is there after [`sync`] of the folder.
pub(super) fn write(path: &Path, parts: &[&[u8]], durability: Durability) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    // The process's number keeps two that share the folder apart.
    let half = path.with_extension(format!("{}.{HALF}", process::id()));
    let written = File::create(&half).and_then(|mut file| {
        for part in parts {
            file.write_all(part)?;
        }
        if durability == Durability::Now {
            // Before it gets its name: otherwise a power cut could leave the name with nothing behind it.
            file.sync_all()?;
        }
        fs::rename(&half, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&half);
    }
    written
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

/// Whether a file of this name is not whole yet.
pub(super) fn is_half(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == HALF)
}

/// Removes a file that a process left half written; whether `path` is named like one.
pub(super) fn remove_half(path: &Path) -> io::Result<bool> {
    let is_half = path.extension().is_some_and(|end| end == HALF);
    if is_half && !is_young(path)? {
        remove(path)?;
    }
    Ok(is_half)
}

/// Whether a file was written a moment ago, or in the future: clocks are set back.
pub(super) fn is_young(path: &Path) -> io::Result<bool> {
    let Some(metadata) = present(fs::metadata(path))? else {
        return Ok(false);
    };
    let age = SystemTime::now().duration_since(metadata.modified()?);
    Ok(age.map_or(true, |age| age < YOUNG))
}

/// What is wrong with a file that is cut short, damaged, or of another program or version.
pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged or foreign")
}
