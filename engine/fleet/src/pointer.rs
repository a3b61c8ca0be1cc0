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
    /// The addresses that the tenant claims besides those of its name: hosts, paths of the origin, and `/` for the origin itself. Only the first object has them, the packed folder. Publishers of an earlier program write none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// The identity of one swap of a pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// The version that the swap made.
    pub version: u64,
    /// The nonce of the publisher.
    pub nonce: Nonce,
}

/// The reason of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A publisher has published content, or has withdrawn the tenant.
    #[default]
    Publish,
    /// An operator has pinned an earlier version.
    Rollback,
    /// An operator has ended the pin.
    Resume,
}

/// A pin: replicas serve the content of an earlier version, and not the newest content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The earlier version.
    pub version: u64,
    /// The newest content, which replicas serve once the pin has ended. Empty if the tenant is unpublished then.
    pub newest: Vec<ContentObject>,
}

/// The pointer of a tenant.
///
/// A pointer of an earlier program has neither a pin nor a cause. A replica of an earlier program knows no pins, and serves the pinned content nevertheless, because that is [`Pointer::content`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// The swap that made this version, then the swaps before, newest first.
    pub swaps: Vec<Swap>,
    /// The content that replicas serve. Empty if the tenant was unpublished.
    pub content: Vec<ContentObject>,
    /// The pin of an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// When it was published, in milliseconds since 1970 by the publisher's clock. People, hints and the age of a preview use the time.
    pub at: u64,
    /// The person or machine that published.
    pub author: String,
    /// The reason of this version.
    #[serde(default)]
    pub cause: Cause,
}

/// The version that follows a pointer.
#[derive(Debug, Clone)]
pub struct NextVersion {
    /// The nonce of the publisher.
    pub nonce: Nonce,
    /// See [`Pointer::content`].
    pub content: Vec<ContentObject>,
    /// See [`Pointer::pin`].
    pub pin: Option<Pin>,
    /// See [`Pointer::at`].
    pub at: u64,
    /// See [`Pointer::author`].
    pub author: String,
    /// See [`Pointer::cause`].
    pub cause: Cause,
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

    /// Returns the pinned version.
    #[must_use]
    pub fn pinned(&self) -> Option<u64> {
        self.pin.as_ref().map(|pin| pin.version)
    }

    /// Returns the newest content, which a pin keeps from replicas. Empty if the tenant was unpublished.
    #[must_use]
    pub fn newest(&self) -> &[ContentObject] {
        let pin = self.pin.as_ref();
        pin.map_or(&self.content, |pin| &pin.newest)
    }

    /// Returns the addresses that the newest content claims besides those of the tenant's name.
    #[must_use]
    pub fn newest_addresses(&self) -> &[String] {
        let packed = self.newest().first();
        packed.map_or(&[], |packed| &packed.addresses)
    }

    /// Returns all content that must stay in the store.
    pub fn named(&self) -> impl Iterator<Item = &ContentObject> {
        let newest = self.pin.iter().flat_map(|pin| &pin.newest);
        self.content.iter().chain(newest)
    }

    /// Returns the content that this version has brought, and the version that brought it first: a rollback brings the content of an earlier version.
    #[must_use]
    pub fn brought(&self) -> (u64, &[ContentObject]) {
        match (self.cause, &self.pin) {
            (Cause::Rollback, Some(pin)) => (pin.version, &self.content),
            _ => (self.version(), self.newest()),
        }
    }

    /// Returns the pointer of a tenant that was never published.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            swaps: Vec::new(),
            content: Vec::new(),
            pin: None,
            at: 0,
            author: String::new(),
            cause: Cause::Publish,
        }
    }

    /// Returns the pointer that follows `before`.
    #[must_use]
    pub fn next(before: Option<&Self>, next: NextVersion) -> Self {
        let version = before.map_or(0, Self::version) + 1;
        let former = before.map_or(&[][..], |before| &before.swaps);
        let swap = Swap {
            version,
            nonce: next.nonce,
        };
        let swaps = std::iter::once(swap).chain(former.iter().cloned());
        Self {
            swaps: swaps.take(RECENT_VERSIONS).collect(),
            content: next.content,
            pin: next.pin,
            at: next.at,
            author: next.author,
            cause: next.cause,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn content(hash: &str) -> Vec<ContentObject> {
        let hash = ContentHash(hash.to_owned());
        let object = ObjectKey::content(&hash, &Nonce("n".to_owned()));
        let addresses = vec![format!("{}.example", hash.0)];
        vec![ContentObject {
            hash,
            object,
            addresses,
        }]
    }

    #[test]
    fn pointer_of_an_earlier_program_has_no_pin() {
        let text = r#"{"swaps":[{"version":4,"nonce":"n4"}],"content":[],"at":7,"author":"ann"}"#;
        let pointer = Pointer::of_bytes(&Bytes::from(text)).expect("a pointer");
        assert_eq!((pointer.version(), pointer.pinned()), (4, None));
        assert_eq!(pointer.cause, Cause::Publish);
        assert_eq!(Pointer::of_bytes(&pointer.to_bytes()), Some(pointer));
    }

    #[test]
    fn pinned_pointer_names_the_served_and_the_newest_content() {
        let pointer = Pointer {
            content: content("a"),
            pin: Some(Pin {
                version: 1,
                newest: content("b"),
            }),
            cause: Cause::Rollback,
            ..Pointer::none()
        };
        assert_eq!(pointer.newest(), content("b"));
        assert_eq!(pointer.brought(), (1, &content("a")[..]));
        assert_eq!(pointer.named().count(), 2);
        assert_eq!(Pointer::of_bytes(&pointer.to_bytes()), Some(pointer));
    }
}
