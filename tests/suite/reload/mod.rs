//! Changes of folders while the server runs.

mod incremental_reload;
mod uploads;
pub(crate) mod watched_deployment;
mod watched_folders;
