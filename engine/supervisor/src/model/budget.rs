//! The memory budget of pages, and the order of eviction: tenants that were never requested first, then the least recently requested.
//!
//! An update of one tenant takes logarithmic time in the number of tenants in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Instant;

use content::name::TenantId;

use crate::model::event::MeasuredPages;

/// A divisor of the limit: pages that were never requested stay in memory while use is at most `limit / UNREQUESTED_SHARE`.
pub(super) const UNREQUESTED_SHARE: usize = 4;

/// A divisor of the limit: an eviction frees `limit / EVICTION_SHARE` more than necessary, so that not every measurement evicts.
const EVICTION_SHARE: usize = 8;

/// The place of a tenant in the order of eviction: whether it was requested, the time of its last request, and its id.
pub(super) type EvictionKey = (bool, Instant, TenantId);

/// The pages of a tenant in memory.
#[derive(Debug, Clone, Copy)]
struct TenantPages {
    bytes: usize,
    image_bytes: usize,
    is_requested: bool,
    last_request: Instant,
}

/// The memory use of pages and its limit, in bytes.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    pub(super) used: usize,
    /// The part of `used` that is images.
    pub(super) used_by_images: usize,
    pub(super) limit: usize,
    /// The bytes evicted since the last snapshot. That snapshot still holds them.
    pub(super) evicted_bytes: usize,
    pages: BTreeMap<TenantId, TenantPages>,
    order: BTreeSet<EvictionKey>,
    /// The tenants by their bytes, the largest first.
    sizes: BTreeSet<(Reverse<usize>, TenantId)>,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self {
            used: 0,
            used_by_images: 0,
            limit: usize::MAX,
            evicted_bytes: 0,
            pages: BTreeMap::new(),
            order: BTreeSet::new(),
            sizes: BTreeSet::new(),
        }
    }
}

impl MemoryBudget {
    /// Records a measurement of a tenant's pages. Zero bytes mean that no pages are in memory.
    pub(super) fn measure(&mut self, measured: MeasuredPages) {
        let MeasuredPages {
            tenant,
            bytes,
            image_bytes,
            is_requested,
            last_request,
        } = measured;
        self.remove(&tenant);
        if bytes > 0 {
            let pages = TenantPages {
                bytes,
                image_bytes,
                is_requested,
                last_request,
            };
            self.used = self.used.saturating_add(bytes);
            self.used_by_images = self.used_by_images.saturating_add(image_bytes);
            self.order
                .insert((is_requested, last_request, tenant.clone()));
            self.sizes.insert((Reverse(bytes), tenant.clone()));
            self.pages.insert(tenant, pages);
        }
    }

    /// Notes that pages of a tenant were built or loaded, and replace its former pages.
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
            image_bytes: before.map_or(0, |pages| pages.image_bytes.min(bytes)),
            is_requested: is_requested || was_requested,
            last_request: before.map_or(now, |pages| pages.last_request),
        });
    }

    /// Notes that the pages of a tenant are no longer in memory. Returns their bytes.
    pub(super) fn remove(&mut self, tenant: &TenantId) -> usize {
        let Some(pages) = self.pages.remove(tenant) else {
            return 0;
        };
        let place = (pages.is_requested, pages.last_request, tenant.clone());
        self.order.remove(&place);
        self.sizes.remove(&(Reverse(pages.bytes), tenant.clone()));
        self.used = self.used.saturating_sub(pages.bytes);
        self.used_by_images = self.used_by_images.saturating_sub(pages.image_bytes);
        pages.bytes
    }

    /// Returns the tenant after `place` in the order of eviction, or the first tenant for `None`.
    pub(super) fn next_after(&self, place: Option<&EvictionKey>) -> Option<&EvictionKey> {
        let after = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.order.range((after, Bound::Unbounded)).next()
    }

    /// Returns whether pages use more memory than the limit.
    pub(super) const fn is_exceeded(&self) -> bool {
        self.used > self.limit
    }

    /// Returns whether an eviction in progress continues: memory use is not yet below the limit by `EVICTION_SHARE`.
    pub(super) const fn is_too_full(&self) -> bool {
        self.used > self.limit - self.limit / EVICTION_SHARE
    }

    /// Returns whether memory use exceeds the share for pages that were never requested.
    pub(super) const fn is_full_of_unrequested(&self) -> bool {
        self.used > self.limit / UNREQUESTED_SHARE
    }

    /// Returns the number of tenants with pages in memory.
    pub(super) fn tenants(&self) -> usize {
        self.pages.len()
    }

    /// Returns the tenants that use the most memory with their bytes, at most `count`, the largest first.
    pub(super) fn largest(&self, count: usize) -> Vec<(&TenantId, usize)> {
        let largest = self.sizes.iter().take(count);
        largest.map(|(Reverse(bytes), id)| (id, *bytes)).collect()
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
            image_bytes: bytes / 2,
            is_requested,
            last_request,
        }
    }

    #[test]
    fn pages_are_evicted_in_the_order_of_their_last_requests() {
        let mut budget = MemoryBudget::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        budget.measure(measured("requested", 3, true, now));
        budget.measure(measured("requested-later", 4, true, later));
        budget.measure(measured("never", 5, false, later));
        assert_eq!(budget.used, 12);
        let mut order = Vec::new();
        let mut place = None;
        while let Some(next) = budget.next_after(place.as_ref()) {
            order.push(next.2.to_string());
            place = Some(next.clone());
        }
        assert_eq!(order, ["never", "requested", "requested-later"]);
    }

    #[test]
    fn measurement_replaces_the_previous_measurement() {
        let mut budget = MemoryBudget::default();
        let now = Instant::now();
        budget.measure(measured("one", 3, false, now));
        budget.measure(measured("one", 7, true, now));
        assert_eq!((budget.used, budget.tenants()), (7, 1));
        budget.measure(measured("one", 0, true, now));
        assert_eq!((budget.used, budget.tenants()), (0, 0));
        assert!(budget.next_after(None).is_none());
    }

    #[test]
    fn images_and_largest_tenants_are_known() {
        let now = Instant::now();
        let mut budget = MemoryBudget::default();
        for (name, bytes) in [("small", 4), ("large", 20), ("also-large", 20)] {
            budget.measure(measured(name, bytes, true, now));
        }
        assert_eq!((budget.used, budget.used_by_images), (44, 22));
        let names = |count| -> Vec<String> {
            let largest = budget.largest(count).into_iter();
            largest.map(|(id, _)| id.to_string()).collect()
        };
        assert_eq!(names(2), ["also-large", "large"]);
        assert_eq!(names(9).len(), 3);
        budget.remove(&TenantId::new("large").unwrap());
        assert_eq!((budget.used, budget.used_by_images), (24, 12));
    }
}
