//! The states of one tenant, and the transitions between them.
//!
//! Reading, building and serving are independent, and do not wait for each other:
//!
//! ```text
//! source    Unread ──read──> Reading ──> Valid | Invalid | Gone        (a newer reading: Reading again)
//! build     Idle ──start──> Running ──> Done | Failed                  (other inputs: Running again; no theme: Idle)
//! serving   Absent ──> Pending ──> Live <──> Evicted                   (Absent | Pending ──> StandIn ──> Live)
//! receiving None ──files arrive──> Waiting ──complete──> None                   (limit over: Overdue, until no file changes)
//! pin       None ──roll back──> Writing ──> Pinned ──resume──> Writing ──> None
//!           OnDisk ──> Loading ──> Pinned | Unreadable ──resume──> Replacing ──> None
//! ```
//!
//! A late result of a reading or a build that is not the newest changes nothing. A tenant that has served pages serves until its folder is removed.
//!
//! **Invariant:** knows numbers only: no folder, no page, no thread.

use std::time::{Instant, SystemTime};

use server::admin::status::Availability;

use crate::model::receiving::Receiving;

/// The revisions of everything that the pages of a tenant are made from. Equal keys stand for equal pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct BuildKey {
    pub(crate) content: u64,
    pub(crate) addresses: u64,
    pub(crate) theme: u64,
    pub(crate) deployment: u64,
}

/// The state of the folder. Readings have numbers, which only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderState {
    /// The folder was never read.
    Unread,
    /// `newest` is in flight; `accepted` is the newest reading whose result was accepted.
    Reading { newest: u64, accepted: u64 },
    /// The newest reading found content without errors.
    Valid(u64),
    /// The newest reading found errors, or could not read the folder.
    Invalid(u64),
    /// The newest reading found no folder, which a survey has to confirm.
    Gone(u64),
}

/// The state of the pages that are made from the newest inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildState {
    /// Nothing was built yet.
    Idle,
    /// The theme is missing, so that nothing can be built.
    Blocked,
    /// A job is queued or in flight.
    Running(BuildKey),
    /// The job has ended with pages.
    Done(BuildKey),
    /// The job has ended without pages.
    Failed(BuildKey),
}

/// The pages that visitors get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServedState {
    /// None: the addresses of the tenant do not exist.
    Absent,
    /// None yet: requests wait until pages are built.
    Pending,
    /// Pages of this build.
    Live(BuildKey),
    /// Pages of this build, which are rendered or loaded again when a request comes.
    Evicted(BuildKey),
    /// Pages of the last valid content that was persisted by an earlier process.
    StandIn,
}

/// The release that an operator has pinned in place of the folder's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinState {
    /// The pages of the folder are served.
    None,
    /// A command for the former folder of the tenant is in flight, and its result decides. The tenant is unavailable until then.
    Unsettled,
    /// The release is pinned on disk. The tenant is unavailable until the release is read.
    OnDisk(u64),
    /// The release is being read.
    Loading(u64),
    /// The release is served.
    Pinned(u64),
    /// The release is pinned on disk and cannot be served. The tenant is unavailable: the folder may have the pages that were withdrawn.
    Unreadable(u64),
    /// Another pin is being written to disk, in place of this one.
    Writing(Option<u64>),
    /// Another pin is being written to disk, in place of this one, which cannot be served.
    Replacing(u64),
}

/// The effect of a pin's write that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinChange {
    /// The tenant serves the same pages as before.
    None,
    /// The tenant serves the new pin, or its folder.
    Served,
    /// The command was for a former folder of the tenant.
    OfFormerFolder,
}

/// The parts of a tenant that have errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TenantErrors {
    /// Whether the folder has errors.
    pub(crate) has_content_errors: bool,
    /// Whether the rendered pages have errors.
    pub(crate) has_page_errors: bool,
    /// Whether another tenant owns an address that the tenant claims.
    pub(crate) has_conflicts: bool,
    /// Whether a file could not be read, and may be readable later.
    pub(crate) is_unreadable: bool,
}

impl TenantErrors {
    /// Returns whether the folder or its pages have errors. A refused address is not one of them: the content is complete without it.
    pub(crate) const fn are_of_content(self) -> bool {
        self.has_content_errors || self.has_page_errors
    }
}

/// The effect of a finished build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishedStep {
    /// The new pages are served.
    Served,
    /// The build failed; the former pages are still served.
    Failed,
    /// The build failed, and no pages were ever served; persisted content may be served instead.
    NeedsStandIn,
}

/// The state of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct TenantState {
    source: FolderState,
    /// When the newest reading in flight began.
    reading_since: Option<Instant>,
    /// The wait for files whose upload has not ended.
    pub(super) receiving: Option<Receiving>,
    build: BuildState,
    serving: ServedState,
    pub(crate) pin: PinState,
    pub(crate) errors: TenantErrors,
    /// Whether the tenant is a preview that is too old.
    pub(super) is_expired: bool,
    state: Availability,
    /// The time of the last change of `state`, once it was settled.
    since: Option<SystemTime>,
}

impl TenantState {
    /// Returns the state of a tenant whose folder was never read.
    pub(crate) const fn new(pin: PinState) -> Self {
        Self {
            source: FolderState::Unread,
            reading_since: None,
            receiving: None,
            build: BuildState::Idle,
            serving: ServedState::Absent,
            pin,
            errors: TenantErrors {
                has_content_errors: false,
                has_page_errors: false,
                has_conflicts: false,
                is_unreadable: false,
            },
            is_expired: false,
            state: Availability::Absent,
            since: None,
        }
    }

    /// Notes that a reading with this number has begun.
    pub(crate) const fn start_reading(&mut self, number: u64, now: Instant) {
        let accepted = self.accepted();
        self.reading_since = Some(now);
        self.source = FolderState::Reading {
            newest: number,
            accepted,
        };
    }

    /// Returns when the newest reading in flight began.
    pub(crate) fn reading_since(&self) -> Option<Instant> {
        self.reading_since.filter(|_| self.is_reading())
    }

    /// Clears the start of the reading in flight, because its job was lost.
    pub(crate) const fn reset_reading(&mut self) {
        self.reading_since = None;
    }

    /// Returns the number of the newest reading whose result was accepted.
    const fn accepted(&self) -> u64 {
        match self.source {
            FolderState::Unread => 0,
            FolderState::Reading { accepted, .. } => accepted,
            FolderState::Valid(accepted)
            | FolderState::Invalid(accepted)
            | FolderState::Gone(accepted) => accepted,
        }
    }

    /// Returns whether no result of this reading or of a newer reading was accepted.
    pub(crate) const fn accepts_reading(&self, number: u64) -> bool {
        number > self.accepted()
    }

    /// Accepts the result of a reading, unless a newer result was accepted. Returns whether the result was accepted.
    pub(crate) fn accept_reading(&mut self, number: u64, source: fn(u64) -> FolderState) -> bool {
        if !self.accepts_reading(number) {
            return false;
        }
        self.source = match self.source {
            FolderState::Reading { newest, .. } if number < newest => FolderState::Reading {
                newest,
                accepted: number,
            },
            _ => source(number),
        };
        true
    }

    /// Starts a build from these inputs, unless they were already the newest inputs. Returns whether a job is needed.
    pub(crate) fn start_build(&mut self, key: BuildKey) -> bool {
        let is_new = self.built_from() != Some(key);
        if is_new {
            self.build = BuildState::Running(key);
        }
        is_new
    }

    /// Notes that nothing can be built, and drops the result of a job in flight. Returns whether the state has changed.
    pub(crate) fn block_build(&mut self) -> bool {
        let is_new = self.build != BuildState::Blocked;
        self.build = BuildState::Blocked;
        is_new
    }

    /// Forgets the newest build, because its job was lost.
    pub(crate) const fn reset_build(&mut self) {
        self.build = BuildState::Idle;
    }

    /// Returns whether the addresses and the other inputs of the tenant are known.
    pub(crate) fn has_inputs(&self) -> bool {
        self.build != BuildState::Idle
    }

    /// Returns the inputs of the newest build.
    pub(crate) const fn built_from(&self) -> Option<BuildKey> {
        match self.build {
            BuildState::Idle | BuildState::Blocked => None,
            BuildState::Running(key) | BuildState::Done(key) | BuildState::Failed(key) => Some(key),
        }
    }

    /// Returns whether a result made from these inputs is expected: a new build, or evicted pages that are rendered again.
    pub(crate) fn expects(&self, key: BuildKey) -> bool {
        self.build == BuildState::Running(key)
            || (self.serving == ServedState::Evicted(key) && self.built_from() == Some(key))
    }

    /// Ends the expected build from these inputs, with pages or without.
    pub(crate) const fn finish_build(&mut self, key: BuildKey, has_pages: bool) -> FinishedStep {
        if has_pages {
            self.build = BuildState::Done(key);
            self.serving = ServedState::Live(key);
            return FinishedStep::Served;
        }
        self.build = BuildState::Failed(key);
        match self.has_served() {
            true => FinishedStep::Failed,
            false => FinishedStep::NeedsStandIn,
        }
    }

    /// Lets requests wait for the pages in build, unless the tenant has served pages. Returns whether requests wait.
    pub(crate) fn open(&mut self) -> bool {
        let opens = !self.has_served();
        if opens {
            self.serving = ServedState::Pending;
        }
        opens
    }

    /// Notes that no pages will be built, so that requests no longer wait.
    pub(crate) fn close(&mut self) {
        if !self.has_served() {
            self.serving = ServedState::Absent;
        }
    }

    /// Serves persisted content, unless the tenant has served pages. Returns whether persisted content is served.
    pub(crate) fn stand_in(&mut self) -> bool {
        let is_needed = !self.has_served();
        if is_needed {
            self.serving = ServedState::StandIn;
        }
        is_needed
    }

    /// Returns whether the current pages were made from the newest inputs.
    pub(crate) fn is_current(&self) -> bool {
        matches!((self.build, self.serving), (BuildState::Done(built), ServedState::Live(served)) if built == served)
    }

    /// Returns whether a further content encoding of pages made from these inputs may be served.
    pub(crate) fn may_encode(&self, key: BuildKey) -> bool {
        self.built_from() == Some(key) && (self.is_current() || self.expects(key))
    }

    /// Returns whether its pages can be evicted: they are current, without errors, and not replaced by a pinned release.
    pub(crate) fn can_be_evicted(&self) -> bool {
        self.is_current()
            && !self.errors.are_of_content()
            && matches!(self.pin, PinState::None | PinState::Unreadable(_))
    }

    /// Evicts its pages. Returns the build that renders them again.
    pub(crate) const fn evict(&mut self) -> Option<BuildKey> {
        match self.serving {
            ServedState::Live(key) => {
                self.serving = ServedState::Evicted(key);
                Some(key)
            }
            _ => None,
        }
    }

    pub(crate) const fn source(&self) -> FolderState {
        self.source
    }

    pub(crate) const fn serving(&self) -> ServedState {
        self.serving
    }

    /// Returns whether the tenant has served pages.
    pub(crate) const fn has_served(&self) -> bool {
        matches!(
            self.serving,
            ServedState::Live(_) | ServedState::Evicted(_) | ServedState::StandIn
        )
    }

    /// Returns whether the tenant has served pages and is not being built.
    pub(crate) const fn is_complete(&self) -> bool {
        !self.is_building() && self.has_served()
    }

    pub(crate) const fn is_building(&self) -> bool {
        matches!(self.build, BuildState::Running(_))
    }

    pub(crate) const fn is_reading(&self) -> bool {
        matches!(self.source, FolderState::Reading { .. })
    }

    /// Returns whether a job of the tenant is queued or in flight.
    pub(crate) const fn is_in_flight(&self) -> bool {
        self.is_building() || self.is_reading()
    }

    /// Returns whether the tenant waits for files whose upload has not ended.
    pub(crate) const fn is_receiving(&self) -> bool {
        matches!(self.receiving, Some(Receiving::Waiting { .. }))
    }

    /// Returns whether a snapshot contains the tenant: its pinned release, else its pages, or addresses at which requests wait or fail.
    pub(crate) const fn is_published(&self) -> bool {
        self.pinned().is_some() || !matches!(self.serving, ServedState::Absent)
    }

    /// Returns whether the next snapshot contains what the tenant serves, or the tenant has nothing to serve. It does not if a restored tenant was not planned yet.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_published() || self.has_inputs()
    }

    /// Returns whether requests get 503 at the addresses of the tenant, because its pinned release is not known or cannot be served.
    pub(crate) const fn is_unavailable(&self) -> bool {
        match self.pin {
            PinState::Unsettled
            | PinState::OnDisk(_)
            | PinState::Loading(_)
            | PinState::Unreadable(_)
            | PinState::Replacing(_) => true,
            PinState::None | PinState::Pinned(_) | PinState::Writing(_) => false,
        }
    }

    /// Returns whether requests get 410, because the tenant is a preview that is too old.
    pub(crate) const fn is_expired(&self) -> bool {
        self.is_expired
    }

    /// Returns the number of the pinned release that cannot be served.
    pub(crate) const fn unreadable_pin(&self) -> Option<u64> {
        match self.pin {
            PinState::Unreadable(number) | PinState::Replacing(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the pin while another pin is written to disk.
    pub(crate) const fn replaced_pin(&self) -> PinState {
        match self.unreadable_pin() {
            Some(number) => PinState::Replacing(number),
            None => PinState::Writing(self.pinned()),
        }
    }

    /// Ends the write of a pin: applies the new pin, or restores the former pin.
    pub(crate) fn end_pin_write(&mut self, to: Option<u64>, is_written: bool) -> PinChange {
        let (pin, change) = match self.pin {
            PinState::Writing(before) if !is_written => {
                let pin = before.map_or(PinState::None, PinState::Pinned);
                (pin, PinChange::None)
            }
            PinState::Replacing(before) if !is_written => {
                (PinState::Unreadable(before), PinChange::None)
            }
            PinState::Writing(_) | PinState::Replacing(_) => (
                to.map_or(PinState::None, PinState::Pinned),
                PinChange::Served,
            ),
            PinState::Unsettled => (PinState::Unsettled, PinChange::OfFormerFolder),
            other => (other, PinChange::None),
        };
        self.pin = pin;
        change
    }

    /// Begins to read the pinned release. Returns the number of the release, or `None` if no read is needed.
    pub(crate) const fn load_pin(&mut self) -> Option<u64> {
        match self.pin {
            PinState::OnDisk(number) => {
                self.pin = PinState::Loading(number);
                Some(number)
            }
            _ => None,
        }
    }

    /// Returns the number of the release that is served in place of the folder's pages.
    pub(crate) const fn pinned(&self) -> Option<u64> {
        match self.pin {
            PinState::Pinned(number) => Some(number),
            PinState::Writing(before) => before,
            PinState::None
            | PinState::Unsettled
            | PinState::OnDisk(_)
            | PinState::Loading(_)
            | PinState::Unreadable(_)
            | PinState::Replacing(_) => None,
        }
    }

    /// Updates the state that operators see, and the time of its last change.
    pub(crate) fn settle(&mut self, now: SystemTime) {
        let errors = self.errors;
        let has_errors = errors.are_of_content() || errors.has_conflicts;
        let state = match (self.has_served(), self.serving, has_errors) {
            _ if self.is_expired => Availability::Expired,
            _ if self.is_receiving() => Availability::Receiving,
            (true, _, false) => Availability::Live,
            (true, _, true) => Availability::Degraded,
            (false, ServedState::Pending, _) => Availability::Pending,
            (false, ..) => Availability::Absent,
        };
        if state != self.state || self.since.is_none() {
            self.state = state;
            self.since = Some(now);
        }
    }

    /// Returns the state that operators see, and the time of its last change.
    pub(crate) const fn state(&self) -> (Availability, SystemTime) {
        let since = match self.since {
            Some(since) => since,
            None => SystemTime::UNIX_EPOCH,
        };
        (self.state, since)
    }
}
