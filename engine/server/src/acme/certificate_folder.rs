//! Persists the account, and a file with chain and key for each host, in one folder per CA.
//!
//! A file is written under a temporary name, flushed and renamed, so a crash leaves the old or the new file. Only the owner may read the files.
//!
//! **Invariant:** orders nothing; a file that cannot be read counts as missing.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tracing::warn;

use crate::settings::operator_file::{self, OperatorFileError};
use crate::tls::certificate::Certificate;

/// The identity of a file's content: its inode, size and time of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    inode: u64,
    bytes: u64,
    pub(super) modified: SystemTime,
}

/// The folder of one CA.
#[derive(Debug, Clone)]
pub(super) struct AcmeFolder {
    path: PathBuf,
}

impl AcmeFolder {
    /// Returns the folder for the CA with this directory URL. Certificates of one CA do not count for another.
    pub(super) fn new(below: &Path, directory: &str) -> Self {
        let name = directory.strip_prefix("https://").unwrap_or(directory);
        let plain = |character: char| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' => character,
            _ => '-',
        };
        let name: String = name.chars().map(plain).collect();
        Self {
            path: below.join(name.trim_matches(['-', '.'])),
        }
    }

    /// Returns the name of the CA, as the folder has it.
    pub(super) fn authority(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Checks that files can be written.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(super) fn check(&self) -> io::Result<()> {
        self.write("check", b"")?;
        fs::remove_file(self.path.join("check"))
    }

    /// Returns the certificate of a host, if there is a valid one.
    pub(super) fn certificate(&self, host: &str) -> Option<Certificate> {
        let file = format!("{host}.pem");
        let pem = self.read(&file)?;
        match Certificate::from_pem(&pem, &pem) {
            Ok(certificate) if certificate.covers(host) => Some(certificate),
            Ok(_) => {
                warn!(
                    file,
                    "certificate file is for another host; ordering a new certificate"
                );
                None
            }
            Err(error) => {
                warn!(file, %error, "certificate file cannot be used; ordering a new certificate");
                None
            }
        }
    }

    /// Returns the stamp of a host's certificate file; `None` if the file is missing.
    ///
    /// # Errors
    /// When the operating system cannot say whether the file exists, or the folder is missing.
    pub(super) fn stamp(&self, host: &str) -> io::Result<Option<FileStamp>> {
        match fs::metadata(self.path.join(format!("{host}.pem"))) {
            Ok(found) => Ok(Some(FileStamp {
                inode: found.ino(),
                bytes: found.len(),
                modified: found.modified()?,
            })),
            // Without the folder, a volume is not mounted: all files would count as lost.
            Err(error) if error.kind() == ErrorKind::NotFound && self.path.is_dir() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the file of the account exists. Counts as existing if the operating system cannot say.
    pub(super) fn has_account(&self) -> bool {
        let found = fs::metadata(self.path.join("account.json"));
        !matches!(found, Err(error) if error.kind() == ErrorKind::NotFound)
    }

    /// Persists the certificate of a host.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn persist_certificate(&self, host: &str, chain: &str, key: &str) -> io::Result<()> {
        self.write(&format!("{host}.pem"), format!("{chain}{key}").as_bytes())
    }

    /// Returns the bytes of the persisted account.
    pub(super) fn account(&self) -> Option<Vec<u8>> {
        self.read("account.json")
    }

    /// Persists the account.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn persist_account(&self, account: &[u8]) -> io::Result<()> {
        self.write("account.json", account)
    }

    fn read(&self, file: &str) -> Option<Vec<u8>> {
        match operator_file::read(&self.path.join(file)) {
            Ok(bytes) => Some(bytes),
            Err(OperatorFileError::Unreadable(error)) if error.kind() == ErrorKind::NotFound => {
                None
            }
            Err(error) => {
                warn!(file, %error, "reading a file of the certificate folder failed; treating the file as missing");
                None
            }
        }
    }

    fn write(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)?;
        // Host names never begin with a dot, so the temporary name never collides.
        let temporary = self.path.join(format!(".{file}.new"));
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, self.path.join(file)));
        if written.is_err() {
            // A half-written file takes space on a disk that may be full.
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn signed(host: &str) -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn persisted_certificate_is_read_again_and_private_to_its_owner() {
        let below = tempfile::tempdir().unwrap();
        let folder = AcmeFolder::new(below.path(), "https://authority.example:14000/dir");
        folder.check().unwrap();
        assert!(folder.certificate("studio.example").is_none());
        let (chain, key) = signed("studio.example");
        folder
            .persist_certificate("studio.example", &chain, &key)
            .unwrap();
        assert!(folder.certificate("studio.example").is_some());
        let own = below.path().join("authority.example-14000-dir");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&own.join("studio.example.pem")), 0o600);
        assert_eq!(mode(&own), 0o700);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 1);

        let stamp = folder.stamp("studio.example").unwrap();
        assert!(stamp.is_some() && folder.stamp("studio.example").unwrap() == stamp);
        folder
            .persist_certificate("studio.example", "", "")
            .unwrap();
        assert_ne!(folder.stamp("studio.example").unwrap(), stamp);
        fs::remove_file(own.join("studio.example.pem")).unwrap();
        assert_eq!(folder.stamp("studio.example").unwrap(), None);
        fs::remove_dir_all(&own).unwrap();
        assert!(folder.stamp("studio.example").is_err());

        let other = AcmeFolder::new(below.path(), "https://authority.example/staging");
        assert!(other.certificate("studio.example").is_none());
    }

    #[test]
    fn damaged_or_foreign_certificate_counts_as_missing() {
        let below = tempfile::tempdir().unwrap();
        let folder = AcmeFolder::new(below.path(), "https://authority.example/dir");
        let (chain, key) = signed("other.example");
        folder
            .persist_certificate("studio.example", &chain, &key)
            .unwrap();
        assert!(folder.certificate("studio.example").is_none());
        folder
            .persist_certificate("half.example", &chain[..chain.len() / 2], "")
            .unwrap();
        assert!(folder.certificate("half.example").is_none());
    }

    #[test]
    fn unwritable_folder_is_reported() {
        let below = tempfile::tempdir().unwrap();
        let file = below.path().join("file");
        fs::write(&file, "").unwrap();
        let folder = AcmeFolder::new(&file, "https://authority.example/dir");
        assert!(folder.check().is_err());
        assert!(folder.persist_account(b"{}").is_err());
        assert!(folder.account().is_none());
    }
}
