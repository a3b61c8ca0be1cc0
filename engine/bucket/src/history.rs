//! The versions of a tenant, and their files.

use fleet::exchange::{Answer, Request};
use fleet::key::{HISTORY, ObjectKey};
use fleet::pointer::{ContentObject, Pointer};

use crate::download::fetch::{FetchError, read};
use crate::packed::PackedFolder;
use crate::store::{Bucket, Change, StoreError, Uploads};

/// Returns the current pointer of a tenant and all former ones, newest first. Empty if the tenant was never published.
///
/// Leaves out objects that this version of the program cannot read.
///
/// # Errors
/// Returns an error if the store did not answer, or refuses the requests.
pub async fn history(bucket: &Bucket, tenant: &str) -> Result<Vec<Pointer>, StoreError> {
    let request = Request::List(format!("{HISTORY}{tenant}/"));
    let mut keys = vec![ObjectKey::pointer(tenant)];
    if let Answer::Listed(listed) = bucket.send(&request, &Uploads::new()).await? {
        keys.extend(listed);
    }
    let mut pointers = Vec::new();
    for key in keys {
        if let Change::Object(object) = bucket.get(&key, None).await? {
            pointers.extend(Pointer::of_bytes(&object.body));
        }
    }
    pointers.sort_by_key(|pointer| std::cmp::Reverse(pointer.version()));
    // A publisher that was killed before its swap has stored the current version in the history.
    pointers.dedup_by_key(|pointer| pointer.version());
    Ok(pointers)
}

/// Returns the packed folder of the content of a version. It is empty if the version has no content.
///
/// # Errors
/// Returns an error if the store did not answer, or the content is missing or damaged.
pub async fn packed_folder(
    bucket: &Bucket,
    content: &[ContentObject],
    version: u64,
) -> Result<PackedFolder, FetchError> {
    let Some(packed) = content.first() else {
        return Ok(PackedFolder::default());
    };
    let bytes = read(bucket, packed, version).await?;
    PackedFolder::of_bytes(&bytes).map_err(|reason| FetchError::Damaged {
        object: packed.object.clone(),
        version,
        reason,
    })
}
