//! Content-addressed bytes: each blob is named by its SHA-256.
//!
//! A blob is found by name alone and never changes, so an object store could replace the folder.
//!
//! **Invariant:** does not know what the bytes mean. Learns which blobs are in use only from the caller of [`Blobs::sweep`].

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use sha2::{Digest as _, Sha256};

use super::disk::{self, Durability};
use super::format::{Input, Output};
use crate::large::{LARGE as LARGEST_IN_MEMORY, LargeFile};
use crate::payload::Payload;

/// The name of a blob: the SHA-256 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name(pub(super) [u8; 32]);

impl Name {
    /// Returns the name of `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the name of the payload's bytes.
    pub(super) fn of_payload(payload: &Payload) -> Self {
        Self(payload.digest())
    }

    /// Parses a name from lower-case hexadecimal digits, as written by [`Display`](fmt::Display).
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

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The minimum length, in bytes, of content stored as its own blob. Smaller blobs would make too many files.
pub(super) const LARGE: usize = 64 << 10;

/// References to blobs, each with the blob's length in bytes.
pub(super) type Named = Vec<(Name, u64)>;

/// Blob contents with their names.
pub(super) type NamedBytes = Vec<(Name, Payload)>;

/// Writes references to `blobs`.
pub(super) fn write_names(blobs: &[(Name, Payload)], output: &mut Output) {
    output.count(blobs.len());
    for (name, bytes) in blobs {
        output.bytes(&name.0);
        output.number(bytes.len());
    }
}

/// Reads references written by [`write_names`].
pub(super) fn read_names(input: &mut Input<'_>) -> Option<Named> {
    input.many(|input| Some((Name(input.hash()?), input.number()?)))
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
    /// If the blob is absent, unreadable, or does not match its name.
    pub(super) fn get(&self, name: &Name) -> io::Result<Payload> {
        let mut file = disk::open(&self.path(name))?;
        let payload: Payload = match file.metadata()?.len() {
            ..=LARGEST_IN_MEMORY => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                bytes.into()
            }
            _ => LargeFile::open(file)?.into(),
        };
        if Name::of_payload(&payload) == *name {
            Ok(payload)
        } else {
            Err(disk::damaged())
        }
    }

    /// Writes the blobs that are missing. All of them are on disk when the call returns. Returns the number of blobs written and their total bytes.
    pub(super) fn put(&self, blobs: &[(Name, Payload)]) -> io::Result<(u64, u64)> {
        let mut missing = Vec::new();
        for (name, bytes) in blobs {
            let path = self.path(name);
            // A blob of another length is damaged and written again.
            let present = disk::present(fs::metadata(&path))?;
            if present.is_none_or(|file| !file.is_file() || file.len() != bytes.len()) {
                missing.push((path, bytes));
            }
        }
        at_once(&missing, |(path, bytes)| {
            disk::write(path, Durability::Now, |file| {
                bytes.for_each_piece(|piece| file.write_all(piece))
            })
        })?;
        let folders: BTreeSet<&Path> = missing
            .iter()
            .filter_map(|(path, _)| path.parent())
            .collect();
        at_once(&Vec::from_iter(folders), |folder| disk::sync(folder))?;
        let bytes = missing.iter().map(|(_, bytes)| bytes.len()).sum();
        Ok((missing.len() as u64, bytes))
    }

    /// Removes a blob that does not match its name. Otherwise `put` would treat it as present.
    pub(super) fn check(&self, name: &Name) -> io::Result<()> {
        match self.get(name) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                disk::remove(&self.path(name))
            }
            _ => Ok(()),
        }
    }

    /// Removes blobs that are not in use, and incomplete files.
    pub(super) fn sweep(&self, is_used: impl Fn(&Name) -> bool) -> io::Result<()> {
        for first in disk::names(&self.folder)? {
            let folder = self.folder.join(&first);
            if !folder.is_dir() {
                continue;
            }
            disk::remove_temporary(&folder)?;
            for rest in disk::names(&folder)? {
                let name = Name::parse(&format!("{first}{rest}"));
                if name.is_some_and(|name| !is_used(&name)) {
                    disk::remove(&folder.join(&rest))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the path of a blob.
    pub(super) fn path(&self, name: &Name) -> PathBuf {
        let digits = name.to_string();
        let (first, rest) = digits.split_at(2);
        self.folder.join(first).join(rest)
    }
}

/// The number of threads that write blobs. They mostly wait: a disk writes many files in the time of one.
const WAITING: usize = 16;

/// Calls `one` for each item, on several threads. Returns the first error; other items may or may not be processed then.
fn at_once<T: Sync>(all: &[T], one: impl Fn(&T) -> io::Result<()> + Sync) -> io::Result<()> {
    let each = all.len().div_ceil(WAITING).max(1);
    let part = &|part: &[T]| part.iter().try_for_each(&one);
    let mut parts = all.chunks(each);
    let own = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let start = |other| thread::Builder::new().spawn_scoped(scope, move || part(other));
        let others = parts.map(start).collect::<io::Result<Vec<_>>>()?;
        let own = part(own);
        let ended = others.into_iter().map(|other| {
            let ended = other.join();
            ended.unwrap_or_else(|_| Err(io::Error::other("a thread that writes panicked")))
        });
        ended.fold(own, Result::and)
    })
}
