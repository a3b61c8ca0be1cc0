//! The requests for tenants, and the work that these requests need.
//!
//! **Invariant:** plain values without decisions.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use content::name::TenantId;
use render::CompiledTenant;

use crate::jobs::shared_encodings::TenantSearch;
use crate::runner::memory::full_pass::FullPass;

/// A shared set of tenant names. Requests add names, and the event loop removes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TenantNames(Arc<Mutex<BTreeSet<String>>>);

impl TenantNames {
    /// Adds a tenant. Returns whether the name is new.
    pub(crate) fn add(&self, id: &str) -> bool {
        let mut names = self.locked();
        !names.contains(id) && names.insert(id.to_owned())
    }

    /// Removes and returns all names.
    pub(crate) fn drain(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.locked())
    }

    pub(crate) fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shared set of Markdown forms that requests wait for: the tenant and the path below its addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct MarkdownPaths(Arc<Mutex<BTreeSet<(String, String)>>>);

impl MarkdownPaths {
    /// Adds a path. Returns whether the path is new.
    pub(crate) fn add(&self, id: &str, path: &str) -> bool {
        self.locked().insert((id.to_owned(), path.to_owned()))
    }

    /// Removes and returns all paths.
    pub(crate) fn drain(&self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut *self.locked())
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests for one tenant, as far as they were noticed.
#[derive(Debug)]
pub(crate) struct TenantDemand {
    /// The number of requests at the last check.
    pub(crate) requests: u64,
    /// The time at which a check last found new requests.
    pub(crate) since: Instant,
    /// The number of requests at the last eviction.
    pub(crate) requests_at_eviction: u64,
    /// Whether a request waits for one of its images.
    pub(crate) is_wanted: bool,
    /// The pages for which all images and best encodings are made.
    pub(crate) finished: Weak<CompiledTenant>,
    /// The search for the best encodings of its pages in the bucket of a fleet.
    pub(crate) encodings: Option<TenantSearch>,
    /// The pages that were last measured, and their bytes. The bytes grow only with requests.
    pub(crate) pages: (Weak<CompiledTenant>, usize),
}

impl Default for TenantDemand {
    fn default() -> Self {
        Self {
            requests: 0,
            since: Instant::now(),
            requests_at_eviction: 0,
            is_wanted: false,
            finished: Weak::new(),
            encodings: None,
            pages: (Weak::new(), 0),
        }
    }
}

impl TenantDemand {
    /// Notes the eviction of the tenant, so that earlier requests no longer count.
    pub(crate) fn note_eviction(&mut self) {
        self.requests_at_eviction = self.requests;
        self.is_wanted = false;
    }
}

/// The tenants that need work because of requests.
#[derive(Debug)]
pub(crate) struct DemandQueues {
    /// The tenants with an image that a request waits for.
    pub(crate) images: TenantNames,
    /// The Markdown forms that requests wait for.
    pub(crate) markdown: MarkdownPaths,
    /// The last order of images and encodings.
    pub(crate) ordered: FullPass,
    /// The last measurement of memory.
    pub(crate) measured: FullPass,
    /// The tenants whose images or encodings are ordered from the background.
    pub(crate) ordered_tenants: Vec<TenantId>,
    /// The tenants that were requested since the last measurement.
    pub(crate) requested: TenantNames,
    /// The tenants whose pages have changed since the last measurement.
    pub(crate) changed: BTreeSet<TenantId>,
    /// The tenants whose images or encodings may be incomplete.
    pub(crate) incomplete: BTreeSet<TenantId>,
    /// The number of evictions.
    pub(crate) evictions: u64,
    /// The number of times that pages were restored instead of rendered.
    pub(crate) restored: u64,
}

impl Default for DemandQueues {
    fn default() -> Self {
        Self {
            images: TenantNames::default(),
            markdown: MarkdownPaths::default(),
            ordered: FullPass::new(),
            measured: FullPass::new(),
            ordered_tenants: Vec::new(),
            requested: TenantNames::default(),
            changed: BTreeSet::new(),
            incomplete: BTreeSet::new(),
            evictions: 0,
            restored: 0,
        }
    }
}
