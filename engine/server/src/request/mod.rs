//! Reads the request: its host, path, visitor, trace, accepted encodings, preconditions and ranges.
//!
//! [`layers`] wraps the look-up of each request.
//!
//! **Invariant:** a field that a client invents becomes no state and no log field.

pub(crate) mod forwarded;
pub(crate) mod host;
pub(crate) mod layers;
pub(crate) mod negotiate;
pub(crate) mod path;
pub(crate) mod preconditions;
pub(crate) mod request_fields;
pub(crate) mod trace;
