//! Rendered releases in the bucket: one replica renders a release and creates its object, and the others read the object. One replica later appends the best content encodings, which makes the object *complete*.
//!
//! ```text
//! mark of the format and state | SHA-256 of the content | content
//! ```
//!
//! **Invariant:** an object only saves work. A replica that cannot read or create one renders by itself.

use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use fleet::exchange::{Answer, Request};
use fleet::key::ObjectKey;

use crate::lease::Lease;
use crate::store::{Bucket, Change, StoreError, Uploads};

/// The time within which the store says whether an object exists. Rendering a tenant takes less time than a slow store.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// The time within which the content of an object is read.
pub const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The duration of the lease of a replica that renders or compresses. Replicas wait for this long for one that has ended.
pub const RENDER_LEASE: Duration = Duration::from_secs(6);

/// The first bytes of an object that is not complete.
const MARK: &[u8] = b"rowhouse-shared-release-1\n";

/// The first bytes of a complete object.
const COMPLETE_MARK: &[u8] = b"rowhouse-complete-release-1\n";

const HASH_BYTES: usize = 32;

/// The result of a look for a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseLookup {
    /// No replica has created the object.
    Missing,
    /// The object does not have the content that was written.
    Damaged,
    /// The content of the object.
    Found(Bytes),
}

/// The state of the object of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseState {
    /// No replica has created the object.
    Missing,
    /// The object does not begin like a release.
    Damaged,
    /// The object has quick content encodings only.
    Incomplete,
    /// The object has the best content encodings.
    Complete,
}

/// A look for a release that has failed.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The store has refused the request, or was not reached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store did not answer in time.
    #[error("the store did not answer in time")]
    Timeout,
}

/// Looks for the release with these inputs, a digest in hexadecimal.
///
/// # Errors
/// Returns an error if the store did not answer within [`LOOK_TIMEOUT`], or did not send the object within [`DOWNLOAD_TIMEOUT`].
pub async fn find(bucket: &Bucket, inputs: &str) -> Result<ReleaseLookup, LookupError> {
    let key = ObjectKey::release(inputs);
    let opened = timeout(LOOK_TIMEOUT, bucket.open_object(&key)).await;
    let Some(object) = opened.map_err(|_| LookupError::Timeout)?? else {
        return Ok(ReleaseLookup::Missing);
    };
    let read = timeout(DOWNLOAD_TIMEOUT, object.bytes()).await;
    let bytes = read.map_err(|_| LookupError::Timeout)?;
    let bytes = bytes.map_err(StoreError::from)?;
    bucket.metrics().record_received(bytes.len());
    Ok(match open(&bytes) {
        Some(content) => ReleaseLookup::Found(content),
        None => ReleaseLookup::Damaged,
    })
}

/// Looks for the state of a release, without reading its content.
///
/// # Errors
/// Returns an error if the store did not answer within [`LOOK_TIMEOUT`].
pub async fn state(bucket: &Bucket, inputs: &str) -> Result<ReleaseState, LookupError> {
    let key = ObjectKey::release(inputs);
    let read = bucket.read_start(&key, COMPLETE_MARK.len() as u64);
    let start = timeout(LOOK_TIMEOUT, read).await;
    let start = start.map_err(|_| LookupError::Timeout)??;
    Ok(start.map_or(ReleaseState::Missing, |start| match () {
        () if start.starts_with(COMPLETE_MARK) => ReleaseState::Complete,
        () if start.starts_with(MARK) => ReleaseState::Incomplete,
        () => ReleaseState::Damaged,
    }))
}

/// Creates the object of a release. Returns `false` if another replica was first.
///
/// # Errors
/// Returns an error if the store did not answer, or refuses the request.
pub async fn create(bucket: &Bucket, inputs: &str, content: &[u8]) -> Result<bool, StoreError> {
    let object = seal(MARK, content);
    let request = Request::Create(ObjectKey::release(inputs), object);
    Ok(bucket.send(&request, &Uploads::new()).await? == Answer::Done)
}

/// Appends the best content encodings to the content of a release. Returns `false` if the object is missing, damaged or complete, or another replica was first.
///
/// # Errors
/// Returns an error if the store did not answer, or refuses a request.
pub async fn complete(bucket: &Bucket, inputs: &str, encodings: &[u8]) -> Result<bool, StoreError> {
    let key = ObjectKey::release(inputs);
    let Change::Object(object) = bucket.get(&key, None).await? else {
        return Ok(false);
    };
    let is_complete = object.body.starts_with(COMPLETE_MARK);
    let Some(content) = open(&object.body).filter(|_| !is_complete) else {
        return Ok(false);
    };
    let body = seal(COMPLETE_MARK, &[&content, encodings].concat());
    let request = Request::Swap(key, object.tag, body);
    Ok(bucket.send(&request, &Uploads::new()).await? == Answer::Done)
}

/// Returns the lease of the replica that renders a release.
#[must_use]
pub fn render_lease(bucket: Bucket, inputs: &str) -> Lease {
    Lease::with_key(bucket, ObjectKey::render_lease(inputs), RENDER_LEASE)
}

/// Returns the lease of the replica that makes the best content encodings of a release.
#[must_use]
pub fn encodings_lease(bucket: Bucket, inputs: &str) -> Lease {
    Lease::with_key(bucket, ObjectKey::encodings_lease(inputs), RENDER_LEASE)
}

/// Returns the object with this content.
fn seal(mark: &[u8], content: &[u8]) -> Bytes {
    let hash = Sha256::digest(content);
    [mark, &hash[..], content].concat().into()
}

/// Returns the content of an object, or `None` if the object is damaged.
pub(crate) fn open(object: &Bytes) -> Option<Bytes> {
    let marks = [MARK, COMPLETE_MARK];
    let rest = marks.iter().find_map(|mark| object.strip_prefix(*mark))?;
    let (hash, content) = rest.split_at_checked(HASH_BYTES)?;
    (Sha256::digest(content)[..] == *hash).then(|| object.slice_ref(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn replace(bucket: &Bucket, inputs: &str, object: &[u8]) {
        let key = ObjectKey::release(inputs);
        let object = Bytes::copy_from_slice(object);
        for request in [Request::Delete(key.clone()), Request::Create(key, object)] {
            let sent = bucket.send(&request, &Uploads::new()).await;
            assert_eq!(sent.expect("answered"), Answer::Done);
        }
    }

    #[tokio::test]
    async fn first_content_of_a_release_stays_and_damage_is_detected() {
        let bucket = Bucket::in_memory();
        let look = async || find(&bucket, "a1").await.expect("answered");
        assert_eq!(look().await, ReleaseLookup::Missing);
        assert!(create(&bucket, "a1", b"pages").await.expect("answered"));
        assert!(!create(&bucket, "a1", b"others").await.expect("answered"));
        assert_eq!(look().await, ReleaseLookup::Found("pages".into()));
        let key = ObjectKey::release("a1");
        let object = bucket.open_object(&key).await.expect("answered");
        let object = object.expect("an object").bytes().await.expect("bytes");
        for end in 0..object.len() {
            replace(&bucket, "a1", &object[..end]).await;
            assert_eq!(look().await, ReleaseLookup::Damaged, "{end} bytes");
            let mut changed = object.to_vec();
            changed[end] ^= 1;
            replace(&bucket, "a1", &changed).await;
            assert_eq!(look().await, ReleaseLookup::Damaged, "byte {end}");
        }
    }

    #[tokio::test]
    async fn encodings_are_appended_once_to_an_intact_release() {
        let bucket = Bucket::in_memory();
        let state = async || state(&bucket, "a1").await.expect("answered");
        let complete = async || complete(&bucket, "a1", b" and encodings").await;
        assert_eq!(state().await, ReleaseState::Missing);
        assert!(!complete().await.expect("answered"));
        replace(&bucket, "a1", b"rowhouse").await;
        assert_eq!(state().await, ReleaseState::Damaged);
        replace(&bucket, "a1", &[MARK, &[0; HASH_BYTES], b"pages"].concat()).await;
        assert!(!complete().await.expect("answered"));
        replace(&bucket, "a1", &seal(MARK, b"pages")).await;
        assert_eq!(state().await, ReleaseState::Incomplete);
        assert!(complete().await.expect("answered"));
        assert_eq!(state().await, ReleaseState::Complete);
        assert!(!complete().await.expect("answered"));
        let found = find(&bucket, "a1").await.expect("answered");
        assert_eq!(found, ReleaseLookup::Found("pages and encodings".into()));
    }

    #[tokio::test]
    async fn ended_lease_is_free_at_once() {
        let bucket = Bucket::in_memory();
        let lease = || render_lease(bucket.clone(), "a1");
        let (mut one, mut two) = (lease(), lease());
        assert!(one.advance().await.expect("answered"));
        assert!(!two.advance().await.expect("answered"));
        two.end().await;
        let mut three = lease();
        assert!(!three.advance().await.expect("answered"), "not the holder");
        one.end().await;
        assert!(lease().advance().await.expect("answered"));
    }
}
