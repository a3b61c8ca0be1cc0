//! Normalises the path of a request for the look-up.
//!
//! Paths arrive percent-encoded, in many spellings of the same name. Paths are decoded exactly once (RFC 3986, section 6.2.2.2), and then compared as text.
//! Ambiguous paths are handled as follows:
//! * An encoded slash is not a separator, and no resource has a slash in a segment. An encoded slash becomes NUL, which no name contains, so the path gets 404.
//! * Dot segments (`/../`, `%2e%2e`) get 400. Clients resolve them before they send a request (RFC 3986, section 5.2.4), so such a path is a probe or an error.
//! * An invalid `%` sequence, invalid UTF-8 and control characters, NUL included, get 400.
//!
//! **Invariant:** knows no routes; allocates only for a path that contains `%`.

use std::borrow::Cow;

/// The path is invalid or ambiguous: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the path is not valid")]
pub(crate) struct PathError;

/// Returns the path decoded once, without dot segments. Repeated slashes stay, and match nothing.
///
/// # Errors
/// When the path must be refused with status 400.
pub(crate) fn normalise_path(raw: &str) -> Result<Cow<'_, str>, PathError> {
    if !raw.starts_with('/') {
        return Err(PathError);
    }
    // Paths are short, so a plain loop is faster than a vectorised search.
    let path = if raw.bytes().any(|byte| byte == b'%') {
        Cow::Owned(decode(raw)?)
    } else {
        Cow::Borrowed(raw)
    };
    if has_dot_segment(&path) {
        Err(PathError)
    } else {
        Ok(path)
    }
}

fn decode(raw: &str) -> Result<String, PathError> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(PathError);
        };
        match u8::try_from(high * 16 + low) {
            Ok(b'/') => bytes.push(0),
            Ok(byte) if !byte.is_ascii_control() => bytes.push(byte),
            _ => return Err(PathError),
        }
    }
    String::from_utf8(bytes).map_err(|_| PathError)
}

/// Returns whether a segment is `.` or `..`. A segment may begin with a dot (`/.well-known/`).
fn has_dot_segment(path: &str) -> bool {
    path.as_bytes().windows(2).any(|pair| pair == b"/.")
        && path
            .split('/')
            .any(|segment| segment == "." || segment == "..")
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn path_is_decoded_once() {
        for (raw, expected) in [
            ("/", "/"),
            ("/terms", "/terms"),
            ("/%74erms", "/terms"),
            ("/a%20b", "/a b"),
            ("/caf%C3%A9", "/café"),
            ("/%2541", "/%41"),
            ("/.well-known/x", "/.well-known/x"),
            ("/a..b/...", "/a..b/..."),
            ("//a//b", "//a//b"),
            ("/a+b", "/a+b"),
        ] {
            assert_eq!(normalise_path(raw).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for raw in [
            "/..",
            "/../x",
            "/a/./b",
            "/a/..",
            "/%2e%2E/x",
            "/.%2e",
            "/%",
            "/%4",
            "/%zz",
            "/%00",
            "/%0a",
            "/%7f",
            "/%ff",
            "/%C3",
            "*",
            "",
        ] {
            assert_eq!(normalise_path(raw), Err(PathError), "{raw}");
        }
    }

    #[test]
    fn encoded_slash_is_not_a_separator() {
        assert_eq!(normalise_path("/a%2fb").as_deref(), Ok("/a\0b"));
        assert_eq!(normalise_path("/..%2Fetc").as_deref(), Ok("/..\0etc"));
    }

    proptest! {
        #[test]
        fn normalisation_is_idempotent(raw in "/([a-zA-Z0-9._~/ -]|%[0-9a-fA-F]{2}|%25|%2[eEfF]|\\PC){0,20}") {
            let Ok(path) = normalise_path(&raw) else {
                return Ok(());
            };
            prop_assert!(path.starts_with('/'));
            prop_assert!(path.split('/').all(|segment| segment != "." && segment != ".."));
            // An encoded slash cannot be written in the normal form.
            if !path.contains('\0') {
                let segments: Vec<_> = path
                    .split('/')
                    .map(|segment| utf8_percent_encode(segment, NON_ALPHANUMERIC).to_string())
                    .collect();
                let again = segments.join("/");
                prop_assert_eq!(normalise_path(&again), Ok(path));
            }
        }
    }
}
