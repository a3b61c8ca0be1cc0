//! The events that the world is told, and the actions that it answers with.
//!
//! **Invariant:** plain data. Pages, folders and reports stay with the runner, which finds them by tenant.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use content::name::TenantId;

use crate::model::agenda::{Reload, Scope};
use crate::model::tenant::BuildKey;

/// The time of an event, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockTime {
    pub(crate) instant: Instant,
    pub(crate) time: SystemTime,
}

/// A number for a command of an operator, which its reply bears.
pub(crate) type Ticket = u64;

/// Something that has happened.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A part of the content has changed on disk.
    Changed(Scope),
    /// A part of the content is to be read without waiting for it to settle.
    Requested(Scope),
    /// The tenants that have folders. `only`: the entries to read besides new ones; all without them.
    Listed {
        tenants: BTreeSet<TenantId>,
        only: Option<BTreeSet<String>>,
    },
    /// Tenants whose persisted content is served, since the folder of tenants cannot be listed.
    Restored(Vec<TenantId>),
    /// The survey in flight has ended. `is_applied`: it need not be tried again.
    Surveyed { is_applied: bool },
    /// Something that could not be read by a survey is to be tried again.
    Unread(Scope),
    /// A reading has ended.
    Read {
        tenant: TenantId,
        number: u64,
        reading: ReadingOutcome,
    },
    /// The inputs of builds were derived anew, which took `took`.
    Planned {
        plans: Vec<BuildPlan>,
        took: Duration,
    },
    /// A build has ended.
    Built {
        tenant: TenantId,
        key: BuildKey,
        result: BuildResult,
    },
    /// Rendered pages were compressed, and take so many bytes.
    Encoded {
        tenant: TenantId,
        key: BuildKey,
        bytes: usize,
    },
    /// The search for persisted content of a tenant has ended.
    StoodIn { tenant: TenantId, is_found: bool },
    /// The pinned release of a tenant was read.
    PinLoaded { tenant: TenantId, is_found: bool },
    /// An operator rolls back to a release that was read, or resumes the folder (`None`).
    PinRequested {
        tenant: TenantId,
        to: Option<u64>,
        ticket: Ticket,
    },
    /// The disk was told of a pin.
    PinWritten { tenant: TenantId, is_written: bool },
    /// An operator wants a tenant's output to be recorded.
    RecordRequested { tenant: TenantId },
    /// Something of these tenants is new, and to be persisted.
    Grown(Vec<TenantId>),
    /// The memory that the pages of some tenants take. `limit`: the bytes that there is room for. `waiting`: the tenants that requests wait for.
    Measured {
        limit: usize,
        pages: Vec<MeasuredPages>,
        waiting: BTreeSet<TenantId>,
    },
    /// Pages appear or expire, or the year has changed.
    ClockTurned,
    /// The snapshot was published, which took `took`.
    Published { took: Duration },
    /// The loop has failed, and goes on. The results that it was handling, and the jobs that it was about to start, are lost.
    Recovered,
    /// All events that were queued are handled.
    Turn(OutsideFacts),
}

impl Event {
    /// Returns the tenant that it is about, if it is about one.
    pub(crate) const fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Read { tenant, .. }
            | Self::Built { tenant, .. }
            | Self::Encoded { tenant, .. }
            | Self::StoodIn { tenant, .. }
            | Self::PinLoaded { tenant, .. }
            | Self::PinRequested { tenant, .. }
            | Self::PinWritten { tenant, .. }
            | Self::RecordRequested { tenant } => Some(tenant),
            Self::Changed(_)
            | Self::Requested(_)
            | Self::Listed { .. }
            | Self::Restored(_)
            | Self::Surveyed { .. }
            | Self::Unread(_)
            | Self::Planned { .. }
            | Self::Grown(_)
            | Self::Measured { .. }
            | Self::ClockTurned
            | Self::Published { .. }
            | Self::Recovered
            | Self::Turn(_) => None,
        }
    }
}

/// The result of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingOutcome {
    /// The folder is as it was.
    Unchanged,
    /// The folder has changed. With errors, the last valid content stays. `is_unreadable`: a file could not be read, and may be readable later.
    Changed {
        has_errors: bool,
        is_unreadable: bool,
    },
    /// There is no folder.
    Gone,
    /// A call to the file system did not return.
    Unresponsive,
}

/// The inputs of a tenant's pages.
#[derive(Debug, Clone)]
pub(crate) struct BuildPlan {
    pub(crate) tenant: TenantId,
    /// `None` where nothing can be built: the theme is missing.
    pub(crate) key: Option<BuildKey>,
    pub(crate) has_conflicts: bool,
}

/// The result of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildResult {
    /// Pages.
    Pages {
        form: ServedForm,
        /// Whether nothing of them is new to the store.
        is_persisted: bool,
        has_errors: bool,
        /// The memory that they take.
        bytes: usize,
        /// Whether a request waits for them.
        is_requested: bool,
        /// Whether a snapshot is to be published at once.
        is_urgent: bool,
    },
    /// No pages.
    Failed,
}

/// The form that pages are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServedForm {
    /// Rendered and compressed.
    Complete,
    /// Rendered, and compressed when the first request comes.
    Unencoded,
    /// Known and not in memory: loaded when the first request comes.
    Evicted,
}

/// The pages of a tenant in memory.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredPages {
    pub(crate) tenant: TenantId,
    pub(crate) bytes: usize,
    /// Whether they were requested since they came into memory.
    pub(crate) is_requested: bool,
    pub(crate) last_request: Instant,
}

/// The facts that the runner knows at the end of a batch of events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutsideFacts {
    /// Whether readings are in flight that are likely to end soon.
    pub(crate) has_readings: bool,
    /// Whether builds are in flight that are likely to end soon, and are not in the background.
    pub(crate) has_builds: bool,
    /// Whether anything is queued or in flight in the background.
    pub(crate) has_background: bool,
    /// Whether a request waits at addresses of the current snapshot for pages that are in none.
    pub(crate) is_awaited: bool,
    /// Whether a survey can begin.
    pub(crate) can_survey: bool,
    /// The state that is persisted.
    pub(crate) store: StoreState,
}

/// Whether changes can be persisted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreState {
    /// Nothing is persisted.
    Absent,
    /// The disk or another process prevents it.
    ReadOnly,
    /// So many more tenants may be handed over now.
    Ready(usize),
}

/// Something that the runner does, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Watch the folders of this reload, which are read next.
    Watch(Reload),
    /// List the tenants, and read the deployment and, where the reload says so, the themes.
    Survey(Reload),
    /// Read a folder. `is_only`: no other reading of it is in flight.
    Read {
        tenant: TenantId,
        number: u64,
        is_only: bool,
    },
    /// Report that a folder does not respond, as the result of this reading.
    ReportUnresponsive { tenant: TenantId, number: u64 },
    /// Drop everything of a tenant whose folder is gone.
    Forget(TenantId),
    /// Take the content of the reading at hand.
    TakeContent(TenantId),
    /// Assign addresses, and derive the inputs of builds.
    Plan(ChangeSet),
    /// Build pages. `opens`: requests wait for them at their addresses.
    Build {
        tenant: TenantId,
        key: BuildKey,
        opens: bool,
    },
    /// Report the errors of the build at hand.
    ReportBuild(TenantId),
    /// Serve the pages at hand.
    Serve { tenant: TenantId, key: BuildKey },
    /// Serve the persisted content at hand.
    ServeStandIn(TenantId),
    /// Remove the addresses at which requests wait in vain.
    Close(TenantId),
    /// Look for persisted content that can be served.
    StandIn(TenantId),
    /// Have pages compressed, loaded or rendered when a request comes.
    Park { tenant: TenantId, key: BuildKey },
    /// Take pages out of memory, and have them loaded or rendered when a request comes.
    Evict { tenant: TenantId, key: BuildKey },
    /// Read the pinned release.
    LoadPin { tenant: TenantId, number: u64 },
    /// Write the pin to disk, or remove it.
    WritePin { tenant: TenantId, to: Option<u64> },
    /// Serve the release at hand (`true`), or the folder's pages.
    ServePin { tenant: TenantId, is_pinned: bool },
    /// Send the result of a command of an operator.
    Reply { ticket: Ticket, reply: Reply },
    /// Hand what is new of a tenant to the store.
    Persist(TenantId),
    /// Assemble a snapshot and publish it.
    Publish(ChangeSet),
}

impl Action {
    /// Returns the tenant that it is done to, if it is done to one.
    pub(crate) const fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Read { tenant, .. }
            | Self::ReportUnresponsive { tenant, .. }
            | Self::Forget(tenant)
            | Self::TakeContent(tenant)
            | Self::Build { tenant, .. }
            | Self::ReportBuild(tenant)
            | Self::Serve { tenant, .. }
            | Self::ServeStandIn(tenant)
            | Self::Close(tenant)
            | Self::StandIn(tenant)
            | Self::Park { tenant, .. }
            | Self::Evict { tenant, .. }
            | Self::LoadPin { tenant, .. }
            | Self::WritePin { tenant, .. }
            | Self::ServePin { tenant, .. }
            | Self::Persist(tenant) => Some(tenant),
            Self::Watch(_)
            | Self::Survey(_)
            | Self::Plan(_)
            | Self::Reply { .. }
            | Self::Publish(_) => None,
        }
    }
}

/// The tenants that have changed since something was last done for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeSet {
    pub(crate) tenants: BTreeSet<TenantId>,
    /// Whether themes, the deployment or the list of tenants may have changed as well.
    pub(crate) everything: bool,
}

impl ChangeSet {
    /// Notes a changed tenant.
    pub(crate) fn note(&mut self, tenant: &TenantId) {
        if !self.tenants.contains(tenant) {
            self.tenants.insert(tenant.clone());
        }
    }

    /// Returns changes of everything.
    pub(crate) fn everything() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }
}

/// The result of a command of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Done,
    /// There is no such tenant.
    UnknownTenant,
    /// Another command for the tenant is in flight.
    Busy,
    /// The folder has no pages that could be served in place of the pinned release.
    NoPages,
    /// The disk could not be told.
    NotWritten,
}
