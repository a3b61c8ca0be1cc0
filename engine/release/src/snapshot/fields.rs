//! Prebuilt header fields for one class of bodies.
//!
//! Building a header map takes longer than looking up a page. Every map is therefore built once and shared by all bodies of a class, for example all fonts, or all indexed pages in the same colours.
//! A response copies one map and sets the entity tag. The sender adds the request id ([`X_REQUEST_ID`]).
//!
//! **Invariant:** does not depend on a request; the maps never change.

use std::sync::OnceLock;

use http::HeaderMap;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LOCATION, ETAG, EXPIRES, HeaderName,
    HeaderValue, VARY,
};

use super::content_encoding::ContentEncoding;

/// The header field by which shared caches purge related responses together.
pub const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");
/// The header field with the request id that the logs use.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Returns the cache tags of a page: the tenant's id, and the id followed by the path (`corner,corner/terms`).
///
/// If the path cannot be part of a tag list, the result is the tenant's id alone.
#[must_use]
pub fn cache_tag(tenant: &str, path: &str) -> String {
    let fits = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b',');
    if fits {
        format!("{tenant},{tenant}{path}")
    } else {
        tenant.to_owned()
    }
}

/// The header fields of one class of bodies, by content encoding.
#[derive(Debug)]
pub struct Fields {
    by_encoding: [HeaderMap; ContentEncoding::ALL.len()],
    /// Lines of the fields that are not set per body or request, encoded when they are first sent.
    lines: [OnceLock<Box<[u8]>>; ContentEncoding::ALL.len()],
    has_cache_tag: bool,
    not_modified: HeaderMap,
    given: HeaderMap,
    varies: bool,
    ranges: bool,
}

impl Fields {
    /// Builds the header fields from those common to all bodies of the class: content type, caching, security.
    ///
    /// `given` must not contain `Date`, or fields that depend on a single body and its encoding: `ETag`, `Content-Encoding`, `Content-Length`.
    ///
    /// `varies`: bodies of this class exist in more than one encoding (`Vary: Accept-Encoding`).
    /// `ranges`: clients may request part of a body (`Accept-Ranges: bytes`). Set for assets, not for pages.
    #[must_use]
    pub fn new(given: HeaderMap, varies: bool, ranges: bool) -> Self {
        let mut rest = given.clone();
        // Fields set per body or request are present from the start, so that a copy does not grow. They come first, where `set` finds them at once.
        let mut all = HeaderMap::with_capacity(given.len() + 4);
        all.insert(ETAG, HeaderValue::from_static("\"\""));
        all.insert(X_REQUEST_ID, HeaderValue::from_static("-"));
        let cache_tag = rest.remove(CACHE_TAG);
        let has_cache_tag = cache_tag.is_some();
        if let Some(tag) = cache_tag {
            all.insert(CACHE_TAG, tag);
        }
        all.extend(rest);
        if varies {
            all.append(VARY, HeaderValue::from_static("accept-encoding"));
        }

        // RFC 9110, section 15.4.5: a 304 carries only the fields that update the client's stored response.
        let mut not_modified = HeaderMap::new();
        for name in [
            CACHE_CONTROL,
            CONTENT_LOCATION,
            ETAG,
            EXPIRES,
            VARY,
            X_REQUEST_ID,
        ] {
            for value in all.get_all(&name) {
                not_modified.append(&name, value.clone());
            }
        }

        if ranges {
            all.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        let by_encoding = ContentEncoding::ALL.map(|encoding| {
            let mut fields = all.clone();
            if encoding != ContentEncoding::Identity {
                fields.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.token()));
            }
            fields
        });
        Self {
            by_encoding,
            lines: Default::default(),
            has_cache_tag,
            not_modified,
            given,
            varies,
            ranges,
        }
    }

    /// Returns the arguments of [`new`](Self::new), in the same order. The same arguments build the same fields.
    #[must_use]
    pub const fn parts(&self) -> (&HeaderMap, bool, bool) {
        (&self.given, self.varies, self.ranges)
    }

    /// Returns a copy of the fields of a body in `encoding`, with its entity tag.
    #[must_use]
    pub fn for_body(&self, encoding: ContentEncoding, etag: &HeaderValue) -> HeaderMap {
        tagged(&self.by_encoding[encoding as usize], etag)
    }

    /// Appends the fields of a body in `encoding` as lines of HTTP/1.1: the same fields in the same order as [`for_body`](Self::for_body) with this entity tag, and with this request id and cache tag [`set`].
    pub fn write_lines(
        &self,
        lines: &mut Vec<u8>,
        encoding: ContentEncoding,
        (etag, request_id, cache_tag): (&HeaderValue, &HeaderValue, Option<&HeaderValue>),
    ) {
        let fields = &self.by_encoding[encoding as usize];
        let set_fields = 2 + usize::from(self.has_cache_tag);
        let rest = self.lines[encoding as usize].get_or_init(|| {
            let mut rest = Vec::new();
            for (name, value) in fields.iter().skip(set_fields) {
                write_line(&mut rest, name, value.as_bytes());
            }
            rest.into()
        });
        write_line(lines, &ETAG, etag.as_bytes());
        write_line(lines, &X_REQUEST_ID, request_id.as_bytes());
        if self.has_cache_tag
            && let Some(tag) = cache_tag.or_else(|| fields.get(CACHE_TAG))
        {
            write_line(lines, &CACHE_TAG, tag.as_bytes());
        }
        lines.extend_from_slice(rest);
        if !self.has_cache_tag
            && let Some(tag) = cache_tag
        {
            write_line(lines, &CACHE_TAG, tag.as_bytes());
        }
    }

    /// Returns a copy of the fields of a response with status 304.
    #[must_use]
    pub fn not_modified(&self, etag: &HeaderValue) -> HeaderMap {
        tagged(&self.not_modified, etag)
    }

    /// Returns whether clients may request part of the body (RFC 9110, section 14).
    #[must_use]
    pub const fn ranges(&self) -> bool {
        self.ranges
    }
}

fn tagged(fields: &HeaderMap, etag: &HeaderValue) -> HeaderMap {
    let mut fields = fields.clone();
    set(&mut fields, &ETAG, etag.clone());
    fields
}

/// Appends a field as a line of HTTP/1.1.
pub fn write_line(lines: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    let name = name.as_str();
    lines.reserve(name.len() + value.len() + 4);
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        lines.extend_from_slice(part);
    }
}

/// Sets a single-value field. Looks for it by linear search, which avoids hashing the name of a field at the front; adds it if absent.
pub fn set(fields: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    match fields.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => drop(fields.insert(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn copied_fields_match_the_encoding() {
        let mut given = HeaderMap::new();
        given.insert(CONTENT_TYPE, HeaderValue::from_static("text/css"));
        given.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let fields = Fields::new(given, true, true);
        let etag = HeaderValue::from_static("\"x\"");

        let copy = fields.for_body(ContentEncoding::Gzip, &etag);
        assert_eq!(copy[CONTENT_ENCODING], "gzip");
        assert_eq!(copy[ETAG], "\"x\"");
        assert_eq!(copy[VARY], "accept-encoding");
        assert_eq!(copy[ACCEPT_RANGES], "bytes");
        assert!(
            !fields
                .for_body(ContentEncoding::Identity, &etag)
                .contains_key(CONTENT_ENCODING)
        );

        let not_modified = fields.not_modified(&etag);
        assert_eq!(not_modified.len(), 4);
        assert_eq!(not_modified[ETAG], "\"x\"");
    }

    #[test]
    fn lines_have_the_fields_of_the_map_in_its_order() {
        let value = |text| HeaderValue::from_static(text);
        let (etag, id, tag) = (value("\"x\""), value("id-1"), value("corner"));
        for (given_tag, cache_tag) in [
            (None, None),
            (None, Some(&tag)),
            (Some(value("given")), None),
            (Some(value("given")), Some(&tag)),
        ] {
            let mut given = HeaderMap::new();
            given.insert(CONTENT_TYPE, value("text/css"));
            given.extend(given_tag.map(|tag| (CACHE_TAG, tag)));
            given.append(VARY, value("cookie"));
            let fields = Fields::new(given, true, true);
            for encoding in ContentEncoding::ALL {
                let mut map = fields.for_body(encoding, &etag);
                set(&mut map, &X_REQUEST_ID, id.clone());
                if let Some(tag) = cache_tag {
                    set(&mut map, &CACHE_TAG, tag.clone());
                }
                let expected: String = map
                    .iter()
                    .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()))
                    .collect();
                for _ in 0..2 {
                    let mut lines = Vec::new();
                    fields.write_lines(&mut lines, encoding, (&etag, &id, cache_tag));
                    assert_eq!(String::from_utf8(lines).unwrap(), expected);
                }
            }
        }
    }
}
