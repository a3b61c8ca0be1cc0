//! Commands for operators: clients of the admin listener of a running server, `restore --to`, which reads the state, and `token`, which reads nothing.
//!
//! **Invariant:** opens no tenant's folder.

pub(crate) mod admin_client;
pub(crate) mod admin_token;
pub(crate) mod certificates;
pub(crate) mod probe;
pub(crate) mod releases;
pub(crate) mod restore;
pub(crate) mod token;
pub(crate) mod visits;
