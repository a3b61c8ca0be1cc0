//! The one form in which a path is looked up.
//!
//! Paths arrive percent-encoded, in many spellings of the same name. They are decoded exactly once (RFC 3986, section 6.2.2.2), and then compared as text.
//! What could name something else to another reader of the same bytes is not guessed at:
//! * an encoded slash is not a slash, and no resource has one in a segment: it becomes NUL, which no name has, so that the path names nothing (404);
//! * dot segments (`/../`, `%2e%2e`) are refused with 400: clients resolve them before they send (RFC 3986, section 5.2.4), so what arrives with them is a probe or an error;
//! * so are a broken `%`, what is not UTF-8, and control characters, NUL among them.
//!
//! **Invariant:** knows no routes; allocates only for a path that has a `%`.

use std::borrow::Cow;

/// The path means nothing, or different things to different readers: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the path is not valid")]
pub(crate) struct PathError;

/// The path decoded once, without dot segments. Repeated slashes stay, and match nothing.
///
/// # Errors
/// When the path is refused.
pub(crate) fn normal_path(raw: &str) -> Result<Cow<'_, str>, PathError> {
    if !raw.starts_with('/') {
        return Err(PathError);
    }
    let path = if memchr::memchr(b'%', raw.as_bytes()).is_some() {
        Cow::Owned(decoded(raw)?)
    } else {
        Cow::Borrowed(raw)
    };
    if has_dot_segment(&path) {
        Err(PathError)
    } else {
        Ok(path)
    }
}

fn decoded(raw: &str) -> Result<String, PathError> {
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

/// Whether a segment is `.` or `..`. A segment may begin with a dot (`/.well-known/`).
fn has_dot_segment(path: &str) -> bool {
    memchr::memmem::find(path.as_bytes(), b"/.").is_some()
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
    fn a_path_is_decoded_once() {
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
            assert_eq!(normal_path(raw).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
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
            assert_eq!(normal_path(raw), Err(PathError), "{raw}");
        }
    }

    #[test]
    fn an_encoded_slash_is_no_slash() {
        assert_eq!(normal_path("/a%2fb").as_deref(), Ok("/a\0b"));
        assert_eq!(normal_path("/..%2Fetc").as_deref(), Ok("/..\0etc"));
    }

    proptest! {
        #[test]
        fn what_is_normal_stays_so(raw in "/([a-zA-Z0-9._~/ -]|%[0-9a-fA-F]{2}|%25|%2[eEfF]|\\PC){0,20}") {
            let Ok(path) = normal_path(&raw) else {
                return Ok(());
            };
            prop_assert!(path.starts_with('/'));
            prop_assert!(path.split('/').all(|segment| segment != "." && segment != ".."));
            // A slash that came encoded cannot be written in the normal form.
            if !path.contains('\0') {
                let segments: Vec<_> = path
                    .split('/')
                    .map(|segment| utf8_percent_encode(segment, NON_ALPHANUMERIC).to_string())
                    .collect();
                let again = segments.join("/");
                prop_assert_eq!(normal_path(&again), Ok(path));
            }
        }
    }
}
