//! Reads files that operators configure: tokens, certificates, keys, roots.
//!
//! **Invariant:** reads a bounded number of bytes, and never blocks on a named pipe.

use std::fs::{File, FileType};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use thiserror::Error;

/// Maximum size of a file. The root certificates of all public certificate authorities (CAs) together have a quarter of that.
const MAX_BYTES: u64 = 1024 * 1024;

/// Error of reading a file.
#[derive(Debug, Error)]
pub enum OperatorFileError {
    /// The path names a folder, a device, a pipe or a socket: the content may be endless, or opening may block.
    #[error("the path is {0}: name a regular file")]
    NotAFile(&'static str),
    /// The file is larger than any token, certificate or key.
    #[error(
        "the file has more than {} MiB: name a file that contains only the value of the flag",
        MAX_BYTES >> 20
    )]
    TooLarge,
    /// The operating system returned an error.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

/// Reads a file.
///
/// # Errors
/// When the path does not name a regular file of at most 1 MiB.
pub fn read(path: &Path) -> Result<Vec<u8>, OperatorFileError> {
    // Checked before the file is opened, since opening a named pipe blocks until there is a writer.
    check_type(path.metadata()?.file_type())?;
    let file = File::open(path)?;
    check_type(file.metadata()?.file_type())?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(..=MAX_BYTES) => Ok(bytes),
        _ => Err(OperatorFileError::TooLarge),
    }
}

fn check_type(kind: FileType) -> Result<(), OperatorFileError> {
    let name = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(OperatorFileError::NotAFile(name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn endless_device_named_pipe_and_large_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let said = |path: &Path| read(path).unwrap_err().to_string();
        assert!(said(Path::new("/dev/zero")).starts_with("the path is a device"));
        assert!(said(folder.path()).starts_with("the path is a folder"));
        let pipe = path("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert!(said(&pipe).starts_with("the path is a named pipe"));
        std::os::unix::fs::symlink(&pipe, path("link")).unwrap();
        assert!(said(&path("link")).starts_with("the path is a named pipe"));
        let large = File::create(path("large")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        assert!(said(&path("large")).starts_with("the file has more than 1 MiB"));
        large.set_len(MAX_BYTES).unwrap();
        assert_eq!(read(&path("large")).unwrap().len(), 1024 * 1024);
        fs::write(path("token"), "a token of some length\n").unwrap();
        assert_eq!(read(&path("token")).unwrap(), b"a token of some length\n");
        assert!(said(&path("missing")).contains("No such file"));
    }
}
