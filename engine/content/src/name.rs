//! The identifiers that everything else is keyed by, as types.
//!
//! Each has a private field and one fallible constructor, so that past the edge nobody checks again.
//!
//! **Invariant:** knows nothing of folders, pages or requests.

pub mod exported;
pub mod reserved;

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use icu_normalizer::ComposingNormalizerBorrowed;
use thiserror::Error;

/// The label whose host leads to the domain: `www.company.example`.
pub const WWW: &str = "www";

/// A tenant's id: its folder's name, which is also its host label and its path prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

/// Why a folder's name cannot be a tenant's id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TenantIdError {
    /// Not a host label (RFC 1123, section 2.1): letters a-z, digits and inner hyphens, at most 63.
    #[error("`{0}` is no host label: use a-z, 0-9 and inner hyphens, at most 63 characters")]
    NotAHostLabel(String),
    /// Taken by rowhouse itself.
    #[error("`{0}` is taken by rowhouse itself: choose another name")]
    Reserved(String),
}

impl TenantId {
    /// Names that would clash with rowhouse's own: the `www.` redirect, `company:` links, and the files of an export.
    const RESERVED: [&str; 4] = ["company", WWW, "404", "index"];

    /// Takes a folder's name.
    ///
    /// # Errors
    /// When the name is no host label, or reserved.
    pub fn new(name: &str) -> Result<Self, TenantIdError> {
        if Self::RESERVED.contains(&name) || reserved::is_reserved(&format!("/{name}")) {
            return Err(TenantIdError::Reserved(name.to_owned()));
        }
        if is_host_label(name) {
            Ok(Self(name.into()))
        } else {
            Err(TenantIdError::NotAHostLabel(name.to_owned()))
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as shared text, for a snapshot to keep.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// So that a map of tenants is asked with a text.
impl Borrow<str> for TenantId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether `text` is one label of a host name, in lower case (RFC 1123, section 2.1).
#[must_use]
pub fn is_host_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether `text` is a host name in lower case: labels with dots between, no port, no trailing dot.
#[must_use]
pub fn is_host_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_host_label)
}

/// A host name in lower case and in ASCII, as requests have it (WHATWG URL, host parsing; UTS 46). None where it is none, or is an IP address.
#[must_use]
pub fn ascii_host(text: &str) -> Option<String> {
    match url::Host::parse(text) {
        Ok(url::Host::Domain(host)) if !text.contains('%') && is_host_name(&host) => Some(host),
        _ => None,
    }
}

/// Whether `text` is a path that rowhouse serves: `/`, or segments of unreserved characters
/// (RFC 3986, section 2.3) without a trailing slash and without dot segments.
#[must_use]
pub fn is_route_path(text: &str) -> bool {
    text == "/"
        || text.strip_prefix('/').is_some_and(|rest| {
            rest.split('/').all(|segment| {
                !segment.is_empty()
                    && segment != "."
                    && segment != ".."
                    && segment.bytes().all(is_unreserved)
            })
        })
}

/// Whether a URL has a byte as it is, wherever it stands (RFC 3986, section 2.3).
#[must_use]
pub const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// A text in the Unicode form NFC (UAX 15): `ä` is one sign, and not an `a` with a sign behind it.
#[must_use]
pub fn nfc(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// A name as a disk sees it that tells neither upper from lower case nor one Unicode form from another.
#[must_use]
pub fn folded(name: &str) -> String {
    nfc(&nfc(name).to_lowercase()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_id_is_a_host_label() {
        for good in ["bluedoor", "a", "x-1", "0"] {
            assert!(TenantId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "Blue", "a.b", "a_b", "é", &"x".repeat(64)] {
            assert!(
                matches!(TenantId::new(bad), Err(TenantIdError::NotAHostLabel(_))),
                "{bad}"
            );
        }
        for reserved in ["www", "company", "assets", "404", "index"] {
            assert!(
                matches!(TenantId::new(reserved), Err(TenantIdError::Reserved(_))),
                "{reserved}"
            );
        }
    }

    #[test]
    fn a_host_in_another_script_is_converted() {
        let ascii = |text: &str| ascii_host(text);
        assert_eq!(
            ascii("b\u{fc}cher.example").as_deref(),
            Some("xn--bcher-kva.example")
        );
        assert_eq!(
            ascii("B\u{dc}CHER.Example").as_deref(),
            Some("xn--bcher-kva.example")
        );
        assert_eq!(ascii("corner.example").as_deref(), Some("corner.example"));
        for bad in [
            "",
            "a b.example",
            "127.0.0.1",
            "[::1]",
            "a%2eb.example",
            "a.example:80",
            "a_b.example",
        ] {
            assert_eq!(ascii(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_route_path_has_whole_segments() {
        for good in ["/", "/a", "/a/b-c", "/.well-known/x.txt"] {
            assert!(is_route_path(good), "{good}");
        }
        for bad in ["", "a", "/a/", "//", "/a//b", "/..", "/a b", "/%41", "/a?b"] {
            assert!(!is_route_path(bad), "{bad}");
        }
    }
}
