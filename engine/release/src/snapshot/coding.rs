//! One body in several content codings.

use bytes::Bytes;
use http::HeaderValue;

/// One coding of a body.
#[derive(Debug, Clone)]
pub struct Variant {
    /// What `Content-Encoding` says.
    pub coding: Coding,
    /// The bytes as they go out.
    pub bytes: Bytes,
    /// A strong entity tag with its quotes: a hash of `bytes`, so that it is the same on every machine.
    pub etag: HeaderValue,
}

/// A content coding (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstd,
    /// `gzip` (RFC 1952).
    Gzip,
    /// The bytes as they are.
    Identity,
}

impl Coding {
    /// Every coding, in the order of the variants.
    pub const ALL: [Self; 4] = [Self::Brotli, Self::Zstd, Self::Gzip, Self::Identity];

    /// The token in `Content-Encoding` and `Accept-Encoding`.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }
}
