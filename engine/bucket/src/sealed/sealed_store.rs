//! Objects with private keys in them: reads, replaces and deletes them, encrypted.

use bytes::Bytes;

use fleet::exchange::{Answer, Request};
use fleet::key::ObjectKey;

use crate::sealed::{SealingKey, Unopened};
use crate::store::{Bucket, Change, StoreError, Uploads};

/// The number of times that a write is repeated because another process wrote in between.
const MAX_RACES: u32 = 8;

/// An object that was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum SealedError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key does not open the object.
    #[error("the object `{0}` {1}")]
    Unopened(ObjectKey, #[source] Unopened),
    /// Other processes write the object all the time.
    #[error("other replicas keep writing the object `{0}`")]
    Contended(ObjectKey),
}

/// A bucket, and the key of its sealed objects.
#[derive(Debug)]
pub struct SealedObjects {
    bucket: Bucket,
    key: SealingKey,
}

impl SealedObjects {
    /// Returns the sealed objects of a bucket.
    #[must_use]
    pub const fn new(bucket: Bucket, key: SealingKey) -> Self {
        Self { bucket, key }
    }

    /// Returns the bucket.
    #[must_use]
    pub const fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the store did not answer, or the key does not open the object.
    pub async fn get(&self, object: &ObjectKey) -> Result<Option<Vec<u8>>, SealedError> {
        match self.bucket.get(object, None).await? {
            Change::Object(found) => {
                let opened = self.key.open(object.as_str(), &found.body);
                opened
                    .map(Some)
                    .map_err(|error| SealedError::Unopened(object.clone(), error))
            }
            Change::None | Change::Missing => Ok(None),
        }
    }

    /// Creates or replaces an object.
    ///
    /// # Errors
    /// Returns an error if the store did not answer.
    pub async fn put(&self, object: &ObjectKey, content: &[u8]) -> Result<(), SealedError> {
        let sealed = self.key.seal(object.as_str(), content.to_vec());
        let sealed = sealed.map_err(|error| SealedError::Unopened(object.clone(), error))?;
        let sealed = Bytes::from(sealed);
        for _ in 0..MAX_RACES {
            let request = match self.bucket.get(object, None).await? {
                Change::Object(found) => Request::Swap(object.clone(), found.tag, sealed.clone()),
                Change::None | Change::Missing => Request::Create(object.clone(), sealed.clone()),
            };
            if self.bucket.send(&request, &Uploads::new()).await? == Answer::Done {
                return Ok(());
            }
        }
        Err(SealedError::Contended(object.clone()))
    }

    /// Deletes an object, which may be absent.
    ///
    /// # Errors
    /// Returns an error if the store did not answer.
    pub async fn delete(&self, object: &ObjectKey) -> Result<(), SealedError> {
        let request = Request::Delete(object.clone());
        self.bucket.send(&request, &Uploads::new()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(bucket: &Bucket, digit: &str) -> SealedObjects {
        let key = SealingKey::parse(&digit.repeat(64)).expect("a key");
        SealedObjects::new(bucket.clone(), key)
    }

    #[tokio::test]
    async fn object_is_replaced_and_opens_with_the_same_key_only() {
        let bucket = Bucket::in_memory();
        let (own, other) = (objects(&bucket, "a"), objects(&bucket, "b"));
        let account = ObjectKey::new("v1/acme/account");
        assert_eq!(own.get(&account).await.expect("answered"), None);
        for content in ["one", "two"] {
            own.put(&account, content.as_bytes()).await.expect("stored");
            let found = own.get(&account).await.expect("answered");
            assert_eq!(found.as_deref(), Some(content.as_bytes()));
        }
        let error = other
            .get(&account)
            .await
            .expect_err("sealed with another key");
        assert!(
            error
                .to_string()
                .contains("`v1/acme/account` cannot be opened"),
            "{error}"
        );
        own.delete(&account).await.expect("deleted");
        assert_eq!(own.get(&account).await.expect("answered"), None);
    }
}
