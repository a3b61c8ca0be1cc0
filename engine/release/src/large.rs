//! Bytes that are too many for memory: a file of ours on the disk, of which the system holds in memory what is read, for as long as it has room.
//!
//! The file has no name, so that nobody else can change it, and is gone with whoever holds the bytes, also when the process is killed.
//!
//! **Invariant:** what was taken stays as it was, whatever becomes of the file that it was taken from.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use bytes::Bytes;
use mmap_io::{MemoryMappedFile, MmapMode};

/// More bytes than this are not held in memory.
pub const LARGE: u64 = 32 << 20;

/// Whether these bytes are not held in memory.
#[must_use]
pub fn is_large(bytes: &[u8]) -> bool {
    bytes.len() as u64 > LARGE
}

/// So many bytes are copied at a time.
const PIECE: usize = 1 << 20;

/// Takes the next bytes of a file, `length` at most, into a file of ours in `folder`.
///
/// # Errors
/// When the file cannot be read, or there is no room for ours.
pub fn take(file: File, length: u64, folder: &Path) -> io::Result<Bytes> {
    let no_copy = |error: io::Error| {
        let message = format!("no copy can be made in `{}`: {error}", folder.display());
        io::Error::new(error.kind(), message)
    };
    let mut own = tempfile::tempfile_in(folder).map_err(no_copy)?;
    let mut rest = file.take(length);
    let mut piece = vec![0; PIECE];
    loop {
        match rest.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => own
                .write_all(piece.get(..read).unwrap_or_default())
                .map_err(no_copy)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    mapped(own)
}

/// The bytes of a file that nobody changes any more.
pub(crate) fn mapped(file: File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    let map =
        MemoryMappedFile::from_file(file, MmapMode::ReadOnly, "").map_err(io::Error::other)?;
    Ok(Bytes::from_owner(Mapped(map)))
}

/// A file as bytes.
struct Mapped(MemoryMappedFile);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        // All of it is there.
        let all = self.0.as_slice_bytes(0, self.0.len());
        all.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_taken_stays_whatever_becomes_of_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("film.mp4");
        fs::write(&path, "a film").expect("a file");
        let open = || File::open(&path).expect("a file");
        let film = take(open(), 1_000, folder.path()).expect("a film");
        let start = take(open(), 3, folder.path()).expect("its start");
        fs::write(&path, "another").expect("a file");
        fs::remove_file(&path).expect("removed");
        assert_eq!((&film[..], &start[..]), (&b"a film"[..], &b"a f"[..]));
        assert_eq!(film.slice(2..), "film");
        let left = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0, "ours has no name");
    }

    #[test]
    fn a_file_without_bytes_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("film.mp4");
        let file = File::create_new(&path).expect("a file");
        drop(file);
        let empty = File::open(&path).expect("a file");
        assert!(take(empty, 10, folder.path()).expect("bytes").is_empty());
    }
}
