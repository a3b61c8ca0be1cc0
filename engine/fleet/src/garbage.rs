//! The list of objects that nothing names, and that will be deleted.
//!
//! A publisher that finds content in the store may use it, although another machine is about to delete it. The list settles the race by compare-and-swap:
//! - A collector adds an object, and deletes it a grace period later, in two steps: first it moves the object to [`Garbage::deleting`], then it deletes the object.
//! - A publisher that uses an object reads the list after it has found the object. It removes the object from [`Garbage::candidates`]; an object in [`Garbage::deleting`] is not used.
//!
//! A publisher that has read the list before the object was added swaps its pointer within [`MAX_PUBLISH`](crate::publish::MAX_PUBLISH), which is shorter than the grace period. The collector thus sees the pointer before it deletes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::exchange::StoreTime;
use crate::key::{Nonce, ObjectKey};

/// The list of garbage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Garbage {
    /// The nonce of the last write, by which its writer recognises it.
    pub writer: Option<Nonce>,
    /// The objects without a name, and since when. `None`: since the last write of the list.
    pub candidates: BTreeMap<ObjectKey, Option<StoreTime>>,
    /// The objects that a collector is deleting.
    pub deleting: BTreeSet<ObjectKey>,
}

impl Garbage {
    /// Returns the list with these bytes, or `None` if they are not a list of garbage.
    #[must_use]
    pub fn of_bytes(bytes: &Bytes) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the bytes of the list, written under this nonce.
    #[must_use]
    pub fn to_bytes(&self, writer: Nonce) -> Bytes {
        let list = Self {
            writer: Some(writer),
            ..self.clone()
        };
        // Serialising text and numbers into memory cannot fail.
        serde_json::to_vec(&list).unwrap_or_default().into()
    }

    /// Removes objects that a publisher uses. Returns whether any was a candidate.
    pub fn rescue<'k>(&mut self, used: impl Iterator<Item = &'k ObjectKey>) -> bool {
        let before = self.candidates.len();
        for key in used {
            self.candidates.remove(key);
        }
        self.candidates.len() < before
    }
}
