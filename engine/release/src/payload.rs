//! The bytes of a body or a table value: in memory, or in a file if they are too large.
//!
//! **Invariant:** a copy shares the bytes.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::large::{LargeFile, Sha256Digest};

/// Bytes in memory or in a file on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// In memory.
    Memory(Bytes),
    /// In a file, because they are too large for memory.
    Large(Box<LargeFile>),
}

impl Payload {
    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Large(file) => file.len(),
        }
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes if they are in memory.
    #[must_use]
    pub const fn in_memory(&self) -> Option<&Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::Large(_) => None,
        }
    }

    /// Returns whether the bytes are in memory.
    #[must_use]
    pub const fn is_in_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Returns the SHA-256 of the bytes.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        match self {
            Self::Memory(bytes) => Sha256::digest(bytes).into(),
            Self::Large(file) => *file.digest(),
        }
    }

    /// Returns all bytes. Reads them into memory if they are in a file.
    ///
    /// # Errors
    /// If the file cannot be read or has changed since it was hashed.
    pub fn to_bytes(&self) -> io::Result<Bytes> {
        match self {
            Self::Memory(bytes) => Ok(bytes.clone()),
            Self::Large(file) => {
                let mut all = Vec::new();
                file.for_each_block(|block| {
                    all.extend_from_slice(block);
                    Ok(())
                })?;
                Ok(all.into())
            }
        }
    }

    /// Reads a range of the bytes. Returns `None` if the range extends beyond the end.
    ///
    /// # Errors
    /// If the file cannot be read or has changed since it was hashed.
    pub fn read(&self, range: Range<u64>) -> io::Result<Option<Bytes>> {
        if range.end > self.len() || range.start > range.end {
            return Ok(None);
        }
        match self {
            Self::Memory(bytes) => {
                let at = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
                Ok(Some(bytes.slice(at(range.start)?..at(range.end)?)))
            }
            Self::Large(file) => {
                let mut read = Vec::new();
                let mut offset = range.start;
                while offset < range.end {
                    let piece = file.read(offset..range.end)?;
                    offset += piece.len() as u64;
                    read.extend_from_slice(&piece);
                }
                Ok(Some(read.into()))
            }
        }
    }

    /// Passes all bytes to `piece`. The bytes of a file are passed one block at a time.
    ///
    /// # Errors
    /// If the file cannot be read, has changed since it was hashed, or `piece` fails.
    pub fn for_each_piece(&self, mut piece: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => piece(bytes),
            Self::Large(file) => file.for_each_block(piece),
        }
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::Memory(Bytes::new())
    }
}

impl From<LargeFile> for Payload {
    fn from(file: LargeFile) -> Self {
        Self::Large(Box::new(file))
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory(bytes.into())
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::Memory(text.into())
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Self::Memory(text.into())
    }
}

impl From<&'static [u8]> for Payload {
    fn from(bytes: &'static [u8]) -> Self {
        Self::Memory(bytes.into())
    }
}
