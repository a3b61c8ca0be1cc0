//! The body that an answer has, before it is sent.
//!
//! **Invariant:** copies and reads nothing; shares a part of the snapshot's bytes.

use std::ops::Range;

use bytes::Bytes;
use release::large::LargeFile;
use release::payload::Payload;

/// The body that an answer has.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// Bytes in memory.
    Memory(Bytes),
    /// A part of a file that is too large for memory.
    File(Box<FilePart>),
}

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct FilePart {
    pub(super) file: LargeFile,
    pub(super) range: Range<u64>,
}

impl ResponseBody {
    /// Returns all of a payload.
    pub(super) fn whole(payload: &Payload) -> Self {
        match payload {
            Payload::Memory(bytes) => Self::Memory(bytes.clone()),
            Payload::Large(file) => Self::of_file(file, 0..file.len()),
        }
    }

    /// Returns a part of a payload, which lies within it.
    pub(super) fn part(payload: &Payload, range: Range<usize>) -> Self {
        match payload {
            Payload::Memory(bytes) => Self::Memory(bytes.slice(range)),
            Payload::Large(file) => Self::of_file(file, range.start as u64..range.end as u64),
        }
    }

    fn of_file(file: &LargeFile, range: Range<u64>) -> Self {
        let file = file.clone();
        Self::File(Box::new(FilePart { file, range }))
    }

    /// Returns how many bytes it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(part) => part.range.end - part.range.start,
        }
    }

    /// Returns whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes, where they are in memory.
    #[must_use]
    pub const fn in_memory(&self) -> Option<&Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::File(_) => None,
        }
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}
