//! The pinned releases of all tenants, on disk and being written.

use std::collections::BTreeMap;

use content::name::TenantId;

use crate::model::event::{Action, CommandReply, Ticket};
use crate::model::tenant::{PinState, TenantState};

/// The pins on disk. A pin outlives its tenant's folder.
#[derive(Debug, Default)]
pub(super) struct Pins {
    pub(super) on_disk: BTreeMap<TenantId, u64>,
    /// The writes in flight: the new pin, or `None` for a removal, and the ticket of the command.
    pub(super) writing: BTreeMap<TenantId, (Option<u64>, Ticket)>,
}

impl Pins {
    /// Starts the write of a tenant's pin, or refuses the command.
    pub(super) fn request(
        &mut self,
        (id, tenant): (TenantId, Option<&mut TenantState>),
        to: Option<u64>,
        ticket: Ticket,
    ) -> Action {
        let refuse = |reply| Action::Reply { ticket, reply };
        let Some(tenant) = tenant else {
            return refuse(CommandReply::UnknownTenant);
        };
        if matches!(tenant.pin, PinState::OnDisk(_) | PinState::Loading(_))
            || self.writing.contains_key(&id)
        {
            return refuse(CommandReply::Busy);
        }
        if to.is_none() && !tenant.has_served() {
            return refuse(CommandReply::NoPages);
        }
        tenant.pin = tenant.replaced_pin();
        self.writing.insert(id.clone(), (to, ticket));
        Action::WritePin { tenant: id, to }
    }

    /// Ends the write of a tenant's pin. Returns the pin and the ticket of its command.
    pub(super) fn end_write(
        &mut self,
        id: &TenantId,
        is_written: bool,
    ) -> Option<(Option<u64>, Ticket)> {
        let (to, ticket) = self.writing.remove(id)?;
        match to {
            _ if !is_written => {}
            Some(number) => drop(self.on_disk.insert(id.clone(), number)),
            None => drop(self.on_disk.remove(id)),
        }
        Some((to, ticket))
    }

    /// Returns the initial pin of a new tenant.
    pub(super) fn of(&self, id: &TenantId) -> PinState {
        if self.writing.contains_key(id) {
            return PinState::Unsettled;
        }
        let number = self.on_disk.get(id).copied();
        number.map_or(PinState::None, PinState::OnDisk)
    }
}

/// Starts to read the pinned release of a tenant whose addresses are now known.
pub(super) fn load_pin(id: &TenantId, tenant: &mut TenantState, actions: &mut Vec<Action>) {
    if let Some(number) = tenant.load_pin() {
        let tenant = id.clone();
        actions.push(Action::LoadPin { tenant, number });
    }
}
