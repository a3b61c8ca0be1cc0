//! Puts what is compiled together: a snapshot, the files that all hosts share, and the pictures that are still to be drawn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use content::name::TenantId;
use content::report::Report;
use release::snapshot::{Resource, Snapshot};
use release::store::Store;
use render::Compiled;

use crate::model::tenant::Tenant as States;
use crate::model::world::World;
use crate::runner::catalog::Catalog;
use crate::runner::settings::Settings;
use crate::snapshot::dev;
use crate::snapshot::hosts::{Hosts, Part};
use crate::snapshot::replaced::{self, Retention};
use crate::snapshot::shared::Shared;

/// How many requests a tenant has had.
pub(crate) fn requests(compiled: &Compiled) -> u64 {
    let mut mounts = compiled.mounts.iter();
    let traffic = mounts.find_map(|placed| placed.mount.traffic.get());
    traffic.map_or(0, |traffic| traffic.latency().buckets.iter().sum())
}

/// Assembles snapshots, and holds what the next one shares with the last.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    pub(crate) shared: Shared,
    pub(crate) hosts: Hosts,
    /// The time that the last snapshot took to be assembled.
    pub(crate) took: Duration,
}

impl Publisher {
    /// Returns a snapshot of everything that is built.
    pub(crate) fn publish(
        &mut self,
        catalog: &mut Catalog,
        world: &World,
        settings: &Settings,
        store: Option<&Arc<Store>>,
    ) -> Snapshot {
        let begun = Instant::now();
        let retention = settings.retention(store);
        self.share(catalog, settings, retention);
        let replaced = catalog.tenants.values_mut();
        let replaced = replaced.map(|tenant| &mut tenant.replaced);
        replaced::prune_all(replaced, catalog.now, retention);
        let snapshot = self.assemble(catalog, world, settings);
        self.took = begun.elapsed();
        snapshot
    }

    /// Makes the files that every host serves: those of every theme that pages are rendered with.
    fn share(&mut self, catalog: &Catalog, settings: &Settings, retention: Retention) {
        let mut themes = catalog.themes.all();
        // A persisted theme that stands in for its folder has files, too.
        let served = catalog.tenants.values();
        for served in served.filter_map(|tenant| tenant.served.as_ref()) {
            let used = &served.made_from.inputs.templates;
            if !themes.iter().any(|theme| Arc::ptr_eq(theme, used)) {
                themes.push(Arc::clone(used));
            }
        }
        let time = (catalog.now, retention);
        let (islands, secure) = (&settings.islands, settings.is_secure());
        self.shared.renew(themes, islands, secure, time);
    }

    fn assemble(&mut self, catalog: &Catalog, world: &World, settings: &Settings) -> Snapshot {
        let origin = &settings.places.origin;
        let absent = dev::absent(catalog, settings);
        let is_published = |id: &TenantId| {
            let states = world.tenant(id.as_str());
            states.is_some_and(States::is_published)
        };
        let parts: Vec<Part> = catalog
            .tenants
            .iter()
            .filter(|(id, _)| is_published(id))
            .filter_map(|(id, tenant)| {
                Some(Part {
                    tenant: id.shared(),
                    compiled: Arc::clone(tenant.compiled()?),
                    replaced: Arc::clone(tenant.replaced.table()),
                })
            })
            .collect();
        let is_partial = parts.iter().any(|part| part.compiled.is_open());
        let assignment = catalog.addresses.assignment();
        let (hosts, root) = match &catalog.deployment {
            Some(deployment) => {
                let hosts = self.hosts.table(parts, &absent, deployment, assignment);
                (hosts, deployment.root.as_ref())
            }
            None => Default::default(),
        };
        let mut shared = Arc::clone(self.shared.served());
        for (path, file) in pinned_files(catalog) {
            if !shared.contains_key(path) {
                Arc::make_mut(&mut shared).insert(path.into(), Arc::clone(file));
            }
        }
        Snapshot {
            hosts,
            shared,
            is_partial,
            unknown_host: Some(render::unknown_host(
                unknown_host(catalog, root),
                origin.is_secure(),
            )),
        }
    }

    /// Returns the diagnostics of shared files and of hosts, where the program failed.
    pub(crate) fn report(&self) -> Report {
        let mut report = self.hosts.report.clone();
        report.extend(self.shared.failed.clone());
        report
    }
}

/// Returns the page for a host that no tenant has: in the language of the root tenant, else of any theme.
fn unknown_host(catalog: &Catalog, root: Option<&TenantId>) -> Option<String> {
    let root = root.and_then(|root| catalog.tenants.get(root)?.content.site.as_deref());
    let own = root.and_then(|site| {
        let theme = catalog.themes.get(&site.manifest.theme)?;
        theme.unknown_host(site.manifest.language.as_str())
    });
    own.or_else(|| catalog.themes.all().first()?.unknown_host(""))
}

/// Returns the shared files that pinned releases name.
fn pinned_files(catalog: &Catalog) -> impl Iterator<Item = (&str, &Arc<Resource>)> {
    let pinned = catalog.tenants.values();
    let pinned = pinned.filter_map(|tenant| tenant.recorded.pinned.as_ref());
    pinned.flat_map(|pinned| pinned.shared.iter().map(|(path, file)| (&**path, file)))
}
