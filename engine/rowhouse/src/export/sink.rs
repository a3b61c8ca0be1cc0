//! What takes the files of an export, one after the other.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use release::payload::Payload;
use thiserror::Error;

/// Why nothing, or not everything, was written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// Somebody else's folder.
    #[error("`{}` is not empty and no export wrote it: name an empty folder, or one that is not there yet", .0.display())]
    NotOurs(PathBuf),
    /// Somebody else's file in an exported folder.
    #[error("`{}` is there and no export wrote it: move it away", .0.display())]
    Stranger(PathBuf),
    /// Two exports into one folder.
    #[error("another export is writing into `{}`: wait until it has ended", .0.display())]
    Busy(PathBuf),
    /// The system would not.
    #[error("cannot write `{}`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// What takes the files, each by its path (`company.example/terms.html`), once.
pub trait Sink {
    /// Takes a file.
    ///
    /// # Errors
    /// When it cannot be written there.
    fn put(&mut self, file: String, bytes: &Payload) -> Result<(), WriteError>;
}

/// Files in memory.
impl Sink for BTreeMap<String, Bytes> {
    fn put(&mut self, file: String, bytes: &Payload) -> Result<(), WriteError> {
        let read = bytes.to_bytes().map_err(|source| WriteError::Io {
            path: file.clone().into(),
            source,
        })?;
        self.insert(file, read);
        Ok(())
    }
}
