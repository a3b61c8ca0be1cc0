//! Puts what is compiled together: a snapshot, the files that all hosts share, and the pictures that are still to be drawn.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;
use tracing::warn;

use content::address::Address;
use content::name::TenantId;
use release::snapshot::{HostEntry, Snapshot};
use render::Compiled;
use render::link::Deployment;
use render::picture::Undrawn;

use super::registry::Registry;

/// The part of memory for pictures of tenants that nobody has asked for.
const PICTURES: usize = 16;

/// How many requests a tenant has had.
pub(super) fn requests(compiled: &Compiled) -> u64 {
    let mut mounts = compiled.mounts.iter();
    let traffic = mounts.find_map(|placed| placed.mount.traffic.get());
    traffic.map_or(0, |traffic| traffic.latency().buckets.iter().sum())
}

impl Registry {
    /// The files that every host serves: those of every theme that is rendered with.
    pub(super) fn share(&mut self) {
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
        let failed = self.shared.renew(themes, &self.islands, secure, self.now);
        self.notes.extend(failed);
    }

    /// What is said to who comes by a name that nobody has: in the words of the root tenant, else of any theme.
    pub(super) fn unknown_host(&self, root: Option<&TenantId>) -> Option<String> {
        let root = root.and_then(|root| self.tenants.get(root)?.site.as_deref());
        let own = root.and_then(|site| {
            let theme = self.themes.get(&site.manifest.theme)?;
            theme.unknown_host(site.manifest.language.as_str())
        });
        own.or_else(|| self.themes.all().first()?.unknown_host(""))
    }

    /// Some of the pictures that the last snapshot has open slots for, those first whose tenants somebody has asked for. The others are drawn as long as there is room. Until they are drawn their addresses answer 404, which nobody who reads a page comes to see.
    pub fn undrawn(&mut self) -> Vec<Undrawn> {
        let secure = self.places.origin.is_secure();
        let awake = self.tenants.values().filter_map(|tenant| tenant.compiled());
        let awake = awake.filter(|compiled| !compiled.is_open()).cloned();
        let (asked, unasked): (Vec<_>, Vec<_>) = awake.partition(|compiled| requests(compiled) > 0);
        let room = self.memory.map(|memory| memory / PICTURES);
        self.hosts.undrawn(&asked, &unasked, room, secure)
    }

    /// Draws them all, into the last snapshot.
    pub fn draw(&mut self) {
        loop {
            let undrawn = self.undrawn();
            if undrawn.is_empty() {
                return;
            }
            undrawn.into_par_iter().for_each(|picture| {
                if let Err(problem) = picture.draw() {
                    warn!(problem, "a picture cannot be drawn");
                }
            });
        }
    }

    pub(super) fn compiled(&self) -> Vec<Arc<Compiled>> {
        let compiled = self.tenants.values();
        compiled
            .filter_map(|tenant| tenant.compiled().cloned())
            .collect()
    }

    pub(super) fn snapshot(&mut self, deployment: &Arc<Deployment>) -> Snapshot {
        let tenants = self.compiled();
        let origin = &self.places.origin;
        let absent = self.absent();
        let mut routes = self
            .hosts
            .routes(&tenants, &absent, deployment, self.addresses.owners());
        for tenant in self.tenants.values() {
            let mounts = tenant
                .compiled()
                .into_iter()
                .flat_map(|compiled| &compiled.mounts);
            for Address { host, prefix, .. } in mounts.map(|placed| &placed.address) {
                let Some(routes) = routes.get_mut(host.as_str()) else {
                    continue;
                };
                for (path, resource) in tenant.replaced.files() {
                    let path = format!("{prefix}{path}").into_boxed_str();
                    let place = routes.files.entry(path);
                    place.or_insert_with(|| Arc::clone(resource));
                }
            }
        }
        let mut hosts: HashMap<Box<str>, HostEntry> = routes
            .into_iter()
            .map(|(host, routes)| (host.into(), HostEntry::Site(Arc::new(routes))))
            .collect();
        let labels = std::iter::once("www").chain(deployment.root.as_ref().map(TenantId::as_str));
        if let Some(home) = render::moved_to(origin, deployment.root.as_ref()) {
            for label in labels {
                let host = format!("{label}.{}", origin.domain());
                hosts
                    .entry(host.into())
                    .or_insert_with(|| HostEntry::Moved(home.clone()));
            }
        }
        let mut shared = Arc::clone(self.shared.served());
        for (path, file) in self.pinned_files() {
            if !shared.contains_key(path) {
                Arc::make_mut(&mut shared).insert(path.into(), Arc::clone(file));
            }
        }
        Snapshot {
            hosts,
            shared,
            is_partial: tenants.iter().any(|tenant| tenant.is_open()),
            unknown_host: Some(render::unknown_host(
                self.unknown_host(deployment.root.as_ref()),
                origin.is_secure(),
            )),
        }
    }
}
