//! Files that are too large for memory, read from disk one block at a time.
//!
//! Every read of a block verifies its hash. If a file is truncated or damaged while in use, only that read fails. A response contains only bytes that match their hash.
//!
//! **Invariant:** a private copy keeps its content, even if the original file changes.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// The largest content, in bytes, that is held in memory.
pub const MAX_MEMORY_BYTES: u64 = 32 << 20;

/// The length of a block in bytes. The last block may be shorter.
pub const BLOCK_BYTES: usize = 64 << 10;

/// A SHA-256 digest.
pub type Sha256Digest = [u8; 32];

/// A file that is too large for memory. A copy shares the open file.
#[derive(Debug, Clone)]
pub struct LargeFile {
    file: Arc<File>,
    length: u64,
    digest: Sha256Digest,
    blocks: Arc<[Sha256Digest]>,
}

/// The parts of a [`LargeFile`]: the open file, its length in bytes, its hash, and the hash of each block.
pub type LargeParts = (Arc<File>, u64, Sha256Digest, Arc<[Sha256Digest]>);

/// Files with the same bytes are equal.
impl PartialEq for LargeFile {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for LargeFile {}

impl LargeFile {
    /// Creates a file from its parts, as returned by [`Self::parts`].
    #[must_use]
    pub fn new((file, length, digest, blocks): LargeParts) -> Self {
        Self {
            file,
            length,
            digest,
            blocks,
        }
    }

    /// Returns the parts of the file.
    #[must_use]
    pub fn parts(&self) -> LargeParts {
        let (file, blocks) = (Arc::clone(&self.file), Arc::clone(&self.blocks));
        (file, self.length, self.digest, blocks)
    }

    /// Hashes the current content of a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn open(mut file: File) -> io::Result<Self> {
        let (length, digest, blocks) = hash_blocks(&mut file, |_| Ok(()))?;
        Ok(Self::new((Arc::new(file), length, digest, blocks)))
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether the file is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the SHA-256 of the content.
    #[must_use]
    pub const fn digest(&self) -> &Sha256Digest {
        &self.digest
    }

    /// Reads from the start of `range` to its end or to the end of the first block, whichever comes first. Returns nothing for an empty range.
    ///
    /// # Errors
    /// If the file cannot be read or has changed since it was hashed.
    pub fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let block_length = BLOCK_BYTES as u64;
        let start = range.start / block_length * block_length;
        let end = (start + block_length).min(self.length);
        let number = usize::try_from(start / block_length).map_err(io::Error::other)?;
        let expected = self.blocks.get(number).ok_or_else(damaged)?;
        let to_usize = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let mut block = vec![0; to_usize(end.saturating_sub(start))?];
        match self.file.read_exact_at(&mut block, start) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
            Err(error) => return Err(error),
        }
        if Sha256::digest(&block)[..] != expected[..] {
            return Err(damaged());
        }
        let wanted = to_usize(range.start - start)?..to_usize(range.end.min(end) - start)?;
        Ok(Bytes::from(block).slice(wanted))
    }

    /// Passes all bytes to `block`, one block at a time.
    ///
    /// # Errors
    /// If the file cannot be read, has changed since it was hashed, or `block` fails.
    pub fn for_each_block(&self, mut block: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut offset = 0;
        while offset < self.length {
            let bytes = self.read(offset..self.length)?;
            block(&bytes)?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the file has changed since it was hashed",
    )
}

/// Copies up to `length` bytes of `file` into an unnamed file in `folder`.
///
/// No other process can change the copy. The system deletes it with its last handle, even if the process is killed.
///
/// # Errors
/// If the file cannot be read, or the copy cannot be written.
pub fn copy_private(file: File, length: u64, folder: &Path) -> io::Result<LargeFile> {
    let no_copy = |error: io::Error| {
        let message = format!("cannot copy the file to `{}`: {error}", folder.display());
        io::Error::new(error.kind(), message)
    };
    let mut own = tempfile::tempfile_in(folder).map_err(no_copy)?;
    let (length, digest, blocks) = hash_blocks(&mut file.take(length), |block| {
        own.write_all(block).map_err(no_copy)
    })?;
    Ok(LargeFile::new((Arc::new(own), length, digest, blocks)))
}

/// Reads `from` to its end and passes each block to `block`. Returns the length in bytes, the hash, and the hash of each block.
fn hash_blocks(
    from: &mut impl Read,
    mut block: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(u64, Sha256Digest, Arc<[Sha256Digest]>)> {
    let (mut all, mut blocks, mut length) = (Sha256::new(), Vec::new(), 0);
    let mut bytes = Vec::with_capacity(BLOCK_BYTES);
    loop {
        bytes.clear();
        from.by_ref()
            .take(BLOCK_BYTES as u64)
            .read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            break;
        }
        block(&bytes)?;
        all.update(&bytes);
        blocks.push(Sha256::digest(&bytes).into());
        length += bytes.len() as u64;
    }
    Ok((length, all.finalize().into(), blocks.into()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn file_of(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("film.mp4");
        fs::write(&path, bytes).expect("a file");
        (folder, path)
    }

    fn all(large: &LargeFile) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        large.for_each_block(|block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        Ok(bytes)
    }

    #[test]
    fn private_copy_outlives_its_source() {
        let (folder, path) = file_of(b"a film");
        let open = || File::open(&path).expect("a file");
        let film = copy_private(open(), 1_000, folder.path()).expect("a video");
        let start = copy_private(open(), 3, folder.path()).expect("its start");
        fs::write(&path, "another").expect("a file");
        fs::remove_file(&path).expect("removed");
        assert_eq!(all(&film).expect("bytes"), b"a film");
        assert_eq!(all(&start).expect("bytes"), b"a f");
        assert_eq!(film.read(2..4).expect("a part"), "fi");
        let left = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0, "the copy has no name");
    }

    #[test]
    fn empty_file_is_copied() {
        let (folder, path) = file_of(b"");
        let empty = File::open(&path).expect("a file");
        let taken = copy_private(empty, 10, folder.path()).expect("a file");
        assert!(taken.is_empty() && all(&taken).expect("bytes").is_empty());
    }

    #[test]
    fn reading_a_truncated_or_damaged_file_fails() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES + 5)
            .map(|at| (at % 251) as u8)
            .collect();
        let (_folder, path) = file_of(&bytes);
        let large = LargeFile::open(File::open(&path).expect("a file")).expect("hashed");
        let length = large.len();
        assert_eq!(all(&large).expect("bytes"), bytes);
        let mut damaged = bytes.clone();
        damaged[BLOCK_BYTES + 7] ^= 1;
        fs::write(&path, &damaged).expect("a file");
        assert!(
            large.read(0..length).is_ok(),
            "the damage is in another block"
        );
        let failed = large.read(BLOCK_BYTES as u64..length).expect_err("damaged");
        assert_eq!(failed.kind(), io::ErrorKind::InvalidData);
        fs::write(&path, &bytes[..BLOCK_BYTES + 1]).expect("a file");
        assert!(large.read(BLOCK_BYTES as u64..length).is_err(), "cut short");
        assert!(
            large.read(length - 1..length).is_err(),
            "the block is missing"
        );
        fs::write(&path, &bytes).expect("a file");
        assert_eq!(all(&large).expect("bytes"), bytes);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_range_reads_the_written_bytes(length in 1_usize..200_000, from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 241) as u8).collect();
            let (_folder, path) = file_of(&bytes);
            let large = LargeFile::open(File::open(&path).expect("a file")).expect("hashed");
            let (from, to) = (from.index(length), to.index(length + 1));
            let mut read = Vec::new();
            let mut at = from;
            while at < to {
                let piece = large.read(at as u64..to as u64).expect("a piece");
                prop_assert!(!piece.is_empty() && piece.len() <= BLOCK_BYTES);
                at += piece.len();
                read.extend_from_slice(&piece);
            }
            prop_assert_eq!(&read[..], bytes.get(from..to).unwrap_or_default());
        }
    }
}
