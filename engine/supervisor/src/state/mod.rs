//! The data that survives a restart: valid folders, caches, addresses, releases, pins, requested paths without a page, and visits.

pub(crate) mod deployment;
pub(crate) mod not_found;
pub(crate) mod release_key;
pub(crate) mod release_record;
pub(crate) mod releases;
pub(crate) mod tables;
pub(crate) mod visits;
pub(crate) mod write;
