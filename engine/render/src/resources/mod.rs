//! Turns files into resources: hashed names, header fields, and bodies in each content encoding.
//!
//! [`asset`] names files by their content, [`header_fields`] makes the header fields, [`file_resource`] puts both together with [`encodings`]. [`tenant_files`] reads a tenant's files, [`shared_files`] makes what every host serves, and [`replaced_files`] serves files that were replaced.
//!
//! **Invariant:** knows no request: a response is chosen from what is made here, and never made for a request.

pub(crate) mod asset;
pub(crate) mod encodings;
pub(crate) mod file_resource;
pub(crate) mod header_fields;
pub(crate) mod replaced_files;
pub(crate) mod shared_files;
pub(crate) mod tenant_files;
