//! The destination of the files of an export.
//!
//! **Invariant:** knows paths and bytes only.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use release::payload::Payload;
use thiserror::Error;

/// The reason why a file or the export was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The folder is not empty and not an earlier export.
    #[error("`{}` is not empty and not an earlier export: name an empty or a new folder", .0.display())]
    NotAnExport(PathBuf),
    /// A file in the folder that no export wrote.
    #[error("`{}` exists and is not from an earlier export: move the file to another folder", .0.display())]
    ForeignFile(PathBuf),
    /// Another export is writing to the folder.
    #[error("another export is writing to `{}`: wait until that export ends", .0.display())]
    Busy(PathBuf),
    /// An error of the operating system.
    #[error("cannot write `{}`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A destination of files. Each file is put once.
pub trait Sink {
    /// Writes a file, named by its path with the host: `company.example/terms.html`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    fn put(&mut self, file: String, bytes: &Payload) -> Result<(), WriteError>;
}

/// Files in memory, for tests.
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
