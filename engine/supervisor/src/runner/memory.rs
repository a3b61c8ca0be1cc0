//! Measures the memory that pages take. The world evicts pages that were never requested first, then the least recently requested.
//!
//! Pages of a tenant with errors stay: nothing could render them again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use release::snapshot::resources::ResourceWalk;
use release::snapshot::{Body, Pages, Resource};
use render::{Compiled, PlacedMount};
use server::admin::status::StoreStatus;

use crate::model::event::{Event, Measured};
use crate::runner::registry::Registry;
use crate::runner::round::Round;
use crate::runner::tenant::TenantData;
use crate::state::releases::QUEUED;

/// The bytes of an evicted tenant beside its content: addresses, manifest, titles, diagnostics. Measured with 10,000 of them.
const EVICTED_TENANT_BYTES: usize = 32 << 10;

/// The part of the memory that pages may always take, however many tenants there are.
const MIN_PAGES_SHARE: usize = 8;

/// The time between two measurements while requests bring in more pages than there is room for.
const URGENT_INTERVAL: Duration = Duration::from_millis(200);

/// The number of tenants that the background renders before memory is measured.
const BACKGROUND_BATCH: usize = 64;

/// Returns the bytes that a tenant takes without its pages.
fn evicted_bytes(data: &TenantData) -> usize {
    EVICTED_TENANT_BYTES
        + data
            .content
            .packed
            .as_ref()
            .map_or(0, |packed| packed.len())
}

/// Measures memory every second, or sooner where pages take much more than the limit.
pub(crate) fn measure_when_due(registry: &mut Registry, now: Timestamp) {
    let measured = registry.demands.measured;
    let is_urgent = registry.world.is_over_budget() && measured.is_before(URGENT_INTERVAL);
    if measured.is_over() || is_urgent {
        measure(registry, now);
    }
}

/// Measures memory, and has pages evicted that there is no room for.
pub(crate) fn measure(registry: &mut Registry, now: Timestamp) {
    let begun = Instant::now();
    let tenants = &mut registry.catalog.tenants;
    let limit = registry.settings.memory.map_or(usize::MAX, |memory| {
        let evicted = tenants.values().map(evicted_bytes).sum();
        memory.saturating_sub(evicted).max(memory / MIN_PAGES_SHARE)
    });
    let mut pages = Vec::new();
    for (id, tenant) in tenants {
        tenant.look();
        let bytes = tenant.bytes();
        let Some(compiled) = tenant.rendered().filter(|_| bytes > 0) else {
            continue;
        };
        let is_requested = tenant.is_asked();
        let images = match is_requested {
            true => registry.publisher.hosts.bytes_of(&compiled.pictures),
            false => 0,
        };
        pages.push(Measured {
            tenant: id.clone(),
            bytes: bytes + images,
            is_requested,
            last_request: tenant.used_at(),
            is_waiting: registry.workers.is_wanted(id),
        });
    }
    registry.demands.tenants = pages.len();
    registry.demands.measured = Round::since(begun);
    registry.handle(Event::Measured { limit, pages }, now);
    admit_background(registry);
}

/// Lets the background render more tenants, unless the disk falls behind: releases that wait to be recorded are in memory.
pub(crate) fn admit_background(registry: &Registry) {
    if registry.store().map_or(0, |store| store.queued()) < QUEUED {
        registry.workers.allow(BACKGROUND_BATCH);
    }
}

/// Returns the use of memory and disk.
pub(crate) fn store_status(registry: &Registry) -> StoreStatus {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let store = registry.store();
    let (disk_blobs, disk_bytes) = store.map_or((0, 0), |store| store.usage());
    StoreStatus {
        memory_bytes: number(registry.world.memory_used()),
        memory_limit: registry.settings.memory.map(number),
        tenants: number(registry.demands.tenants),
        evictions: registry.demands.evictions,
        recalls: registry.demands.restored,
        disk_blobs,
        disk_bytes,
        queued: store.map_or(0, |store| number(store.queued())),
        panics: store.map_or(0, |store| store.panics()),
        is_failing: store.is_some_and(|store| store.failing_job().is_some()),
    }
}

/// The bytes of the pages of a tenant that are in memory, each once.
pub(crate) fn bytes_of(compiled: &Compiled) -> usize {
    let mut seen = HashSet::new();
    let pages = || compiled.mounts.iter().filter_map(PlacedMount::pages);
    let mut walk = ResourceWalk::default();
    let found = pages().flat_map(|pages| walk.visit(&pages.resources));
    let found = found.map(|(_, resource)| resource);
    found
        .chain(pages().flat_map(error_pages))
        .filter_map(|resource| match &**resource {
            Resource::Body(body) => Some(body),
            Resource::Redirect(_) => None,
        })
        .flat_map(|body: &Body| body.variants.iter())
        .filter_map(|variant| variant.bytes.in_memory())
        .filter(|bytes| seen.insert(bytes.as_ptr()))
        .map(Bytes::len)
        .sum()
}

fn error_pages(pages: &Pages) -> impl Iterator<Item = &Arc<Resource>> {
    let not_found = pages.not_found.iter().map(|(_, page)| page);
    not_found.chain([&pages.method_not_allowed])
}
