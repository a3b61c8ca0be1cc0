//! Orders background jobs for requested tenants: the Markdown forms of their pages, their images, and the best encodings of their pages.
//!
//! These jobs take longer than all other work. On a server of ten thousand tenants, few of which have visitors at a time, most tenants do not need them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use tracing::warn;

use render::{CompiledTenant, CompressTask};

use crate::runner::catalog::tenant::TenantData;
use crate::runner::memory::bytes_of;
use crate::runner::memory::full_pass::FullPass;
use crate::runner::registry::Registry;
use crate::runner::threads::background::BackgroundJob;
use crate::runner::threads::background::encoding_source::EncodingSource;

/// The limit on jobs in one order.
const MAX_ORDERED_JOBS: usize = 64;

/// The limit on tenants for whose encodings this replica searches at the same time.
pub(crate) const MAX_SEARCHES: usize = 16;

impl TenantData {
    /// Updates the number of requests, and the time at which a check last found new requests.
    pub(crate) fn update_demand(&mut self) {
        let compiled = self.compiled();
        let mut mounts = compiled.iter().flat_map(|compiled| &compiled.mounts);
        let traffic = mounts.find_map(|placed| placed.mount.traffic.get());
        let requests = traffic.map_or(0, |traffic| traffic.rearm());
        if requests != self.demand.requests {
            self.demand.requests = requests;
            self.demand.since = Instant::now();
        }
    }

    /// Returns whether the tenant was requested since its last eviction, or a request waits for one of its images.
    ///
    /// The counters are compared for inequality, because the counters of a tenant that was removed and added again start at zero.
    pub(crate) const fn is_requested(&self) -> bool {
        self.demand.is_wanted || self.demand.requests != self.demand.requests_at_eviction
    }

    /// Returns the bytes of its pages that are in memory. Call [`Self::update_demand`] first.
    pub(crate) fn bytes(&mut self) -> usize {
        let (is_requested, (known, bytes)) = (self.is_requested(), &self.demand.pages);
        let Some(compiled) = self.rendered() else {
            return 0;
        };
        if !is_requested && std::ptr::eq(known.as_ptr(), Arc::as_ptr(compiled)) {
            return *bytes;
        }
        let bytes = bytes_of(compiled);
        self.demand.pages = (Arc::downgrade(compiled), bytes);
        bytes
    }

    /// Returns the time at which a check last found new requests.
    pub(crate) const fn last_request(&self) -> Instant {
        self.demand.since
    }

    /// Returns the current release if it was requested and some of its images or encodings are not made yet.
    pub(crate) fn incomplete_release(&self) -> Option<&Arc<CompiledTenant>> {
        let compiled = self.compiled().filter(|_| self.is_requested())?;
        let is_finished = std::ptr::eq(self.demand.finished.as_ptr(), Arc::as_ptr(compiled));
        (!is_finished && !compiled.is_open()).then_some(compiled)
    }
}

/// Returns jobs that make images and encodings of requested tenants. Checks every second, and at once if a request waits.
pub(crate) fn order(registry: &mut Registry) -> Vec<BackgroundJob> {
    let mut jobs = markdown_jobs(registry);
    let is_wanted = mark_wanted(registry) || !jobs.is_empty();
    let is_due = is_wanted || registry.demands.ordered.is_due();
    if !is_due || (registry.demands.incomplete.is_empty() && jobs.is_empty()) {
        return Vec::new();
    }
    let begun = Instant::now();
    jobs.extend(next_jobs(registry));
    registry.demands.ordered = FullPass::since(begun);
    jobs
}

/// Returns jobs that make the Markdown forms that requests wait for. A request that still waits later asks again.
fn markdown_jobs(registry: &Registry) -> Vec<BackgroundJob> {
    let wanted = registry.demands.markdown.drain();
    let tasks = wanted.iter().filter_map(|(id, path)| {
        let tenant = registry.catalog.tenants.get(id.as_str())?;
        tenant.compiled()?.markdown_task(path)
    });
    tasks.map(BackgroundJob::from).collect()
}

/// Marks the tenants with an image that a request waits for. Returns whether there are any.
fn mark_wanted(registry: &mut Registry) -> bool {
    let tenants = &mut registry.catalog.tenants;
    let incomplete = &mut registry.demands.incomplete;
    let mut is_wanted = false;
    registry.demands.images.locked().retain(|name| {
        let Some((id, compiled)) = (tenants.get_key_value(name.as_str()))
            .and_then(|(id, tenant)| Some((id.clone(), tenant.compiled()?)))
        else {
            return tenants.contains_key(name.as_str());
        };
        let is_there = !compiled.is_open();
        if is_there {
            is_wanted = true;
            if let Some(tenant) = tenants.get_mut(name.as_str()) {
                tenant.demand.is_wanted = true;
            }
            incomplete.insert(id);
        }
        !is_there
    });
    is_wanted
}

/// Returns the next jobs: first the images that a request waits for. Once all tenants are rendered, other images follow, then encodings.
fn next_jobs(registry: &mut Registry) -> Vec<BackgroundJob> {
    let hosts = &registry.publisher.hosts;
    let is_secure = registry.settings.config.origin.is_secure();
    let shared = registry.settings.shared_releases.as_deref();
    let mut searches = count_searches(registry);
    let (mut images, mut encodings) = (Vec::new(), Vec::new());
    let mut named = HashSet::new();
    let is_busy = registry.job_pool.has_background();
    let mut complete = Vec::new();
    for id in &registry.demands.incomplete {
        let Some(tenant) = registry.catalog.tenants.get_mut(id) else {
            complete.push(id.clone());
            continue;
        };
        let Some(compiled) = tenant.incomplete_release().map(Arc::clone) else {
            tenant.demand.encodings = None;
            complete.push(id.clone());
            continue;
        };
        if is_busy && !tenant.demand.is_wanted {
            continue;
        }
        let mut tasks = hosts.image_tasks(&compiled, is_secure);
        // Tenants with equal images share one.
        tasks.retain(|image| named.insert(image.digest()));
        let mut unimproved = compiled.compress_tasks().peekable();
        let is_improved = unimproved.peek().is_none();
        if is_improved {
            tenant.share_encodings(&compiled, shared);
        }
        if tasks.is_empty() && is_improved {
            tenant.demand.finished = Arc::downgrade(&compiled);
            tenant.demand.is_wanted = false;
            complete.push(id.clone());
            continue;
        }
        let ordered = encodings.len();
        if !is_busy && !is_improved {
            let has_search = tenant.demand.encodings.is_some();
            let may_search = has_search || searches < MAX_SEARCHES;
            match tenant.encoding_source(&compiled, shared, may_search) {
                EncodingSource::Make => {
                    let room = MAX_ORDERED_JOBS.saturating_sub(ordered);
                    encodings.extend(unimproved.take(room).map(BackgroundJob::from));
                }
                EncodingSource::Reuse(packed) => {
                    encodings.push(BackgroundJob::reusing(Arc::clone(&compiled), packed));
                }
                EncodingSource::Wait => {}
            }
            searches += usize::from(!has_search && tenant.demand.encodings.is_some());
        }
        // A tenant that waits for another replica would be added every second.
        if !tasks.is_empty() || encodings.len() > ordered {
            registry.demands.ordered_tenants.push(id.clone());
        }
        let place = match tenant.demand.is_wanted {
            true => 0,
            false => images.len(),
        };
        images.splice(place..place, tasks);
        if images.len() >= MAX_ORDERED_JOBS {
            break;
        }
    }
    for id in complete {
        registry.demands.incomplete.remove(&id);
    }
    let images = images.into_iter().map(BackgroundJob::from);
    let jobs = images.chain(encodings);
    jobs.take(MAX_ORDERED_JOBS).collect()
}

/// Returns the number of searches for encodings in the bucket of a fleet.
fn count_searches(registry: &Registry) -> usize {
    if registry.settings.shared_releases.is_none() {
        return 0;
    }
    let incomplete = registry.demands.incomplete.iter();
    let tenants = incomplete.filter_map(|id| registry.catalog.tenants.get(id));
    let searching = tenants.filter(|tenant| tenant.demand.encodings.is_some());
    searching.count()
}

/// Renders all images of the last snapshot.
pub(crate) fn render_images(registry: &Registry) {
    let is_secure = registry.settings.config.origin.is_secure();
    let tenants = registry.catalog.tenants.values();
    let tasks = tenants
        .filter_map(|tenant| tenant.compiled())
        .flat_map(|compiled| registry.publisher.hosts.image_tasks(compiled, is_secure));
    // Tenants with equal images share one, which is stored in the cache of the first tenant.
    let mut named = HashSet::new();
    let tasks: Vec<_> = tasks.filter(|image| named.insert(image.digest())).collect();
    tasks.into_par_iter().for_each(|image| {
        if let Err(problem) = image.run() {
            warn!(problem, "image cannot be rendered; not retried");
        }
    });
}

/// Makes the best encodings of all pages of the last snapshot.
pub(crate) fn compress_fully(registry: &Registry) {
    let tenants = registry.catalog.tenants.values();
    let bodies: Vec<CompressTask> = tenants
        .filter_map(|tenant| tenant.compiled())
        .flat_map(|compiled| compiled.compress_tasks())
        .collect();
    bodies.into_par_iter().for_each(|body| body.improve());
}
