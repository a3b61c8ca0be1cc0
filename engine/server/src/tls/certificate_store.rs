//! Who is shown which certificate, at this moment.
//!
//! Operators' own files come first, then what an authority has given out. Looking up takes no lock; both sides put whole tables in.
//!
//! **Invariant:** reads and writes no file, asks no authority, and does not know which hosts are served.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

/// Certificates by the names that they cover, and the answers to open challenges.
#[derive(Default)]
pub struct CertificateStore {
    files: ArcSwap<CertificateTable>,
    issued: ArcSwap<CertificateTable>,
    challenges: ArcSwap<Challenges>,
}

/// Certificates by name, as certificates write it.
type CertificateTable = HashMap<Box<str>, Arc<Certificate>>;

/// What authorities are to find.
#[derive(Clone, Default)]
struct Challenges {
    /// By host: the certificate of TLS-ALPN-01 (RFC 8737).
    certificates: HashMap<Box<str>, Arc<CertifiedKey>>,
    /// By token: the text of HTTP-01 (RFC 8555, section 8.3).
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
    /// The certificate for a host, given in lower case.
    #[must_use]
    pub fn find(&self, host: &str) -> Option<Arc<Certificate>> {
        self.file(host)
            .or_else(|| self.issued.load().get(host).cloned())
    }

    /// The operators' own certificate for a host. One that names it goes before one for all names of a domain.
    #[must_use]
    pub fn file(&self, host: &str) -> Option<Arc<Certificate>> {
        let files = self.files.load();
        if files.is_empty() {
            return None;
        }
        files.get(host).cloned().or_else(|| {
            let (_, parent) = host.split_once('.')?;
            files.get(&*format!("*.{parent}")).cloned()
        })
    }

    /// The operators' own certificates, in place of those of before. Of two for one name the first counts.
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

    /// What an authority has given out for a host, in place of what was there.
    pub fn set_issued(&self, host: &str, certificate: &Arc<Certificate>) {
        self.issued.rcu(|issued| {
            let mut issued = CertificateTable::clone(issued);
            issued.insert(host.into(), Arc::clone(certificate));
            issued
        });
    }

    /// The same for many hosts at once.
    pub fn set_all_issued(&self, certificates: impl Iterator<Item = (Box<str>, Arc<Certificate>)>) {
        self.issued.store(Arc::new(certificates.collect()));
    }

    /// What an authority is shown that asks for a host.
    pub(crate) fn challenge(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        self.challenges.load().certificates.get(host).cloned()
    }

    /// The text behind a token.
    pub(crate) fn challenge_text(&self, token: &str) -> Option<Arc<str>> {
        self.challenges.load().texts.get(token).cloned()
    }

    /// Shows an authority that asks for `host` this certificate.
    pub(crate) fn show(&self, host: &str, certificate: &Arc<CertifiedKey>) {
        self.change(|challenges| {
            let certificate = Arc::clone(certificate);
            challenges.certificates.insert(host.into(), certificate);
        });
    }

    /// Tells an authority that asks for `token` this text.
    pub(crate) fn offer_challenge(&self, token: &str, text: &Arc<str>) {
        self.change(|challenges| {
            challenges.texts.insert(token.into(), Arc::clone(text));
        });
    }

    /// The challenge is over.
    pub(crate) fn forget(&self, host: &str, token: &str) {
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
    fn the_closest_certificate_is_found_and_files_come_first() {
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
    fn a_challenge_is_answered_until_it_is_over() {
        let store = CertificateStore::default();
        let key = Arc::clone(&certificate(&["own.example"]).key);
        store.show("own.example", &key);
        store.offer_challenge("token", &"text".into());
        assert!(store.challenge("own.example").is_some());
        assert_eq!(store.challenge_text("token").as_deref(), Some("text"));
        // It is for authorities only.
        assert!(store.find("own.example").is_none());
        store.forget("own.example", "token");
        assert!(store.challenge("own.example").is_none());
        assert!(store.challenge_text("token").is_none());
    }
}
