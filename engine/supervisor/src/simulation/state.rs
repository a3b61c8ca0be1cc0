//! The state of the simulated server: its disk, the data of its tenants, and its jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use content::name::TenantId;

use crate::model::removal::removed_tenants::RemovedTenants;
use crate::model::tenant::BuildKey;

/// The longest wait for an upload.
pub(super) const SETTLE_MAX: Duration = Duration::from_secs(5);

/// The upload of a file in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upload {
    /// A text grows. Each state of it is valid.
    Growing,
    /// A file has no end yet.
    Incomplete,
}

/// The wait of a tenant for its files.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedWait {
    pub(super) since: Instant,
    /// The last time at which a job in flight could end the wait, or `since`.
    pub(super) idle_since: Instant,
}

/// A tenant's folder on the simulated disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimulatedFolder {
    pub(super) version: u64,
    pub(super) is_valid: bool,
    pub(super) is_locked: bool,
    /// The upload of a file, unless all files are complete.
    pub(super) upload: Option<Upload>,
}

/// A job in flight.
#[derive(Debug, Clone)]
pub(super) enum SimulatedJob {
    /// A list of the folders, and a read of the persisted folders of these removed tenants.
    Survey {
        only: Option<BTreeSet<String>>,
        removed: Vec<TenantId>,
    },
    Read {
        tenant: TenantId,
        number: u64,
        waits: bool,
        /// The folder when the job began. Later changes are not in the result.
        begun: Option<SimulatedFolder>,
    },
    Report {
        tenant: TenantId,
        number: u64,
    },
    Build {
        tenant: TenantId,
        key: BuildKey,
        is_background: bool,
    },
    StandIn(TenantId),
    LoadPin(TenantId),
    WritePin {
        tenant: TenantId,
        to: Option<u64>,
    },
}

/// The pages of a tenant in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServedPage {
    Waiting,
    /// Requests get 503.
    Unavailable,
    Pages(BuildKey),
    StandIn,
    Release(u64),
}

/// The data of a tenant that the runner holds.
#[derive(Debug, Clone, Default)]
pub(super) struct SimulatedData {
    /// The folder at its last reading.
    pub(super) read: Option<SimulatedFolder>,
    /// The result of the last reading that has ended.
    pub(super) arrived: Option<SimulatedFolder>,
    /// The last valid content.
    pub(super) content: Option<u64>,
    /// The inputs of the newest build that was ordered.
    pub(super) ordered: Option<BuildKey>,
    /// The newest build that is served, and whether it is in memory.
    pub(super) served: Option<(BuildKey, bool)>,
    pub(super) is_standing_in: bool,
    pub(super) pinned: Option<u64>,
    pub(super) parked: Option<BuildKey>,
    /// The inputs that cannot be built.
    pub(super) failed: BTreeSet<BuildKey>,
}

/// The parts of the server that survive a restart.
#[derive(Debug, Clone, Default)]
pub(super) struct SimulatedDisk {
    pub(super) folders: BTreeMap<TenantId, SimulatedFolder>,
    pub(super) pins: BTreeMap<TenantId, u64>,
    pub(super) persisted: BTreeSet<TenantId>,
    pub(super) removed: RemovedTenants,
    pub(super) is_writable: bool,
    pub(super) shared: SharedInputs,
    pub(super) version: u64,
}

/// The inputs of builds that all tenants share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SharedInputs {
    pub(super) has_theme: bool,
    pub(super) theme: u64,
    pub(super) deployment: u64,
}

impl SharedInputs {
    /// Returns the key of a build with these inputs, unless there is no theme.
    pub(super) fn key(self, content: u64) -> Option<BuildKey> {
        self.has_theme.then_some(BuildKey {
            content,
            addresses: 0,
            theme: self.theme,
            deployment: self.deployment,
        })
    }
}
