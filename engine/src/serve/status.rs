//! How the tenants are, as their owner last said.
//!
//! The owner of the tenants puts a new [`Status`] on the board after each change; the admin listener shows it.
//!
//! **Invariant:** knows how tenants are, not why.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::{ArcSwap, Guard};
use serde::Serialize;

/// How all tenants are, at one moment.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Whether the first snapshot is complete: every tenant has been tried once.
    pub ready: bool,
    /// Ordered by id.
    pub tenants: Vec<TenantStatus>,
}

/// How one tenant is.
#[derive(Debug, Clone)]
pub struct TenantStatus {
    /// The tenant's id.
    pub id: Arc<str>,
    /// What visitors get.
    pub state: State,
    /// When it came into this state.
    pub since: SystemTime,
    /// Pages served.
    pub pages: usize,
    /// Hosts that it answers on, in order.
    pub hosts: Vec<String>,
    /// What its authors have to correct, one line each.
    pub mistakes: Vec<String>,
}

/// What visitors of a tenant get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// What its folder says.
    Live,
    /// The last good state, since what its folder says has mistakes.
    Degraded,
    /// Nothing, since it was never without mistakes.
    Absent,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Live, Self::Degraded, Self::Absent];

    /// The word for it in `/tenants` and `/metrics`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Degraded => "degraded",
            Self::Absent => "absent",
        }
    }
}

/// Where the owner of the tenants leaves their status.
#[derive(Debug, Default)]
pub struct StatusBoard {
    current: ArcSwap<Status>,
}

impl StatusBoard {
    /// What was last said; not ready and without tenants before that.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<Status>> {
        self.current.load()
    }

    /// Says how the tenants are now.
    pub fn replace(&self, status: Status) {
        self.current.store(Arc::new(status));
    }
}
