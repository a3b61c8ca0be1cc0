//! Turns changed folders into the current snapshot, and keeps the last valid state of each tenant.
//!
//! 1. Each changed folder is read and checked. A folder with errors changes its report only.
//! 2. Addresses are assigned again over all tenants: an owner keeps its address, and `deployment.yaml` limits the claims.
//! 3. Tenants whose content, addresses, theme or company profile changed are rendered. The others keep their mounts.
//! 4. The mounts become a snapshot, which replaces the current one.
//!
//! | folder | contents |
//! |---|---|
//! | [`model`] | decisions without I/O, threads and clocks: what is read when, and the lifecycle of one tenant |
//! | [`runner`] | the loop, the registry of tenants, the job pool, surveys, commands of operators, eviction |
//! | [`jobs`] | reading, rendering and restoring one tenant, each on a thread of the pool |
//! | [`snapshot`] | snapshot assembly: hosts, shared files, replaced files, findings |
//! | [`state`] | the data that survives a restart: valid folders, caches, releases, pins |
//! | [`source`] | folders on disk: watching, polling and surveys |
//!
//! A slow tenant delays `check` and `export` only: other tenants are served, and the slow tenant follows when its job ends.
//! A panic in a job becomes an error of its tenant, theme or host, whose last valid state stays ([`content::report::guard`]).
//!
//! **Invariant:** the only crate that uses both `render` and `server`. It answers no request itself.

mod jobs;
mod model;
mod places;
mod runner;
mod snapshot;
pub mod source;
mod state;

pub use self::places::Places;
pub use self::runner::operator::{Inbox, Operator};
pub use self::runner::registry::{Registry, ReloadError};
pub use self::runner::reload_loop::{ReloadLoop, log_report};
pub use self::snapshot::compare;
pub use self::snapshot::findings::{Findings, Found};
pub use self::snapshot::replaced;
pub use self::state::persisted::Persisted;
