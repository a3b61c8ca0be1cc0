//! Files that are too large for memory, as the folder holds them.
//!
//! **Invariant:** reads no bytes; the caller of [`read`](super::read) decides where they go.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::stamp::FileStamp;

/// A file that is too large for memory.
#[derive(Debug, Clone)]
pub struct LargeFile {
    /// The bytes, in a file that no longer changes.
    pub file: Arc<File>,
    /// How many bytes it has.
    pub length: u64,
    /// The SHA-256 of its bytes.
    pub digest: [u8; 32],
    /// The SHA-256 of each block of its bytes, as its taker divides them.
    pub blocks: Arc<[[u8; 32]]>,
    /// Which file in the folder these are the bytes of; `None` where that may look the same after a change.
    pub stamp: Option<FileStamp>,
}

/// Files with the same bytes are equal.
impl PartialEq for LargeFile {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for LargeFile {}

/// Takes a file of so many bytes that is too large for memory, so that its bytes stay as they are now whatever becomes of the file. Bytes beyond these are not taken. The stamp is left out.
pub type TakeLarge<'a> = &'a dyn Fn(File, u64) -> io::Result<LargeFile>;
