//! Which host a request names.
//!
//! 1. The authority of the request target (`:authority` in HTTP/2, the absolute form in HTTP/1.1) names the host; `Host` is then not looked at in HTTP/1.1 (RFC 9112, section 3.2.2), and must say the same in HTTP/2 (RFC 9113, section 8.3.1).
//! 2. Otherwise the one `Host` field does. HTTP/1.1 without it, or with more than one, is refused (RFC 9112, section 3.2).
//! 3. The name loses its port and one trailing dot, and is compared in lower case. An internationalised name arrives in its ASCII form and stays so.
//!
//! **Invariant:** knows no tenants; what it returns is what the client said, in its one normal form.

use std::borrow::Cow;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri, Version};

/// The request names no host, or more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    /// HTTP/1.1 without `Host`.
    #[error("the request names no host")]
    Missing,
    /// More than one `Host`, or one that contradicts `:authority`.
    #[error("the request names more than one host")]
    Conflicting,
    /// Not a host, or with user information.
    #[error("the request names no valid host")]
    Invalid,
}

/// The host that the request names, in lower case, without port and trailing dot.
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
    let mut fields = headers.get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err(HostError::Conflicting);
    }
    let field = match field {
        Some(value) => Some(value.to_str().map_err(|_| HostError::Invalid)?),
        None => None,
    };

    match (uri.authority().map(Authority::as_str), field) {
        (Some(authority), Some(field)) if version >= Version::HTTP_2 => {
            let host = normal(authority)?;
            if normal(field)? == host {
                Ok(host)
            } else {
                Err(HostError::Conflicting)
            }
        }
        (Some(_), None) if version == Version::HTTP_11 => Err(HostError::Missing),
        (Some(authority), _) => normal(authority),
        (None, Some(field)) => normal(field),
        // HTTP/1.0 had no `Host` at first: such a request names nobody, which is not an error.
        (None, None) if version == Version::HTTP_10 => Ok(Cow::Borrowed("")),
        (None, None) => Err(HostError::Missing),
    }
}

/// Lower case, without port and trailing dot.
fn normal(authority: &str) -> Result<Cow<'_, str>, HostError> {
    // Only a literal IPv6 address has brackets, and colons of its own within them.
    let literal = authority.starts_with('[');
    let name = without_port(authority, literal)?;
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut upper = false;
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' => upper = true,
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {}
            b'[' | b']' | b':' if literal => {}
            _ => return Err(HostError::Invalid),
        }
    }
    Ok(if upper {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    })
}

fn without_port(authority: &str, literal: bool) -> Result<&str, HostError> {
    // Names are short: a plain loop finds the end of one sooner than what is made for long texts.
    let position = |end: u8| authority.bytes().position(|byte| byte == end);
    let end = if literal {
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
    fn a_host_has_one_normal_form() {
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
    fn what_is_no_host_is_refused() {
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
    fn http_1_1_needs_exactly_one_host() {
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
    fn the_absolute_form_wins_over_host() {
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
    fn http_2_names_one_host() {
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
