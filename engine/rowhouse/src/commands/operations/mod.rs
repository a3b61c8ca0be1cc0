//! Commands for operators: clients of the admin listener of a running server, and `restore --to`, which reads the state.
//!
//! **Invariant:** opens no tenant's folder.

pub(crate) mod admin_client;
pub(crate) mod admin_token;
pub(crate) mod certificates;
pub(crate) mod probe;
pub(crate) mod releases;
pub(crate) mod restore;
pub(crate) mod visits;
