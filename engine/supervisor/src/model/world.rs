//! The state of all tenants, and the decisions that follow from each event.
//!
//! [`World::step`] is the only way to change the world. The method decides when to read, build, serve, persist and evict a tenant.
//! The runner performs the actions, and reports each result as an event.
//!
//! **Invariants**, which the simulation checks:
//! - A tenant that has served pages serves until its folder is removed. A restored tenant serves until its folder is back.
//! - Every reading and every build ends or is retried.
//! - The newest input wins: a late result changes nothing.
//! - A pin survives every order of events and every restart. A tenant whose pinned release cannot be served is unavailable, and never shows its folder.
//! - Pages beyond the memory limit stay only if a request waits for them, or if they could not be restored.
//! - A tenant with unchanged inputs is not built again.

mod read_folders;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use content::name::TenantId;

use crate::model::agenda::{Agenda, Reload, ReloadScope};
use crate::model::budget::{MemoryBudget, UNREQUESTED_SHARE};
use crate::model::event::{
    Action, BuildPlan, BuildResult, ClockTime, CommandReply, Event, OutsideFacts, ServedForm,
    StoreState, SurveyOutcome, Ticket,
};
use crate::model::persistence::Persistence;
use crate::model::pins::{Pins, load_pin};
use crate::model::previews::{PreviewPhase, Previews};
use crate::model::publication::{CollectedChanges, Publication};
use crate::model::readings::{MAX_HOLD_TIME, Readings};
use crate::model::removal::removed_tenants::{Remembered, Removals};
use crate::model::tenant::{
    BuildKey, FinishedStep, FolderState, PinChange, PinState, ServedState, TenantState,
};

/// The purpose that tenants are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Visitors are served meanwhile: a slow tenant does not delay other tenants.
    Serve,
    /// The caller waits for all tenants.
    Batch,
}

/// The state of all tenants.
#[derive(Debug)]
pub(crate) struct World {
    mode: Mode,
    agenda: Agenda,
    pub(super) tenants: BTreeMap<TenantId, TenantState>,
    readings: Readings,
    pub(super) removals: Removals,
    previews: Previews,
    pub(super) pins: Pins,
    pub(super) plan: CollectedChanges,
    pub(super) publication: Publication,
    budget: MemoryBudget,
    persistence: Persistence,
    /// The survey in flight.
    survey: Option<Reload>,
}

impl World {
    /// Returns a world without tenants.
    pub(crate) fn new(mode: Mode, remembered: Remembered) -> Self {
        Self {
            mode,
            agenda: Agenda::default(),
            tenants: BTreeMap::new(),
            readings: Readings::default(),
            removals: Removals::new(remembered.removed, remembered.tenants),
            previews: Previews::default(),
            pins: Pins {
                on_disk: remembered.pins,
                writing: BTreeMap::new(),
            },
            plan: CollectedChanges::default(),
            publication: Publication::default(),
            budget: MemoryBudget::default(),
            survey: None,
            persistence: Persistence {
                store: StoreState::Absent,
                pending: BTreeSet::new(),
            },
        }
    }

    /// Sets the purpose, before the first event.
    pub(crate) const fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Sets the longest wait for files whose upload has not ended. Initially, no tenant waits.
    pub(crate) const fn set_settle_max(&mut self, settle_max: Duration) {
        self.readings.settle_max = settle_max;
    }

    /// Sets the age at which a preview is no longer served, before the first event. Initially, there is no limit.
    pub(crate) const fn set_preview_max_age(&mut self, age: Duration) {
        self.previews.set_max_age(age);
    }

    /// Returns the ages of previews.
    pub(crate) const fn previews(&self) -> &Previews {
        &self.previews
    }

    /// Applies an event. Returns the actions to perform, in order.
    pub(crate) fn step(&mut self, event: Event, now: ClockTime) -> Vec<Action> {
        let subject = event.tenant().cloned();
        let actions = self.apply(event, now);
        // The next snapshot updates exactly the tenants that an event or an action concerns.
        let changes = &mut self.publication.urgent.changes;
        let tenants = actions.iter().filter_map(Action::tenant);
        for tenant in subject.iter().chain(tenants) {
            changes.note(tenant);
        }
        actions
    }

    fn apply(&mut self, event: Event, now: ClockTime) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Changed(scope) => self.agenda.note(scope, now.instant),
            Event::Requested(scope) => self.agenda.request(scope, now.instant),
            Event::Unread(scope) => self.agenda.retry([scope], now.instant),
            Event::Listed { tenants, only } => {
                self.list(&tenants, only.as_ref(), now, &mut actions)
            }
            Event::Asleep(tenants) => self.note_sleep(tenants, now, &mut actions),
            Event::Restored(tenants) => self.restore(tenants, now),
            Event::Surveyed(outcome) => {
                self.survey = None;
                self.agenda.end_survey();
                self.agenda
                    .end(outcome != SurveyOutcome::Failed, now.instant);
                self.plan.changes.affects_all |= outcome != SurveyOutcome::SameForAll;
                // An alarm about `deployment.yaml` must reach operators.
                self.plan.since.get_or_insert(now.instant);
            }
            Event::Read {
                tenant,
                number,
                reading,
                is_changing,
            } => {
                let result = (number, reading, is_changing);
                self.finish_reading(tenant, result, now, &mut actions);
            }
            Event::PreviewRead {
                tenant,
                number,
                changed,
            } => {
                let state = self.tenants.get(&tenant);
                if state.is_some_and(|state| state.accepts_reading(number))
                    && self.previews.note_change(&tenant, changed, now.time)
                {
                    self.change_phase(tenant, now, &mut actions);
                }
            }
            Event::Planned { plans, took } => {
                self.plan.end(now.instant, took);
                // Findings and addresses may have changed.
                self.publication.urgent.since.get_or_insert(now.instant);
                for plan in plans {
                    self.start_build(plan, now, &mut actions);
                }
            }
            Event::Built {
                tenant,
                key,
                result,
            } => self.finish_build(tenant, key, result, now, &mut actions),
            Event::Encoded { tenant, key, bytes } => {
                self.finish_encoding(tenant, key, bytes, now, &mut actions);
            }
            Event::StoodIn { tenant, is_found } => {
                self.finish_stand_in(tenant, is_found, now, &mut actions);
            }
            Event::PinLoaded { tenant, is_found } => {
                self.finish_loading(tenant, is_found, now, &mut actions);
            }
            Event::PinRequested { tenant, to, ticket } => {
                let state = self.tenants.get_mut(&tenant);
                actions.push(self.pins.request((tenant, state), to, ticket));
            }
            Event::PinWritten { tenant, is_written } => {
                self.finish_pin(tenant, is_written, now, &mut actions);
            }
            Event::RestoreRequested { tenant, ticket } => {
                self.request_restore(tenant, ticket, now, &mut actions);
            }
            Event::RemovedRead { tenant, is_found } => {
                self.finish_restore(tenant, is_found, now, &mut actions);
            }
            Event::RecordRequested { tenant } => {
                self.persist(tenant, &mut actions);
            }
            Event::DataAdded(tenants) => self.persistence.pending.extend(tenants),
            Event::Measured {
                limit,
                pages,
                waiting,
            } => {
                self.budget.limit = limit;
                pages.into_iter().for_each(|one| self.budget.measure(one));
                self.evict(&waiting, &mut actions);
            }
            Event::ClockTurned => self.plan.note_everything(now.instant),
            Event::Published { took } => self.finish_publication(now, took, &mut actions),
            Event::Recovered => self.recover(now, &mut actions),
            Event::QueueDrained(facts) => self.start_due_work(facts, now, &mut actions),
        }
        actions
    }

    /// Returns the time until the next work is due, if the clock decides that.
    pub(crate) fn until_due(&self, now: Instant) -> Option<Duration> {
        let deadlines = [self.plan.deadline(), self.publication.urgent.deadline()];
        let background = self
            .publication
            .has_background
            .then(|| self.publication.background_due());
        let held = self
            .readings
            .held
            .values()
            .map(|begun| *begun + MAX_HOLD_TIME);
        let deadlines = deadlines.into_iter().chain([background.flatten()]);
        let deadlines = deadlines.flatten().chain(held.min());
        let due = deadlines.map(|due| due.saturating_duration_since(now));
        due.chain(self.agenda.until_due(now)).min()
    }

    /// Returns the state of a tenant.
    pub(crate) fn tenant(&self, id: &str) -> Option<&TenantState> {
        self.tenants.get(id)
    }

    /// Returns whether a snapshot was published.
    pub(crate) const fn is_started(&self) -> bool {
        self.publication.is_started
    }

    /// Returns whether any tenant has new data that is not handed to the store yet.
    #[cfg(test)]
    pub(crate) fn has_unpersisted(&self) -> bool {
        !self.persistence.pending.is_empty()
    }

    /// Returns whether any tenant has new data that waits only for room in the store.
    pub(crate) fn has_persistable(&self) -> bool {
        let mut pending = self.persistence.pending.iter();
        self.persistence.is_ready() && pending.any(|id| self.is_persistable(id))
    }

    /// Returns whether pages exceed the memory limit so far that the next measurement, and with it the eviction, must come early.
    pub(crate) const fn is_over_budget(&self) -> bool {
        self.budget.used.saturating_sub(self.budget.limit) > self.budget.limit / UNREQUESTED_SHARE
    }

    /// Returns the bytes of pages in memory, and the number of their tenants.
    pub(crate) fn memory_used(&self) -> (usize, usize) {
        (self.budget.used, self.budget.tenants())
    }

    /// Returns the bytes of images in memory.
    pub(crate) const fn images_used(&self) -> usize {
        self.budget.used_by_images
    }

    /// Returns the tenants that use the most memory with their bytes, at most `count`, the largest first.
    pub(crate) fn largest(&self, count: usize) -> Vec<(&TenantId, usize)> {
        self.budget.largest(count)
    }

    /// Drops tenants whose folders were removed. Reads new and returned tenants, tenants in `only`, and tenants whose last reading found no folder.
    fn list(
        &mut self,
        listed: &BTreeSet<TenantId>,
        only: Option<&BTreeSet<String>>,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let returned = self.note_returns(listed, actions);
        let gone = self.missing(listed);
        let has_changed = !(returned.is_empty() && gone.is_empty());
        for id in gone {
            self.forget(&id, now, actions);
            self.note_removal(id, now, actions);
        }
        if has_changed {
            actions.push(Action::PersistRemovals);
        }
        for id in listed {
            let is_wanted = only.is_none_or(|only| only.contains(id.as_str()));
            let is_wanted = is_wanted || returned.contains(id);
            let is_gone = |tenant: &TenantState| matches!(tenant.source(), FolderState::Gone(_));
            let known = self.tenants.get(id);
            if is_wanted || known.is_none_or(is_gone) {
                self.read_or_hold(id.clone(), now, actions);
            }
        }
    }

    /// Drops the work for a tenant, and its memory.
    pub(super) fn forget_work(&mut self, id: &TenantId) {
        self.persistence.pending.remove(id);
        self.readings.held.remove(id);
        self.budget.remove(id);
        self.previews.forget(id);
    }

    /// Adds tenants whose persisted content is served while the folder of tenants cannot be listed.
    fn restore(&mut self, tenants: Vec<TenantId>, now: ClockTime) {
        for id in tenants {
            self.add_without_folder(id, now);
        }
        self.plan.note_everything(now.instant);
    }

    /// Schedules a list of the folders.
    pub(super) fn request_list(&mut self, now: ClockTime) {
        self.agenda.request(ReloadScope::List, now.instant);
    }

    /// Serves a preview, or ends it, as its new phase demands.
    fn change_phase(&mut self, id: TenantId, now: ClockTime, actions: &mut Vec<Action>) {
        let age = self.previews.age(&id);
        if let (Some(age), Some(tenant)) = (age, self.tenants.get_mut(&id)) {
            tenant.is_expired = age.phase == PreviewPhase::Expired;
            self.publication.urgent.note(&id, now.instant);
            let (tenant, phase) = (id, age.phase);
            actions.push(Action::ReportPreview { tenant, phase });
        }
    }

    /// Starts a build if the inputs of the tenant have changed, or blocks it if the theme is missing.
    fn start_build(&mut self, plan: BuildPlan, now: ClockTime, actions: &mut Vec<Action>) {
        let BuildPlan {
            tenant: id,
            key,
            has_conflicts,
        } = plan;
        let Some(tenant) = self.tenants.get_mut(&id) else {
            return;
        };
        let had_conflicts = std::mem::replace(&mut tenant.errors.has_conflicts, has_conflicts);
        if had_conflicts || has_conflicts || key.is_none() {
            // The reports may have changed.
            self.publication.urgent.changes.note(&id);
        }
        if had_conflicts != has_conflicts {
            self.publication.urgent.note(&id, now.instant);
        }
        let Some(key) = key else {
            tenant.errors.has_page_errors = true;
            if tenant.block_build() {
                self.publication.urgent.note(&id, now.instant);
                if !tenant.has_served() {
                    actions.push(Action::StandIn(id.clone()));
                }
            }
            // A release needs no theme.
            load_pin(&id, tenant, actions);
            return;
        };
        if !tenant.start_build(key) {
            return;
        }
        let opens = self.mode == Mode::Serve && tenant.open();
        if opens {
            self.publication.urgent.note(&id, now.instant);
        }
        actions.push(Action::Build {
            tenant: id.clone(),
            key,
            opens,
        });
        load_pin(&id, tenant, actions);
    }

    /// Serves the pages of a finished build. After a failed build, the former pages stay, or a search for a stand-in starts.
    fn finish_build(
        &mut self,
        id: TenantId,
        key: BuildKey,
        result: BuildResult,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let Some(tenant) = self.tenants.get_mut(&id) else {
            return;
        };
        if !tenant.expects(key) {
            return;
        }
        actions.push(Action::ReportBuild(id.clone()));
        self.publication.changes_in_background(&id);
        let has_pages = matches!(result, BuildResult::Pages { .. });
        tenant.errors.has_page_errors = match result {
            BuildResult::Pages { has_errors, .. } => has_errors,
            BuildResult::Failed => true,
        };
        match tenant.finish_build(key, has_pages) {
            FinishedStep::Served => {}
            FinishedStep::Failed => {
                self.publication.urgent.note(&id, now.instant);
                if let ServedState::Evicted(key) = tenant.serving() {
                    actions.push(Action::Park { tenant: id, key });
                }
                return;
            }
            FinishedStep::NeedsStandIn => {
                self.publication.urgent.note(&id, now.instant);
                actions.push(Action::StandIn(id));
                return;
            }
        }
        let BuildResult::Pages {
            form,
            is_persisted,
            bytes,
            is_requested,
            is_urgent,
            ..
        } = result
        else {
            return;
        };
        actions.push(Action::Serve {
            tenant: id.clone(),
            key,
        });
        if is_urgent {
            self.publication.urgent.note(&id, now.instant);
        }
        if !is_persisted {
            self.persistence.pending.insert(id.clone());
        }
        if form == ServedForm::Evicted {
            tenant.evict();
            self.budget.remove(&id);
            actions.push(Action::Park {
                tenant: id.clone(),
                key,
            });
        } else {
            self.budget.add(&id, bytes, is_requested, now.instant);
        }
        if form == ServedForm::Unencoded {
            actions.push(Action::Park {
                tenant: id.clone(),
                key,
            });
            if !is_requested {
                self.evict_unrequested(&id, actions);
            }
        }
    }

    /// Evicts pages that were just rendered without a request, if the share for such pages is used up.
    fn evict_unrequested(&mut self, id: &TenantId, actions: &mut Vec<Action>) {
        if !self.budget.is_full_of_unrequested() {
            return;
        }
        if let StoreState::Ready(1..) = self.persistence.store {
            self.persist(id.clone(), actions);
        }
        let must_be_persisted = self.persistence.blocks_eviction(id);
        let Some(tenant) = self.tenants.get_mut(id) else {
            return;
        };
        if !must_be_persisted
            && tenant.can_be_evicted()
            && let Some(key) = tenant.evict()
        {
            self.budget.remove(id);
            actions.push(Action::Evict {
                tenant: id.clone(),
                key,
            });
        }
    }

    /// Serves pages that were compressed, if no newer inputs have arrived since.
    fn finish_encoding(
        &mut self,
        id: TenantId,
        key: BuildKey,
        bytes: usize,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let Some(tenant) = self.tenants.get_mut(&id) else {
            return;
        };
        if tenant.may_encode(key) {
            tenant.finish_build(key, true);
            self.budget.add(&id, bytes, true, now.instant);
            self.publication.changes_in_background(&id);
            actions.push(Action::Serve { tenant: id, key });
        }
    }

    /// Serves the stand-in that was found, or closes the addresses of a tenant without pages.
    fn finish_stand_in(
        &mut self,
        id: TenantId,
        is_found: bool,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let Some(tenant) = self.tenants.get_mut(&id) else {
            return;
        };
        self.publication.urgent.note(&id, now.instant);
        if is_found && tenant.stand_in() {
            self.persistence.pending.insert(id.clone());
            actions.push(Action::ServeStandIn(id.clone()));
            load_pin(&id, tenant, actions);
        } else if !tenant.is_building() && !tenant.has_served() {
            tenant.close();
            actions.push(Action::Close(id));
        }
    }

    /// Serves the pinned release that was read. If the release cannot be served, the tenant is unavailable.
    fn finish_loading(
        &mut self,
        id: TenantId,
        is_found: bool,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let Some(tenant) = self.tenants.get_mut(&id) else {
            return;
        };
        let number = match tenant.pin {
            PinState::Loading(number) => number,
            // A further attempt.
            PinState::Unreadable(number) if is_found => number,
            _ => return,
        };
        tenant.pin = match is_found {
            true => PinState::Pinned(number),
            false => PinState::Unreadable(number),
        };
        self.publication.urgent.note(&id, now.instant);
        actions.push(Action::ServePin {
            tenant: id,
            is_pinned: is_found,
        });
    }

    /// Applies the pin that was written, or restores the former pin, and replies to the operator.
    fn finish_pin(
        &mut self,
        id: TenantId,
        is_written: bool,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let Some((to, ticket)) = self.pins.end_write(&id, is_written) else {
            return;
        };
        if let Some(tenant) = self.tenants.get_mut(&id) {
            match tenant.end_pin_write(to, is_written) {
                PinChange::None => {}
                PinChange::Served => {
                    self.publication.urgent.note(&id, now.instant);
                    actions.push(Action::ServePin {
                        tenant: id.clone(),
                        is_pinned: to.is_some(),
                    });
                    self.reply_when_published(id, ticket, actions);
                    return;
                }
                PinChange::OfFormerFolder => {
                    tenant.pin = self.pins.of(&id);
                    self.publication.urgent.note(&id, now.instant);
                    if tenant.has_inputs() {
                        load_pin(&id, tenant, actions);
                    }
                }
            }
        }
        let reply = match is_written {
            true => CommandReply::Done,
            false => CommandReply::NotWritten,
        };
        actions.push(Action::Reply { ticket, reply });
    }

    /// Hands the new data of a tenant to the store, unless the tenant is being built or has no pages.
    fn persist(&mut self, id: TenantId, actions: &mut Vec<Action>) {
        if self.is_persistable(&id) {
            self.persistence.note_handed_over(&id);
            actions.push(Action::Persist(id));
        }
    }

    /// Evicts pages until memory use is below the limit. Pages that a request waits for stay.
    fn evict(&mut self, waiting: &BTreeSet<TenantId>, actions: &mut Vec<Action>) {
        if !self.budget.is_exceeded() {
            return;
        }
        let mut place = None;
        while self.budget.is_too_full()
            && let Some(next) = self.budget.next_after(place.as_ref()).cloned()
        {
            let id = next.2.clone();
            place = Some(next);
            let must_be_persisted = self.persistence.blocks_eviction(&id);
            let Some(tenant) = self.tenants.get_mut(&id) else {
                continue;
            };
            if waiting.contains(&id) || must_be_persisted || !tenant.can_be_evicted() {
                continue;
            }
            if let Some(key) = tenant.evict() {
                self.budget.evicted_bytes += self.budget.remove(&id);
                self.publication.changes_in_background(&id);
                actions.push(Action::Evict { tenant: id, key });
            }
        }
    }

    /// Returns whether a tenant has served pages and is not being built.
    fn is_persistable(&self, id: &TenantId) -> bool {
        self.tenants.get(id).is_some_and(TenantState::is_complete)
    }

    /// Publishes a snapshot of all finished builds.
    fn publish(&mut self, now: ClockTime, actions: &mut Vec<Action>) {
        let changes = self.publication.urgent.begin();
        match changes.affects_all {
            true => (self.tenants.values_mut()).for_each(|tenant| tenant.settle(now.time)),
            false => {
                for id in &changes.tenants {
                    if let Some(tenant) = self.tenants.get_mut(id) {
                        tenant.settle(now.time);
                    }
                }
            }
        }
        self.publication.has_background = false;
        self.budget.evicted_bytes = 0;
        let tenants = &self.tenants;
        let is_settled = |id: &TenantId| tenants.get(id).is_none_or(TenantState::is_settled);
        self.publication.replies.note_snapshot(is_settled);
        actions.push(Action::Publish(changes));
    }

    /// Notes that a snapshot was published, and replies to the commands whose effect it contains.
    fn finish_publication(&mut self, now: ClockTime, took: Duration, actions: &mut Vec<Action>) {
        self.publication.urgent.end(now.instant, took);
        self.publication.is_started = true;
        actions.extend(self.publication.replies.release());
    }

    /// Replies to a command that has succeeded, once visitors see its effect. Before the first snapshot they see nothing, and the reply does not wait.
    pub(super) fn reply_when_published(
        &mut self,
        id: TenantId,
        ticket: Ticket,
        actions: &mut Vec<Action>,
    ) {
        let is_pending = self.publication.urgent.since.is_some();
        let is_settled = self.tenants.get(&id).is_none_or(TenantState::is_settled);
        if self.publication.is_started && (is_pending || !is_settled) {
            self.publication.replies.hold(id, ticket);
        } else {
            let reply = CommandReply::Done;
            actions.push(Action::Reply { ticket, reply });
        }
    }

    /// Restarts all readings, builds, reads and writes of pins in flight, because any of their jobs may be lost.
    fn recover(&mut self, now: ClockTime, actions: &mut Vec<Action>) {
        self.survey = None;
        self.readings.held.clear();
        self.agenda.recover(now.instant);
        for (id, tenant) in &mut self.tenants {
            if tenant.is_building() {
                tenant.reset_build();
            }
            if tenant.is_reading() {
                tenant.reset_reading();
                let scope = ReloadScope::Tenant(id.to_string());
                self.agenda.request(scope, now.instant);
            }
            if let PinState::Loading(number) = tenant.pin {
                let tenant = id.clone();
                actions.push(Action::LoadPin { tenant, number });
            }
        }
        for (tenant, (to, _)) in &self.pins.writing {
            let (tenant, to) = (tenant.clone(), *to);
            actions.push(Action::WritePin { tenant, to });
        }
        self.plan.note_everything(now.instant);
        self.publication.urgent.note_everything(now.instant);
    }

    /// Starts the work that is due, once all queued events are handled.
    fn start_due_work(&mut self, facts: OutsideFacts, now: ClockTime, actions: &mut Vec<Action>) {
        self.persistence.store = facts.store;
        self.forget_removed(now, actions);
        for id in self.previews.apply_timers(now.time) {
            self.change_phase(id, now, actions);
        }
        for id in self.readings.overdue(now.instant) {
            self.read(id, now, actions);
        }
        self.reload(facts.can_survey, now, actions);
        if self.is_due(&self.plan, facts.has_readings, now) {
            actions.push(Action::Plan(self.plan.begin()));
            return;
        }
        let has_work = facts.has_readings || facts.has_builds || self.plan.since.is_some();
        if self.is_due(&self.publication.urgent, has_work, now)
            || self.is_background_due(facts, now)
        {
            self.publish(now, actions);
            return;
        }
        self.start_persisting(actions);
    }

    /// Returns whether collected changes are handled now. `has_more`: whether further results are likely soon.
    fn is_due(&self, collected: &CollectedChanges, has_more: bool, now: ClockTime) -> bool {
        let is_late = collected.deadline().is_some_and(|due| due <= now.instant);
        let may_be_late = self.mode == Mode::Serve && self.publication.is_started;
        collected.since.is_some() && (!has_more || (may_be_late && is_late))
    }

    /// Returns whether a snapshot of background changes is published now.
    ///
    /// The snapshot is due if its interval is over, much evicted memory is still held, a request waits, or the background is idle.
    fn is_background_due(&self, facts: OutsideFacts, now: ClockTime) -> bool {
        let is_late = self
            .publication
            .background_due()
            .is_some_and(|due| due <= now.instant);
        let is_leaving = self.budget.evicted_bytes > self.budget.limit / UNREQUESTED_SHARE;
        self.mode == Mode::Serve
            && self.publication.is_started
            && self.publication.has_background
            && (is_late || is_leaving || facts.is_awaited || !facts.has_background)
    }

    /// Starts all reloads that are due.
    fn reload(&mut self, can_survey: bool, now: ClockTime, actions: &mut Vec<Action>) {
        loop {
            let tenants = &self.tenants;
            let is_known = |name: &str| tenants.contains_key(name);
            let can_survey = can_survey && self.survey.is_none();
            let Some(reload) = self.agenda.next(now.instant, is_known, can_survey) else {
                return;
            };
            actions.push(Action::BeginReload(reload.clone()));
            if reload.is_survey {
                self.survey = Some(reload.clone());
                actions.push(Action::Survey(reload));
                continue;
            }
            for name in reload.tenants.iter().flatten() {
                if let Some((id, _)) = self.tenants.get_key_value(name.as_str()) {
                    let id = id.clone();
                    self.read_or_hold(id, now, actions);
                }
            }
            // Failed readings are retried individually.
            self.agenda.end(true, now.instant);
        }
    }

    /// Hands the new data of tenants to the store, as far as the store has room.
    fn start_persisting(&mut self, actions: &mut Vec<Action>) {
        let tenants = &self.tenants;
        let is_complete = |id: &TenantId| tenants.get(id).is_some_and(TenantState::is_complete);
        let complete = self.persistence.next(is_complete);
        for id in complete {
            self.persist(id, actions);
        }
    }
}
