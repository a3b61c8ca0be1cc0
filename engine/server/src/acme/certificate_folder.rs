//! What outlives the process: the account, and a file with chain and key for each host, below a folder of the authority's own.
//!
//! A file is written beside its place, flushed, and renamed, so that a crash at any moment leaves the old one or the new one; nobody but the owner may read it.
//!
//! **Invariant:** asks for nothing; what it cannot read is not there.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::settings::operator_file::{self, OperatorFileError};
use crate::tls::certificate::Certificate;

/// The folder of one authority.
#[derive(Debug, Clone)]
pub(super) struct AcmeFolder {
    path: PathBuf,
}

impl AcmeFolder {
    /// The folder for the authority with this directory. What one gives out does not count for another.
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

    /// Makes sure that files can be written.
    ///
    /// # Errors
    /// When they cannot.
    pub(super) fn check(&self) -> io::Result<()> {
        self.write("check", b"")?;
        fs::remove_file(self.path.join("check"))
    }

    /// The certificate of a host with the bytes that it was read from, where there is one that can be used.
    pub(super) fn certificate(&self, host: &str) -> Option<Certificate> {
        let file = format!("{host}.pem");
        let pem = self.read(&file)?;
        match Certificate::from_pem(&pem, &pem) {
            Ok(certificate) if certificate.covers(host) => Some(certificate),
            Ok(_) => {
                warn!(file, "the certificate is of another host; it is not used");
                None
            }
            Err(error) => {
                warn!(file, %error, "a certificate cannot be used; another is asked for");
                None
            }
        }
    }

    /// Keeps the certificate of a host.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(super) fn keep_certificate(&self, host: &str, chain: &str, key: &str) -> io::Result<()> {
        self.write(&format!("{host}.pem"), format!("{chain}{key}").as_bytes())
    }

    /// The account, as it was kept.
    pub(super) fn account(&self) -> Option<Vec<u8>> {
        self.read("account.json")
    }

    /// Keeps the account.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(super) fn keep_account(&self, account: &[u8]) -> io::Result<()> {
        self.write("account.json", account)
    }

    fn read(&self, file: &str) -> Option<Vec<u8>> {
        match operator_file::read(&self.path.join(file)) {
            Ok(bytes) => Some(bytes),
            Err(OperatorFileError::Unreadable(error)) if error.kind() == ErrorKind::NotFound => {
                None
            }
            Err(error) => {
                warn!(file, %error, "a file cannot be read");
                None
            }
        }
    }

    fn write(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)?;
        // No host has such a name, so that two of them never meet.
        let beside = self.path.join(format!(".{file}.new"));
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&beside, self.path.join(file)));
        if written.is_err() {
            // What is half written takes room on a disk that may have none.
            let _ = fs::remove_file(&beside);
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
    fn what_is_kept_is_read_again_by_its_owner_only() {
        let below = tempfile::tempdir().unwrap();
        let folder = AcmeFolder::new(below.path(), "https://authority.example:14000/dir");
        folder.check().unwrap();
        assert!(folder.certificate("studio.example").is_none());
        let (chain, key) = signed("studio.example");
        folder
            .keep_certificate("studio.example", &chain, &key)
            .unwrap();
        assert!(folder.certificate("studio.example").is_some());
        let own = below.path().join("authority.example-14000-dir");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&own.join("studio.example.pem")), 0o600);
        assert_eq!(mode(&own), 0o700);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 1);

        let other = AcmeFolder::new(below.path(), "https://authority.example/staging");
        assert!(other.certificate("studio.example").is_none());
    }

    #[test]
    fn what_is_damaged_or_of_another_host_is_not_there() {
        let below = tempfile::tempdir().unwrap();
        let folder = AcmeFolder::new(below.path(), "https://authority.example/dir");
        let (chain, key) = signed("other.example");
        folder
            .keep_certificate("studio.example", &chain, &key)
            .unwrap();
        assert!(folder.certificate("studio.example").is_none());
        folder
            .keep_certificate("half.example", &chain[..chain.len() / 2], "")
            .unwrap();
        assert!(folder.certificate("half.example").is_none());
    }

    #[test]
    fn a_folder_that_takes_nothing_says_so() {
        let below = tempfile::tempdir().unwrap();
        let file = below.path().join("file");
        fs::write(&file, "").unwrap();
        let folder = AcmeFolder::new(&file, "https://authority.example/dir");
        assert!(folder.check().is_err());
        assert!(folder.keep_account(b"{}").is_err());
        assert!(folder.account().is_none());
    }
}
