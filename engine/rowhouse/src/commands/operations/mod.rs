//! Commands for operators, each a client of the admin listener of a running server.
//!
//! **Invariant:** opens no tenant's folder.

pub(crate) mod admin_client;
pub(crate) mod admin_token;
pub(crate) mod certificates;
pub(crate) mod probe;
pub(crate) mod releases;
