//! Starts the readings of folders, and accepts their results.
//!
//! **Invariant:** the result of a reading is dropped once the result of a newer reading was accepted.

use content::name::TenantId;

use crate::model::agenda::ReloadScope;
use crate::model::event::{Action, ClockTime, ReadingOutcome};
use crate::model::readings::MAX_HOLD_TIME;
use crate::model::receiving::Receiving;
use crate::model::tenant::{FolderState, PinState, TenantState};
use crate::model::world::World;

impl World {
    /// Reads a folder, or waits for its reading in flight: two readings at a time would take twice the memory.
    pub(super) fn read_or_hold(&mut self, id: TenantId, now: ClockTime, actions: &mut Vec<Action>) {
        let begun = self.tenants.get(&id).and_then(TenantState::reading_since);
        match begun {
            Some(begun) if now.instant < begun + MAX_HOLD_TIME => {
                self.readings.held.insert(id, begun);
            }
            _ => self.read(id, now, actions),
        }
    }

    /// Starts a reading of a folder.
    pub(super) fn read(&mut self, id: TenantId, now: ClockTime, actions: &mut Vec<Action>) {
        self.readings.held.remove(&id);
        self.readings.last += 1;
        let number = self.readings.last;
        let pins = &self.pins;
        let tenant = self.tenants.entry(id.clone());
        let tenant = tenant.or_insert_with_key(|id| TenantState::new(pins.of(id)));
        let is_only = !tenant.is_reading();
        tenant.start_reading(number, now.instant);
        let waits = Receiving::may_wait(tenant.receiving, self.readings.settle_max, now.instant);
        actions.push(Action::Read {
            tenant: id,
            number,
            is_only,
            waits,
        });
    }

    /// Handles the end of a reading. Starts another reading if the folder changed in the meantime.
    pub(super) fn finish_reading(
        &mut self,
        id: TenantId,
        (number, reading, is_changing): (u64, ReadingOutcome, bool),
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        if reading == ReadingOutcome::Unresponsive {
            if self.tenants.contains_key(&id) {
                actions.push(Action::ReportUnresponsive { tenant: id, number });
            }
            return;
        }
        let result = (number, reading, is_changing);
        self.accept_reading(&id, result, now, actions);
        if self.readings.held.contains_key(&id) {
            self.read(id, now, actions);
        }
    }

    /// Applies the result of a reading, unless a newer result was accepted.
    fn accept_reading(
        &mut self,
        id: &TenantId,
        (number, reading, is_changing): (u64, ReadingOutcome, bool),
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let Some(tenant) = self.tenants.get_mut(id) else {
            return;
        };
        let has_errors = match reading {
            ReadingOutcome::Changed { has_errors, .. } => has_errors,
            ReadingOutcome::Receiving { has_content, .. } if has_content => true,
            _ => tenant.errors.has_content_errors,
        };
        let source = match (reading, has_errors) {
            (ReadingOutcome::Gone, _) => FolderState::Gone,
            (_, false) => FolderState::Valid,
            (_, true) => FolderState::Invalid,
        };
        if !tenant.accept_reading(number, source) {
            return;
        }
        tenant.errors.has_content_errors = has_errors;
        let was_receiving = tenant.is_receiving();
        let (limit, files) = (self.readings.settle_max, reading.files(is_changing));
        let (receiving, look) = Receiving::after(tenant.receiving, files, limit, now.instant);
        tenant.receiving = receiving;
        if let Some(due) = look {
            let scope = ReloadScope::Tenant(id.to_string());
            self.agenda.request(scope, due);
        }
        if tenant.is_receiving() != was_receiving {
            self.publication.urgent.note(id, now.instant);
        }
        if let PinState::Unreadable(number) = tenant.pin {
            // Its disk may be readable again, or the tenant may have the addresses of the release again.
            let tenant = id.clone();
            actions.push(Action::LoadPin { tenant, number });
        }
        if let ReadingOutcome::Changed { is_unreadable, .. } = reading {
            tenant.errors.is_unreadable = is_unreadable;
        }
        if tenant.errors.is_unreadable {
            let scope = ReloadScope::Tenant(id.to_string());
            self.agenda.retry([scope], now.instant);
        }
        match reading {
            ReadingOutcome::Gone => self.agenda.request(ReloadScope::List, now.instant),
            ReadingOutcome::Changed { .. }
            | ReadingOutcome::Receiving {
                has_content: true, ..
            } => {
                self.plan.note(id, now.instant);
                self.publication.urgent.note(id, now.instant);
                actions.push(Action::ReplaceContent(id.clone()));
            }
            _ => {}
        }
    }
}
