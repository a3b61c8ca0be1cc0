//! `--state DIR`: data and releases that survive a restart.

pub(crate) mod persisted_data;
mod replaced_files;
mod rollback;
mod unchanged_tenants;
