//! Determines the host of a request.
//!
//! 1. The authority of the request target (`:authority` in HTTP/2, the absolute form in HTTP/1.1) names the host. HTTP/1.1 then ignores `Host` (RFC 9112, section 3.2.2); in HTTP/2 `Host` must agree (RFC 9113, section 8.3.1).
//! 2. Otherwise the `Host` field names the host. An HTTP/1.1 request without a `Host` field, or with several, is refused (RFC 9112, section 3.2).
//! 3. The port and one trailing dot are removed, and the name is lower-cased. An internationalised name arrives in its ASCII form and stays in it.
//!
//! **Invariant:** knows no tenants; returns the client's host in a normal form.

use std::borrow::Cow;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri, Version};

/// The request names no host, more than one host, or an invalid one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    /// HTTP/1.1 without a `Host` field.
    #[error("the request has no host")]
    Missing,
    /// More than one `Host` field, or a `Host` field that contradicts `:authority`.
    #[error("the request has more than one host")]
    Conflicting,
    /// The authority is not a valid host, or contains user information.
    #[error("the host of the request is not valid")]
    Invalid,
}

/// The `Host` fields of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum HostField<'r> {
    #[default]
    Absent,
    Single(&'r HeaderValue),
    Repeated,
}

impl<'r> HostField<'r> {
    /// Adds the next `Host` field.
    pub(crate) const fn add(&mut self, value: &'r HeaderValue) {
        *self = match self {
            Self::Absent => Self::Single(value),
            Self::Single(_) | Self::Repeated => Self::Repeated,
        };
    }
}

/// Returns the requested host in lower case, without port and trailing dot.
///
/// Borrows from the request unless the name has upper-case letters.
///
/// # Errors
/// When the request must be refused with status 400.
pub(crate) fn requested_host<'r>(
    uri: &'r Uri,
    headers: &'r HeaderMap,
    version: Version,
) -> Result<Cow<'r, str>, HostError> {
    let mut field = HostField::default();
    for value in headers.get_all(HOST) {
        field.add(value);
    }
    named_host(uri, field, version)
}

/// Returns the requested host as [`requested_host`] does, for a caller that has read the `Host` fields.
///
/// # Errors
/// When the request must be refused with status 400.
pub(crate) fn named_host<'r>(
    uri: &'r Uri,
    field: HostField<'r>,
    version: Version,
) -> Result<Cow<'r, str>, HostError> {
    let field = match field {
        HostField::Absent => None,
        HostField::Single(value) => Some(value.to_str().map_err(|_| HostError::Invalid)?),
        HostField::Repeated => return Err(HostError::Conflicting),
    };

    match (uri.authority().map(Authority::as_str), field) {
        (Some(authority), Some(field)) if version >= Version::HTTP_2 => {
            let host = normalise(authority)?;
            if normalise(field)? == host {
                Ok(host)
            } else {
                Err(HostError::Conflicting)
            }
        }
        (Some(_), None) if version == Version::HTTP_11 => Err(HostError::Missing),
        (Some(authority), _) => normalise(authority),
        (None, Some(field)) => normalise(field),
        // HTTP/1.0 did not have `Host` at first: a request without a host is valid, and names no tenant.
        (None, None) if version == Version::HTTP_10 => Ok(Cow::Borrowed("")),
        (None, None) => Err(HostError::Missing),
    }
}

const UPPER: u8 = 1;
/// Bytes that only an IPv6 literal has.
const LITERAL_ONLY: u8 = 2;
const INVALID: u8 = 4;

/// The class of each byte in a host name. One look-up per byte is cheaper than a comparison with each range.
const BYTE_CLASSES: [u8; 256] = {
    let mut classes = [INVALID; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => 0,
            b'A'..=b'Z' => UPPER,
            b'[' | b']' | b':' => LITERAL_ONLY,
            _ => INVALID,
        };
        byte += 1;
    }
    classes
};

/// Normalises an authority: lower case, without port and trailing dot.
fn normalise(authority: &str) -> Result<Cow<'_, str>, HostError> {
    // Only a literal IPv6 address has brackets, with colons inside them.
    let is_literal = authority.starts_with('[');
    let name = without_port(authority, is_literal)?;
    let name = name.strip_suffix('.').unwrap_or(name);
    let classes = name
        .bytes()
        .fold(0, |all, byte| all | BYTE_CLASSES[usize::from(byte)]);
    if classes & INVALID != 0 || (classes & LITERAL_ONLY != 0 && !is_literal) {
        return Err(HostError::Invalid);
    }
    Ok(if classes & UPPER != 0 {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    })
}

fn without_port(authority: &str, is_literal: bool) -> Result<&str, HostError> {
    // Host names are short, so a plain loop is faster than a vectorised search.
    let position = |end: u8| authority.bytes().position(|byte| byte == end);
    let end = if is_literal {
        position(b']').ok_or(HostError::Invalid)? + 1
    } else {
        position(b':').unwrap_or(authority.len())
    };
    let (name, port) = authority.split_at(end);
    let port = port.strip_prefix(':').unwrap_or(port);
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(name)
    } else {
        Err(HostError::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(uri: &str, fields: &[&str], version: Version) -> Result<String, HostError> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(HOST, field.parse().unwrap());
        }
        requested_host(&uri.parse().unwrap(), &headers, version).map(Cow::into_owned)
    }

    #[test]
    fn host_has_one_normal_form() {
        for (field, expected) in [
            ("bluedoor.example", "bluedoor.example"),
            ("BlueDoor.Example", "bluedoor.example"),
            ("bluedoor.example:8080", "bluedoor.example"),
            ("bluedoor.example:", "bluedoor.example"),
            ("bluedoor.example.", "bluedoor.example"),
            ("BLUEDOOR.example.:443", "bluedoor.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(
                host("/", &[field], Version::HTTP_11).as_deref(),
                Ok(expected),
                "{field}"
            );
        }
    }

    #[test]
    fn invalid_hosts_are_refused() {
        for field in [
            "a b",
            "user@a.example",
            "a.example/x",
            "a.example:8a",
            "a,b",
            "[::1",
            "x[::1]",
            "[::1]x",
            "[::1]]",
            "a]",
            "a[b",
            "a:1:2",
            "a%2eb",
        ] {
            assert_eq!(
                host("/", &[field], Version::HTTP_11),
                Err(HostError::Invalid),
                "{field}"
            );
        }
    }

    #[test]
    fn http1_requires_exactly_one_host() {
        assert_eq!(host("/", &[], Version::HTTP_11), Err(HostError::Missing));
        assert_eq!(
            host("http://a.example/", &[], Version::HTTP_11),
            Err(HostError::Missing)
        );
        assert_eq!(
            host("/", &["a.example", "a.example"], Version::HTTP_11),
            Err(HostError::Conflicting)
        );
        assert_eq!(host("/", &[], Version::HTTP_10).as_deref(), Ok(""));
    }

    #[test]
    fn absolute_form_overrides_host_field() {
        assert_eq!(
            host("http://A.example:80/", &["b.example"], Version::HTTP_11).as_deref(),
            Ok("a.example")
        );
        assert_eq!(
            host("http://u@a.example/", &["a.example"], Version::HTTP_11),
            Err(HostError::Invalid)
        );
    }

    #[test]
    fn http2_host_field_must_agree_with_authority() {
        assert_eq!(
            host("http://a.example/", &[], Version::HTTP_2).as_deref(),
            Ok("a.example")
        );
        assert_eq!(
            host("http://a.example/", &["A.example."], Version::HTTP_2).as_deref(),
            Ok("a.example")
        );
        assert_eq!(
            host("http://a.example/", &["b.example"], Version::HTTP_2),
            Err(HostError::Conflicting)
        );
        assert_eq!(
            host("/", &["b.example"], Version::HTTP_2).as_deref(),
            Ok("b.example")
        );
    }
}
