//! Puts the hosts together: each one's tenants by prefix, and the files around their pages.
//!
//! Pictures take longer to draw than everything else takes to compile, so that a snapshot has slots for them, which are filled while it is served.
//! The files are kept for as long as nothing that they say has changed: a saved page costs no new sitemap unless it comes, goes or changes its day.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use content::address::{Assignment, Owners};
use content::name::TenantId;
use content::report::Report;
use content::report::guard::guard;
use release::snapshot::{HostEntry, HostRoutes, ResourceTable, Table};
use render::ASSETS;
use render::Deployment;
use render::{Compiled, PlacedMount, Whose};
use render::{HostFacts, host_files};
use render::{PendingPictures, Picture, Undrawn};

/// Every host's routes and files, with what they were made from.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    deployment: Option<Arc<Deployment>>,
    files: BTreeMap<String, MadeFiles>,
    pending: PendingPictures,
    /// What was put together last.
    last: Option<Last>,
    /// Where the program failed.
    pub(crate) report: Report,
}

/// A host's files and what they were made from, which is not noted where the program failed: they are made anew with the next change.
type MadeFiles = (Option<HostFacts>, ResourceTable);

/// All hosts, by name.
type HostTable = Table<HostEntry>;

/// What a tenant gives to its hosts.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) tenant: Arc<str>,
    pub(crate) compiled: Arc<Compiled>,
    /// Files that older pages may still ask for.
    pub(crate) replaced: Arc<ResourceTable>,
}

impl Part {
    /// Whether it gives the very same.
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled) && Arc::ptr_eq(&self.replaced, &other.replaced)
    }

    /// Whether it has the same addresses, and says the same for sitemaps.
    fn is_listed_as(&self, other: &Self) -> bool {
        let addresses = |part: &Self| {
            let mounts = part.compiled.mounts.iter();
            let addresses = mounts.map(|placed| placed.address.clone());
            addresses.collect::<Vec<_>>()
        };
        self.compiled.listing == other.compiled.listing && addresses(self) == addresses(other)
    }

    /// The hosts that it gives something to.
    fn hosts(&self) -> impl Iterator<Item = &String> {
        let mounts = self.compiled.mounts.iter();
        let pictures = self.compiled.pictures.iter();
        mounts
            .map(|placed| &placed.address.host)
            .chain(pictures.map(|picture| &picture.host))
            .chain([&self.compiled.listing.host])
    }
}

/// Hosts that are put together anew.
#[derive(Debug, Default)]
struct Touched {
    routes: HashSet<String>,
    /// Those of them whose own files are looked at, too.
    files: HashSet<String>,
}

impl Touched {
    fn add<'a>(&mut self, hosts: impl IntoIterator<Item = &'a String>) {
        for host in hosts {
            self.routes.insert(host.clone());
            self.files.insert(host.clone());
        }
    }
}

/// Hosts, and what they were put together from.
#[derive(Debug)]
struct Last {
    /// In the order of the tenants' names.
    parts: Vec<Part>,
    deployment: Arc<Deployment>,
    assignment: Arc<Assignment>,
    hosts: HostTable,
}

impl Hosts {
    /// Every host that serves tenants, the domain, and the names that only lead to it. `parts`: in the order of the tenants' names.
    ///
    /// Where only some tenants are others than before, only the hosts that they give something to are put together anew: a saved page or a new folder does not wait for all the others.
    pub(crate) fn table(
        &mut self,
        parts: Vec<Part>,
        absent: &[PlacedMount],
        deployment: &Arc<Deployment>,
        assignment: &Arc<Assignment>,
    ) -> HostTable {
        let last = self.last.take();
        // Mounts of tenants that never were good are in no part.
        let last =
            last.filter(|last| absent.is_empty() && Arc::ptr_eq(&last.deployment, deployment));
        let touched = last.as_ref().map(|last| {
            let mut touched = last.touched(&parts, assignment);
            let failed = self.files.iter().filter(|(_, (facts, _))| facts.is_none());
            touched.add(failed.map(|(host, _)| host));
            touched
        });
        let mut hosts = last.map(|last| last.hosts).unwrap_or_default();
        for host in touched.iter().flat_map(|touched| &touched.routes) {
            hosts.remove(host.as_str());
        }
        let owners = &assignment.owners;
        hosts.extend(self.put_together(&parts, absent, deployment, owners, touched.as_ref()));
        add_moved(&mut hosts, deployment);
        let table = hosts.clone();
        self.last = absent.is_empty().then(|| Last {
            parts,
            deployment: Arc::clone(deployment),
            assignment: Arc::clone(assignment),
            hosts,
        });
        table
    }

    /// All hosts that serve something, or those of `touched`.
    fn put_together(
        &mut self,
        parts: &[Part],
        absent: &[PlacedMount],
        deployment: &Arc<Deployment>,
        owners: &Owners,
        touched: Option<&Touched>,
    ) -> HostTable {
        let domain = deployment.origin.domain();
        let is_touched = |host: &str| touched.is_none_or(|touched| touched.routes.contains(host));
        let mut routes: BTreeMap<String, HostRoutes> = BTreeMap::new();
        let mut facts: BTreeMap<String, HostFacts> = BTreeMap::new();
        if is_touched(domain) {
            routes.entry(domain.to_owned()).or_default();
        }
        // What is served may be older than who has what: an address that was given up is its new owner's.
        let is_owned = |placed: &&PlacedMount| {
            let address = format!("{}{}", placed.address.host, placed.address.prefix);
            let owner = owners.get(&address);
            owner.is_none_or(|owner| owner.as_str() == &*placed.mount.tenant)
        };
        let mut owned: Vec<(&Part, Vec<&PlacedMount>)> = Vec::new();
        for part in parts {
            let mounts = part.compiled.mounts.iter();
            let mounts = mounts.filter(|placed| is_touched(&placed.address.host));
            owned.push((part, mounts.filter(is_owned).collect()));
        }
        for placed in owned.iter().flat_map(|(_, mounts)| mounts) {
            let host = routes.entry(placed.address.host.clone()).or_default();
            place(placed, host);
        }
        for placed in absent {
            let host = routes.entry(placed.address.host.clone()).or_default();
            if is_free(host, &placed.address.prefix) {
                place(placed, host);
            }
        }
        for host in routes.keys() {
            if touched.is_none_or(|touched| touched.files.contains(host)) {
                facts.insert(host.clone(), alone(host));
            }
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
        self.refresh(facts, deployment, touched);
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
                    let prefix = address.prefix.as_str().into();
                    host.replaced.insert(prefix, Arc::clone(&part.replaced));
                }
            }
        }
        let routes = routes.into_iter();
        routes
            .map(|(host, routes)| (host.into(), HostEntry::Site(Arc::new(routes))))
            .collect()
    }

    /// The bytes of those of these pictures that are drawn.
    pub(crate) fn bytes_of(&self, pictures: &[Picture]) -> usize {
        self.pending.bytes_of(pictures)
    }

    /// The drawn pictures that a tenant showed and shows no longer, as files by their path below its mounts.
    pub(crate) fn replaced_pictures(
        &self,
        before: &Compiled,
        now: &Compiled,
        secure: bool,
    ) -> ResourceTable {
        let shown: HashSet<_> = now.pictures.iter().map(|picture| &*picture.path).collect();
        let gone = before.pictures.iter();
        let gone = gone.filter(|picture| !shown.contains(&*picture.path));
        gone.filter_map(|picture| {
            let (_, name) = picture.path.rsplit_once(ASSETS)?;
            let path = format!("{ASSETS}{name}");
            let bytes = self.pending.file_of(picture)?;
            let file = render::former(&path, bytes.into(), Whose::Tenant, secure);
            Some((path.into(), Arc::new(file)))
        })
        .collect()
    }

    /// Lets pictures go; who is to show one has it drawn again.
    pub(crate) fn forget(&mut self, pictures: &[Picture]) {
        pictures
            .iter()
            .for_each(|picture| self.pending.forget(picture));
    }

    /// Forgets the pictures that nothing shows.
    pub(crate) fn prune_pictures(&mut self) {
        self.pending.prune();
    }

    /// What is still to be drawn for a tenant.
    pub(crate) fn undrawn(&self, tenant: &Compiled, secure: bool) -> Vec<Undrawn> {
        self.pending.undrawn(tenant, secure)
    }

    /// Makes the files of these hosts; those of others go, unless only `touched` ones are looked at.
    fn refresh(
        &mut self,
        facts: BTreeMap<String, HostFacts>,
        deployment: &Arc<Deployment>,
        touched: Option<&Touched>,
    ) {
        let is_same_deployment = self
            .deployment
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, deployment));
        let mut before = match touched {
            None => std::mem::take(&mut self.files),
            Some(touched) => (touched.files.iter())
                .filter_map(|host| self.files.remove_entry(host))
                .collect(),
        };
        self.report = Report::default();
        for (host, facts) in facts {
            let old = before.remove(&host).unwrap_or_default();
            if is_same_deployment && old.0.as_ref() == Some(&facts) {
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
    /// The hosts to which tenants give something else than before, or somebody else does.
    fn touched(&self, parts: &[Part], assignment: &Arc<Assignment>) -> Touched {
        let mut touched = Touched::default();
        let mut before = self.parts.iter().peekable();
        for now in parts {
            while let Some(gone) = before.next_if(|before| before.tenant < now.tenant) {
                touched.add(gone.hosts());
            }
            match before.next_if(|before| before.tenant == now.tenant) {
                Some(before) if before.is(now) => {}
                Some(before) if before.is_listed_as(now) => {
                    let both = before.hosts().chain(now.hosts());
                    touched.routes.extend(both.cloned());
                }
                Some(before) => touched.add(before.hosts().chain(now.hosts())),
                None => touched.add(now.hosts()),
            }
        }
        touched.add(before.flat_map(Part::hosts));
        if !Arc::ptr_eq(&self.assignment, assignment) {
            let (old, new) = (&self.assignment.owners, &assignment.owners);
            touched.add(&other_hosts(old, new));
            touched.add(&other_hosts(new, old));
        }
        touched
    }
}

/// The hosts of addresses that have somebody else, or nobody, in `other`.
fn other_hosts(owners: &Owners, other: &Owners) -> Vec<String> {
    let owners = owners.iter();
    let others = owners.filter(|(address, owner)| other.get(*address) != Some(owner));
    let hosts = others.filter_map(|(address, _)| address.split('/').next());
    hosts.map(ToOwned::to_owned).collect()
}

/// The names that only lead to the domain.
fn add_moved(hosts: &mut HostTable, deployment: &Deployment) {
    let Some(home) = render::moved_to(deployment) else {
        return;
    };
    let root = deployment.root.as_ref().map(TenantId::as_str);
    for label in std::iter::once("www").chain(root) {
        let host = format!("{label}.{}", deployment.origin.domain());
        let entry = hosts.entry(host.into());
        entry.or_insert_with(|| HostEntry::Moved(home.clone()));
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
