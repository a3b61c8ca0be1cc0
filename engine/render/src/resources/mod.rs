//! Turns files into resources: hashed names, header fields, and bodies in each content encoding.
//!
//! [`asset`] names files by their content, [`policy`] makes the header fields, [`files`] puts both together with [`encodings`]. [`tenant_files`] reads a tenant's files, [`shared`] makes what every host serves, and [`former`] serves files that were replaced.
//!
//! **Invariant:** knows no request: a response is chosen from what is made here, and never made for a request.

pub(crate) mod asset;
pub(crate) mod encodings;
pub(crate) mod files;
pub(crate) mod former;
pub(crate) mod policy;
pub(crate) mod shared;
pub(crate) mod tenant_files;
