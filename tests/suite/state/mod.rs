//! `--state DIR`: data and releases that survive a restart.

mod persisted_data;
mod replaced_files;
mod rollback;
pub(crate) mod stateful_deployment;
mod unchanged_tenants;
