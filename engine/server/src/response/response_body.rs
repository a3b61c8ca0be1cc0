//! The body of an answer before it is sent.
//!
//! **Invariant:** copies and reads nothing; shares a slice of the snapshot's bytes.

use std::ops::Range;

use bytes::Bytes;
use release::payload::Payload;

/// The body of an answer: a range of a payload.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseBody {
    /// Already cut to `range` if the payload is in memory.
    pub(crate) payload: Payload,
    pub(crate) range: Range<u64>,
}

impl ResponseBody {
    /// Returns a body with the complete payload.
    pub(crate) fn full(payload: &Payload) -> Self {
        payload.clone().into()
    }

    /// Returns a body with a range of the payload. The range must be within the payload.
    pub(crate) fn partial(payload: &Payload, range: Range<usize>) -> Self {
        match payload {
            Payload::Memory(bytes) => bytes.slice(range).into(),
            Payload::Large(_) => Self {
                payload: payload.clone(),
                range: range.start as u64..range.end as u64,
            },
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns whether the body is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes without a copy, if they are in memory.
    pub(crate) fn into_memory(self) -> Option<Bytes> {
        match self.payload {
            Payload::Memory(bytes) => Some(bytes),
            Payload::Large(_) => None,
        }
    }

    /// Returns the bytes, if they are in memory.
    #[must_use]
    pub const fn in_memory(&self) -> Option<&Bytes> {
        self.payload.in_memory()
    }
}

impl<P: Into<Payload>> From<P> for ResponseBody {
    fn from(payload: P) -> Self {
        let payload = payload.into();
        Self {
            range: 0..payload.len(),
            payload,
        }
    }
}
