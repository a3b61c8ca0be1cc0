//! Reads operators' certificates from files, and again when the files change.
//!
//! A tool that renews a certificate replaces the certificate and the key one after the other, and a file may be half written at any moment. Files that cannot be read, or that do not belong together, change nothing and are checked again a second later.
//!
//! **Invariant:** writes no file; a valid certificate stays in use until there is a valid new one.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tracing::{info, warn};

use super::certificate::{Certificate, CertificateError};
use super::certificate_store::CertificateStore;
use crate::settings::operator_file::{self, OperatorFileError};

/// How often the files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The paths of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFile {
    /// The certificate chain in PEM, with the certificate itself first.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// Error of reading a certificate and its key from files.
#[derive(Debug, Error)]
pub enum FileError {
    /// A file cannot be read, or is not a regular file.
    #[error("cannot read `{path}`: {source}")]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: OperatorFileError,
    },
    /// The content of the files cannot be used.
    #[error("cannot use `{path}`: {source}")]
    Unusable {
        /// The path of the certificate, or of the key if the key is at fault.
        path: PathBuf,
        /// The cause.
        source: CertificateError,
    },
}

/// The bytes of a certificate file and its key file.
type CertificateBytes = (Vec<u8>, Vec<u8>);

/// Operators' certificate files and their last valid content.
#[derive(Debug)]
pub struct FileCertificates {
    files: Vec<CertificateFile>,
    /// The certificate in use for each file, and the bytes that it was read from.
    loaded: Vec<(CertificateBytes, Arc<Certificate>)>,
    /// The last problem of each file, so that each problem is logged once.
    problems: Vec<Option<String>>,
    store: Arc<CertificateStore>,
}

impl FileCertificates {
    /// Reads all files and puts their certificates into use.
    ///
    /// # Errors
    /// When the files of a certificate cannot be used: operators must fix them before the program serves.
    pub fn read(
        files: Vec<CertificateFile>,
        store: Arc<CertificateStore>,
    ) -> Result<Self, FileError> {
        let loaded = files
            .iter()
            .map(|file| {
                let contents = contents(file)?;
                let certificate = parse(file, &contents)?;
                Ok((contents, Arc::new(certificate)))
            })
            .collect::<Result<Vec<_>, FileError>>()?;
        let all = Self {
            problems: files.iter().map(|_| None).collect(),
            files,
            loaded,
            store,
        };
        all.publish();
        Ok(all)
    }

    /// Checks the files every second from now on, on a thread of its own.
    ///
    /// # Errors
    /// When the operating system cannot create the thread.
    pub fn watch(mut self) -> io::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let name = "certificates".to_owned();
        thread::Builder::new().name(name).spawn(move || {
            loop {
                thread::sleep(CHECK_INTERVAL);
                self.reload();
            }
        })?;
        Ok(())
    }

    /// Reads the files again, and puts new valid certificates into use.
    fn reload(&mut self) {
        let mut is_new = false;
        for (number, file) in self.files.iter().enumerate() {
            let (before, certificate) = &mut self.loaded[number];
            let read = contents(file).and_then(|now| {
                let is_same = now == *before;
                let read = (!is_same).then(|| parse(file, &now)).transpose()?;
                Ok(read.map(|read| (now, read)))
            });
            let problem = match read {
                Ok(None) => None,
                Ok(Some((now, read))) => {
                    let path = file.certificate.display();
                    info!(file = %path, names = read.names.join(" "), "certificate file changed; serving the new certificate");
                    (*before, *certificate) = (now, Arc::new(read));
                    is_new = true;
                    None
                }
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = &problem
                && self.problems[number].as_ref() != Some(problem)
            {
                warn!("{problem}; serving the previous certificate");
            }
            self.problems[number] = problem;
        }
        if is_new {
            self.publish();
        }
    }

    fn publish(&self) {
        let certificates: Vec<_> = self
            .loaded
            .iter()
            .map(|(_, read)| Arc::clone(read))
            .collect();
        self.store.set_files(&certificates);
    }
}

fn contents(file: &CertificateFile) -> Result<CertificateBytes, FileError> {
    let read = |path: &PathBuf| {
        operator_file::read(path).map_err(|source| FileError::Unreadable {
            path: path.clone(),
            source,
        })
    };
    Ok((read(&file.certificate)?, read(&file.key)?))
}

fn parse(
    file: &CertificateFile,
    (chain, key): &CertificateBytes,
) -> Result<Certificate, FileError> {
    Certificate::from_pem(chain, key).map_err(|source| {
        let path = match source {
            CertificateError::NoKey | CertificateError::EncryptedKey => &file.key,
            _ => &file.certificate,
        };
        FileError::Unusable {
            path: path.clone(),
            source,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn encrypted_key_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = CertificateFile {
            certificate: folder.path().join("chain.pem"),
            key: folder.path().join("key.pem"),
        };
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["studio.example".to_owned()]);
        let certificate = parameters.unwrap().self_signed(&key).unwrap();
        fs::write(&file.certificate, certificate.pem()).unwrap();
        for key in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMIIB\n-----END EC PRIVATE KEY-----\n",
        ] {
            fs::write(&file.key, key).unwrap();
            let store = Arc::new(CertificateStore::default());
            let error = FileCertificates::read(vec![file.clone()], store).unwrap_err();
            let told = error.to_string();
            assert!(
                told.contains("encrypted") && told.contains("key.pem"),
                "{told}"
            );
        }
    }

    #[test]
    fn half_replaced_pair_is_ignored_and_complete_pair_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = CertificateFile {
            certificate: folder.path().join("chain.pem"),
            key: folder.path().join("key.pem"),
        };
        let signed = |name: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
            let certificate = parameters.self_signed(&key).unwrap();
            (certificate.pem(), key.serialize_pem())
        };
        let (one, other) = (signed("studio.example"), signed("studio.example"));
        fs::write(&file.certificate, &one.0).unwrap();
        fs::write(&file.key, &one.1).unwrap();
        let store = Arc::new(CertificateStore::default());
        let mut files = FileCertificates::read(vec![file.clone()], Arc::clone(&store)).unwrap();
        let shown = || store.find("studio.example").unwrap();
        let first = shown();

        fs::write(&file.certificate, &other.0).unwrap();
        files.reload();
        assert!(
            Arc::ptr_eq(&shown(), &first),
            "the key is still that of the previous certificate"
        );
        fs::write(&file.key, &other.1).unwrap();
        files.reload();
        let second = shown();
        assert!(!Arc::ptr_eq(&second, &first));

        fs::remove_file(&file.key).unwrap();
        files.reload();
        assert!(Arc::ptr_eq(&shown(), &second));
        let error = FileCertificates::read(vec![file], store).unwrap_err();
        assert!(error.to_string().contains("key.pem"), "{error}");
    }
}
