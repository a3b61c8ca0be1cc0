//! Which tenants are requested, and which are in memory.
//!
//! **Invariant:** plain values; decides nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use content::name::TenantId;
use render::Compiled;

use crate::runner::memory::full_pass::FullPass;

/// The names of tenants that requests were told of.
#[derive(Debug, Clone, Default)]
pub(crate) struct TenantNames(Arc<Mutex<BTreeSet<String>>>);

impl TenantNames {
    /// Adds a tenant. Whether that is new.
    pub(crate) fn add(&self, id: &str) -> bool {
        let mut names = self.locked();
        !names.contains(id) && names.insert(id.to_owned())
    }

    /// Takes all names.
    pub(crate) fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.locked())
    }

    pub(crate) fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether somebody has requested a tenant.
#[derive(Debug)]
pub(crate) struct TenantDemand {
    /// The number of its requests when it was last looked, and when that was another number.
    pub(crate) requests: u64,
    pub(crate) since: Instant,
    /// The number of its requests when it went to sleep.
    pub(crate) asleep_at: u64,
    /// Whether a request waits for one of its pictures.
    pub(crate) is_wanted: bool,
    /// For what everything is made that is made later.
    pub(crate) finished: Weak<Compiled>,
    /// The bytes of these pages, which only grow where somebody asks.
    pub(crate) pages: (Weak<Compiled>, usize),
}

impl Default for TenantDemand {
    fn default() -> Self {
        Self {
            requests: 0,
            since: Instant::now(),
            asleep_at: 0,
            is_wanted: false,
            finished: Weak::new(),
            pages: (Weak::new(), 0),
        }
    }
}

impl TenantDemand {
    /// It is out of memory: whoever asks next asks anew.
    pub(crate) fn sleep(&mut self) {
        self.asleep_at = self.requests;
        self.is_wanted = false;
    }
}

/// The tenants that something is to be done for because of requests.
#[derive(Debug)]
pub(crate) struct DemandQueues {
    /// The tenants of whose images requests wait for one.
    pub(crate) pictures: TenantNames,
    /// The last order of images and encodings.
    pub(crate) ordered: FullPass,
    /// The last measurement of memory.
    pub(crate) measured: FullPass,
    /// The tenants of whose images and encodings the background makes some.
    pub(crate) unfinished: Vec<TenantId>,
    /// The tenants that were requested since the last measurement.
    pub(crate) requested: TenantNames,
    /// The tenants whose pages have changed since the last measurement.
    pub(crate) changed: BTreeSet<TenantId>,
    /// The tenants of whose images and encodings some may be missing.
    pub(crate) incomplete: BTreeSet<TenantId>,
    /// How often pages were evicted.
    pub(crate) evictions: u64,
    /// How often pages were restored that were rendered before.
    pub(crate) restored: u64,
}

impl Default for DemandQueues {
    fn default() -> Self {
        Self {
            pictures: TenantNames::default(),
            ordered: FullPass::new(),
            measured: FullPass::new(),
            unfinished: Vec::new(),
            requested: TenantNames::default(),
            changed: BTreeSet::new(),
            incomplete: BTreeSet::new(),
            evictions: 0,
            restored: 0,
        }
    }
}
