//! Compresses bodies: fast while a tenant is rendered, and as small as possible in the background.
//!
//! - [`compress`] makes the content encodings of a body.
//! - [`etag`] makes their ETags.
//! - [`page_encodings`] compresses all pages of a tenant.
//! - [`shared_encodings`] collects the encodings of a release for other processes.
//! - [`best_encodings`] finds the bodies whose best encoding is not made yet.
//!
//! **Invariant:** an ETag depends on the body and its content encoding, never on the compression level.

pub(crate) mod best_encodings;
pub(crate) mod compress;
mod etag;
pub(crate) mod page_encodings;
pub(crate) mod shared_encodings;
