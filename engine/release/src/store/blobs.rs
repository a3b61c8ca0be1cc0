//! Content-addressed bytes: the SHA-256 of a blob is its id.
//!
//! A look-up of a blob needs only its id, and a blob never changes. So an object store could replace the folder.
//!
//! **Invariant:** does not know what the bytes mean. Learns which blobs are in use only from the caller of [`Blobs::sweep`].

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use sha2::{Digest as _, Sha256};

use super::disk;
use super::format::{ByteReader, ByteWriter};
use crate::large::{LargeFile, MAX_MEMORY_BYTES};
use crate::payload::Payload;

/// The id of a blob: the SHA-256 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlobId(pub(super) [u8; 32]);

impl BlobId {
    /// Returns the id of a blob with these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the id of a blob with the payload's bytes.
    pub(super) fn of_payload(payload: &Payload) -> Self {
        Self(payload.digest())
    }

    /// Parses an id from lower-case hexadecimal digits, as written by [`Display`](fmt::Display).
    fn parse(digits: &str) -> Option<Self> {
        let mut name = [0; 32];
        let is_ours = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 2 * name.len() || !digits.bytes().all(is_ours) {
            return None;
        }
        for (byte, place) in name.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(digits.get(place..place + 2)?, 16).ok()?;
        }
        Some(Self(name))
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The minimum length, in bytes, of content stored as its own blob. Smaller blobs would make too many files.
pub(super) const MIN_BLOB_BYTES: usize = 64 << 10;

/// References to blobs, each with the blob's length in bytes.
pub(super) type BlobRefs = Vec<(BlobId, u64)>;

/// Blob contents with their ids.
pub(super) type BlobPayloads = Vec<(BlobId, Payload)>;

/// Writes references to `blobs`.
pub(super) fn write_names(blobs: &[(BlobId, Payload)], output: &mut ByteWriter) {
    output.count(blobs.len());
    for (name, bytes) in blobs {
        output.bytes(&name.0);
        output.number(bytes.len());
    }
}

/// Reads references written by [`write_names`].
pub(super) fn read_names(input: &mut ByteReader<'_>) -> Option<BlobRefs> {
    input.many(|input| Some((BlobId(input.hash()?), input.number()?)))
}

/// The blobs below one folder: `<first two digits>/<remaining digits>`.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    /// Creates the blob storage in `folder`, which need not exist.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Reads a blob.
    ///
    /// # Errors
    /// If the blob is absent, unreadable, or does not match its id.
    pub(super) fn get(&self, name: &BlobId) -> io::Result<Payload> {
        let mut file = disk::open(&self.path(name))?;
        let payload: Payload = match file.metadata()?.len() {
            ..=MAX_MEMORY_BYTES => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                bytes.into()
            }
            _ => LargeFile::open(file)?.into(),
        };
        if BlobId::of_payload(&payload) == *name {
            Ok(payload)
        } else {
            Err(disk::damaged())
        }
    }

    /// Writes the blobs that are missing. All of them are on disk when the call returns. Returns the number of blobs written and their total bytes.
    pub(super) fn put(&self, blobs: &[(BlobId, Payload)]) -> io::Result<(u64, u64)> {
        let mut missing = Vec::new();
        for (name, bytes) in blobs {
            let path = self.path(name);
            // A blob of another length is damaged and written again.
            let present = disk::present(fs::metadata(&path))?;
            if present.is_none_or(|file| !file.is_file() || file.len() != bytes.len()) {
                missing.push((path, bytes));
            }
        }
        in_parallel(&missing, |(path, bytes)| {
            disk::write(path, |file| {
                bytes.for_each_piece(|piece| file.write_all(piece))
            })
        })?;
        let folders: BTreeSet<&Path> = missing
            .iter()
            .filter_map(|(path, _)| path.parent())
            .collect();
        in_parallel(&Vec::from_iter(folders), |folder| disk::sync(folder))?;
        let bytes = missing.iter().map(|(_, bytes)| bytes.len()).sum();
        Ok((missing.len() as u64, bytes))
    }

    /// Removes a blob that does not match its id. Otherwise `put` would treat it as present.
    pub(super) fn check(&self, name: &BlobId) -> io::Result<()> {
        match self.get(name) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                disk::remove(&self.path(name))
            }
            _ => Ok(()),
        }
    }

    /// Removes blobs that are not in use, and incomplete files.
    pub(super) fn sweep(&self, is_used: impl Fn(&BlobId) -> bool) -> io::Result<()> {
        for first in disk::names(&self.folder)? {
            let folder = self.folder.join(&first);
            if !folder.is_dir() {
                continue;
            }
            disk::remove_temporary(&folder)?;
            for rest in disk::names(&folder)? {
                let name = BlobId::parse(&format!("{first}{rest}"));
                if name.is_some_and(|name| !is_used(&name)) {
                    disk::remove(&folder.join(&rest))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the path of a blob.
    pub(super) fn path(&self, name: &BlobId) -> PathBuf {
        let digits = name.to_string();
        let (first, rest) = digits.split_at(2);
        self.folder.join(first).join(rest)
    }
}

/// The number of threads that write blobs. They mostly wait: a disk writes many files in the time of one.
const MAX_WRITE_THREADS: usize = 16;

/// Calls `one` for each item, on several threads. Returns the first error; other items may or may not be processed then.
fn in_parallel<T: Sync>(all: &[T], one: impl Fn(&T) -> io::Result<()> + Sync) -> io::Result<()> {
    let each = all.len().div_ceil(MAX_WRITE_THREADS).max(1);
    let part = &|part: &[T]| part.iter().try_for_each(&one);
    let mut parts = all.chunks(each);
    let own = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let start = |other| thread::Builder::new().spawn_scoped(scope, move || part(other));
        let others = parts.map(start).collect::<io::Result<Vec<_>>>()?;
        let own = part(own);
        let ended = others.into_iter().map(|other| {
            let ended = other.join();
            ended.unwrap_or_else(|_| Err(io::Error::other("a write thread panicked")))
        });
        ended.fold(own, Result::and)
    })
}
