//! Files of a folder that are too large for memory.
//!
//! **Invariant:** reads no bytes; the caller of [`read`](super::read) decides where the bytes are stored.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::stamp::FileStamp;

/// A file that is too large for memory.
#[derive(Debug, Clone)]
pub struct LargeSourceFile {
    /// A file with the content. It no longer changes.
    pub file: Arc<File>,
    /// The length in bytes.
    pub length: u64,
    /// The SHA-256 of its bytes.
    pub digest: [u8; 32],
    /// The SHA-256 of each block. The function that copied the file chooses the block length.
    pub blocks: Arc<[[u8; 32]]>,
    /// The stamp of the original file. `None` if a change might leave the stamp the same.
    pub stamp: Option<FileStamp>,
}

/// Files with the same bytes are equal.
impl PartialEq for LargeSourceFile {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for LargeSourceFile {}

/// A function that makes a private copy of a large file, given the file and its length in bytes. Later changes of the file do not affect the copy.
///
/// The function copies no bytes beyond the length, and leaves the stamp empty.
pub type CopyLargeFile<'a> = &'a dyn Fn(File, u64) -> io::Result<LargeSourceFile>;
