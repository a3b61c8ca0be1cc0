//! Rendered releases in the bucket: one replica renders a release and creates its object, and the others read the object.
//!
//! ```text
//! mark of the format | SHA-256 of the content | content
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
use crate::store::{Bucket, StoreError, Uploads};

/// The time within which the store says whether an object exists. Rendering a tenant takes less time than a slow store.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// The time within which the content of an object is read.
pub const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The duration of the lease of a replica that renders. Replicas wait for this long for one that has ended.
pub const RENDER_LEASE: Duration = Duration::from_secs(6);

/// The first bytes of an object.
const MARK: &[u8] = b"rowhouse-shared-release-1\n";

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

/// Creates the object of a release. Returns `false` if another replica was first.
///
/// # Errors
/// Returns an error if the store did not answer, or refuses the request.
pub async fn create(bucket: &Bucket, inputs: &str, content: &[u8]) -> Result<bool, StoreError> {
    let hash = Sha256::digest(content);
    let object = [MARK, &hash[..], content].concat();
    let request = Request::Create(ObjectKey::release(inputs), object.into());
    Ok(bucket.send(&request, &Uploads::new()).await? == Answer::Done)
}

/// Returns the lease of the replica that renders a release.
#[must_use]
pub fn render_lease(bucket: Bucket, inputs: &str) -> Lease {
    Lease::with_key(bucket, ObjectKey::render_lease(inputs), RENDER_LEASE)
}

/// Returns the content of an object, or `None` if the object is damaged.
pub(crate) fn open(object: &Bytes) -> Option<Bytes> {
    let rest = object.strip_prefix(MARK)?;
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
