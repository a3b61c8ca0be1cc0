//! Writes a large file to the disk while its object is downloaded, so that no replica holds the file in memory.
//!
//! **Invariant:** a call that succeeds has left a complete file with the content of its hash.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};
use zstd::stream::write::Decoder;

use fleet::key::ContentHash;

use crate::packed::{DamagedContent, hash_of};

/// The reason that a large file was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LargeFileError<E> {
    /// The download has failed.
    #[error(transparent)]
    Download(E),
    /// The object is damaged.
    #[error("the object {0}")]
    Damaged(DamagedContent),
    /// The disk refuses a write.
    #[error(transparent)]
    Disk(io::Error),
}

/// A file with the hash of its content so far.
#[derive(Debug)]
struct HashedFile {
    file: File,
    digest: Sha256,
    /// The number of bytes that may still follow.
    room: u64,
    is_disk_failure: bool,
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > self.room {
            return Err(io::Error::other("the content is larger than the limit"));
        }
        let written = self.file.write(bytes);
        self.is_disk_failure |= written.is_err();
        let (written, _) = bytes.split_at_checked(written?).unwrap_or((bytes, &[]));
        self.digest.update(written);
        self.room = self
            .room
            .saturating_sub(u64::try_from(written.len()).unwrap_or(u64::MAX));
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decompresses the chunks of an object to a new file. The content has this hash and at most `limit` bytes. A file that stays after an error is not complete.
pub(crate) async fn write_large_file<E>(
    path: &Path,
    mut chunks: impl Stream<Item = Result<Bytes, E>> + Unpin,
    expected: &ContentHash,
    limit: u64,
) -> Result<(), LargeFileError<E>> {
    let file = HashedFile {
        file: File::create(path).map_err(LargeFileError::Disk)?,
        digest: Sha256::new(),
        room: limit,
        is_disk_failure: false,
    };
    let mut decoder = Decoder::new(file).map_err(LargeFileError::Disk)?;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(LargeFileError::Download)?;
        if let Err(error) = decoder.write_all(&chunk) {
            return Err(cause(error, decoder.get_ref()));
        }
    }
    if let Err(error) = decoder.flush() {
        return Err(cause(error, decoder.get_ref()));
    }
    let file = decoder.into_inner();
    // A folder with its final name is complete, even after a power failure.
    file.file.sync_all().map_err(LargeFileError::Disk)?;
    match hash_of(file.digest) == *expected {
        true => Ok(()),
        false => Err(LargeFileError::Damaged(DamagedContent::Hash)),
    }
}

fn cause<E>(error: io::Error, file: &HashedFile) -> LargeFileError<E> {
    match file.is_disk_failure {
        true => LargeFileError::Disk(error),
        false => LargeFileError::Damaged(DamagedContent::Compression),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures_util::stream;
    use tempfile::TempDir;

    use super::*;
    use crate::packed::{compress, hash};

    const LIMIT: u64 = 1 << 20;

    /// Writes an object in chunks of this size. Returns the file, or the error.
    async fn write(object: &[u8], chunk: usize, limit: u64) -> Result<Vec<u8>, String> {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("film.mp4");
        let chunks = object.chunks(chunk).map(|chunk| Ok(chunk.to_vec().into()));
        let chunks: Vec<Result<Bytes, String>> = chunks.collect();
        let written = write_large_file(&path, stream::iter(chunks), &hash(&content()), limit).await;
        written.map_err(|error| error.to_string())?;
        Ok(fs::read(path).expect("a file"))
    }

    fn content() -> Vec<u8> {
        (0..100_000_u32).flat_map(u32::to_le_bytes).collect()
    }

    #[tokio::test]
    async fn object_in_chunks_of_any_size_becomes_the_file() {
        let object = compress(&content()).expect("memory");
        for chunk in [1, 7, 4_096, object.len()] {
            assert_eq!(write(&object, chunk, LIMIT).await, Ok(content()), "{chunk}");
        }
    }

    #[tokio::test]
    async fn damaged_truncated_or_larger_object_is_refused() {
        let object = compress(&content()).expect("memory");
        let other = compress(b"other").expect("memory");
        let truncated = &object[..object.len() - 1];
        let mut changed = object.to_vec();
        changed[0] ^= 1;
        for (object, limit) in [
            (&*other, LIMIT),
            (truncated, LIMIT),
            (&changed, LIMIT),
            (&object, 100),
        ] {
            let refused = write(object, 1_000, limit).await;
            assert!(refused.is_err_and(|error| error.starts_with("the object")));
        }
    }

    #[tokio::test]
    async fn failed_download_is_told() {
        let folder = TempDir::new().expect("a folder");
        let object = compress(&content()).expect("memory");
        let chunks = [Ok(object.slice(..100)), Err("the connection is closed")];
        let path = folder.path().join("film.mp4");
        let written = write_large_file(&path, stream::iter(chunks), &hash(&content()), LIMIT).await;
        assert!(matches!(written, Err(LargeFileError::Download(_))));
    }
}
