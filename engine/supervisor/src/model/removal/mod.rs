//! Tenants whose folders were removed: noted, restored for visitors on request, and forgotten after a time.
//!
//! ```text
//! known ──folder gone──> Removed ──restore──> restored ──folder back──> known
//!                           │ └────────folder back────────────────────────^
//!                           └──retention over──> forgotten, with its history
//! ```
//!
//! A tenant that a list leaves out because its content is not on this machine is not removed: the world forgets the tenant, and nothing notes a removal until a list leaves the tenant out for another reason.
//!
//! A restored tenant is a normal tenant of the world, except that a list without its folder does not remove it.
//!
//! **Invariant:** a restored tenant is never forgotten, and stays until its folder is back.

pub(crate) mod removed_tenants;

use std::collections::BTreeSet;
use std::time::Duration;

use content::name::TenantId;

use crate::model::event::{Action, ClockTime, CommandReply, Ticket};
use crate::model::removal::removed_tenants::{RemovedTenant, RemovedTenants};
use crate::model::tenant::TenantState;
use crate::model::world::World;

impl World {
    /// Sets the time for which the history of a removed tenant is kept.
    pub(crate) const fn set_removed_retention(&mut self, retention: Duration) {
        self.removals.retention = retention;
    }

    /// Returns the time for which the history of a removed tenant is kept.
    pub(crate) const fn removed_retention(&self) -> Duration {
        self.removals.retention
    }

    /// Returns the removed tenants.
    pub(crate) const fn removed(&self) -> &RemovedTenants {
        &self.removals.tenants
    }

    /// Returns the removed tenants whose persisted folders are read next.
    pub(crate) fn to_restore(&self) -> impl Iterator<Item = &TenantId> {
        let removals = &self.removals;
        let is_wanted =
            move |id: &&TenantId| removals.is_restored(id) || removals.restoring.contains_key(*id);
        let removed = removals.tenants.keys().filter(is_wanted);
        removed.filter(|id| !self.tenants.contains_key(*id))
    }

    /// Returns the tenants whose folders are gone. The first list also covers the tenants of an earlier process.
    pub(super) fn missing(&mut self, listed: &BTreeSet<TenantId>) -> BTreeSet<TenantId> {
        let former = std::mem::take(&mut self.removals.former);
        let former = former.difference(&self.removals.asleep).cloned();
        let known = former.chain(self.tenants.keys().cloned());
        let is_missing = |id: &TenantId| {
            // A noted removal is not told again, and a restored tenant stays.
            !listed.contains(id) && !self.removals.tenants.contains_key(id)
        };
        known.filter(is_missing).collect()
    }

    /// Notes that the folder of a tenant is gone.
    pub(super) fn note_removal(&mut self, id: TenantId, now: ClockTime, actions: &mut Vec<Action>) {
        let removed = RemovedTenant {
            at: now.time,
            is_restored: false,
        };
        self.removals.tenants.insert(id.clone(), removed);
        actions.push(Action::ReportRemoval(id));
    }

    /// Notes the removed tenants whose folders are back, and returns them.
    pub(super) fn note_returns(
        &mut self,
        listed: &BTreeSet<TenantId>,
        actions: &mut Vec<Action>,
    ) -> BTreeSet<TenantId> {
        let removed = self.removals.tenants.keys();
        let returned: BTreeSet<TenantId> =
            removed.filter(|id| listed.contains(*id)).cloned().collect();
        for id in &returned {
            self.removals.tenants.remove(id);
            actions.push(Action::ReportReturn(id.clone()));
            self.reply_to_restore(id, CommandReply::FolderPresent, actions);
        }
        returned
    }

    /// Drops all data of a tenant that is not served any more.
    pub(super) fn forget(&mut self, id: &TenantId, now: ClockTime, actions: &mut Vec<Action>) {
        self.tenants.remove(id);
        self.forget_work(id);
        self.plan.note(id, now.instant);
        self.publication.urgent.note(id, now.instant);
        actions.push(Action::Forget(id.clone()));
    }

    /// Drops tenants whose content is not on this machine. Nothing notes a removal, and persisted data stays. The next list notes the removal of those that are not asleep any more, unless the list has them.
    pub(super) fn note_sleep(
        &mut self,
        asleep: BTreeSet<TenantId>,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        if !self.note_returns(&asleep, actions).is_empty() {
            actions.push(Action::PersistRemovals);
        }
        for id in &asleep {
            if self.tenants.contains_key(id) {
                self.forget(id, now, actions);
            }
        }
        let before = std::mem::replace(&mut self.removals.asleep, asleep);
        self.removals.former.extend(before);
    }

    /// Starts to restore a removed tenant, or refuses the command.
    pub(super) fn request_restore(
        &mut self,
        id: TenantId,
        ticket: Ticket,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        let is_served = self.tenants.contains_key(&id);
        let reply = match (self.removals.tenants.contains_key(&id), is_served) {
            (true, true) => {
                self.reply_when_published(id, ticket, actions);
                return;
            }
            (false, true) => CommandReply::FolderPresent,
            (false, false) => CommandReply::UnknownTenant,
            (true, false) => {
                self.removals.restoring.entry(id).or_default().push(ticket);
                self.request_list(now);
                return;
            }
        };
        actions.push(Action::Reply { ticket, reply });
    }

    /// Adds a removed tenant whose persisted folder was read, and replies to the operator.
    pub(super) fn finish_restore(
        &mut self,
        id: TenantId,
        is_found: bool,
        now: ClockTime,
        actions: &mut Vec<Action>,
    ) {
        if self.tenants.contains_key(&id) {
            self.finish_restore_commands(&id, actions);
            return;
        }
        let is_requested = self.removals.restoring.contains_key(&id);
        let Some(removed) = self.removals.tenants.get_mut(&id) else {
            return;
        };
        if !is_requested && !removed.is_restored {
            return;
        }
        if is_found {
            let is_new = !std::mem::replace(&mut removed.is_restored, true);
            self.add_without_folder(id.clone(), now);
            actions.push(Action::Restore(id.clone()));
            if is_new {
                actions.push(Action::PersistRemovals);
            }
        }
        match is_found {
            true => self.finish_restore_commands(&id, actions),
            false => self.reply_to_restore(&id, CommandReply::NotPersisted, actions),
        }
    }

    /// Replies to the operators once visitors get the restored tenant.
    fn finish_restore_commands(&mut self, id: &TenantId, actions: &mut Vec<Action>) {
        for ticket in self.removals.restoring.remove(id).unwrap_or_default() {
            self.reply_when_published(id.clone(), ticket, actions);
        }
    }

    fn reply_to_restore(&mut self, id: &TenantId, reply: CommandReply, actions: &mut Vec<Action>) {
        let tickets = self.removals.restoring.remove(id).unwrap_or_default();
        let tickets = tickets.into_iter();
        actions.extend(tickets.map(|ticket| Action::Reply { ticket, reply }));
    }

    /// Forgets the removed tenants whose retention is over.
    pub(super) fn forget_removed(&mut self, now: ClockTime, actions: &mut Vec<Action>) {
        let retention = self.removals.retention;
        let is_over = |(id, removed): (&TenantId, &RemovedTenant)| {
            let age = now.time.duration_since(removed.at).unwrap_or_default();
            let is_busy =
                self.removals.restoring.contains_key(id) || self.pins.writing.contains_key(id);
            (age >= retention && !removed.is_restored && !is_busy).then(|| id.clone())
        };
        let over: Vec<TenantId> = self.removals.tenants.iter().filter_map(is_over).collect();
        for id in over {
            self.removals.tenants.remove(&id);
            self.pins.on_disk.remove(&id);
            self.publication.urgent.note(&id, now.instant);
            actions.push(Action::ForgetHistory(id));
        }
    }

    /// Adds a tenant whose persisted content is served although its folder cannot be read, unless the tenant is known.
    pub(super) fn add_without_folder(&mut self, id: TenantId, now: ClockTime) {
        let mut tenant = TenantState::new(self.pins.of(&id));
        tenant.errors.has_content_errors = true;
        self.publication.urgent.changes.note(&id);
        self.tenants.entry(id).or_insert(tenant);
        self.plan.note_everything(now.instant);
    }
}
