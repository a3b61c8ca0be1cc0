//! The data that survives a restart: valid folders, caches, addresses, releases and pins.

pub(crate) mod persist;
pub(crate) mod persisted;
pub(crate) mod recorded;
pub(crate) mod release_key;
pub(crate) mod releases;
