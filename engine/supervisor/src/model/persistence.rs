//! The tenants whose new data is not handed to the store yet.
//!
//! **Invariant:** hands over no more data than the store has room for.

use std::collections::BTreeSet;

use content::name::TenantId;

use crate::model::event::StoreState;

/// The new data of tenants, and the room of the store.
#[derive(Debug)]
pub(super) struct Persistence {
    /// The state of the store at the end of the last batch of events.
    pub(super) store: StoreState,
    /// The tenants with new data that is not handed to the store yet.
    pub(super) pending: BTreeSet<TenantId>,
}

impl Persistence {
    /// Returns whether the store takes writes.
    pub(super) const fn is_ready(&self) -> bool {
        matches!(self.store, StoreState::Ready(_))
    }

    /// Returns whether new data of a tenant must be persisted before its pages are evicted.
    pub(super) fn blocks_eviction(&self, id: &TenantId) -> bool {
        self.is_ready() && self.pending.contains(id)
    }

    /// Notes that the data of a tenant is handed to the store.
    pub(super) fn note_handed_over(&mut self, id: &TenantId) {
        self.pending.remove(id);
        if let StoreState::Ready(room) = &mut self.store {
            *room = room.saturating_sub(1);
        }
    }

    /// Returns the tenants to hand over next, among those that are complete. Without a store, forgets all.
    pub(super) fn next(&mut self, is_complete: impl Fn(&TenantId) -> bool) -> Vec<TenantId> {
        let room = match self.store {
            StoreState::Ready(room) => room,
            StoreState::ReadOnly => return Vec::new(),
            StoreState::Absent => {
                self.pending.clear();
                return Vec::new();
            }
        };
        let complete = self.pending.iter().filter(|id| is_complete(id));
        complete.take(room).cloned().collect()
    }
}
