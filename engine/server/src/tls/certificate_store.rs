//! Holds the certificates in use, by host name, and the answers to open ACME challenges.
//!
//! Operators' own files take precedence over certificates that a CA issued. A look-up takes no lock; writers replace complete tables.
//!
//! **Invariant:** reads and writes no file, contacts no CA, and does not know which hosts are served.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

/// The certificates in use, by host name, and the answers to open challenges.
#[derive(Default)]
pub struct CertificateStore {
    files: ArcSwap<CertificateTable>,
    issued: ArcSwap<CertificateTable>,
    challenges: ArcSwap<Challenges>,
}

/// Certificates by name, as written in the certificate: a host, or `*.` and its parent.
type CertificateTable = HashMap<Box<str>, Arc<Certificate>>;

/// The answers to open challenges.
#[derive(Clone, Default)]
struct Challenges {
    /// TLS-ALPN-01 certificates by host (RFC 8737).
    certificates: HashMap<Box<str>, Arc<CertifiedKey>>,
    /// HTTP-01 texts by token (RFC 8555, section 8.3).
    texts: HashMap<Box<str>, Arc<str>>,
}

impl fmt::Debug for CertificateStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CertificateStore")
            .finish_non_exhaustive()
    }
}

impl CertificateStore {
    /// Returns the certificate for a host, given in lower case.
    #[must_use]
    pub fn find(&self, host: &str) -> Option<Arc<Certificate>> {
        self.find_file(host)
            .or_else(|| self.issued.load().get(host).cloned())
    }

    /// Returns the operators' own certificate for a host. A certificate with the exact name takes precedence over a wildcard.
    #[must_use]
    pub fn find_file(&self, host: &str) -> Option<Arc<Certificate>> {
        let files = self.files.load();
        if files.is_empty() {
            return None;
        }
        files.get(host).cloned().or_else(|| {
            let (_, parent) = host.split_once('.')?;
            files.get(&*format!("*.{parent}")).cloned()
        })
    }

    /// Replaces the operators' own certificates. If two cover the same name, the first one is used.
    pub fn set_files(&self, certificates: &[Arc<Certificate>]) {
        let mut table = CertificateTable::new();
        for certificate in certificates {
            for name in &certificate.names {
                let place = table.entry(name.clone());
                place.or_insert_with(|| Arc::clone(certificate));
            }
        }
        self.files.store(Arc::new(table));
    }

    /// Stores the certificate that a CA issued for a host, in place of the previous one.
    pub fn set_issued(&self, host: &str, certificate: &Arc<Certificate>) {
        self.issued.rcu(|issued| {
            let mut issued = CertificateTable::clone(issued);
            issued.insert(host.into(), Arc::clone(certificate));
            issued
        });
    }

    /// Replaces all certificates that a CA issued.
    pub fn set_all_issued(&self, certificates: impl Iterator<Item = (Box<str>, Arc<Certificate>)>) {
        self.issued.store(Arc::new(certificates.collect()));
    }

    /// Returns the TLS-ALPN-01 certificate for a host with an open challenge.
    pub(crate) fn challenge(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        self.challenges.load().certificates.get(host).cloned()
    }

    /// Returns the HTTP-01 text for the token of an open challenge.
    pub(crate) fn challenge_text(&self, token: &str) -> Option<Arc<str>> {
        self.challenges.load().texts.get(token).cloned()
    }

    /// Opens a TLS-ALPN-01 challenge: handshakes of the CA for `host` get this certificate.
    pub(crate) fn open_tls_challenge(&self, host: &str, certificate: &Arc<CertifiedKey>) {
        self.change(|challenges| {
            let certificate = Arc::clone(certificate);
            challenges.certificates.insert(host.into(), certificate);
        });
    }

    /// Opens an HTTP-01 challenge: requests for `token` get this text.
    pub(crate) fn open_http_challenge(&self, token: &str, text: &Arc<str>) {
        self.change(|challenges| {
            challenges.texts.insert(token.into(), Arc::clone(text));
        });
    }

    /// Closes the challenges of a host.
    pub(crate) fn close_challenge(&self, host: &str, token: &str) {
        self.change(|challenges| {
            challenges.certificates.remove(host);
            challenges.texts.remove(token);
        });
    }

    fn change(&self, change: impl Fn(&mut Challenges)) {
        self.challenges.rcu(|challenges| {
            let mut challenges = Challenges::clone(challenges);
            change(&mut challenges);
            challenges
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(names: &[&str]) -> Arc<Certificate> {
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let signed = rcgen::CertificateParams::new(names).unwrap();
        let pem = signed.self_signed(&key).unwrap().pem();
        let read = Certificate::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes());
        Arc::new(read.unwrap())
    }

    #[test]
    fn exact_name_precedes_wildcard_and_files_precede_issued() {
        let store = CertificateStore::default();
        let (all, one, issued) = (
            certificate(&["*.studio.example"]),
            certificate(&["bluedoor.studio.example"]),
            certificate(&["verses.studio.example", "own.example"]),
        );
        store.set_issued("own.example", &issued);
        store.set_issued("verses.studio.example", &issued);
        let is = |host: &str, expected: &Arc<Certificate>| {
            let found = store.find(host);
            found.is_some_and(|found| Arc::ptr_eq(&found, expected))
        };
        assert!(is("verses.studio.example", &issued));
        store.set_files(&[Arc::clone(&all), Arc::clone(&one)]);
        assert!(is("verses.studio.example", &all));
        assert!(is("bluedoor.studio.example", &one));
        assert!(is("own.example", &issued));
        for stranger in ["studio.example", "a.b.studio.example", "other.example", ""] {
            assert!(store.find(stranger).is_none(), "{stranger}");
        }
    }

    #[test]
    fn challenge_is_answered_until_it_is_closed() {
        let store = CertificateStore::default();
        let key = Arc::clone(&certificate(&["own.example"]).key);
        store.open_tls_challenge("own.example", &key);
        store.open_http_challenge("token", &"text".into());
        assert!(store.challenge("own.example").is_some());
        assert_eq!(store.challenge_text("token").as_deref(), Some("text"));
        // Visitors never get a challenge's certificate.
        assert!(store.find("own.example").is_none());
        store.close_challenge("own.example", "token");
        assert!(store.challenge("own.example").is_none());
        assert!(store.challenge_text("token").is_none());
    }
}
