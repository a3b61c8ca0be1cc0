//! `--state DIR`: data and releases that survive a restart.

mod deployment_identity;
mod persisted_data;
mod replaced_files;
mod rollback;
pub(crate) mod stateful_deployment;
mod unchanged_tenants;
mod unwritable_state;
