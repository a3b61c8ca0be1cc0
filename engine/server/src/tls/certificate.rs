//! A certificate with its private key, host names and validity.
//!
//! **Invariant:** reads no file; does not know which clients get it.

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

/// A certificate with its chain and its private key.
pub struct Certificate {
    /// The host names in lower case. `*.example.com` covers names with exactly one more label (RFC 9525, section 6.3).
    pub names: Vec<Box<str>>,
    /// Start of the validity.
    pub not_before: SystemTime,
    /// End of the validity.
    pub not_after: SystemTime,
    /// The chain and the key in the form that a handshake needs.
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

/// Error of reading a certificate or its key.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The text has no certificate, or the certificate is damaged.
    #[error("no valid certificate found")]
    NoCertificate,
    /// The text has no private key, or the key is damaged.
    #[error("no valid private key found")]
    NoKey,
    /// The key needs a passphrase, which cannot be entered at startup.
    #[error(
        "the private key is encrypted: remove its passphrase with `openssl pkey -in KEY -out NEW`"
    )]
    EncryptedKey,
    /// The certificate has no `subjectAltName`; browsers read host names from no other field.
    #[error("the certificate has no host name (subjectAltName)")]
    NoName,
    /// The key belongs to another certificate, or its type is not supported.
    #[error("the key cannot be used with the certificate: {0}")]
    Key(rustls::Error),
}

impl Certificate {
    /// Reads a chain and its key from PEM (RFC 7468). The certificate comes first in the chain. Both arguments may be the same text.
    ///
    /// # Errors
    /// When certificate or key are missing or damaged, they do not belong together, or the certificate names no host.
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

    /// Returns whether the certificate covers a host, given in lower case.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        self.names.iter().any(|name| covers(name, host))
    }
}

/// Returns whether a PEM holds an encrypted key: in PKCS #8 (RFC 7468, section 11), or in OpenSSL's form with a header (RFC 1421, section 4.6.1.1).
fn is_encrypted(pem: &[u8]) -> bool {
    let has = |mark: &[u8]| pem.windows(mark.len()).any(|part| part == mark);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}

/// Returns whether a name in a certificate covers a host.
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

/// Converts a time. Times before 1970 become 1970.
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
    fn certificate_covers_its_names_and_one_label_below_a_wildcard() {
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
    fn unusable_certificates_and_keys_are_refused_with_the_reason() {
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
        assert!(why(&nameless, &its_key).contains("has no host name"));
    }
}
