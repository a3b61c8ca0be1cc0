//! Frames of two parts: metadata and payload. The metadata can be read without the payload. A hash of each part detects damage.
//!
//! ```text
//! magic │ length of the metadata │ length of the payload │ SHA-256 of the payload │ SHA-256 of the previous three fields and the metadata │ metadata │ payload
//! ```
//!
//! **Invariant:** does not know what the parts contain, or where a frame is stored.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::blobs::BlobId;
use super::disk;

/// The bytes of a length field, a little-endian number.
const LENGTH_BYTES: usize = 8;
const HASH_BYTES: usize = 32;

/// The header and metadata of a frame: all before the rest.
pub(super) struct FrameHeader {
    pub(super) metadata: Vec<u8>,
    /// The length of the entire frame in bytes.
    pub(super) size: u64,
    rest: u64,
    hash: BlobId,
}

/// A frame in an open file, with its metadata read.
pub(super) struct OpenFrame {
    pub(super) header: FrameHeader,
    file: Arc<File>,
    at: u64,
}

/// Encodes the header and metadata of a frame: all before the rest.
pub(super) fn encode_header(magic: &[u8], metadata: &[u8], rest: &[u8]) -> Vec<u8> {
    let lengths = [metadata.len() as u64, rest.len() as u64].map(u64::to_le_bytes);
    let numbers = [&lengths.concat()[..], &BlobId::of(rest).0].concat();
    [magic, &numbers, &hash_of(&numbers, metadata), metadata].concat()
}

impl FrameHeader {
    /// Reads the header and metadata of the next frame. Does not detect damage of the rest.
    ///
    /// # Errors
    /// If the bytes cannot be read, or do not begin a frame of at most `limit` bytes.
    pub(super) fn read(from: &mut impl Read, magic: &[u8], limit: u64) -> io::Result<Self> {
        let mut start = vec![0; magic.len() + 2 * LENGTH_BYTES + 2 * HASH_BYTES];
        exact(from, &mut start)?;
        let (own, rest) = start.split_at(magic.len());
        let (numbers, hash) = rest.split_at(2 * LENGTH_BYTES + HASH_BYTES);
        let lengths = length(numbers).zip(numbers.get(LENGTH_BYTES..).and_then(length));
        let (metadata, rest) = lengths.ok_or_else(disk::damaged)?;
        let parts = metadata.checked_add(rest);
        let size = parts.and_then(|parts| parts.checked_add(start.len() as u64));
        let size = size.filter(|size| own == magic && *size <= limit);
        let size = size.ok_or_else(disk::damaged)?;
        let mut bytes = vec![0; usize::try_from(metadata).map_err(|_| disk::damaged())?];
        exact(from, &mut bytes)?;
        let of_rest = numbers
            .get(2 * LENGTH_BYTES..)
            .and_then(|it| it.try_into().ok());
        match of_rest {
            Some(of_rest) if hash_of(numbers, &bytes) == hash => Ok(Self {
                metadata: bytes,
                size,
                rest,
                hash: BlobId(of_rest),
            }),
            _ => Err(disk::damaged()),
        }
    }

    /// Returns the number of bytes after the metadata.
    pub(super) const fn rest(&self) -> u64 {
        self.rest
    }
}

/// Opens a file that consists of one frame, and reads its metadata. Does not detect damage of the rest, unless its length changed.
pub(super) fn open(path: &Path, magic: &[u8]) -> io::Result<OpenFrame> {
    let file = disk::open(path)?;
    let size = file.metadata()?.len();
    open_at(&Arc::new(file), 0..size, magic)
}

/// Opens the frame at `place` in a file, and reads its metadata.
pub(super) fn open_at(
    file: &Arc<File>,
    place: std::ops::Range<u64>,
    magic: &[u8],
) -> io::Result<OpenFrame> {
    let size = place.end - place.start;
    let mut from = FileCursor(file, place.start);
    let header = FrameHeader::read(&mut from, magic, size)?;
    match header.size == size {
        true => Ok(OpenFrame {
            at: from.1,
            file: Arc::clone(file),
            header,
        }),
        false => Err(disk::damaged()),
    }
}

impl OpenFrame {
    /// Reads the rest and verifies its hash.
    pub(super) fn rest(self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.header.rest).map_err(|_| disk::damaged())?;
        let mut rest = vec![0; length];
        exact(&mut FileCursor(&self.file, self.at), &mut rest)?;
        match BlobId::of(&rest) == self.header.hash {
            true => Ok(rest),
            false => Err(disk::damaged()),
        }
    }
}

/// A reader of a file from an offset on. Several threads can read the same file at once.
struct FileCursor<'a>(&'a File, u64);

impl Read for FileCursor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(buffer, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

fn hash_of(numbers: &[u8], metadata: &[u8]) -> [u8; HASH_BYTES] {
    Sha256::new()
        .chain_update(numbers)
        .chain_update(metadata)
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
