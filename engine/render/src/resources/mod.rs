//! Turns files into resources: hashed names, header fields, and a body in each content encoding.
//!
//! - [`asset`] names files by their content.
//! - [`header_fields`] makes the header fields.
//! - [`encodings`] makes the content encodings and ETags.
//! - [`file_resource`] combines the three.
//! - [`tenant_files`] reads a tenant's files.
//! - [`shared_files`] makes the resources that every host serves.
//! - [`unknown_host`] makes the response for a host of no tenant.
//! - [`page_markdown`] makes the Markdown form of a page.
//! - [`replaced_files`] keeps serving files that a later release replaced.
//!
//! **Invariant:** knows no request. The server selects a response from these resources and never makes one for a request.

pub(crate) mod asset;
pub(crate) mod encodings;
pub(crate) mod file_resource;
pub(crate) mod header_fields;
pub(crate) mod page_markdown;
pub(crate) mod replaced_files;
pub(crate) mod shared_files;
pub(crate) mod tenant_files;
pub(crate) mod unknown_host;
