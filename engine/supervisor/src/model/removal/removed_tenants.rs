//! The tenants whose folders were removed, and the commands that restore them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use content::name::TenantId;

use crate::model::event::Ticket;

/// The default time for which the history of a removed tenant is kept.
const DEFAULT_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A tenant whose folder was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemovedTenant {
    /// The time at which the removal was noticed.
    pub(crate) at: SystemTime,
    /// Whether an operator has restored the tenant.
    pub(crate) is_restored: bool,
}

/// The removed tenants by id.
pub(crate) type RemovedTenants = BTreeMap<TenantId, RemovedTenant>;

/// The facts of an earlier process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered {
    /// The pinned releases.
    pub(crate) pins: BTreeMap<TenantId, u64>,
    pub(crate) removed: RemovedTenants,
    /// The tenants with a persisted valid folder, including removed ones.
    pub(crate) tenants: BTreeSet<TenantId>,
}

/// The removed tenants, and the commands that restore them.
#[derive(Debug)]
pub(in crate::model) struct Removals {
    pub(in crate::model) tenants: RemovedTenants,
    /// The commands whose tenants are being read.
    pub(in crate::model) restoring: BTreeMap<TenantId, Vec<Ticket>>,
    /// The tenants of an earlier process, until the first list of folders.
    pub(in crate::model) former: BTreeSet<TenantId>,
    /// The tenants that the last list left out because their content is not on this machine, as far as data of them is.
    pub(in crate::model) asleep: BTreeSet<TenantId>,
    pub(in crate::model) retention: Duration,
}

impl Removals {
    pub(in crate::model) const fn new(removed: RemovedTenants, former: BTreeSet<TenantId>) -> Self {
        Self {
            tenants: removed,
            restoring: BTreeMap::new(),
            former,
            asleep: BTreeSet::new(),
            retention: DEFAULT_RETENTION,
        }
    }

    /// Returns whether an operator has restored the tenant, whose folder is still gone.
    pub(in crate::model) fn is_restored(&self, id: &TenantId) -> bool {
        self.tenants.get(id).is_some_and(|one| one.is_restored)
    }
}
