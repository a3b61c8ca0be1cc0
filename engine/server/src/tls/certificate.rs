//! A certificate with its key, and what is to be known of it.
//!
//! **Invariant:** reads no file; does not know who is shown it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{ASN1Time, FromDer as _, X509Certificate};

use super::provider::provider;

/// A certificate with the chain to its authority, and its key.
pub struct Certificate {
    /// The host names that it covers, in lower case; `*.example.com` covers every name with one label more (RFC 9525, section 6.3).
    pub names: Vec<Box<str>>,
    /// From when on it is valid.
    pub not_before: SystemTime,
    /// Until when it is valid.
    pub not_after: SystemTime,
    /// What a handshake needs.
    pub(crate) key: Arc<CertifiedKey>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Certificate")
            .field("names", &self.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// Why a text is no certificate that can be used.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// There is no certificate in it, or it is damaged.
    #[error("there is no valid certificate in it")]
    NoCertificate,
    /// There is no private key in it, or it is damaged.
    #[error("there is no valid private key in it")]
    NoKey,
    /// Its key needs a passphrase, which nobody types at a startup.
    #[error(
        "the private key is encrypted with a passphrase: write one without it, by `openssl pkey -in KEY -out NEW`"
    )]
    EncryptedKey,
    /// Browsers look at no other field for names.
    #[error("the certificate names no host (subjectAltName)")]
    NoName,
    /// The key is of another certificate, or of a kind that is not supported.
    #[error("the key cannot be used with the certificate: {0}")]
    Key(rustls::Error),
}

impl Certificate {
    /// Reads a chain, the certificate itself first, and its key from PEM (RFC 7468). Both may be the same text.
    ///
    /// # Errors
    /// When one of them is missing or damaged, they do not belong together, or the certificate names no host.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| CertificateError::NoCertificate)?;
        let own = chain.first().ok_or(CertificateError::NoCertificate)?;
        let (_, parsed) =
            X509Certificate::from_der(own).map_err(|_| CertificateError::NoCertificate)?;
        let names = names(&parsed);
        if names.is_empty() {
            return Err(CertificateError::NoName);
        }
        let (not_before, not_after) = (
            time(parsed.validity().not_before),
            time(parsed.validity().not_after),
        );
        if is_encrypted(key) {
            return Err(CertificateError::EncryptedKey);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| CertificateError::NoKey)?;
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(CertificateError::Key)?;
        Ok(Self {
            names,
            not_before,
            not_after,
            key: Arc::new(key),
        })
    }

    /// Whether it is good for a host, given in lower case.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        self.names.iter().any(|name| covers(name, host))
    }
}

/// Whether a PEM holds an encrypted key: PKCS #8 (RFC 7468, section 11), or the form of OpenSSL with a header (RFC 1421, section 4.6.1.1).
fn is_encrypted(pem: &[u8]) -> bool {
    let has = |mark: &[u8]| pem.windows(mark.len()).any(|part| part == mark);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}

/// Whether a name of a certificate stands for a host.
fn covers(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        None => name == host,
        Some(parent) => host
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest == parent),
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<Box<str>> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = names.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase().into()),
            _ => None,
        })
        .collect()
}

/// A moment before 1970 is as good as 1970.
fn time(time: ASN1Time) -> SystemTime {
    let seconds = u64::try_from(time.timestamp()).unwrap_or(0);
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(names: &[&str]) -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let certificate = rcgen::CertificateParams::new(names)
            .unwrap()
            .self_signed(&key)
            .unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn a_certificate_covers_its_names_and_one_label_below_a_wildcard() {
        let (chain, key) = signed(&["Studio.example", "*.studio.example"]);
        let certificate = Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        for (host, covered) in [
            ("studio.example", true),
            ("bluedoor.studio.example", true),
            ("a.b.studio.example", false),
            (".studio.example", false),
            ("other.example", false),
            ("example", false),
        ] {
            assert_eq!(certificate.covers(host), covered, "{host}");
        }
        assert!(certificate.not_before < certificate.not_after);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let (chain, key) = signed(&["studio.example"]);
        let (_, other) = signed(&["studio.example"]);
        let (nameless, its_key) = signed(&[]);
        let why = |chain: &str, key: &str| {
            let read = Certificate::from_pem(chain.as_bytes(), key.as_bytes());
            read.unwrap_err().to_string()
        };
        assert!(why("", &key).contains("no valid certificate"));
        assert!(why(&chain[..chain.len() / 2], &key).contains("no valid certificate"));
        assert!(why(&chain, "").contains("no valid private key"));
        assert!(why(&chain, &other).contains("cannot be used with"));
        assert!(why(&nameless, &its_key).contains("names no host"));
    }
}
