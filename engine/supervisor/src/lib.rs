//! Turns changed folders into the current snapshot, and serves the last valid state of each tenant.
//!
//! ```text
//!   folders, operators, visitors          jobs of the pool
//!              │ events                       │ results
//!              ▼                              ▼
//!            runner ──── event ────▶ model::World::step ──── actions ───┐
//!              ▲                                                        │
//!              └── jobs, snapshots, persisted data, replies ◀───────────┘
//! ```
//!
//! 1. A changed folder settles, waits for uploads in progress, is read and checked. A folder with errors changes its report only.
//! 2. Addresses of the changed tenants are assigned, or of all tenants if the change may affect them: an owner keeps its address, and `deployment.yaml` limits the claims.
//! 3. Tenants with a new revision of content, addresses, theme or deployment are rendered. The pages of other tenants stay.
//! 4. The pages become a snapshot, which replaces the current one.
//!
//! | folder | contents |
//! |---|---|
//! | [`model`] | decisions without I/O, threads and clocks: the `World`, its events and actions |
//! | [`runner`] | the event loop, the data of tenants, the job pool, surveys, commands of operators |
//! | [`jobs`] | reading, rendering and restoring one tenant, each on a thread of the pool |
//! | [`snapshot`] | snapshot assembly: hosts, shared files, replaced files, findings |
//! | [`state`] | the data that survives a restart: valid folders, caches, releases, pins |
//! | [`source`] | folders on disk: watching, polling and surveys |
//!
//! A slow tenant delays only `check` and `export`. A panic in a job becomes an error of its tenant, theme or host, and the last valid state is served ([`content::report::guard`]).
//!
//! **Invariant:** the only library crate that uses both `render` and `server`. It does not handle requests itself.

mod deployment_config;
mod jobs;
mod model;
mod runner;
#[cfg(test)]
mod simulation;
mod snapshot;
pub mod source;
mod state;

pub use self::deployment_config::DeploymentConfig;
pub use self::runner::catalog::complete_tenant::CompleteTenant;
pub use self::runner::operator::{CommandHold, Inbox, Operator};
pub use self::runner::registry::{Registry, ReloadError};
pub use self::runner::reload_loop::{ReloadLoop, log_report};
pub use self::runner::reload_queue::ReloadSender;
pub use self::snapshot::compare;
pub use self::snapshot::findings::{Findings, TenantFindings};
pub use self::snapshot::replaced;
pub use self::state::tables::{PersistedState, valid_folder};
