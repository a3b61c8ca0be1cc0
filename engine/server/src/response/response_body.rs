//! The body that an answer has, before it is sent.
//!
//! **Invariant:** copies and reads nothing; shares a part of the snapshot's bytes.

use std::ops::Range;

use bytes::Bytes;
use release::payload::Payload;

/// The body that an answer has: a part of a payload.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseBody {
    /// Cut to `range` where it is in memory.
    pub(crate) payload: Payload,
    pub(crate) range: Range<u64>,
}

impl ResponseBody {
    /// Returns all of a payload.
    pub(crate) fn whole(payload: &Payload) -> Self {
        payload.clone().into()
    }

    /// Returns a part of a payload, which lies within it.
    pub(crate) fn part(payload: &Payload, range: Range<usize>) -> Self {
        match payload {
            Payload::Memory(bytes) => bytes.slice(range).into(),
            Payload::Large(_) => Self {
                payload: payload.clone(),
                range: range.start as u64..range.end as u64,
            },
        }
    }

    /// Returns how many bytes it has.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes, where they are in memory.
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
