//! A response body in several content encodings.

use std::sync::OnceLock;

use http::HeaderValue;

use crate::payload::Payload;

/// One content encoding of a body.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The encoding that `Content-Encoding` names.
    pub encoding: ContentEncoding,
    /// The encoded bytes.
    pub bytes: Payload,
    /// A strong entity tag, including its quotes. It is a hash of `bytes`, so every machine produces the same tag.
    pub etag: HeaderValue,
}

/// A body in its content encodings.
///
/// The first encodings are made together with the body. The best one is made later, for bodies that are requested.
#[derive(Debug)]
pub struct Variants {
    made: Box<[Variant]>,
    /// The best encoding; `None` inside if no encoding is smaller than those in `made`.
    best: OnceLock<Option<Variant>>,
}

impl Variants {
    /// Creates the variants of a body. `made` lists the smallest first and identity last.
    #[must_use]
    pub const fn new(made: Box<[Variant]>) -> Self {
        Self {
            made,
            best: OnceLock::new(),
        }
    }

    /// Returns all variants made so far, smallest first and identity last. The best variant replaces the one with the same encoding.
    pub fn iter(&self) -> impl Iterator<Item = &Variant> {
        let best = self.best.get().and_then(Option::as_ref);
        let others = self.made.iter();
        let others =
            others.filter(move |made| best.is_none_or(|best| best.encoding != made.encoding));
        best.into_iter().chain(others)
    }

    /// Returns the body without a content encoding.
    #[must_use]
    pub fn identity(&self) -> Option<&Variant> {
        self.made.last()
    }

    /// Returns whether [`Self::improve`] was not called yet.
    #[must_use]
    pub fn can_improve(&self) -> bool {
        self.best.get().is_none()
    }

    /// Sets the best encoding permanently. `None` means that no encoding is smaller than those present.
    pub fn improve(&self, best: Option<Variant>) {
        // A second call brings the same variant.
        let _ = self.best.set(best);
    }
}

impl FromIterator<Variant> for Variants {
    fn from_iter<I: IntoIterator<Item = Variant>>(made: I) -> Self {
        Self::new(made.into_iter().collect())
    }
}

impl<const N: usize> From<[Variant; N]> for Variants {
    fn from(made: [Variant; N]) -> Self {
        Self::new(Box::new(made))
    }
}

/// A content encoding (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentEncoding {
    /// `br` (RFC 7932).
    Brotli,
    /// `gzip` (RFC 1952).
    Gzip,
    /// No encoding: the body itself.
    Identity,
}

impl ContentEncoding {
    /// Every encoding, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Gzip, Self::Identity];

    /// Returns the token used in `Content-Encoding` and `Accept-Encoding`.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(encoding: ContentEncoding, bytes: &'static str) -> Variant {
        Variant {
            encoding,
            bytes: bytes.into(),
            etag: HeaderValue::from_static("\"x\""),
        }
    }

    #[test]
    fn best_encoding_replaces_the_quick_one() {
        let variants = Variants::from([
            variant(ContentEncoding::Brotli, "quick"),
            variant(ContentEncoding::Gzip, "larger"),
            variant(ContentEncoding::Identity, "the body"),
        ]);
        let all = || -> Vec<Payload> { variants.iter().map(|one| one.bytes.clone()).collect() };
        assert_eq!(all(), ["quick", "larger", "the body"].map(Payload::from));
        variants.improve(Some(variant(ContentEncoding::Brotli, "best")));
        assert_eq!(all(), ["best", "larger", "the body"].map(Payload::from));
    }
}
