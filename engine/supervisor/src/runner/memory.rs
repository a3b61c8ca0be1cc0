//! Measures the memory use of pages, from which the world decides on evictions.
//!
//! Pages of a tenant with errors stay, because they could not be rendered again.

pub(crate) mod demand;
pub(crate) mod full_pass;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use content::name::TenantId;
use jiff::Timestamp;
use release::snapshot::resources::ResourceWalk;
use release::snapshot::{Body, MountPages, Resource};
use render::{AddressMount, CompiledTenant};
use server::admin::status::{MemoryStatus, StateStatus, StoreStatus};

use crate::model::event::{Event, MeasuredPages};
use crate::runner::catalog::Catalog;
use crate::runner::memory::full_pass::FullPass;
use crate::runner::registry::Registry;
use crate::state::releases::queue_room;

/// The bytes of an evicted tenant without its content: addresses, manifest, titles, diagnostics. Measured with 10,000 tenants.
const EVICTED_TENANT_BYTES: usize = 32 << 10;

/// A divisor of the memory limit: pages may always use `memory / MIN_PAGES_SHARE`, however many tenants there are.
const MIN_PAGES_SHARE: usize = 8;

/// The shortest time between two measurements while pages exceed the limit by far.
const URGENT_INTERVAL: Duration = Duration::from_millis(200);

/// The number of tenants whose memory use is reported.
const MAX_LARGEST: usize = 20;

/// The number of tenants that the background renders before memory is measured.
const BACKGROUND_BATCH_JOBS: usize = 64;

/// Measures memory every second, or sooner if pages exceed the limit by far.
pub(crate) fn measure_when_due(registry: &mut Registry, now: Timestamp) {
    let measured = registry.demands.measured;
    let is_urgent = registry.world.is_over_budget() && measured.began_before(URGENT_INTERVAL);
    if measured.is_due() || is_urgent {
        measure(registry, now);
    }
}

/// Measures the memory of tenants that were requested or have changed, and reports it to the world, which evicts pages beyond the limit.
pub(crate) fn measure(registry: &mut Registry, now: Timestamp) {
    let begun = Instant::now();
    let catalog = &mut registry.catalog;
    let limit = registry.settings.memory.map_or(usize::MAX, |memory| {
        let evicted = evicted_bytes(catalog);
        memory.saturating_sub(evicted).max(memory / MIN_PAGES_SHARE)
    });
    let demands = &mut registry.demands;
    let mut ids = std::mem::take(&mut demands.changed);
    let requested = demands.requested.drain();
    ids.extend(requested.iter().filter_map(|id| TenantId::new(id).ok()));
    let mut pages = Vec::new();
    for id in ids {
        let Some(tenant) = catalog.tenants.get_mut(&id) else {
            continue;
        };
        tenant.update_demand();
        let bytes = tenant.bytes();
        let is_requested = tenant.is_requested();
        let images = match tenant.rendered() {
            Some(compiled) if is_requested && bytes > 0 => {
                registry.publisher.hosts.bytes_of(&compiled.images)
            }
            _ => 0,
        };
        if tenant.incomplete_release().is_some() {
            demands.incomplete.insert(id.clone());
        }
        pages.push(MeasuredPages {
            tenant: id,
            bytes: bytes + images,
            image_bytes: images,
            is_requested,
            last_request: tenant.last_request(),
        });
    }
    demands.measured = FullPass::since(begun);
    let waiting = registry.job_pool.wanted();
    let measured = Event::Measured {
        limit,
        pages,
        waiting,
    };
    registry.handle(measured, now);
    admit_background(registry);
}

/// Allows the background to render more tenants, unless the disk falls behind: releases that wait to be recorded are in memory.
pub(crate) fn admit_background(registry: &Registry) {
    if registry.store().is_none_or(|store| queue_room(store) > 0) {
        registry.job_pool.allow_background(BACKGROUND_BATCH_JOBS);
    }
}

/// Returns the bytes of all tenants without their content.
fn evicted_bytes(catalog: &Catalog) -> usize {
    catalog.tenants.len() * EVICTED_TENANT_BYTES + catalog.packed_bytes
}

/// Returns the memory of the parts that grow.
pub(crate) fn memory_status(registry: &Registry) -> MemoryStatus {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (pages_and_images, _) = registry.world.memory_used();
    let images = registry.world.images_used();
    let queue = registry.job_pool.memory();
    let largest = registry.world.largest(MAX_LARGEST).into_iter();
    MemoryStatus {
        pages: number(pages_and_images.saturating_sub(images)),
        images: number(images),
        tenant_data: number(evicted_bytes(&registry.catalog)),
        work: queue.held,
        work_limit: queue.limit,
        queued_jobs: number(queue.jobs),
        largest: largest
            .map(|(id, bytes)| (id.as_str().into(), number(bytes)))
            .collect(),
    }
}

/// Returns the use of memory and disk.
pub(crate) fn store_status(registry: &Registry) -> StoreStatus {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let store = registry.store();
    let (memory_bytes, tenants) = registry.world.memory_used();
    let (disk_blobs, disk_bytes) = store.map_or((0, 0), |store| store.usage());
    StoreStatus {
        memory_bytes: number(memory_bytes),
        memory_limit: registry.settings.memory.map(number),
        tenants: number(tenants),
        evictions: registry.demands.evictions,
        recalls: registry.demands.restored,
        disk_blobs,
        disk_bytes,
        queued: store.map_or(0, |store| number(store.queued())),
        state: store.map(|store| StateStatus {
            problem: store.problem(),
            failures: store.failures(),
            queued_bytes: store.queued_bytes(),
        }),
        panics: store.map_or(0, |store| store.panics()),
        is_failing: store.is_some_and(|store| store.failing_job().is_some()),
    }
}

/// Returns the bytes of the tenant's pages that are in memory. Shared bytes count once.
pub(crate) fn bytes_of(compiled: &CompiledTenant) -> usize {
    let mut seen = HashSet::new();
    let pages = || compiled.mounts.iter().filter_map(AddressMount::pages);
    let mut walk = ResourceWalk::default();
    let found = pages().flat_map(|pages| walk.visit(&pages.resources));
    let found = found.map(|(_, resource)| resource);
    found
        .chain(pages().flat_map(error_pages))
        .chain(pages().flat_map(markdown_forms))
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

/// Returns the Markdown forms that were requested.
fn markdown_forms(pages: &MountPages) -> impl Iterator<Item = &Arc<Resource>> {
    let slots = pages.resources.markdown().values();
    slots.filter_map(|slot| slot.get())
}

fn error_pages(pages: &MountPages) -> impl Iterator<Item = &Arc<Resource>> {
    let errors = pages.not_found.iter().chain(&pages.method_not_allowed);
    errors.map(|(_, page)| page)
}
