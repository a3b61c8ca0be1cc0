//! A tenant's pointer: the one object that says which content all replicas serve.
//!
//! The pointer names content, and never a rendering: replicas of two builds of the program agree about it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::key::{ContentHash, Nonce, ObjectKey};

/// The number of versions by which a publisher recognises its own swap afterwards.
const RECENT_VERSIONS: usize = 8;

/// A part of a tenant's content: the packed folder, or a large file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContentObject {
    /// The hash of the content.
    pub hash: ContentHash,
    /// The object that has the content.
    pub object: ObjectKey,
}

/// The identity of one swap of a pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// The version that the swap made.
    pub version: u64,
    /// The nonce of the publisher.
    pub nonce: Nonce,
}

/// The pointer of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// The swap that made this version, then the swaps before, newest first.
    pub swaps: Vec<Swap>,
    /// The content. Empty if the tenant was unpublished.
    pub content: Vec<ContentObject>,
    /// When it was published, in milliseconds since 1970 by the publisher's clock. Only people read the time.
    pub at: u64,
    /// The person or machine that published.
    pub author: String,
}

impl Pointer {
    /// Returns the version, which grows by one with each swap.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.swaps.first().map_or(0, |swap| swap.version)
    }

    /// Returns the version that the publisher with this nonce has made, if it is one of the last.
    #[must_use]
    pub fn version_of(&self, nonce: &Nonce) -> Option<u64> {
        let swap = self.swaps.iter().find(|swap| swap.nonce == *nonce)?;
        Some(swap.version)
    }

    /// Returns whether the pointer shows that a swap of the version after `version` by this nonce did not happen.
    #[must_use]
    pub fn excludes(&self, nonce: &Nonce, version: u64) -> bool {
        let next = self.swaps.iter().find(|swap| swap.version == version + 1);
        next.is_some_and(|swap| swap.nonce != *nonce)
    }

    /// Returns the pointer that follows `before`.
    #[must_use]
    pub fn next(
        before: Option<&Self>,
        nonce: Nonce,
        content: Vec<ContentObject>,
        at: u64,
        author: String,
    ) -> Self {
        let version = before.map_or(0, Self::version) + 1;
        let former = before
            .map(|before| before.swaps.clone())
            .unwrap_or_default();
        let swaps = std::iter::once(Swap { version, nonce }).chain(former);
        Self {
            swaps: swaps.take(RECENT_VERSIONS).collect(),
            content,
            at,
            author,
        }
    }

    /// Returns the pointer with these bytes, or `None` if they are not a pointer.
    #[must_use]
    pub fn of_bytes(bytes: &Bytes) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the bytes of the pointer.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        // Serialising text and numbers into memory cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}
