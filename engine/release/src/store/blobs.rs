//! Bytes by the hash of their content.
//!
//! Nothing but the name is needed to find them, and what has a name never changes: an object store could stand here, too.
//!
//! **Invariant:** knows nothing of what the bytes mean, and who names them only when it is told.

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
    /// The name of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The name of these bytes.
    pub(super) fn of_payload(payload: &Payload) -> Self {
        Self(payload.digest())
    }

    /// The name that is written in these digits, as [`Display`](fmt::Display) does.
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

/// From so many bytes on something is a blob of its own. Smaller ones would be far more files than a disk has room for.
pub(super) const LARGE: usize = 64 << 10;

/// Blobs with their lengths in bytes, as who needs them names them.
pub(super) type Named = Vec<(Name, u64)>;

/// Bytes with their names.
pub(super) type NamedBytes = Vec<(Name, Payload)>;

/// Writes which blobs are needed.
pub(super) fn write_names(blobs: &[(Name, Payload)], output: &mut Output) {
    output.count(blobs.len());
    for (name, bytes) in blobs {
        output.bytes(&name.0);
        output.number(bytes.len());
    }
}

/// What [`write_names`] wrote.
pub(super) fn read_names(input: &mut Input<'_>) -> Option<Named> {
    input.many(|input| Some((Name(input.hash()?), input.number()?)))
}

/// The blobs below one folder: `<first two digits>/<the other digits>`.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    /// The blobs below `folder`, which need not be there.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The bytes of that name. Bytes that do not fit their name are an error.
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

    /// Writes those that are not there yet. All of them are on the disk when this returns. Gives how many these were, and their bytes.
    pub(super) fn put(&self, blobs: &[(Name, Payload)]) -> io::Result<(u64, u64)> {
        let mut missing = Vec::new();
        for (name, bytes) in blobs {
            let path = self.path(name);
            // One of another length is damaged, and written again.
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

    /// Removes a blob that does not fit its name: otherwise it would pass for one that is there.
    pub(super) fn check(&self, name: &Name) -> io::Result<()> {
        match self.get(name) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                disk::remove(&self.path(name))
            }
            _ => Ok(()),
        }
    }

    /// Removes those that have no use, and files that were left incomplete.
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

    /// Where the bytes of that name are.
    pub(super) fn path(&self, name: &Name) -> PathBuf {
        let digits = name.to_string();
        let (first, rest) = digits.split_at(2);
        self.folder.join(first).join(rest)
    }
}

/// How many threads wait for the disk at once. They have nothing else to do: a disk writes many files in the time of one.
const WAITING: usize = 16;

/// Does something with each, on several threads. The first error that is seen is the result; the others may be done or not.
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
