//! The one owner: folders in, a new snapshot out, and the last good state of every tenant kept.
//!
//! 1. Each changed folder is read and checked. A folder with errors changes nothing but its report.
//! 2. Addresses are given out anew over all tenants: who has one keeps it, and `deployment.yaml` says what may be claimed.
//! 3. Tenants whose content, addresses, theme or company profile changed are rendered; the others keep their mounts.
//! 4. The mounts become a snapshot.
//!
//! ```text
//! reload_loop  waits for changes, reloads, swaps, reports; started again if it fails
//!   registry   every tenant, theme and address: `read`, `compile`, `assembly`, `persist`, `dev`, `cross_tenant` are steps of it
//!     tenant   one tenant's content and reports, and its `lifecycle`: what is under way, what is served
//!     themes, cards, addresses, hosts, shared, replaced, persisted   what else it is made of
//!     memory, packed, round   what nobody asks for gives its memory back
//!     demand, completion   what is made only for tenants that somebody asks for: pictures, the best codings
//!     whole      every tenant with all that is made for it, for who writes it down
//!     unchanged, recalled   what was read or rendered before and need not be again
//!     releases, recorded, compare   what was served, to be listed, compared and served again; `operator` is who asks, `findings` what is told of some tenants
//!     workers  the threads for steps 1 and 3
//!   background the threads that draw pictures and compress pages well
//! ```
//!
//! A tenant that takes long is waited for by nobody but `check` and its like: the others are served, and it is taken once it is done.
//! A panic in the work for a tenant, a theme or a host becomes an error of that one, whose last good state stays ([`content::report::guard`]).
//!
//! **Invariant:** the only one that sees both halves, what renders and what is served. It serves nothing itself.

mod addresses;
mod assembly;
mod background;
mod cards;
pub mod compare;
mod compile;
mod completion;
mod cross_tenant;
mod demand;
mod dev;
mod findings;
mod hosts;
mod lifecycle;
mod memory;
mod operator;
mod packed;
mod persist;
mod persisted;
mod places;
mod read;
mod recalled;
mod recorded;
mod registry;
mod releases;
mod reload_loop;
mod replaced;
mod round;
mod shared;
mod tenant;
mod themes;
mod unchanged;
mod whole;
mod work;
mod workers;

pub use self::findings::{Findings, Found};
pub use self::operator::{Inbox, Operator};
pub use self::persisted::Persisted;
pub use self::places::Places;
pub use self::registry::{Registry, ReloadError};
pub use self::reload_loop::ReloadLoop;
pub(crate) use self::reload_loop::log_report;
