//! Reads every object that a pointer or a recent version in the history names, and every rendered release, and compares its hash.

use std::collections::BTreeMap;

use fleet::collect::KEPT_VERSIONS;
use fleet::exchange::{Answer, Request};
use fleet::key::{HISTORY, ObjectKey, POINTERS, RELEASES};
use fleet::pointer::{ContentObject, Pointer};

use crate::packed::{DamagedContent, MAX_CONTENT_BYTES, decompress};
use crate::releases;
use crate::store::{Bucket, Change, StoreError, Uploads};

/// The reason that an object cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The object does not exist.
    #[error("does not exist")]
    Missing,
    /// The object is not a pointer.
    #[error("is not a pointer of this version of the program")]
    NotPointer,
    /// The rendered release is damaged. Replicas render by themselves.
    #[error("is damaged: delete it, and the next replica that needs it renders it again")]
    Release,
    /// The object does not have its content.
    #[error(transparent)]
    Content(#[from] DamagedContent),
}

/// An object that cannot be used, and the pointer or version in the history that needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The pointer or version in the history.
    pub named_by: ObjectKey,
    /// The object.
    pub object: ObjectKey,
    /// The reason.
    pub fault: Fault,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// The number of pointers.
    pub pointers: usize,
    /// The number of content objects that were read.
    pub objects: usize,
    /// The number of rendered releases that were read.
    pub releases: usize,
    /// The objects that cannot be used.
    pub damage: Vec<Damage>,
}

/// Reads all named objects.
///
/// # Errors
/// Returns an error if the store did not answer, or refuses the requests.
pub async fn verify(bucket: &Bucket) -> Result<Verification, StoreError> {
    let mut result = Verification::default();
    let mut named: BTreeMap<ContentObject, ObjectKey> = BTreeMap::new();
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    for prefix in [POINTERS, HISTORY] {
        let request = Request::List(prefix.to_owned());
        let Answer::Listed(keys) = bucket.send(&request, &Uploads::new()).await? else {
            continue;
        };
        for key in keys {
            result.pointers += usize::from(prefix == POINTERS);
            // The content of older versions may have been collected.
            let is_old = key.version().is_some_and(|(tenant, version)| {
                let current = versions.get(tenant);
                current.is_some_and(|current| version + KEPT_VERSIONS < *current)
            });
            if is_old {
                continue;
            }
            // An object that is gone was replaced or collected since the list.
            let Change::Object(object) = bucket.get(&key, None).await? else {
                continue;
            };
            match Pointer::of_bytes(&object.body) {
                Some(pointer) => {
                    if let Some(tenant) = key.as_str().strip_prefix(POINTERS) {
                        versions.insert(tenant.to_owned(), pointer.version());
                    }
                    for content in pointer.named() {
                        let content = content.clone();
                        named.entry(content).or_insert_with(|| key.clone());
                    }
                }
                None => result.damage.push(Damage {
                    named_by: key.clone(),
                    object: key,
                    fault: Fault::NotPointer,
                }),
            }
        }
    }
    for (content, named_by) in named {
        result.objects += 1;
        let fault = match bucket.get(&content.object, None).await? {
            Change::Object(object) => decompress(&object.body, &content.hash, MAX_CONTENT_BYTES)
                .err()
                .map(Fault::from),
            _ => Some(Fault::Missing),
        };
        result.damage.extend(fault.map(|fault| Damage {
            named_by,
            object: content.object,
            fault,
        }));
    }
    verify_releases(bucket, &mut result).await?;
    Ok(result)
}

/// Reads all rendered releases.
async fn verify_releases(bucket: &Bucket, result: &mut Verification) -> Result<(), StoreError> {
    let request = Request::List(RELEASES.to_owned());
    let Answer::Listed(keys) = bucket.send(&request, &Uploads::new()).await? else {
        return Ok(());
    };
    for key in keys {
        // An object that is gone was collected since the list.
        let Change::Object(object) = bucket.get(&key, None).await? else {
            continue;
        };
        result.releases += 1;
        if releases::open(&object.body).is_none() {
            result.damage.push(Damage {
                named_by: key.clone(),
                object: key,
                fault: Fault::Release,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fleet::publish::{Edit, Outcome, Publication};

    use super::*;
    use crate::packed::{compress, hash};
    use crate::run::publish;
    use crate::store::random_nonce;

    async fn put(bucket: &Bucket, text: &str) {
        let name = hash(text.as_bytes());
        let object = compress(text.as_bytes()).expect("compressed");
        let publication = Publication {
            tenant: "corner".to_owned(),
            edit: Edit::Publish(vec![name.clone()]),
            addresses: Vec::new(),
            expected: None,
            at: 0,
            author: "ann@desk".to_owned(),
        };
        let uploads = Uploads::from([(name, object)]);
        let ended = publish(bucket, publication, &uploads, random_nonce()).await;
        assert!(matches!(ended, Ok(Outcome::Published(_))), "{ended:?}");
    }

    /// Deletes the content of a version in the history.
    async fn lose(bucket: &Bucket, version: u64) {
        let read = bucket
            .get(&ObjectKey::history("corner", version), None)
            .await;
        let Ok(Change::Object(object)) = read else {
            panic!("{read:?}");
        };
        let pointer = Pointer::of_bytes(&object.body).expect("a pointer");
        let delete = Request::Delete(pointer.content[0].object.clone());
        let deleted = bucket.send(&delete, &Uploads::new()).await;
        assert_eq!(deleted.expect("answered"), Answer::Done);
    }

    #[tokio::test]
    async fn collected_content_of_an_old_version_is_no_damage() {
        let bucket = Bucket::in_memory();
        for version in 1..=KEPT_VERSIONS + 2 {
            put(&bucket, &format!("version {version}")).await;
        }
        lose(&bucket, 1).await;
        let damage = async || verify(&bucket).await.expect("answered").damage;
        assert_eq!(damage().await, []);
        lose(&bucket, 2).await;
        let damage = damage().await;
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_eq!(damage[0].named_by, ObjectKey::history("corner", 2));
    }
}
