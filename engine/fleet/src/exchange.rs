//! Requests to the object store, and their answers.

use bytes::Bytes;

use crate::key::{ContentHash, ObjectKey};

/// The version of an object in the store: its `ETag`. Two different bodies of one object have different tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectTag(pub String);

impl ObjectTag {
    /// Returns the opaque part of the tag (RFC 9110, section 8.8.3). Stores quote it in one answer and not in another.
    #[must_use]
    pub fn opaque(&self) -> &str {
        let tag = self.0.strip_prefix("W/").unwrap_or(&self.0);
        tag.trim_matches('"')
    }
}

/// The time of the store's clock, in milliseconds since 1970 (`Last-Modified`).
pub type StoreTime = u64;

/// A request to the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Reads an object.
    Get(ObjectKey),
    /// Looks whether an object exists, and, as far as its size shows, has the packed content with this hash.
    Verify(ObjectKey, ContentHash),
    /// Lists the names that begin with this prefix.
    List(String),
    /// Lists the names that begin with this prefix, of objects that were last written before this time.
    ListBefore(String, StoreTime),
    /// Creates an object that must not exist (`If-None-Match: *`).
    Create(ObjectKey, Bytes),
    /// Uploads the packed content with this hash to an object that must not exist.
    Upload(ObjectKey, ContentHash),
    /// Replaces an object that must have this tag (`If-Match`).
    Swap(ObjectKey, ObjectTag, Bytes),
    /// Deletes an object, which may be absent.
    Delete(ObjectKey),
}

/// The answer of the object store to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The object that was read.
    Object(StoredObject),
    /// The object does not exist, or does not have the content of a [`Request::Verify`].
    Missing,
    /// The names that were listed.
    Listed(Vec<ObjectKey>),
    /// The object has the content, or was created, replaced or deleted.
    Done,
    /// The condition of a [`Request::Create`], [`Request::Upload`] or [`Request::Swap`] did not hold.
    Refused,
    /// The request failed, and may have had its effect, or may still have it.
    Unknown,
}

/// An object that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The content.
    pub body: Bytes,
    /// The version.
    pub tag: ObjectTag,
    /// The time of the last write.
    pub modified: StoreTime,
}
