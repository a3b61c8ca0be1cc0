//! Puts the hosts together: each one's tenants by prefix, and the files around their pages.
//!
//! Pictures take longer to draw than everything else takes to compile, so that a snapshot has slots for them, which are filled while it is served.
//! The files are kept for as long as nothing that they say has changed: a saved page costs no new sitemap unless it comes, goes or changes its day.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use content::address::{Assignment, Owners};
use content::name::TenantId;
use content::report::Report;
use content::report::guard::guard;
use release::snapshot::{HostEntry, HostRoutes, ResourceTable};
use render::link::Deployment;
use render::picture::{PendingPictures, Picture, Undrawn};
use render::site_files::{HostFacts, host_files};
use render::{Compiled, PlacedMount};

/// Every host's routes and files, with what they were made from.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    deployment: Option<Arc<Deployment>>,
    files: BTreeMap<String, MadeFiles>,
    pending: PendingPictures,
    /// What was put together last.
    last: Option<Last>,
    /// Where the program failed.
    pub(super) report: Report,
}

/// A host's files and what they were made from, which is not noted where the program failed: they are made anew with the next change.
type MadeFiles = (Option<HostFacts>, ResourceTable);

/// All hosts, by name.
type HostTable = HashMap<Box<str>, HostEntry>;

/// What a tenant gives to its hosts.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) compiled: Arc<Compiled>,
    /// Files that older pages may still ask for.
    pub(super) replaced: Arc<ResourceTable>,
}

impl Part {
    /// Whether it gives the very same.
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled) && Arc::ptr_eq(&self.replaced, &other.replaced)
    }

    /// Whether it has the same addresses, and says the same for sitemaps.
    fn is_at_the_place_of(&self, other: &Self) -> bool {
        let addresses = |part: &Self| {
            let mounts = part.compiled.mounts.iter();
            let addresses =
                mounts.map(|placed| (placed.address.clone(), Arc::clone(&placed.mount.tenant)));
            addresses.collect::<Vec<_>>()
        };
        addresses(self) == addresses(other) && self.compiled.listing == other.compiled.listing
    }
}

/// Hosts, and what they were put together from.
#[derive(Debug)]
struct Last {
    parts: Vec<Part>,
    deployment: Arc<Deployment>,
    assignment: Arc<Assignment>,
    hosts: HostTable,
}

impl Hosts {
    /// Every host that serves tenants, the domain, and the names that only lead to it.
    ///
    /// Where tenants have other pages at the same addresses, and nothing else is new, only they are looked at: a saved page does not wait for all the others.
    pub(super) fn table(
        &mut self,
        parts: Vec<Part>,
        absent: &[PlacedMount],
        deployment: &Arc<Deployment>,
        assignment: &Arc<Assignment>,
    ) -> HostTable {
        let hosts = match self.last.take() {
            Some(last)
                if absent.is_empty()
                    && Arc::ptr_eq(&last.deployment, deployment)
                    && Arc::ptr_eq(&last.assignment, assignment)
                    && last.is_at_the_places_of(&parts) =>
            {
                self.changed(last, &parts)
            }
            _ => self.put_together(&parts, absent, deployment, &assignment.owners),
        };
        let table = hosts.clone();
        // Mounts of tenants that never were good are in no part.
        self.last = absent.is_empty().then(|| Last {
            parts,
            deployment: Arc::clone(deployment),
            assignment: Arc::clone(assignment),
            hosts,
        });
        table
    }

    /// The hosts of before, with what tenants have by now.
    fn changed(&mut self, last: Last, parts: &[Part]) -> HostTable {
        let mut hosts = last.hosts;
        let changed = last.parts.iter().zip(parts);
        for (before, now) in changed.filter(|(before, now)| !now.is(before)) {
            for placed in &now.compiled.mounts {
                let Some(HostEntry::Site(routes)) = hosts.get_mut(placed.address.host.as_str())
                else {
                    continue;
                };
                let routes = Arc::make_mut(routes);
                let prefix = placed.address.prefix.as_str();
                let own = match prefix {
                    "" => routes.root.as_mut(),
                    prefix => routes.prefixes.get_mut(prefix),
                };
                // An address may have been given to somebody else.
                if let Some(own) = own.filter(|own| own.tenant == placed.mount.tenant) {
                    *own = Arc::clone(&placed.mount);
                }
                for (path, resource) in &*before.replaced {
                    let path = format!("{prefix}{path}");
                    let file = routes.files.get(path.as_str());
                    if file.is_some_and(|file| Arc::ptr_eq(file, resource)) {
                        routes.files.remove(path.as_str());
                    }
                }
                add_replaced(routes, prefix, &now.replaced);
            }
            for picture in &before.compiled.pictures {
                if let Some(HostEntry::Site(routes)) = hosts.get_mut(picture.host.as_str()) {
                    Arc::make_mut(routes).pictures.remove(picture.path.as_str());
                }
            }
            for picture in &now.compiled.pictures {
                if let Some(HostEntry::Site(routes)) = hosts.get_mut(picture.host.as_str()) {
                    let path = picture.path.as_str().into();
                    let slot = self.pending.slot(picture);
                    Arc::make_mut(routes).pictures.insert(path, slot);
                }
            }
        }
        hosts
    }

    fn put_together(
        &mut self,
        parts: &[Part],
        absent: &[PlacedMount],
        deployment: &Arc<Deployment>,
        owners: &Owners,
    ) -> HostTable {
        let domain = deployment.origin.domain();
        let mut routes: BTreeMap<String, HostRoutes> = BTreeMap::new();
        let mut facts: BTreeMap<String, HostFacts> = BTreeMap::new();
        routes.entry(domain.to_owned()).or_default();
        // What is served may be older than who has what: an address that was given up is its new owner's.
        let is_owned = |placed: &&PlacedMount| {
            let address = format!("{}{}", placed.address.host, placed.address.prefix);
            let owner = owners.get(&address);
            owner.is_none_or(|owner| owner.as_str() == &*placed.mount.tenant)
        };
        let owned = |part: &Part| -> Vec<PlacedMount> {
            let mounts = part.compiled.mounts.iter();
            mounts.filter(is_owned).cloned().collect()
        };
        let owned: Vec<(&Part, Vec<PlacedMount>)> =
            parts.iter().map(|part| (part, owned(part))).collect();
        for placed in owned.iter().flat_map(|(_, mounts)| mounts) {
            place(
                placed,
                routes.entry(placed.address.host.clone()).or_default(),
            );
        }
        for placed in absent {
            let host = routes.entry(placed.address.host.clone()).or_default();
            if is_free(host, &placed.address.prefix) {
                place(placed, host);
            }
        }
        for host in routes.keys() {
            facts.insert(host.clone(), alone(host));
        }
        for (part, mounts) in &owned {
            let listing = &part.compiled.listing;
            for PlacedMount { address, .. } in mounts {
                // The domain stands for all tenants below it, whatever its root tenant prefers.
                if address.prefix.is_empty()
                    && address.host != domain
                    && let Some(facts) = facts.get_mut(&address.host)
                {
                    facts.canonical.clone_from(&listing.host);
                }
            }
            if let Some(facts) = facts.get_mut(&listing.host) {
                facts.listings.push(Arc::clone(listing));
            }
        }
        self.refresh(facts, deployment);
        for (host, routes) in &mut routes {
            if let Some((_, files)) = self.files.get(host) {
                routes.files.clone_from(files);
            }
        }
        for part in parts {
            for picture in &part.compiled.pictures {
                if let Some(host) = routes.get_mut(&picture.host) {
                    let path = picture.path.as_str().into();
                    host.pictures.insert(path, self.pending.slot(picture));
                }
            }
            if part.replaced.is_empty() {
                continue;
            }
            for PlacedMount { address, .. } in &part.compiled.mounts {
                if let Some(host) = routes.get_mut(&address.host) {
                    add_replaced(host, &address.prefix, &part.replaced);
                }
            }
        }
        let mut hosts: HostTable = routes
            .into_iter()
            .map(|(host, routes)| (host.into(), HostEntry::Site(Arc::new(routes))))
            .collect();
        let labels = std::iter::once("www").chain(deployment.root.as_ref().map(TenantId::as_str));
        if let Some(home) = render::moved_to(deployment) {
            for label in labels {
                let host = format!("{label}.{domain}");
                hosts
                    .entry(host.into())
                    .or_insert_with(|| HostEntry::Moved(home.clone()));
            }
        }
        hosts
    }

    /// The bytes of those of these pictures that are drawn.
    pub(super) fn bytes_of(&self, pictures: &[Picture]) -> usize {
        self.pending.bytes_of(pictures)
    }

    /// Lets pictures go; who is to show one has it drawn again.
    pub(super) fn forget(&mut self, pictures: &[Picture]) {
        pictures
            .iter()
            .for_each(|picture| self.pending.forget(picture));
    }

    /// Forgets the pictures that nothing shows.
    pub(super) fn prune_pictures(&mut self) {
        self.pending.prune();
    }

    /// What is still to be drawn for a tenant.
    pub(super) fn undrawn(&self, tenant: &Compiled, secure: bool) -> Vec<Undrawn> {
        self.pending.undrawn(tenant, secure)
    }

    fn refresh(&mut self, facts: BTreeMap<String, HostFacts>, deployment: &Arc<Deployment>) {
        let same_street = self
            .deployment
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, deployment));
        let mut before = std::mem::take(&mut self.files);
        self.report = Report::default();
        for (host, facts) in facts {
            let old = before.remove(&host).unwrap_or_default();
            if same_street && old.0.as_ref() == Some(&facts) {
                self.files.insert(host, old);
                continue;
            }
            let new = match guard("host", &host, &host, || host_files(&facts, deployment)) {
                Ok(files) => (Some(facts), files),
                Err(diagnostic) => {
                    self.report.push(diagnostic);
                    (None, old.1)
                }
            };
            self.files.insert(host, new);
        }
        self.deployment = Some(Arc::clone(deployment));
    }
}

impl Last {
    /// Whether the same tenants are where they were.
    fn is_at_the_places_of(&self, parts: &[Part]) -> bool {
        let mut both = self.parts.iter().zip(parts);
        self.parts.len() == parts.len()
            && both.all(|(before, now)| now.is(before) || now.is_at_the_place_of(before))
    }
}

/// Adds what older pages of a tenant may still ask for. What a host answers itself comes first.
fn add_replaced(host: &mut HostRoutes, prefix: &str, replaced: &ResourceTable) {
    for (path, resource) in replaced {
        let path = format!("{prefix}{path}").into_boxed_str();
        let place = host.files.entry(path);
        place.or_insert_with(|| Arc::clone(resource));
    }
}

fn alone(host: &str) -> HostFacts {
    HostFacts {
        host: host.to_owned(),
        canonical: host.to_owned(),
        listings: Vec::new(),
    }
}

fn is_free(host: &HostRoutes, prefix: &str) -> bool {
    if prefix.is_empty() {
        host.root.is_none()
    } else {
        !host.prefixes.contains_key(prefix)
    }
}

fn place(placed: &PlacedMount, host: &mut HostRoutes) {
    let prefix = placed.address.prefix.as_str();
    if prefix.is_empty() {
        host.root = Some(Arc::clone(&placed.mount));
    } else {
        host.longest_prefix = host.longest_prefix.max(prefix.matches('/').count());
        host.prefixes
            .insert(prefix.into(), Arc::clone(&placed.mount));
    }
}
