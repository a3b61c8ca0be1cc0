//! The content objects of a folder: one with all small files, and one for each large file.
//!
//! Equal folders give equal hashes, on any machine and in any build. The hash is that of the uncompressed bytes, because other versions of the compressor give other bytes.

use std::collections::BTreeMap;
use std::io::Read;
use std::str;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use fleet::key::ContentHash;
use release::pack;

/// The digits of a SHA-256 in hexadecimal.
const HASH_DIGITS: usize = 64;

/// Files of more bytes have an object of their own, so that a changed page does not upload the videos again.
pub const LARGE_FILE: usize = 1 << 20;

/// The limit on the size of the content of one object, in bytes. A damaged object may claim any size.
pub(crate) const MAX_CONTENT_BYTES: u64 = 8 << 30;

/// The compression level of zstd: content is uploaded once and read by every replica.
const COMPRESSION_LEVEL: i32 = 9;

/// The marks before the path of a file in the packed folder.
const SMALL: u8 = b'=';
const LARGE: u8 = b'#';

/// A content object that does not have the content that its name claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DamagedContent {
    /// The object cannot be decompressed, or is larger than the limit.
    #[error("cannot be decompressed")]
    Compression,
    /// The content has another hash.
    #[error("does not have the content of its name")]
    Hash,
    /// The content is not a packed folder.
    #[error("is not a packed folder")]
    Format,
}

/// A folder as it is packed: its small files, and the hashes of its large files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedFolder {
    /// The small files by path.
    pub files: BTreeMap<String, Bytes>,
    /// The hashes of the large files by path.
    pub large: BTreeMap<String, ContentHash>,
}

impl PackedFolder {
    /// Returns the folder as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let small = self
            .files
            .iter()
            .map(|(path, bytes)| (SMALL, path, &bytes[..]));
        let large = self
            .large
            .iter()
            .map(|(path, hash)| (LARGE, path, hash.0.as_bytes()));
        let named: Vec<(Vec<u8>, &[u8])> = small
            .chain(large)
            .map(|(mark, path, bytes)| ([&[mark], path.as_bytes()].concat(), bytes))
            .collect();
        pack::pack(named.iter().map(|(name, bytes)| (&name[..], *bytes))).into()
    }

    /// Returns the folder with these bytes.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a packed folder.
    pub fn of_bytes(bytes: &Bytes) -> Result<Self, DamagedContent> {
        let mut folder = Self::default();
        for (name, bytes) in pack::unpack(bytes).ok_or(DamagedContent::Format)? {
            let text = |bytes| str::from_utf8(bytes).map_err(|_| DamagedContent::Format);
            let (mark, path) = name.split_first().ok_or(DamagedContent::Format)?;
            let path = text(path)?.to_owned();
            match *mark {
                SMALL => drop(folder.files.insert(path, bytes)),
                LARGE => {
                    let hash = ContentHash(text(&bytes)?.to_owned());
                    folder.large.insert(path, hash);
                }
                _ => return Err(DamagedContent::Format),
            }
        }
        Ok(folder)
    }
}

/// Returns the name of content.
#[must_use]
pub fn hash(content: &[u8]) -> ContentHash {
    hash_of(Sha256::new_with_prefix(content))
}

/// Returns the name of content whose bytes were hashed.
pub(crate) fn hash_of(content: Sha256) -> ContentHash {
    let digest = content.finalize();
    ContentHash(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the bytes of a content object.
///
/// # Errors
/// Returns an error if memory for the compressor is missing.
pub fn compress(content: &[u8]) -> Result<Bytes, std::io::Error> {
    zstd::bulk::compress(content, COMPRESSION_LEVEL).map(Bytes::from)
}

/// Returns the content of a content object.
///
/// # Errors
/// Returns an error if the object is damaged, or its content has more than `limit` bytes.
pub fn decompress(
    object: &[u8],
    expected: &ContentHash,
    limit: u64,
) -> Result<Bytes, DamagedContent> {
    let decoder = zstd::Decoder::with_buffer(object).map_err(|_| DamagedContent::Compression)?;
    let mut content = Vec::new();
    let read = decoder
        .take(limit.saturating_add(1))
        .read_to_end(&mut content);
    read.map_err(|_| DamagedContent::Compression)?;
    if u64::try_from(content.len()).is_ok_and(|length| length > limit) {
        return Err(DamagedContent::Compression);
    }
    match hash(&content) == *expected {
        true => Ok(content.into()),
        false => Err(DamagedContent::Hash),
    }
}

/// Returns whether a name is the name of a folder, and not a path.
pub(crate) fn is_hash(hash: &ContentHash) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hash.0.len() == HASH_DIGITS && hash.0.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_folder_comes_back(
            files: BTreeMap<String, Vec<u8>>,
            large: BTreeMap<String, String>,
        ) {
            let folder = PackedFolder {
                files: files.into_iter().map(|(path, bytes)| (path, bytes.into())).collect(),
                large: large.into_iter().map(|(path, hash)| (path, ContentHash(hash))).collect(),
            };
            prop_assert_eq!(PackedFolder::of_bytes(&folder.to_bytes()), Ok(folder));
        }

        #[test]
        fn any_bytes_are_a_folder_or_an_error(bytes: Vec<u8>) {
            let _ = PackedFolder::of_bytes(&bytes.clone().into());
            let _ = decompress(&bytes, &hash(&bytes), 1 << 20);
        }
    }

    #[test]
    fn damaged_or_too_large_object_is_refused() {
        let content = "a page\n".repeat(100);
        let name = hash(content.as_bytes());
        let object = compress(content.as_bytes()).expect("compressed");
        let limit = content.len() as u64;
        let read = decompress(&object, &name, limit);
        assert_eq!(read.expect("intact"), content);
        assert_eq!(
            decompress(&object, &name, limit - 1),
            Err(DamagedContent::Compression)
        );
        assert_eq!(
            decompress(&object, &hash(b"another"), limit),
            Err(DamagedContent::Hash)
        );
        assert_eq!(
            decompress(&object[..object.len() / 2], &name, limit),
            Err(DamagedContent::Compression)
        );
    }
}
