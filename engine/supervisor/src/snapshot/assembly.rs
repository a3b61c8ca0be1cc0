//! Puts what is compiled together: a snapshot, the files that all hosts share, and the pictures that are still to be drawn.

use std::sync::Arc;

use content::name::TenantId;
use release::snapshot::Snapshot;
use render::Compiled;
use render::link::Deployment;

use crate::runner::registry::Registry;
use crate::snapshot::hosts::Part;

/// How many requests a tenant has had.
pub(crate) fn requests(compiled: &Compiled) -> u64 {
    let mut mounts = compiled.mounts.iter();
    let traffic = mounts.find_map(|placed| placed.mount.traffic.get());
    traffic.map_or(0, |traffic| traffic.latency().buckets.iter().sum())
}

impl Registry {
    /// The files that every host serves: those of every theme that is rendered with.
    pub(crate) fn share(&mut self) {
        let mut themes = self.themes.all();
        // A theme that stands in for its folder has files, too.
        let served = self.tenants.values();
        for served in served.filter_map(|tenant| tenant.lifecycle.served()) {
            let used = &served.inputs.inputs.templates;
            if !themes.iter().any(|theme| Arc::ptr_eq(theme, used)) {
                themes.push(Arc::clone(used));
            }
        }
        let secure = self.places.origin.is_secure();
        let time = (self.now, self.retention());
        self.shared.renew(themes, &self.islands, secure, time);
    }

    /// What is said to who comes by a name that nobody has: in the words of the root tenant, else of any theme.
    pub(crate) fn unknown_host(&self, root: Option<&TenantId>) -> Option<String> {
        let root = root.and_then(|root| self.tenants.get(root)?.site.as_deref());
        let own = root.and_then(|site| {
            let theme = self.themes.get(&site.manifest.theme)?;
            theme.unknown_host(site.manifest.language.as_str())
        });
        own.or_else(|| self.themes.all().first()?.unknown_host(""))
    }

    pub(crate) fn snapshot(&mut self, deployment: &Arc<Deployment>) -> Snapshot {
        let origin = &self.places.origin;
        let absent = self.absent();
        let parts: Vec<Part> = self
            .tenants
            .iter()
            .filter_map(|(id, tenant)| {
                Some(Part {
                    tenant: id.shared(),
                    compiled: Arc::clone(tenant.compiled()?),
                    replaced: Arc::clone(tenant.replaced.table()),
                })
            })
            .collect();
        let is_partial = parts.iter().any(|part| part.compiled.is_open());
        let assignment = self.addresses.assignment();
        let hosts = self.hosts.table(parts, &absent, deployment, assignment);
        let mut shared = Arc::clone(self.shared.served());
        for (path, file) in self.pinned_files() {
            if !shared.contains_key(path) {
                Arc::make_mut(&mut shared).insert(path.into(), Arc::clone(file));
            }
        }
        Snapshot {
            hosts,
            shared,
            is_partial,
            unknown_host: Some(render::unknown_host(
                self.unknown_host(deployment.root.as_ref()),
                origin.is_secure(),
            )),
        }
    }
}
