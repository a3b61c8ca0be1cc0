//! Identifiers and names as validated types.
//!
//! Every type has a private field and one fallible constructor, so later code does not validate again.
//!
//! **Invariant:** knows nothing of folders, pages or requests.

pub mod exported;
pub mod preview;
pub mod reserved;

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use icu_normalizer::ComposingNormalizerBorrowed;
use thiserror::Error;

use preview::{BadLabel, PREVIEW_MARK, check_label, host_label, is_preview, live_id};

/// The host label that redirects to the domain: `www.company.example`.
pub const WWW: &str = "www";

/// The id of a tenant: the name of its folder, its host label and its path prefix. The id of a [preview] is the id of its tenant, `@` and a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

/// The reason why a folder's name is not a valid tenant id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TenantIdError {
    /// Not a host label (RFC 1123, section 2.1): letters a-z, digits and inner hyphens, at most 63 characters.
    #[error(
        "`{0}` is not a valid tenant id: use a-z, 0-9 and inner hyphens, at most 63 characters"
    )]
    NotAHostLabel(String),
    /// A name that the engine reserves for itself.
    #[error("`{0}` is reserved for rowhouse: choose another name")]
    Reserved(String),
    /// A preview of a tenant whose label is not valid.
    #[error("`{name}` is not a valid name of a preview: {reason}")]
    BadLabel {
        /// The name.
        name: String,
        /// The reason.
        reason: BadLabel,
    },
}

impl TenantId {
    /// Names reserved for the `www.` redirect, `company:` links, and the files of an export.
    const RESERVED: [&str; 4] = ["company", WWW, "404", "index"];

    /// Creates the id from a folder's name.
    ///
    /// # Errors
    /// If the name is not a host label, or is reserved.
    pub fn new(name: &str) -> Result<Self, TenantIdError> {
        if Self::RESERVED.contains(&name) || reserved::is_reserved(&format!("/{name}")) {
            return Err(TenantIdError::Reserved(name.to_owned()));
        }
        match name.split_once(PREVIEW_MARK) {
            None if is_host_label(name) => Ok(Self(name.into())),
            Some((tenant, label)) if is_host_label(tenant) => {
                Self::new(tenant)?;
                match check_label(tenant, label, is_host_label(label)) {
                    Ok(()) => Ok(Self(name.into())),
                    Err(reason) => Err(TenantIdError::BadLabel {
                        name: name.to_owned(),
                        reason,
                    }),
                }
            }
            _ => Err(TenantIdError::NotAHostLabel(name.to_owned())),
        }
    }

    /// Creates the id of the preview of a tenant with this label.
    ///
    /// # Errors
    /// If the id or the label is not valid.
    pub fn of_preview(tenant: &str, label: &str) -> Result<Self, TenantIdError> {
        Self::new(&format!("{tenant}{PREVIEW_MARK}{label}"))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as shared text, for snapshots.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// Returns whether the tenant is a preview of another tenant.
    #[must_use]
    pub fn is_preview(&self) -> bool {
        is_preview(&self.0)
    }

    /// Returns the id of the tenant that a preview shows, or the tenant's own id.
    #[must_use]
    pub fn live_id(&self) -> &str {
        live_id(&self.0)
    }

    /// Returns the label of the tenant's host below the domain.
    #[must_use]
    pub fn host_label(&self) -> String {
        host_label(&self.0)
    }
}

/// Allows look-ups by text in maps keyed by tenant id.
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

/// Returns whether `text` is a label of a host name in lower case (RFC 1123, section 2.1).
#[must_use]
pub fn is_host_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns whether `text` is a host name in lower case: labels separated by dots, no port, no trailing dot.
#[must_use]
pub fn is_host_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_host_label)
}

/// Converts a host name to lower-case ASCII, as used in requests (WHATWG URL, host parsing; UTS 46). Returns `None` if `text` is not a host name, or is an IP address.
#[must_use]
pub fn ascii_host(text: &str) -> Option<String> {
    match url::Host::parse(text) {
        Ok(url::Host::Domain(host)) if !text.contains('%') && is_host_name(&host) => Some(host),
        _ => None,
    }
}

/// Returns whether `text` is a path that the engine can serve: `/`, or segments of unreserved characters (RFC 3986, section 2.3).
/// A path has no trailing slash and no dot segments.
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

/// Returns whether a byte needs no escaping anywhere in a URL (RFC 3986, section 2.3).
#[must_use]
pub const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Normalises a text to Unicode form NFC (UAX 15), in which `ä` is one character instead of `a` with a combining mark.
#[must_use]
pub fn nfc(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// Folds a name as a file system does that ignores case and Unicode normalisation.
#[must_use]
pub fn folded(name: &str) -> String {
    nfc(&nfc(name).to_lowercase()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_id_is_a_host_label() {
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
    fn host_in_another_script_is_converted_to_ascii() {
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
    fn route_path_has_complete_segments() {
        for good in ["/", "/a", "/a/b-c", "/.well-known/x.txt"] {
            assert!(is_route_path(good), "{good}");
        }
        for bad in ["", "a", "/a/", "//", "/a//b", "/..", "/a b", "/%41", "/a?b"] {
            assert!(!is_route_path(bad), "{bad}");
        }
    }

    #[test]
    fn preview_has_the_host_label_of_its_label_and_its_tenant() {
        let preview = TenantId::new("bluedoor@spring").unwrap();
        assert!(preview.is_preview());
        assert_eq!(preview.live_id(), "bluedoor");
        assert_eq!(preview.host_label(), "spring--bluedoor");
        let tenant = TenantId::new("bluedoor").unwrap();
        assert!(!tenant.is_preview());
        assert_eq!(tenant.live_id(), "bluedoor");
        assert_eq!(tenant.host_label(), "bluedoor");
    }

    #[test]
    fn bad_label_is_refused_with_the_reason() {
        let reason = |name: &str| match TenantId::new(name) {
            Err(TenantIdError::BadLabel { reason, .. }) => reason,
            other => panic!("{name}: {other:?}"),
        };
        for name in ["a@", "a@Spring", "a@v1.2", "a@-x", "a@x-", "a@b@c", "a@x_y"] {
            assert_eq!(reason(name), BadLabel::Characters, "{name}");
        }
        assert_eq!(reason("a@xn"), BadLabel::TwoCharacters);
        let longest = format!("corner@{}", "x".repeat(55));
        assert!(TenantId::new(&longest).is_ok());
        assert_eq!(reason(&format!("{longest}x")), BadLabel::TooLong(64));
    }

    #[test]
    fn folder_beside_tenants_that_names_none_is_not_a_preview() {
        for name in ["@eaDir", "Corner@spring", "a.b@spring"] {
            let refused = TenantId::new(name);
            assert!(
                matches!(refused, Err(TenantIdError::NotAHostLabel(_))),
                "{name}: {refused:?}"
            );
        }
        let reserved = TenantId::new("www@spring");
        assert!(
            matches!(reserved, Err(TenantIdError::Reserved(_))),
            "{reserved:?}"
        );
    }
}
