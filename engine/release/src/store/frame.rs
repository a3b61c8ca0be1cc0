//! Files of two parts, of which the first is read alone where that is enough. Both have their hashes: what is damaged is seen.
//!
//! ```text
//! magic │ length of the front │ length of the rest │ SHA-256 of the rest │ SHA-256 of the numbers and the front │ front │ rest
//! ```
//!
//! **Invariant:** knows nothing of what the parts say.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::blobs::Name;
use super::disk;

/// A length, as a little-endian number.
const LENGTH: usize = 8;
const HASH: usize = 32;

/// A file that is open, with its front read.
pub(super) struct Opened {
    pub(super) front: Vec<u8>,
    /// The bytes of the whole file.
    pub(super) size: u64,
    file: File,
    length: u64,
    hash: Name,
}

/// All that stands before the rest.
pub(super) fn start(magic: &[u8], front: &[u8], rest: &[u8]) -> Vec<u8> {
    let lengths = [front.len() as u64, rest.len() as u64].map(u64::to_le_bytes);
    let numbers = [&lengths.concat()[..], &Name::of(rest).0].concat();
    [magic, &numbers, &hash_of(&numbers, front), front].concat()
}

/// Opens a file, and reads its front. Damage of the rest that leaves its length is not seen yet.
pub(super) fn open(path: &Path, magic: &[u8]) -> io::Result<Opened> {
    let mut file = disk::open(path)?;
    let whole = file.metadata()?.len();
    let mut start = vec![0; magic.len() + 2 * LENGTH + 2 * HASH];
    exact(&mut file, &mut start)?;
    let (own, rest) = start.split_at(magic.len());
    let (numbers, hash) = rest.split_at(2 * LENGTH + HASH);
    let lengths = length(numbers).zip(numbers.get(LENGTH..).and_then(length));
    let (front, rest) = lengths.ok_or_else(disk::damaged)?;
    let parts = front.checked_add(rest);
    let all = parts.and_then(|parts| parts.checked_add(start.len() as u64));
    if own != magic || all != Some(whole) {
        return Err(disk::damaged());
    }
    let mut bytes = vec![0; usize::try_from(front).map_err(|_| disk::damaged())?];
    exact(&mut file, &mut bytes)?;
    let of_rest = numbers.get(2 * LENGTH..).and_then(|it| it.try_into().ok());
    match of_rest {
        Some(of_rest) if hash_of(numbers, &bytes) == hash => Ok(Opened {
            front: bytes,
            size: whole,
            file,
            length: rest,
            hash: Name(of_rest),
        }),
        _ => Err(disk::damaged()),
    }
}

impl Opened {
    /// The rest.
    pub(super) fn rest(mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.length).map_err(|_| disk::damaged())?;
        let mut rest = vec![0; length];
        exact(&mut self.file, &mut rest)?;
        match Name::of(&rest) == self.hash {
            true => Ok(rest),
            false => Err(disk::damaged()),
        }
    }
}

fn hash_of(numbers: &[u8], front: &[u8]) -> [u8; HASH] {
    Sha256::new()
        .chain_update(numbers)
        .chain_update(front)
        .finalize()
        .into()
}

fn length(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

/// Fills `buffer`; a file that is too short is damaged.
fn exact(file: &mut File, buffer: &mut [u8]) -> io::Result<()> {
    file.read_exact(buffer).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            disk::damaged()
        } else {
            error
        }
    })
}
