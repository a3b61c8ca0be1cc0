//! The header fields of the bodies of one kind, ready to be copied into a response.
//!
//! Putting a header map together costs a request more than finding its page, so every form that it can take is made once, here, and shared by all the bodies of a kind (all indexed pages in the same colours, say, or all fonts).
//! A response copies one of them and sets the entity tag; whoever sends it sets its name ([`X_REQUEST_ID`]).
//!
//! **Invariant:** knows no request; the maps never change.

use http::HeaderMap;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LOCATION, ETAG, EXPIRES, HeaderName,
    HeaderValue, VARY,
};

use super::coding::Coding;

/// The field by which shared caches throw away all that belongs together.
pub const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");
/// The field that carries a request's name in the logs.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a page is thrown away by: its tenant's id, or the id with its path (`corner,corner/terms`).
///
/// A path that cannot stand in a list of tags has the tenant's only.
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

/// The fields of one kind of body, by encoding.
#[derive(Debug)]
pub struct Fields {
    whole: [HeaderMap; Coding::ALL.len()],
    not_modified: HeaderMap,
    given: HeaderMap,
    varies: bool,
    ranges: bool,
}

impl Fields {
    /// Takes what all the bodies of the kind say: content type, caching, security. What follows from a single body and its encoding (`ETag`, `Content-Encoding`, `Content-Length`) and `Date` must not be among them.
    ///
    /// `varies`: bodies of this kind come in more than one encoding (`Vary: Accept-Encoding`).
    /// `ranges`: a part of the body may be requested (`Accept-Ranges: bytes`); for assets, not for pages.
    #[must_use]
    pub fn new(given: HeaderMap, varies: bool, ranges: bool) -> Self {
        let mut rest = given.clone();
        // What is set for a body or a request is present from the start, so that the copy does not grow, and stands first, where `set` finds it at once.
        let mut all = HeaderMap::with_capacity(given.len() + 4);
        all.insert(ETAG, HeaderValue::from_static("\"\""));
        all.insert(X_REQUEST_ID, HeaderValue::from_static("-"));
        if let Some(tag) = rest.remove(CACHE_TAG) {
            all.insert(CACHE_TAG, tag);
        }
        all.extend(rest);
        if varies {
            all.append(VARY, HeaderValue::from_static("accept-encoding"));
        }

        // RFC 9110, section 15.4.5: what the client needs to update what it has, and no more.
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
        let whole = Coding::ALL.map(|coding| {
            let mut fields = all.clone();
            if coding != Coding::Identity {
                fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
            }
            fields
        });
        Self {
            whole,
            not_modified,
            given,
            varies,
            ranges,
        }
    }

    /// What [`new`](Self::new) took, in its order: the same again makes the same fields.
    #[must_use]
    pub const fn given(&self) -> (&HeaderMap, bool, bool) {
        (&self.given, self.varies, self.ranges)
    }

    /// A copy of the fields that go with a body in `coding`, with its entity tag.
    #[must_use]
    pub fn whole(&self, coding: Coding, etag: &HeaderValue) -> HeaderMap {
        tagged(&self.whole[coding as usize], etag)
    }

    /// A copy of the fields of status 304.
    #[must_use]
    pub fn not_modified(&self, etag: &HeaderValue) -> HeaderMap {
        tagged(&self.not_modified, etag)
    }

    /// Whether a part of the body may be requested (RFC 9110, section 14).
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

/// Sets a field of one value that is among the first ones, or adds it, without computing the hash of its name.
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
    fn a_copy_has_all_that_goes_with_the_coding() {
        let mut given = HeaderMap::new();
        given.insert(CONTENT_TYPE, HeaderValue::from_static("text/css"));
        given.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let fields = Fields::new(given, true, true);
        let etag = HeaderValue::from_static("\"x\"");

        let whole = fields.whole(Coding::Gzip, &etag);
        assert_eq!(whole[CONTENT_ENCODING], "gzip");
        assert_eq!(whole[ETAG], "\"x\"");
        assert_eq!(whole[VARY], "accept-encoding");
        assert_eq!(whole[ACCEPT_RANGES], "bytes");
        assert!(
            !fields
                .whole(Coding::Identity, &etag)
                .contains_key(CONTENT_ENCODING)
        );

        let not_modified = fields.not_modified(&etag);
        assert_eq!(not_modified.len(), 4);
        assert_eq!(not_modified[ETAG], "\"x\"");
    }
}
