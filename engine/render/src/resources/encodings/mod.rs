//! Compresses bodies: quickly while a tenant is rendered, best in the background.
//!
//! [`compress`] makes the content encodings of a body and its ETags, [`page_encodings`] those of all pages of a release, and [`best_encodings`] names the bodies whose best encoding is not made yet.
//!
//! **Invariant:** an ETag depends on the body and its content encoding, never on the compression level.

pub(crate) mod best_encodings;
pub(crate) mod compress;
pub(crate) mod page_encodings;
