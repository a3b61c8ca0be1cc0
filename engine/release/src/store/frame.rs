//! Frames of two parts, a front and a rest; the front can be read alone. A hash of each part detects damage.
//!
//! ```text
//! magic │ length of the front │ length of the rest │ SHA-256 of the rest │ SHA-256 of the previous three fields and the front │ front │ rest
//! ```
//!
//! **Invariant:** does not know what the parts contain, or where a frame is stored.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::blobs::Name;
use super::disk;

/// The bytes of a length field, a little-endian number.
const LENGTH: usize = 8;
const HASH: usize = 32;

/// The header and front of a frame: all before the rest.
pub(super) struct Head {
    pub(super) front: Vec<u8>,
    /// The length of the entire frame in bytes.
    pub(super) size: u64,
    rest: u64,
    hash: Name,
}

/// A frame in an open file, with its front read.
pub(super) struct Opened {
    pub(super) head: Head,
    file: Arc<File>,
    at: u64,
}

/// Returns the header and front of a frame: all before the rest.
pub(super) fn start(magic: &[u8], front: &[u8], rest: &[u8]) -> Vec<u8> {
    let lengths = [front.len() as u64, rest.len() as u64].map(u64::to_le_bytes);
    let numbers = [&lengths.concat()[..], &Name::of(rest).0].concat();
    [magic, &numbers, &hash_of(&numbers, front), front].concat()
}

impl Head {
    /// Reads the header and front of the next frame. Does not detect damage of the rest.
    ///
    /// # Errors
    /// If the bytes cannot be read, or do not begin a frame of at most `limit` bytes.
    pub(super) fn read(from: &mut impl Read, magic: &[u8], limit: u64) -> io::Result<Self> {
        let mut start = vec![0; magic.len() + 2 * LENGTH + 2 * HASH];
        exact(from, &mut start)?;
        let (own, rest) = start.split_at(magic.len());
        let (numbers, hash) = rest.split_at(2 * LENGTH + HASH);
        let lengths = length(numbers).zip(numbers.get(LENGTH..).and_then(length));
        let (front, rest) = lengths.ok_or_else(disk::damaged)?;
        let parts = front.checked_add(rest);
        let size = parts.and_then(|parts| parts.checked_add(start.len() as u64));
        let size = size.filter(|size| own == magic && *size <= limit);
        let size = size.ok_or_else(disk::damaged)?;
        let mut bytes = vec![0; usize::try_from(front).map_err(|_| disk::damaged())?];
        exact(from, &mut bytes)?;
        let of_rest = numbers.get(2 * LENGTH..).and_then(|it| it.try_into().ok());
        match of_rest {
            Some(of_rest) if hash_of(numbers, &bytes) == hash => Ok(Self {
                front: bytes,
                size,
                rest,
                hash: Name(of_rest),
            }),
            _ => Err(disk::damaged()),
        }
    }

    /// Returns the number of bytes after the front.
    pub(super) const fn rest(&self) -> u64 {
        self.rest
    }
}

/// Opens a file that consists of one frame, and reads its front. Does not detect damage of the rest, unless its length changed.
pub(super) fn open(path: &Path, magic: &[u8]) -> io::Result<Opened> {
    let file = disk::open(path)?;
    let size = file.metadata()?.len();
    open_at(&Arc::new(file), 0..size, magic)
}

/// Opens the frame at `place` in a file, and reads its front.
pub(super) fn open_at(
    file: &Arc<File>,
    place: std::ops::Range<u64>,
    magic: &[u8],
) -> io::Result<Opened> {
    let size = place.end - place.start;
    let mut from = At(file, place.start);
    let head = Head::read(&mut from, magic, size)?;
    match head.size == size {
        true => Ok(Opened {
            at: from.1,
            file: Arc::clone(file),
            head,
        }),
        false => Err(disk::damaged()),
    }
}

impl Opened {
    /// Reads the rest and verifies its hash.
    pub(super) fn rest(self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.head.rest).map_err(|_| disk::damaged())?;
        let mut rest = vec![0; length];
        exact(&mut At(&self.file, self.at), &mut rest)?;
        match Name::of(&rest) == self.head.hash {
            true => Ok(rest),
            false => Err(disk::damaged()),
        }
    }
}

/// A reader of a file from an offset on. Several threads can read the same file at once.
struct At<'a>(&'a File, u64);

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(buffer, self.1)?;
        self.1 += read as u64;
        Ok(read)
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

/// Fills `buffer`. Reports a file that is too short as damaged.
fn exact(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<()> {
    from.read_exact(buffer).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            disk::damaged()
        } else {
            error
        }
    })
}
