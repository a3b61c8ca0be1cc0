//! Parses the old path of a redirect as authors write it: `/old`, `/old/`, `/old/*`, `/über-uns`, `/%C3%BCber-uns`.
//!
//! **Invariant:** a parsed path is what the server compares with the decoded path of a request.

use percent_encoding::percent_decode_str;

use crate::formats::reserved_path::{RESERVED_PATH_HINT, reserved_message};
use crate::name::reserved::{FEED, is_free_for_text, is_reserved};

/// The end of an old path that includes all paths below it.
const WILDCARD: &str = "/*";

/// The place in a target where the rest of the requested path is inserted.
pub const SPLAT: &str = "/:splat";

/// An old path, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParsedOldPath {
    /// The path without a trailing slash, or the prefix of a wildcard. The prefix of all paths is empty.
    pub path: String,
    /// Whether all paths below it are included.
    pub is_wildcard: bool,
}

/// Parses an old path.
///
/// # Errors
/// The problem, and the text to write instead.
pub fn parse_old_path(text: &str) -> Result<ParsedOldPath, (String, Option<String>)> {
    let fail = |message: &str, hint: &str| {
        let message = format!("`{}` {message}", text.escape_debug());
        Err((message, Some(hint.to_owned())))
    };
    if !text.starts_with('/') {
        return fail(
            "is not a valid path",
            "begin with `/`, and leave out scheme and host",
        );
    }
    if text.contains('?') {
        return fail(
            "has a query",
            "write the parameters under `query:`, for example `query: {p: 12}`",
        );
    }
    if text.contains('#') {
        return fail(
            "has a fragment",
            "remove the fragment; browsers do not send it",
        );
    }
    let (path, is_wildcard) = match text.strip_suffix(WILDCARD) {
        Some(prefix) => (prefix, true),
        None => (text, false),
    };
    if path.contains('*') {
        return fail(
            "has a `*` that is not its last segment",
            "write `*` only at the end, after a `/`; write `%2A` for the character",
        );
    }
    let Some(decoded) = decoded(path) else {
        return fail(
            "is not correctly percent-encoded",
            "write the path as visitors read it, and `%25` for `%`",
        );
    };
    let decoded = match decoded.strip_suffix('/') {
        Some(shorter) if !shorter.is_empty() && !is_wildcard => shorter.to_owned(),
        _ => decoded,
    };
    let is_segment =
        |segment: &str| !matches!(segment, "" | "." | "..") && !segment.contains(char::is_control);
    let is_root = decoded == if is_wildcard { "" } else { "/" };
    if !is_root && !decoded.split('/').skip(1).all(is_segment) {
        return fail(
            "is not a valid path",
            "write names between single slashes, without `.` and `..`",
        );
    }
    // A tenant's own feeds are known only with its pages.
    if is_reserved(&decoded) && !is_free_for_text(&decoded) && !is_feed(&decoded) {
        return Err((
            reserved_message(&decoded),
            Some(RESERVED_PATH_HINT.to_owned()),
        ));
    }
    Ok(ParsedOldPath {
        path: decoded,
        is_wildcard,
    })
}

/// Returns whether a path is the path of a feed, and reserved for no other reason.
fn is_feed(path: &str) -> bool {
    path.strip_suffix(FEED)
        .is_some_and(|folder| !is_reserved(folder))
}

/// Decodes a path once. An encoded slash is no part of a path that can be requested.
fn decoded(path: &str) -> Option<String> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = path.as_bytes();
    let is_encoded = |(at, _)| {
        let (high, low) = (bytes.get(at + 1), bytes.get(at + 2));
        let is_slash = high == Some(&b'2') && matches!(low, Some(b'f' | b'F'));
        is_digit(high) && is_digit(low) && !is_slash
    };
    if !path.match_indices('%').all(is_encoded) {
        return None;
    }
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// Checks the place for the rest of the requested path in the target of a redirect: the last segment of the path, once.
///
/// # Errors
/// The problem, and the text to write instead.
pub(crate) fn check_splat(target: &str) -> Result<(), (String, Option<String>)> {
    let splat = SPLAT.trim_start_matches('/');
    if !target.contains(splat) {
        return Ok(());
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let fail =
        |message: &str, hint: &str| Err((format!("`{target}` {message}"), Some(hint.to_owned())));
    if target.matches(splat).count() > 1 || !path.ends_with(SPLAT) {
        return fail(
            "has `:splat` in a place that is not the last segment of the path",
            "write `:splat` once, after the last `/` of the path: /new/:splat",
        );
    }
    if path.starts_with("/assets/") {
        return fail(
            "inserts a path below `/assets`, where each file has a hash in its name",
            "redirect each file: to: assets/plan.pdf",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_path_is_decoded_without_trailing_slash() {
        for (text, path, is_wildcard) in [
            ("/old", "/old", false),
            ("/old/", "/old", false),
            ("/old/*", "/old", true),
            ("/*", "", true),
            ("/", "/", false),
            ("/\u{fc}ber uns", "/\u{fc}ber uns", false),
            ("/%C3%BCber%20uns", "/\u{fc}ber uns", false),
            ("/\u{43e}/*", "/\u{43e}", true),
            ("/100%25", "/100%", false),
            ("/a%2A", "/a*", false),
            ("/feed.xml", "/feed.xml", false),
            ("/blog/feed.xml", "/blog/feed.xml", false),
            ("/index.php", "/index.php", false),
            (
                "/.well-known/change-password",
                "/.well-known/change-password",
                false,
            ),
        ] {
            let parsed = ParsedOldPath {
                path: path.to_owned(),
                is_wildcard,
            };
            assert_eq!(parse_old_path(text), Ok(parsed), "{text}");
        }
    }

    #[test]
    fn old_path_that_no_request_has_is_refused() {
        for bad in [
            "",
            "old",
            "https://a.example/old",
            "/a*",
            "/*/b",
            "/a/*/b",
            "/a/**",
            "/a?b",
            "/a#b",
            "//a",
            "/a//b",
            "/a//",
            "/./a",
            "/a/..",
            "/%",
            "/%zz",
            "/%ff",
            "/a%2Fb",
            "/a%00",
            "/a\nb",
            "//*",
        ] {
            assert!(parse_old_path(bad).is_err(), "{bad}");
        }
        for reserved in [
            "/assets",
            "/assets/*",
            "/assets/a.css",
            "/robots.txt",
            "/.hidden",
            "/.well-known/*",
            "/.a/feed.xml",
            "/sitemap.xml",
        ] {
            let (message, _) = parse_old_path(reserved).expect_err(reserved);
            assert!(message.ends_with("reserved for rowhouse"), "{message}");
        }
    }

    #[test]
    fn splat_is_the_last_segment_of_a_target() {
        for good in [
            "/new",
            "/new/:splat",
            "/:splat",
            "https://a.example/:splat?x#y",
            "shop:/a/:splat",
            "/new/:splat#top",
        ] {
            assert_eq!(check_splat(good), Ok(()), "{good}");
        }
        for bad in [
            "/new:splat",
            "/:splat/b",
            "/:splat/:splat",
            "/new?to=/:splat",
            "https://a.example:splat",
            "https://:splat.example/",
            "/assets/:splat",
        ] {
            assert!(check_splat(bad).is_err(), "{bad}");
        }
    }
}
