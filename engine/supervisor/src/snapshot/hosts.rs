//! Assembles the hosts: the tenants of each host by prefix, and the files around their pages.
//!
//! Rendering images takes longer than compiling all pages. A snapshot therefore has slots for images, which are filled while the snapshot is served.
//!
//! The cost of a change depends on the changed tenant, and not on the number of tenants of its hosts.
//! The former entries of the tenant are removed from the tables of its hosts, and the new entries are added. Consecutive snapshots share the rest of the tables.
//!
//! The files of a host (`robots.txt`, `sitemap.xml`) are rendered again when their inputs change. A saved page leads to a new sitemap only if the page appears, expires or changes its date.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use content::address::AddressOwners;
use content::name::TenantId;
use content::name::preview::is_preview;
use content::report::Report;
use content::report::guard::guard;
use release::snapshot::access::AccessTable;
use release::snapshot::{
    HostEntry, HostKind, HostRoutes, ResourceTable, TrafficTable, VersionedTable,
};
use render::ASSETS;
use render::DeploymentFacts;
use render::{AddressMount, CompiledTenant, FileOwner};
use render::{GeneratedImage, ImageSlots, ImageTask};
use render::{HostFacts, Listing, host_files};

/// The routes and files of every host, with their inputs.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// The tenants that are served.
    parts: BTreeMap<Arc<str>, HostedTenant>,
    /// All tenants with a mount at each address, including tenants that do not own the address.
    claims: BTreeMap<String, BTreeSet<Arc<str>>>,
    /// The pages that the sitemap of each host lists, by tenant.
    listings: BTreeMap<String, BTreeMap<Arc<str>, Arc<Listing>>>,
    table: VersionedTable<HostEntry>,
    pub(crate) traffic: TrafficTable,
    files: BTreeMap<String, (HostFacts, ResourceTable)>,
    /// The hosts whose files could not be rendered because of a panic. The next change tries again.
    failed: BTreeSet<String>,
    deployment: Option<Arc<DeploymentFacts>>,
    pending: ImageSlots,
    /// The diagnostics of hosts whose files could not be rendered.
    pub(crate) report: Report,
}

/// The pages and replaced files of a tenant, for its hosts.
#[derive(Debug, Clone)]
pub(crate) struct HostedTenant {
    pub(crate) compiled: Arc<CompiledTenant>,
    /// The files that older pages may still request.
    pub(crate) replaced: Arc<ResourceTable>,
    /// Whether the tenant is a preview that is too old.
    pub(crate) is_expired: bool,
}

impl HostedTenant {
    /// Returns whether both have the same addresses and the same entries in sitemaps.
    fn is_listed_as(&self, other: &Self) -> bool {
        self.compiled.listing == other.compiled.listing && self.addresses().eq(other.addresses())
    }

    fn addresses(&self) -> impl Iterator<Item = String> {
        let mounts = self.compiled.mounts.iter();
        mounts.map(|placed| placed.address.key())
    }

    /// Returns the hosts with mounts or sitemap entries of the tenant.
    fn hosts(&self) -> impl Iterator<Item = &String> {
        let mounts = self.compiled.mounts.iter();
        let hosts = mounts.map(|placed| &placed.address.host);
        hosts.chain([&self.compiled.listing.host])
    }
}

impl Hosts {
    /// Applies changes of tenants: `None` removes a tenant. `affects_all`: the files of all hosts are checked for changes. A new `deployment` assembles all hosts again.
    ///
    /// Returns all hosts: the hosts that serve tenants, the domain, and the host names that redirect to the domain.
    pub(crate) fn update(
        &mut self,
        changes: BTreeMap<Arc<str>, Option<HostedTenant>>,
        affects_all: bool,
        (deployment, access): (&Arc<DeploymentFacts>, &AccessTable),
        owners: &AddressOwners,
    ) -> VersionedTable<HostEntry> {
        let known = self.deployment.as_ref();
        let is_new = known.is_none_or(|known| !Arc::ptr_eq(known, deployment));
        self.deployment = Some(Arc::clone(deployment));
        self.report = Report::default();
        let mut tenants = self.affected_tenants(&changes);
        let mut listed: BTreeSet<String> = std::mem::take(&mut self.failed);
        if is_new {
            self.table.clear();
            tenants.extend(self.parts.keys().cloned());
        }
        for tenant in &tenants {
            self.remove_routes(tenant);
        }
        for (tenant, part) in changes {
            self.replace_tenant(tenant, part, &mut listed);
        }
        let domain = deployment.origin.domain();
        self.host(domain);
        if is_new || affects_all {
            listed.insert(domain.to_owned());
            let parts = self.parts.values();
            listed.extend(parts.flat_map(HostedTenant::hosts).cloned());
        }
        for tenant in &tenants {
            self.add_mounts(tenant, owners, &mut listed);
        }
        for tenant in &tenants {
            self.add_files(tenant, access);
        }
        let touched = tenants.iter().filter_map(|tenant| self.parts.get(tenant));
        let touched: BTreeSet<String> = touched.flat_map(HostedTenant::hosts).cloned().collect();
        for host in listed.iter().chain(&touched) {
            self.remove_empty(host, domain);
        }
        for host in listed {
            self.refresh(&host, deployment, access, is_new);
        }
        if is_new {
            let table = &self.table;
            self.files
                .retain(|host, _| table.contains_key(host.as_str()));
        }
        add_moved(&mut self.table, deployment);
        self.table.clone()
    }

    /// Returns the hosts with additional mounts of tenants that were never valid, at free addresses.
    pub(crate) fn with_absent(
        table: &VersionedTable<HostEntry>,
        absent: &[AddressMount],
    ) -> VersionedTable<HostEntry> {
        let mut table = table.clone();
        for placed in absent {
            let host = routes(&mut table, &placed.address.host);
            if is_free(host, &placed.address.prefix) {
                place(placed, host);
            }
        }
        table
    }

    /// Returns the changed tenants, and the tenants that have a mount at an address of a changed tenant.
    fn affected_tenants(
        &self,
        changes: &BTreeMap<Arc<str>, Option<HostedTenant>>,
    ) -> BTreeSet<Arc<str>> {
        let mut tenants: BTreeSet<Arc<str>> = changes.keys().cloned().collect();
        for (tenant, part) in changes {
            let parts = self.parts.get(tenant).into_iter().chain(part);
            for address in parts.flat_map(HostedTenant::addresses) {
                tenants.extend(self.claims.get(&address).into_iter().flatten().cloned());
            }
        }
        tenants
    }

    /// Removes the entries of a tenant from the tables of its hosts.
    fn remove_routes(&mut self, tenant: &str) {
        let Some(part) = self.parts.get(tenant) else {
            return;
        };
        for placed in &part.compiled.mounts {
            let (host, prefix) = (&placed.address.host, placed.address.prefix.as_str());
            let Some(routes) = existing_routes(&mut self.table, host) else {
                continue;
            };
            if prefix.is_empty() {
                routes.root = None;
            } else {
                routes.prefixes.remove(prefix);
            }
            routes.replaced.remove(prefix);
        }
        for image in &part.compiled.images {
            if let Some(routes) = existing_routes(&mut self.table, &image.host) {
                routes.images.remove(image.path.as_str());
            }
        }
    }

    /// Replaces the data of a tenant. Adds the hosts whose files may have changed to `listed`.
    fn replace_tenant(
        &mut self,
        tenant: Arc<str>,
        part: Option<HostedTenant>,
        listed: &mut BTreeSet<String>,
    ) {
        let before = match &part {
            Some(part) => self.parts.insert(Arc::clone(&tenant), part.clone()),
            None => self.parts.remove(&tenant),
        };
        let is_listed_as_before = before
            .as_ref()
            .zip(part.as_ref())
            .is_some_and(|(before, part)| before.is_listed_as(part));
        if is_listed_as_before {
            return;
        }
        if let Some(before) = &before {
            listed.extend(before.hosts().cloned());
            for address in before.addresses() {
                if let Some(claims) = self.claims.get_mut(&address) {
                    claims.remove(&tenant);
                    if claims.is_empty() {
                        self.claims.remove(&address);
                    }
                }
            }
            if let Some(listings) = self.listings.get_mut(&before.compiled.listing.host) {
                listings.remove(&tenant);
            }
        }
        let Some(part) = part else {
            self.traffic.remove(&tenant);
            return;
        };
        listed.extend(part.hosts().cloned());
        for address in part.addresses() {
            let claims = self.claims.entry(address).or_default();
            claims.insert(Arc::clone(&tenant));
        }
        let listing = &part.compiled.listing;
        let listings = self.listings.entry(listing.host.clone()).or_default();
        listings.insert(tenant, Arc::clone(listing));
    }

    /// Returns the routes of a host, which is added if it is new.
    fn host(&mut self, host: &str) -> &mut HostRoutes {
        routes(&mut self.table, host)
    }

    /// Adds the mounts of a tenant at addresses that the tenant owns or that have no owner.
    fn add_mounts(
        &mut self,
        tenant: &Arc<str>,
        owners: &AddressOwners,
        listed: &mut BTreeSet<String>,
    ) {
        let Some(part) = self.parts.get(tenant) else {
            return;
        };
        let (compiled, is_expired) = (Arc::clone(&part.compiled), part.is_expired);
        for placed in &compiled.mounts {
            placed.mount.count_in(&mut self.traffic);
            // The pages may be older than the assignment: an address that the tenant gave up belongs to its new owner.
            let owner = owners.get(placed.address.key().as_str());
            if owner.is_none_or(|owner| owner.as_str() == &**tenant) {
                let host = &placed.address.host;
                if !self.files.contains_key(host) {
                    listed.insert(host.clone());
                }
                let routes = self.host(host);
                place(placed, routes);
                if is_expired {
                    routes.kind = HostKind::ExpiredPreview;
                }
            }
        }
    }

    /// Adds the images of a tenant and its replaced files to its hosts. A protected tenant has files only at its own addresses, since files at an address of another tenant follow the rule of that tenant.
    fn add_files(&mut self, tenant: &str, access: &AccessTable) {
        let Some(part) = self.parts.get(tenant).cloned() else {
            return;
        };
        let may_have = |routes: &HostRoutes, prefix: &str| {
            !access.names(tenant) || owner(routes, prefix).is_some_and(|owner| &**owner == tenant)
        };
        for image in &part.compiled.images {
            let slot = self.pending.slot(image);
            let prefix = image
                .path
                .rsplit_once(ASSETS)
                .map_or("", |(prefix, _)| prefix);
            if let Some(routes) = existing_routes(&mut self.table, &image.host)
                && may_have(routes, prefix)
            {
                routes.images.insert(image.path.as_str().into(), slot);
            }
        }
        if part.replaced.is_empty() {
            return;
        }
        for AddressMount { address, .. } in &part.compiled.mounts {
            let prefix = address.prefix.as_str();
            if let Some(routes) = existing_routes(&mut self.table, &address.host)
                && may_have(routes, prefix)
            {
                let replaced = Arc::clone(&part.replaced);
                routes.replaced.insert(prefix.into(), replaced);
            }
        }
    }

    /// Removes a host that no longer serves a tenant, unless the host is the domain.
    fn remove_empty(&mut self, host: &str, domain: &str) {
        let entry = self.table.get(host);
        if let Some(HostEntry::Site(routes)) = entry
            && routes.root.is_none()
            && routes.prefixes.is_empty()
            && host != domain
        {
            self.table.remove(host);
            self.files.remove(host);
        }
    }

    /// Renders the files of a host again if their inputs have changed. `is_new`: the deployment has changed.
    fn refresh(
        &mut self,
        host: &str,
        deployment: &Arc<DeploymentFacts>,
        access: &AccessTable,
        is_new: bool,
    ) {
        let Some(HostEntry::Site(routes)) = self.table.get(host) else {
            return;
        };
        let mut facts = HostFacts {
            host: host.to_owned(),
            canonical: host.to_owned(),
            listings: Vec::new(),
        };
        // The domain is its own canonical host, because it serves all tenants and not only the root tenant.
        if let Some(root) = &routes.root
            && host != deployment.origin.domain()
            && let Some(part) = self.parts.get(&root.tenant)
        {
            facts.canonical.clone_from(&part.compiled.listing.host);
        }
        if let Some(listings) = self.listings.get(host) {
            // The sitemap of a host is public, so it does not list the pages of protected tenants.
            let public = listings.iter().filter(|(tenant, _)| !access.names(tenant));
            facts.listings = public.map(|(_, listing)| Arc::clone(listing)).collect();
        }
        let is_same = |(known, _): &(HostFacts, ResourceTable)| *known == facts;
        if is_new || !self.files.get(host).is_some_and(is_same) {
            match guard("host", host, host, || host_files(&facts, deployment)) {
                Ok(files) => drop(self.files.insert(host.to_owned(), (facts, files))),
                Err(diagnostic) => {
                    self.report.push(diagnostic);
                    self.failed.insert(host.to_owned());
                }
            }
        }
        if let Some((_, files)) = self.files.get(host) {
            let files = files.clone();
            self.host(host).files = files;
        }
    }

    /// Returns the size of the rendered images among `images`, in bytes.
    pub(crate) fn bytes_of(&self, images: &[GeneratedImage]) -> usize {
        self.pending.bytes_of(images)
    }

    /// Returns the rendered images that `before` has and `now` lacks, as files by their path below the mounts.
    pub(crate) fn replaced_images(
        &self,
        before: &CompiledTenant,
        now: &CompiledTenant,
        is_secure: bool,
    ) -> ResourceTable {
        let shown: HashSet<_> = now.images.iter().map(|image| &*image.path).collect();
        let gone = before.images.iter();
        let gone = gone.filter(|image| !shown.contains(&*image.path));
        gone.filter_map(|image| {
            let (_, name) = image.path.rsplit_once(ASSETS)?;
            let path = format!("{ASSETS}{name}");
            let bytes = self.pending.file_of(image)?;
            let file = render::replaced_file(&path, bytes.into(), FileOwner::Tenant, is_secure);
            Some((path.into(), Arc::new(file)))
        })
        .collect()
    }

    /// Removes rendered images from memory. An image is rendered again when a page shows it.
    pub(crate) fn forget(&mut self, images: &[GeneratedImage]) {
        images.iter().for_each(|image| self.pending.forget(image));
    }

    /// Returns the images of a tenant that are not rendered yet.
    pub(crate) fn image_tasks(&self, tenant: &CompiledTenant, is_secure: bool) -> Vec<ImageTask> {
        self.pending.open_tasks(tenant, is_secure)
    }
}

/// Returns the routes of a host, which is added if it is new.
fn routes<'t>(table: &'t mut VersionedTable<HostEntry>, host: &str) -> &'t mut HostRoutes {
    let new = || HostEntry::Site(Arc::default());
    let entry = table.entry(host.into()).or_insert_with(new);
    if let HostEntry::Redirect(_) = entry {
        *entry = new();
    }
    match entry {
        HostEntry::Site(routes) => Arc::make_mut(routes),
        HostEntry::Redirect(_) => unreachable!("the host serves tenants"),
    }
}

/// Returns the routes of a host, if it serves tenants.
fn existing_routes<'t>(
    table: &'t mut VersionedTable<HostEntry>,
    host: &str,
) -> Option<&'t mut HostRoutes> {
    match table.get_mut(host)? {
        HostEntry::Site(routes) => Some(Arc::make_mut(routes)),
        HostEntry::Redirect(_) => None,
    }
}

/// Adds the host names that only redirect to the domain.
fn add_moved(hosts: &mut VersionedTable<HostEntry>, deployment: &DeploymentFacts) {
    let Some(home) = render::moved_to(deployment) else {
        return;
    };
    let root = deployment.root.as_ref().map(TenantId::as_str);
    for label in std::iter::once("www").chain(root) {
        let host = format!("{label}.{}", deployment.origin.domain());
        let entry = hosts.entry(host.into());
        entry.or_insert_with(|| HostEntry::Redirect(home.clone()));
    }
}

/// Returns the tenant with a mount at a prefix.
fn owner<'r>(host: &'r HostRoutes, prefix: &str) -> Option<&'r Arc<str>> {
    let mount = match prefix {
        "" => host.root.as_ref(),
        prefix => host.prefixes.get(prefix),
    };
    Some(&mount?.tenant)
}

fn is_free(host: &HostRoutes, prefix: &str) -> bool {
    if prefix.is_empty() {
        host.root.is_none()
    } else {
        !host.prefixes.contains_key(prefix)
    }
}

fn place(placed: &AddressMount, host: &mut HostRoutes) {
    let prefix = placed.address.prefix.as_str();
    if prefix.is_empty() {
        host.kind = match is_preview(&placed.mount.tenant) {
            true => HostKind::Preview,
            false => HostKind::Tenants,
        };
        host.root = Some(Arc::clone(&placed.mount));
    } else {
        host.longest_prefix = host.longest_prefix.max(prefix.matches('/').count());
        host.prefixes
            .insert(prefix.into(), Arc::clone(&placed.mount));
    }
}
