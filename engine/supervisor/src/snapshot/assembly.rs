//! Assembles snapshots from compiled tenants, the files that all hosts share, and slots for images that are not rendered yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use content::name::TenantId;
use content::report::Report;
use release::snapshot::{Resource, Snapshot};
use release::store::Store;
use render::Templates;

use crate::model::event::ChangeSet;
use crate::model::world::World;
use crate::runner::catalog::Catalog;
use crate::runner::settings::Settings;
use crate::snapshot::dev;
use crate::snapshot::hosts::{HostedTenant, Hosts};
use crate::snapshot::replaced::{self, ReplacedFiles, Retention};
use crate::snapshot::shared::SharedFiles;

/// Assembles snapshots, and holds the parts that consecutive snapshots share.
///
/// The cost of a snapshot depends on the changes since the last snapshot: unchanged tenants are not visited.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    pub(crate) shared: SharedFiles,
    pub(crate) hosts: Hosts,
    /// The theme of the current pages of each known tenant.
    themes: BTreeMap<TenantId, Option<Arc<Templates>>>,
    themes_in_use: ThemesInUse,
    /// The tenants at whose addresses requests wait.
    open: BTreeSet<TenantId>,
    pinned: BTreeSet<TenantId>,
    /// The tenants with files that older pages may still request.
    with_replaced: BTreeSet<TenantId>,
    /// Whether the last snapshot was not completed: no addresses were assigned yet, or a panic interrupted the assembly.
    is_behind: bool,
    /// The changes that the last snapshot contains.
    pub(crate) changes: ChangeSet,
    /// The time for assembling the last snapshot.
    pub(crate) took: Duration,
}

/// The themes that tenants are rendered with, each with its number of tenants.
#[derive(Debug, Default)]
struct ThemesInUse(Vec<(Arc<Templates>, usize)>);

impl ThemesInUse {
    fn add(&mut self, theme: &Arc<Templates>) {
        let mut known = self.0.iter_mut();
        match known.find(|(known, _)| Arc::ptr_eq(known, theme)) {
            Some((_, tenants)) => *tenants += 1,
            None => self.0.push((Arc::clone(theme), 1)),
        }
    }

    fn remove(&mut self, theme: &Arc<Templates>) {
        for (known, tenants) in &mut self.0 {
            if Arc::ptr_eq(known, theme) {
                *tenants -= 1;
            }
        }
        self.0.retain(|(_, tenants)| *tenants > 0);
    }
}

impl Publisher {
    /// Assembles a snapshot of all built tenants. `changes`: the changes since the last snapshot.
    ///
    /// Returns the snapshot, and the tenants whose replaced files have changed.
    pub(crate) fn publish(
        &mut self,
        changes: ChangeSet,
        catalog: &mut Catalog,
        world: &World,
        settings: &Settings,
        store: Option<&Arc<Store>>,
    ) -> (Snapshot, Vec<TenantId>) {
        let begun = Instant::now();
        let retention = settings.retention(store);
        let mut tenants = changes.tenants.clone();
        let affects_all = changes.affects_all || std::mem::replace(&mut self.is_behind, true);
        if affects_all {
            tenants.extend(self.themes.keys().cloned());
            tenants.extend(catalog.tenants.keys().cloned());
        }
        for id in &tenants {
            self.note(id, catalog);
        }
        self.share(catalog, settings, retention);
        let replaced = self.prune(&tenants, catalog, retention);
        tenants.extend(replaced.iter().cloned());
        let snapshot = self.assemble(&tenants, affects_all, catalog, world, settings);
        self.is_behind = catalog.deployment.is_none();
        self.changes = ChangeSet {
            affects_all,
            ..changes
        };
        self.took = begun.elapsed();
        (snapshot, replaced)
    }

    /// Records the theme of a tenant, and whether the tenant has a pinned release or replaced files.
    fn note(&mut self, id: &TenantId, catalog: &Catalog) {
        let tenant = catalog.tenants.get(id);
        let served = tenant.and_then(|tenant| tenant.served.as_ref());
        let theme = served.map(|served| &served.made_from.inputs.templates);
        if let Some(theme) = theme {
            self.themes_in_use.add(theme);
        }
        let before = match tenant {
            Some(_) => self.themes.insert(id.clone(), theme.cloned()),
            None => self.themes.remove(id),
        };
        if let Some(theme) = before.flatten() {
            self.themes_in_use.remove(&theme);
        }
        let is_pinned = tenant.is_some_and(|tenant| tenant.recorded.pinned.is_some());
        set(&mut self.pinned, id, is_pinned);
        let has_replaced = tenant.is_some_and(|tenant| !tenant.replaced.is_empty());
        set(&mut self.with_replaced, id, has_replaced);
    }

    /// Renders the files that every host serves: the files of all themes that are loaded or in use.
    fn share(&mut self, catalog: &Catalog, settings: &Settings, retention: Retention) {
        let mut themes = catalog.themes.all();
        // A persisted theme that replaces its folder has files, too.
        for (used, _) in &self.themes_in_use.0 {
            if !themes.iter().any(|theme| Arc::ptr_eq(theme, used)) {
                themes.push(Arc::clone(used));
            }
        }
        let time = (catalog.now, retention);
        let (islands, is_secure) = (&settings.islands, settings.is_secure());
        self.shared.update(themes, islands, is_secure, time);
    }

    /// Removes replaced files that are too old or beyond the limits. Returns the tenants whose replaced files have changed since the last snapshot.
    fn prune(
        &mut self,
        changed: &BTreeSet<TenantId>,
        catalog: &mut Catalog,
        retention: Retention,
    ) -> Vec<TenantId> {
        let tenants = &mut catalog.tenants;
        // Some limits apply to all tenants together, so that one call prunes all files.
        let mut taken: Vec<(&TenantId, ReplacedFiles)> = Vec::new();
        for id in &self.with_replaced {
            if let Some(tenant) = tenants.get_mut(id) {
                taken.push((id, std::mem::take(&mut tenant.replaced)));
            }
        }
        let all = taken.iter_mut().map(|(_, replaced)| replaced);
        replaced::prune_all(all, catalog.now, retention);
        for (id, replaced) in taken {
            if let Some(tenant) = tenants.get_mut(id) {
                tenant.replaced = replaced;
            }
        }
        let has_changed = |id: &&TenantId| {
            let tenant = tenants.get(*id);
            tenant.is_some_and(|tenant| tenant.replaced.has_changed())
        };
        let all = self.with_replaced.union(changed);
        let changed: Vec<TenantId> = all.filter(has_changed).cloned().collect();
        self.with_replaced.retain(|id| {
            tenants
                .get(id)
                .is_some_and(|tenant| !tenant.replaced.is_empty())
        });
        changed
    }

    fn assemble(
        &mut self,
        tenants: &BTreeSet<TenantId>,
        affects_all: bool,
        catalog: &Catalog,
        world: &World,
        settings: &Settings,
    ) -> Snapshot {
        let origin = &settings.config.origin;
        let access = catalog.addresses.access();
        let (mut hosts, mut root) = Default::default();
        if let Some(deployment) = &catalog.deployment {
            let parts = tenants.iter().map(|id| {
                let part = part(id, catalog, world);
                let is_open = part.as_ref().is_some_and(|part| part.compiled.is_open());
                set(&mut self.open, id, is_open);
                (id.shared(), part)
            });
            let parts = parts.collect();
            let owners = &catalog.addresses.assignment().owners;
            hosts = self
                .hosts
                .update(parts, affects_all, (deployment, &access), owners);
            let absent = dev::absent(catalog, settings);
            if !absent.is_empty() {
                hosts = Hosts::with_absent(&hosts, &absent);
            }
            root = deployment.root.as_ref();
        }
        let mut shared = Arc::clone(self.shared.served());
        for (path, file) in self.pinned_files(catalog) {
            if !shared.contains_key(path) {
                Arc::make_mut(&mut shared).insert(path.into(), Arc::clone(file));
            }
        }
        Snapshot {
            hosts,
            shared,
            is_partial: !self.open.is_empty(),
            unknown_host: Some(render::unknown_host(
                unknown_host(catalog, root),
                origin.is_secure(),
            )),
            traffic: self.hosts.traffic.clone(),
            access: (!access.is_open()).then_some(access),
        }
    }

    /// Returns the shared files that pinned releases reference.
    fn pinned_files<'c>(
        &self,
        catalog: &'c Catalog,
    ) -> impl Iterator<Item = (&'c str, &'c Arc<Resource>)> {
        let pinned = self.pinned.iter();
        let pinned = pinned.filter_map(|id| catalog.tenants.get(id)?.recorded.pinned.as_ref());
        pinned.flat_map(|pinned| pinned.shared.iter().map(|(path, file)| (&**path, file)))
    }

    /// Returns the diagnostics of panics in the rendering of shared files and of hosts' files.
    pub(crate) fn report(&self) -> Report {
        let mut report = self.hosts.report.clone();
        report.extend(self.shared.failed.clone());
        report
    }
}

/// Returns the pages and replaced files of a tenant, if the tenant is published. An unavailable tenant and a preview that is too old have their addresses only.
fn part(id: &TenantId, catalog: &Catalog, world: &World) -> Option<HostedTenant> {
    let tenant = catalog.tenants.get(id)?;
    let states = world.tenant(id.as_str())?;
    let compiled = tenant.compiled().filter(|_| states.is_published())?;
    let is_expired = states.is_expired();
    Some(match states.is_unavailable() || is_expired {
        true => HostedTenant {
            compiled: Arc::new(compiled.unavailable()),
            replaced: Arc::default(),
            is_expired,
        },
        false => HostedTenant {
            compiled: Arc::clone(compiled),
            replaced: Arc::clone(tenant.replaced.table()),
            is_expired,
        },
    })
}

/// Adds a tenant to a set, or removes the tenant.
fn set(tenants: &mut BTreeSet<TenantId>, id: &TenantId, is_in: bool) {
    if !is_in {
        tenants.remove(id);
    } else if !tenants.contains(id) {
        tenants.insert(id.clone());
    }
}

/// Returns the page for unknown hosts: in the theme and the language of the root tenant, or else in the first theme.
fn unknown_host(catalog: &Catalog, root: Option<&TenantId>) -> Option<String> {
    let root = root.and_then(|root| catalog.tenants.get(root)?.content.site.as_deref());
    let own = root.and_then(|site| {
        let theme = catalog.themes.get(&site.manifest.theme)?;
        theme.unknown_host(site.manifest.language.as_str())
    });
    own.or_else(|| catalog.themes.all().first()?.unknown_host(""))
}
