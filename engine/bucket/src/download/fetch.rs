//! Downloads the content of a version to the disk of a replica.
//!
//! **Invariant:** content on the disk has the hashes that its pointer names.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bytes::Bytes;
use futures_util::StreamExt as _;

use fleet::key::{ContentHash, ObjectKey};
use fleet::pointer::ContentObject;

use crate::download::cache::ContentCache;
use crate::download::large_file::{LargeFileError, write_large_file};
use crate::packed::{self, DamagedContent, MAX_CONTENT_BYTES, PackedFolder, is_hash};
use crate::store::{Bucket, Change, StoreError};

/// The limit on the size of content that is read into memory, in bytes: the small files of a folder.
const MAX_FOLDER_BYTES: u64 = 1 << 30;

/// A version of a tenant that this replica cannot use.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The pointer is not a pointer of this program.
    #[error("the object `{0}` is damaged: it is not a pointer")]
    Pointer(ObjectKey),
    /// An object with content does not exist.
    #[error("the object `{0}` of version {1} does not exist")]
    Missing(ObjectKey, u64),
    /// An object with content is damaged.
    #[error("the object `{object}` of version {version} is damaged: it {reason}")]
    Damaged {
        /// The object.
        object: ObjectKey,
        /// The version of the tenant.
        version: u64,
        /// The damage.
        reason: DamagedContent,
    },
    /// The content cannot be written to the disk.
    #[error("version {1} cannot be written to the disk: {0}")]
    Disk(io::Error, u64),
}

/// Downloads the content of a version, unless it is on the disk. The first content is the packed folder.
pub(crate) async fn fetch(
    bucket: &Bucket,
    cache: &ContentCache,
    (tenant, version): (&str, u64),
    content: &[ContentObject],
) -> Result<(), FetchError> {
    let mut content = content.iter();
    let Some(packed) = content.next().filter(|packed| is_hash(&packed.hash)) else {
        return Err(FetchError::Pointer(ObjectKey::pointer(tenant)));
    };
    let is_cached = cache.has(&packed.hash);
    bucket.metrics().record_cache(is_cached);
    if is_cached {
        return Ok(());
    }
    let bytes = read(bucket, packed, version).await?;
    let folder = PackedFolder::of_bytes(&bytes).map_err(|reason| FetchError::Damaged {
        object: packed.object.clone(),
        version,
        reason,
    })?;
    let objects: BTreeMap<&ContentHash, &ContentObject> =
        content.map(|object| (&object.hash, object)).collect();
    let on_disk = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidData => FetchError::Damaged {
            object: packed.object.clone(),
            version,
            reason: DamagedContent::Format,
        },
        _ => FetchError::Disk(error, version),
    };
    let partial = cache.begin(&packed.hash).map_err(on_disk)?;
    partial.write_small(&folder).map_err(on_disk)?;
    for (path, hash) in &folder.large {
        let object = objects.get(hash).ok_or_else(|| FetchError::Damaged {
            object: packed.object.clone(),
            version,
            reason: DamagedContent::Format,
        })?;
        let place = partial.place(path).map_err(on_disk)?;
        download(bucket, object, version, &place).await?;
    }
    partial.complete().map_err(on_disk)
}

/// Downloads the content of a large file to a new file, and verifies its hash.
async fn download(
    bucket: &Bucket,
    object: &ContentObject,
    version: u64,
    place: &Path,
) -> Result<(), FetchError> {
    let Some(opened) = bucket.open_object(&object.object).await? else {
        return Err(FetchError::Missing(object.object.clone(), version));
    };
    let received = |chunk: &Result<Bytes, _>| {
        let length = chunk.as_ref().map_or(0, Bytes::len);
        bucket.metrics().record_received(length);
    };
    let chunks = opened.into_stream().inspect(received);
    let written = write_large_file(place, chunks, &object.hash, MAX_CONTENT_BYTES).await;
    written.map_err(|error| match error {
        LargeFileError::Download(error) => FetchError::Store(error.into()),
        LargeFileError::Damaged(reason) => FetchError::Damaged {
            object: object.object.clone(),
            version,
            reason,
        },
        LargeFileError::Disk(error) => FetchError::Disk(error, version),
    })
}

/// Reads a content object, and verifies its hash.
pub(crate) async fn read(
    bucket: &Bucket,
    object: &ContentObject,
    version: u64,
) -> Result<Bytes, FetchError> {
    let stored = match bucket.get(&object.object, None).await? {
        Change::Object(stored) => stored.body,
        Change::None | Change::Missing => {
            return Err(FetchError::Missing(object.object.clone(), version));
        }
    };
    let content = packed::decompress(&stored, &object.hash, MAX_FOLDER_BYTES);
    content.map_err(|reason| FetchError::Damaged {
        object: object.object.clone(),
        version,
        reason,
    })
}
