//! The memory that pages take, and the order in which they leave it: pages that were never requested first, then the least recently requested.
//!
//! A change of one tenant costs a look at that tenant, however many others are in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Instant;

use content::name::TenantId;

use crate::model::event::MeasuredPages;

/// The part of the limit up to which pages that were never requested stay in memory.
pub(super) const UNREQUESTED_SHARE: usize = 4;

/// The part of the limit that is freed beyond it at once, so that not every look evicts.
const EVICTION_SHARE: usize = 8;

/// The place of a tenant in the order of eviction.
pub(super) type EvictionKey = (bool, Instant, TenantId);

/// The pages of a tenant in memory.
#[derive(Debug, Clone, Copy)]
struct TenantPages {
    bytes: usize,
    is_requested: bool,
    last_request: Instant,
}

/// The memory that pages take, in bytes.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    pub(super) used: usize,
    pub(super) limit: usize,
    /// The bytes that were evicted since the last snapshot, which still holds them.
    pub(super) leaving: usize,
    pages: BTreeMap<TenantId, TenantPages>,
    order: BTreeSet<EvictionKey>,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self {
            used: 0,
            limit: usize::MAX,
            leaving: 0,
            pages: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl MemoryBudget {
    /// Takes a measurement of a tenant's pages; without bytes, none are in memory.
    pub(super) fn measure(&mut self, measured: MeasuredPages) {
        let MeasuredPages {
            tenant,
            bytes,
            is_requested,
            last_request,
        } = measured;
        self.remove(&tenant);
        if bytes > 0 {
            let pages = TenantPages {
                bytes,
                is_requested,
                last_request,
            };
            self.used = self.used.saturating_add(bytes);
            self.order
                .insert((is_requested, last_request, tenant.clone()));
            self.pages.insert(tenant, pages);
        }
    }

    /// Notes that pages of a tenant came into memory, in place of any former ones.
    pub(super) fn add(
        &mut self,
        tenant: &TenantId,
        bytes: usize,
        is_requested: bool,
        now: Instant,
    ) {
        let before = self.pages.get(tenant);
        let was_requested = before.is_some_and(|pages| pages.is_requested);
        self.measure(MeasuredPages {
            tenant: tenant.clone(),
            bytes,
            is_requested: is_requested || was_requested,
            last_request: before.map_or(now, |pages| pages.last_request),
        });
    }

    /// Notes that the pages of a tenant left memory. Returns their bytes.
    pub(super) fn remove(&mut self, tenant: &TenantId) -> usize {
        let Some(pages) = self.pages.remove(tenant) else {
            return 0;
        };
        let place = (pages.is_requested, pages.last_request, tenant.clone());
        self.order.remove(&place);
        self.used = self.used.saturating_sub(pages.bytes);
        pages.bytes
    }

    /// Returns the tenant that leaves memory after the one in this place, or first.
    pub(super) fn next_after(&self, place: Option<&EvictionKey>) -> Option<&EvictionKey> {
        let after = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.order.range((after, Bound::Unbounded)).next()
    }

    /// Returns whether pages take more memory than there is.
    pub(super) const fn is_exceeded(&self) -> bool {
        self.used > self.limit
    }

    /// Returns whether an eviction that has begun goes on.
    pub(super) const fn is_too_full(&self) -> bool {
        self.used > self.limit - self.limit / EVICTION_SHARE
    }

    /// Returns whether no room is left for pages that were never requested.
    pub(super) const fn is_full_of_unrequested(&self) -> bool {
        self.used > self.limit / UNREQUESTED_SHARE
    }

    /// Returns the number of tenants with pages in memory.
    pub(super) fn tenants(&self) -> usize {
        self.pages.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn measured(
        name: &str,
        bytes: usize,
        is_requested: bool,
        last_request: Instant,
    ) -> MeasuredPages {
        MeasuredPages {
            tenant: TenantId::new(name).unwrap(),
            bytes,
            is_requested,
            last_request,
        }
    }

    #[test]
    fn pages_leave_in_the_order_of_their_last_requests() {
        let mut budget = MemoryBudget::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        budget.measure(measured("asked", 3, true, now));
        budget.measure(measured("asked-later", 4, true, later));
        budget.measure(measured("never", 5, false, later));
        assert_eq!(budget.used, 12);
        let mut order = Vec::new();
        let mut place = None;
        while let Some(next) = budget.next_after(place.as_ref()) {
            order.push(next.2.to_string());
            place = Some(next.clone());
        }
        assert_eq!(order, ["never", "asked", "asked-later"]);
    }

    #[test]
    fn measurement_replaces_the_one_before() {
        let mut budget = MemoryBudget::default();
        let now = Instant::now();
        budget.measure(measured("one", 3, false, now));
        budget.measure(measured("one", 7, true, now));
        assert_eq!((budget.used, budget.tenants()), (7, 1));
        budget.measure(measured("one", 0, true, now));
        assert_eq!((budget.used, budget.tenants()), (0, 0));
        assert!(budget.next_after(None).is_none());
    }
}
