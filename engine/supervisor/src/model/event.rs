//! The events that the world handles, and the actions that it returns.
//!
//! **Invariant:** plain data. Pages, folders and reports stay with the runner, which looks them up by tenant.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use content::name::TenantId;

use crate::model::agenda::{Reload, ReloadScope};
use crate::model::previews::PreviewPhase;
use crate::model::receiving::FileActivity;
use crate::model::tenant::BuildKey;

/// The time of an event, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockTime {
    pub(crate) instant: Instant,
    pub(crate) time: SystemTime,
}

/// The number that connects an operator's command with its reply.
pub(crate) type Ticket = u64;

/// An event that the runner reports to the world.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A part of the content has changed on disk.
    Changed(ReloadScope),
    /// A part of the content is read without waiting for it to settle.
    Requested(ReloadScope),
    /// The folder of tenants was listed. `only`: the entries to read besides new entries; `None` reads all entries.
    Listed {
        tenants: BTreeSet<TenantId>,
        only: Option<BTreeSet<String>>,
    },
    /// The next list leaves these tenants out, because their content is not on this machine. They are not removed.
    Asleep(BTreeSet<TenantId>),
    /// The folder of tenants cannot be listed. The persisted content of these tenants is served.
    Restored(Vec<TenantId>),
    /// The survey in flight has ended.
    Surveyed(SurveyOutcome),
    /// A survey could not read a scope, which is retried.
    Unread(ReloadScope),
    /// A reading has ended.
    Read {
        tenant: TenantId,
        number: u64,
        reading: ReadingOutcome,
        /// Whether a file is still changing.
        is_changing: bool,
    },
    /// A reading found the time of the last change of a preview's folder.
    PreviewRead {
        tenant: TenantId,
        number: u64,
        changed: SystemTime,
    },
    /// Addresses were assigned and the inputs of builds derived, in the time `took`.
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
    /// Rendered pages were compressed, and use this many bytes of memory.
    Encoded {
        tenant: TenantId,
        key: BuildKey,
        bytes: usize,
    },
    /// The search for persisted content of a tenant has ended.
    StoodIn { tenant: TenantId, is_found: bool },
    /// The read of a tenant's pinned release has ended.
    PinLoaded { tenant: TenantId, is_found: bool },
    /// An operator rolls back to the release `to`, which is already read, or resumes the folder (`None`).
    PinRequested {
        tenant: TenantId,
        to: Option<u64>,
        ticket: Ticket,
    },
    /// The write of a pin to disk has ended.
    PinWritten { tenant: TenantId, is_written: bool },
    /// An operator requests that a removed tenant is served again.
    RestoreRequested { tenant: TenantId, ticket: Ticket },
    /// The read of the persisted folder of a removed tenant has ended.
    RemovedRead { tenant: TenantId, is_found: bool },
    /// An operator requests that a tenant's output is recorded as a release.
    RecordRequested { tenant: TenantId },
    /// These tenants have new data to persist.
    DataAdded(Vec<TenantId>),
    /// The memory use of some tenants was measured. `limit`: the limit for all pages, in bytes. `waiting`: the tenants that requests wait for.
    Measured {
        limit: usize,
        pages: Vec<MeasuredPages>,
        waiting: BTreeSet<TenantId>,
    },
    /// Pages appear or expire, or the year has changed.
    ClockTurned,
    /// The snapshot was published, in the time `took`.
    Published { took: Duration },
    /// The event loop recovered from a panic. The results that it was handling, and the jobs that it was about to start, are lost.
    Recovered,
    /// All queued events are handled. The world may start collected work.
    QueueDrained(OutsideFacts),
}

impl Event {
    /// Returns the tenant of the event, if the event concerns exactly one.
    pub(crate) const fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Read { tenant, .. }
            | Self::PreviewRead { tenant, .. }
            | Self::Built { tenant, .. }
            | Self::Encoded { tenant, .. }
            | Self::StoodIn { tenant, .. }
            | Self::PinLoaded { tenant, .. }
            | Self::PinRequested { tenant, .. }
            | Self::PinWritten { tenant, .. }
            | Self::RestoreRequested { tenant, .. }
            | Self::RemovedRead { tenant, .. }
            | Self::RecordRequested { tenant } => Some(tenant),
            Self::Changed(_)
            | Self::Requested(_)
            | Self::Listed { .. }
            | Self::Asleep(_)
            | Self::Restored(_)
            | Self::Surveyed(_)
            | Self::Unread(_)
            | Self::Planned { .. }
            | Self::DataAdded(_)
            | Self::Measured { .. }
            | Self::ClockTurned
            | Self::Published { .. }
            | Self::Recovered
            | Self::QueueDrained(_) => None,
        }
    }
}

/// The result of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingOutcome {
    /// The folder is unchanged.
    Unchanged,
    /// The folder has changed. With errors, the last valid content stays in use. `is_unreadable`: a file could not be read, and may be readable later.
    Changed {
        has_errors: bool,
        is_unreadable: bool,
    },
    /// The folder was not read, because files are still changing or have no end. `quiet_in`: the time after which all files are complete if none of them changes.
    /// `has_content`: the tenant is new to this process, and the reading has its last valid content.
    Receiving {
        has_content: bool,
        quiet_in: Option<Duration>,
    },
    /// The folder does not exist.
    Gone,
    /// A call to the file system did not return.
    Unresponsive,
}

impl ReadingOutcome {
    /// Returns the activity of the files. `is_changing`: whether a file is still changing.
    pub(super) const fn files(self, is_changing: bool) -> FileActivity {
        match self {
            Self::Receiving { quiet_in, .. } => FileActivity::Awaited { quiet_in },
            _ if is_changing => FileActivity::Changing,
            _ => FileActivity::Resting,
        }
    }
}

/// The inputs of a tenant's pages.
#[derive(Debug, Clone)]
pub(crate) struct BuildPlan {
    pub(crate) tenant: TenantId,
    /// `None` if the theme is missing, so that nothing can be built.
    pub(crate) key: Option<BuildKey>,
    /// Whether another tenant owns an address that the tenant claims.
    pub(crate) has_conflicts: bool,
}

/// The result of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildResult {
    /// The build ended with pages.
    Pages {
        form: ServedForm,
        /// Whether the store already has all data of the build.
        is_persisted: bool,
        has_errors: bool,
        /// The memory use of the pages, in bytes.
        bytes: usize,
        /// Whether a request waits for the pages.
        is_requested: bool,
        /// Whether a snapshot is to be published at once.
        is_urgent: bool,
    },
    /// The build ended without pages.
    Failed,
}

/// The form of a tenant's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServedForm {
    /// Rendered and compressed.
    Complete,
    /// Rendered. The first request has the pages compressed.
    Unencoded,
    /// Not in memory. The first request has the pages loaded or rendered.
    Evicted,
}

/// The pages of a tenant in memory.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredPages {
    pub(crate) tenant: TenantId,
    /// The bytes of pages and images.
    pub(crate) bytes: usize,
    /// The bytes of images alone.
    pub(crate) image_bytes: usize,
    /// Whether the pages were requested since they were built or loaded.
    pub(crate) is_requested: bool,
    pub(crate) last_request: Instant,
}

/// The state of the job pool, the store and requests at the end of a batch of events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutsideFacts {
    /// Whether readings are in flight that are likely to end soon.
    pub(crate) has_readings: bool,
    /// Whether builds are in flight that are likely to end soon, and are not in the background.
    pub(crate) has_builds: bool,
    /// Whether anything is queued or in flight in the background.
    pub(crate) has_background: bool,
    /// Whether a request waits for pages that are built and not in the current snapshot.
    pub(crate) is_awaited: bool,
    /// Whether a survey can begin.
    pub(crate) can_survey: bool,
    /// Whether changes can be persisted.
    pub(crate) store: StoreState,
}

/// Whether changes can be persisted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreState {
    /// There is no store.
    Absent,
    /// The disk or another process prevents writes.
    ReadOnly,
    /// The store accepts this many more tenants now.
    Ready(usize),
}

/// An action for the runner, which performs all actions in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Note that this reload begins.
    BeginReload(Reload),
    /// List the tenants, read `deployment.yaml` and, if the reload includes them, the themes.
    Survey(Reload),
    /// Read a folder. `is_only`: no other reading of it is in flight. `waits`: the result may be that the tenant waits for its files.
    Read {
        tenant: TenantId,
        number: u64,
        is_only: bool,
        waits: bool,
    },
    /// Report that a folder does not respond, as the result of this reading.
    ReportUnresponsive { tenant: TenantId, number: u64 },
    /// Drop all data of a tenant whose folder was removed.
    Forget(TenantId),
    /// Report that the folder of a tenant was removed.
    ReportRemoval(TenantId),
    /// Report that the folder of a removed tenant is back.
    ReportReturn(TenantId),
    /// Report that the phase of a preview has changed.
    ReportPreview {
        tenant: TenantId,
        phase: PreviewPhase,
    },
    /// Add a removed tenant with its persisted content that was just read.
    Restore(TenantId),
    /// Delete the releases and the persisted data of a removed tenant, and persist the removed tenants.
    ForgetHistory(TenantId),
    /// Persist the removed tenants.
    PersistRemovals,
    /// Replace the content of a tenant by the result of its newest reading.
    ReplaceContent(TenantId),
    /// Assign addresses, and derive the inputs of builds.
    Plan(ChangeSet),
    /// Build pages. `opens`: whether the tenant's addresses open now, where requests wait for the pages.
    Build {
        tenant: TenantId,
        key: BuildKey,
        opens: bool,
    },
    /// Report the errors of the build that has just ended.
    ReportBuild(TenantId),
    /// Serve the pages that were just built or compressed.
    Serve { tenant: TenantId, key: BuildKey },
    /// Serve the persisted content that was just found.
    ServeStandIn(TenantId),
    /// Remove the addresses of a tenant that will have no pages, so that requests no longer wait.
    Close(TenantId),
    /// Look for persisted content that can be served.
    StandIn(TenantId),
    /// Hold back the job that compresses, loads or renders pages until the first request.
    Park { tenant: TenantId, key: BuildKey },
    /// Evict pages from memory. The next request has them loaded or rendered.
    Evict { tenant: TenantId, key: BuildKey },
    /// Read the pinned release.
    LoadPin { tenant: TenantId, number: u64 },
    /// Write the pin to disk, or remove it.
    WritePin { tenant: TenantId, to: Option<u64> },
    /// Serve the pinned release, or the pages of the folder unless `is_pinned`.
    ServePin { tenant: TenantId, is_pinned: bool },
    /// Send the result of a command of an operator.
    Reply { ticket: Ticket, reply: CommandReply },
    /// Hand the new data of a tenant to the store.
    Persist(TenantId),
    /// Assemble a snapshot and publish it.
    Publish(ChangeSet),
}

impl Action {
    /// Returns the tenant of the action, if the action concerns exactly one.
    pub(crate) const fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Read { tenant, .. }
            | Self::ReportUnresponsive { tenant, .. }
            | Self::Forget(tenant)
            | Self::ReportRemoval(tenant)
            | Self::ReportReturn(tenant)
            | Self::ReportPreview { tenant, .. }
            | Self::Restore(tenant)
            | Self::ForgetHistory(tenant)
            | Self::ReplaceContent(tenant)
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
            Self::BeginReload(_)
            | Self::Survey(_)
            | Self::PersistRemovals
            | Self::Plan(_)
            | Self::Reply { .. }
            | Self::Publish(_) => None,
        }
    }
}

/// The result of a survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SurveyOutcome {
    /// The survey failed, and is retried.
    Failed,
    /// Themes and `deployment.yaml` are as before.
    SameForAll,
    /// Themes or `deployment.yaml` may have changed.
    NewForAll,
}

/// The tenants that have changed since the last plan or the last snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeSet {
    pub(crate) tenants: BTreeSet<TenantId>,
    /// Whether themes, the deployment or the list of tenants may have changed as well.
    pub(crate) affects_all: bool,
}

impl ChangeSet {
    /// Notes a changed tenant.
    pub(crate) fn note(&mut self, tenant: &TenantId) {
        if !self.tenants.contains(tenant) {
            self.tenants.insert(tenant.clone());
        }
    }

    /// Returns changes of everything.
    pub(crate) fn all() -> Self {
        Self {
            affects_all: true,
            ..Self::default()
        }
    }
}

/// The result of a command of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandReply {
    Done,
    /// The tenant does not exist.
    UnknownTenant,
    /// Another command for the tenant is in flight.
    Busy,
    /// The folder has no pages that could be served in place of the pinned release.
    NoPages,
    /// The pin could not be written to disk.
    NotWritten,
    /// The folder of the tenant exists, so that there is nothing to restore.
    FolderPresent,
    /// The removed tenant has no persisted valid folder.
    NotPersisted,
}
