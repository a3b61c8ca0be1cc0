//! The content of versions on the disk of a replica.
//!
//! - [`fetch`] downloads the content of a version.
//! - `large_file` writes a large file while it is downloaded.
//! - [`cache`] has the folders, and the index of their tenants.
//!
//! **Invariant:** does not know which tenants a replica needs.

pub mod cache;
pub mod fetch;
mod large_file;
