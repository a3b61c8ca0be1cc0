//! One body in several content encodings.

use std::sync::OnceLock;

use http::HeaderValue;

use crate::payload::Payload;

/// One encoding of a body.
#[derive(Debug, Clone)]
pub struct Variant {
    /// What `Content-Encoding` says.
    pub coding: Coding,
    /// The bytes as they go out.
    pub bytes: Payload,
    /// A strong entity tag with its quotes: a hash of `bytes`, so that it is the same on every machine.
    pub etag: HeaderValue,
}

/// A body in its encodings: those that were made with it, and the best one, which is made later for bodies that somebody asks for.
#[derive(Debug)]
pub struct Variants {
    made: Box<[Variant]>,
    /// Nothing in it: no encoding is better than those that were made.
    best: OnceLock<Option<Variant>>,
}

impl Variants {
    /// These, the smallest first and identity last.
    #[must_use]
    pub const fn new(made: Box<[Variant]>) -> Self {
        Self {
            made,
            best: OnceLock::new(),
        }
    }

    /// All that are there by now, the smallest first and identity last. The best one takes the place of that of the same encoding.
    pub fn iter(&self) -> impl Iterator<Item = &Variant> {
        let best = self.best.get().and_then(Option::as_ref);
        let others = self.made.iter();
        let others = others.filter(move |made| best.is_none_or(|best| best.coding != made.coding));
        best.into_iter().chain(others)
    }

    /// The body as it is.
    #[must_use]
    pub fn identity(&self) -> Option<&Variant> {
        self.made.last()
    }

    /// Whether the best encoding is still to be made.
    #[must_use]
    pub fn can_improve(&self) -> bool {
        self.best.get().is_none()
    }

    /// Adds the best encoding for good, smaller than those that are there, or says that there is none.
    pub fn improve(&self, best: Option<Variant>) {
        // What comes second is the same.
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
pub enum Coding {
    /// `br` (RFC 7932).
    Brotli,
    /// `gzip` (RFC 1952).
    Gzip,
    /// The bytes as they are.
    Identity,
}

impl Coding {
    /// Every encoding, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Gzip, Self::Identity];

    /// The token in `Content-Encoding` and `Accept-Encoding`.
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

    fn variant(coding: Coding, bytes: &'static str) -> Variant {
        Variant {
            coding,
            bytes: bytes.into(),
            etag: HeaderValue::from_static("\"x\""),
        }
    }

    #[test]
    fn the_best_coding_takes_the_place_of_the_quick_one() {
        let variants = Variants::from([
            variant(Coding::Brotli, "quick"),
            variant(Coding::Gzip, "larger"),
            variant(Coding::Identity, "the body"),
        ]);
        let all = || -> Vec<Payload> { variants.iter().map(|one| one.bytes.clone()).collect() };
        assert_eq!(all(), ["quick", "larger", "the body"].map(Payload::from));
        variants.improve(Some(variant(Coding::Brotli, "best")));
        assert_eq!(all(), ["best", "larger", "the body"].map(Payload::from));
    }
}
