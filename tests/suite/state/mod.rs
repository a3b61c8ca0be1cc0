//! `--state DIR`: data and releases that survive a restart.

mod deployment_identity;
mod not_found_paths;
mod persisted_data;
mod removed_tenants;
mod replaced_files;
pub(crate) mod rollback;
pub(crate) mod stateful_deployment;
mod unchanged_tenants;
mod unwritable_state;
mod visits;
