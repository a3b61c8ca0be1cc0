//! What is known of the releases of a tenant: what was recorded last, what changed since, and which one is pinned.
//!
//! **Invariant:** plain values; knows neither the disk nor other tenants.

use std::collections::BTreeSet;
use std::sync::Arc;

use release::snapshot::ResourceTable;
use render::link::Deployment;
use render::template::Templates;
use render::{Compiled, Inputs};

/// What is known of the releases of a tenant.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// What the last one was made from, other than the folder, and the key of what it answers.
    pub(super) last: Option<(Arc<Templates>, Arc<Deployment>, [u8; 32])>,
    /// The files that changed since.
    pub(super) changed: BTreeSet<String>,
    /// Whether something was rendered that is not recorded.
    pub(super) is_due: bool,
    /// The release that is served, whatever the folder says.
    pub(super) pinned: Option<Pinned>,
}

impl Recorded {
    /// Says what was recorded last.
    pub(super) fn set_last(&mut self, inputs: &Inputs, answers: [u8; 32]) {
        let parts = (&inputs.templates, &inputs.deployment);
        self.last = Some((Arc::clone(parts.0), Arc::clone(parts.1), answers));
    }
}

/// A release that is served in the place of what the folder says.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) number: u64,
    pub(super) compiled: Arc<Compiled>,
    /// The files that all tenants shared at the time.
    pub(super) shared: ResourceTable,
}
