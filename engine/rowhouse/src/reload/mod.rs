//! The one owner: folders in, a new snapshot out, and the last good state of every tenant kept.
//!
//! 1. Each changed folder is read and checked. A folder with errors changes nothing but its report.
//! 2. Addresses are given out anew over all tenants: who has one keeps it, and `deployment.yaml` says what may be claimed.
//! 3. Tenants whose content, addresses, theme or company profile changed are compiled; the others keep their mounts.
//! 4. The mounts become a snapshot.
//!
//! Steps 1 and 3 happen on the threads of `workers`. A tenant that takes long there is waited for by nobody but `check` and its like: the others are served, and it is taken once it is done. `paint` draws pictures aside in the same way.
//!
//! A panic in the work for a tenant, a theme or a host becomes an error of that one, whose last good state stays ([`content::report::guard`]); one in the owner itself is survived by `keep`, which tries again.
//!
//! **Invariant:** the only one that sees both halves, `compile` and what is served. It serves nothing itself.

mod addresses;
mod background;
mod compile;
mod cross_tenant;
mod dev;
mod hosts;
mod persisted;
mod read;
mod reload_loop;
mod replaced;
mod tenant;
mod themes;
mod workers;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rayon::prelude::*;
use thiserror::Error;
use tracing::warn;

use content::address::{Address, Origin};
use content::name::TenantId;
use content::report::Report;
use content::report::guard::{guard, inject};
use content::source::SourceError;
use content::tenant::Site;
use content::tenant::manifest::Company;
use release::snapshot::{HostEntry, ResourceTable, Snapshot};
use render::link::Deployment;
use render::picture::Undrawn;
use render::policy::Caching;
use render::template::Templates;
use render::{Compiled, Islands};
use server::status::Status;

pub use self::persisted::Persisted;
pub use self::reload_loop::ReloadLoop;
pub(crate) use self::reload_loop::log_report;

use self::addresses::Addresses;
use self::compile::Done;
use self::hosts::Hosts;
use self::persisted::PersistedCache;
use self::replaced::ReplacedFiles;
use self::tenant::Tenant;
use self::themes::Themes;
use self::workers::{SOON, Wait, Workers};

/// Where everything is.
#[derive(Debug, Clone)]
pub struct Places {
    /// The folder of tenants.
    pub tenants: PathBuf,
    /// A folder of themes; without one, those within the program.
    pub themes: Option<PathBuf>,
    /// What tenants may claim; without it, `deployment.yaml` within the folder of tenants, where there is one.
    pub deployment: Option<PathBuf>,
    /// Where the deployment lives.
    pub origin: Origin,
    /// How long shared caches may keep pages.
    pub caching: Caching,
}

/// Why there is nothing to serve.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The tenants' or themes' folder cannot be listed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The folder of tenants held some, and holds none: more likely an unmounted volume than a wish.
    #[error("the folder `{}` has become empty: what it held is still served", .0.display())]
    Emptied(PathBuf),
}

/// How long a tenant may take at the start to be waited for: who is sent here once the process is ready should find it, and the others should not wait for long.
const AT_THE_START: Duration = Duration::from_secs(10);

/// The owner of all tenants.
#[derive(Debug)]
pub struct Registry {
    places: Places,
    islands: Arc<Islands>,
    tenants: BTreeMap<TenantId, Tenant>,
    addresses: Addresses,
    themes: Themes,
    deployment: Option<Arc<Deployment>>,
    /// The shared files of now.
    shared: Arc<ResourceTable>,
    /// Those that were replaced.
    replaced: ReplacedFiles,
    /// Both, as they are served.
    shared_served: Arc<ResourceTable>,
    /// Whether they changed since they were last kept.
    is_shared_new: bool,
    shared_by: Vec<Arc<Templates>>,
    shared_cache: PersistedCache,
    hosts: Hosts,
    notes: Report,
    persisted: Option<Persisted>,
    /// Where tenants are read, checked and compiled.
    workers: Workers<Done>,
    /// How often a folder was handed over to be read.
    readings: u64,
    /// Whether those that take long are waited for, too.
    is_patient: bool,
    /// Whether a reload has ended.
    is_started: bool,
    /// When folders were last read.
    now: Timestamp,
    alarm: Option<String>,
    /// Whether changes are noticed by polling, although notifications were wanted.
    is_polled: bool,
}

impl Registry {
    /// A registry without tenants.
    #[must_use]
    pub fn new(places: Places, islands: Arc<Islands>) -> Self {
        Self {
            places,
            islands,
            tenants: BTreeMap::new(),
            addresses: Addresses::default(),
            themes: Themes::default(),
            deployment: None,
            shared: Arc::default(),
            replaced: ReplacedFiles::default(),
            shared_served: Arc::default(),
            is_shared_new: false,
            now: Timestamp::UNIX_EPOCH,
            shared_by: Vec::new(),
            shared_cache: PersistedCache::default(),
            hosts: Hosts::default(),
            notes: Report::default(),
            persisted: None,
            workers: Workers::new(),
            readings: 0,
            is_patient: true,
            is_started: false,
            alarm: None,
            is_polled: false,
        }
    }

    /// Reads every folder, and compiles what changed since the last time.
    ///
    /// # Errors
    /// When the folder of tenants or themes cannot be listed, or holds nothing where it held something; the last state stays.
    pub fn reload(&mut self, now: Timestamp) -> Result<Snapshot, ReloadError> {
        self.reload_some(now, None, true)
    }

    /// The same, reading only the folders of `tenants` (all without them) and, if `themes` is set, the themes.
    ///
    /// # Errors
    /// As [`Registry::reload`].
    pub fn reload_some(
        &mut self,
        now: Timestamp,
        tenants: Option<&BTreeSet<String>>,
        themes: bool,
    ) -> Result<Snapshot, ReloadError> {
        self.now = now;
        let folders = match self.list() {
            Ok(folders) => Some(folders),
            Err(problem) => {
                self.alarm = Some(problem.to_string());
                self.restore(now).then_some(()).ok_or(problem)?;
                None
            }
        };
        if themes {
            let directory = self.places.themes.as_deref();
            self.themes.reload(directory, self.persisted.as_ref())?;
        }
        if let Some(folders) = folders {
            self.alarm = None;
            self.read_tenants(folders, tenants);
        }
        self.addresses.read(&self.places, self.persisted.as_ref());
        let wait = match (self.is_patient, self.is_started) {
            (true, _) => Wait::All,
            (false, false) => Wait::Each(AT_THE_START),
            (false, true) => Wait::Until(Instant::now() + SOON),
        };
        self.take_done(wait, now);
        let snapshot = self.settle(wait, now);
        self.is_started = true;
        Ok(snapshot)
    }

    /// What was done in the meantime; `None` when nothing was.
    pub(crate) fn reload_done(&mut self, now: Timestamp) -> Option<Snapshot> {
        let wait = Wait::Until(Instant::now() + SOON);
        let deployment = self.deployment.clone()?;
        match self.take_done(wait, now) {
            (false, _) => None,
            (true, false) => Some(self.renew(&deployment)),
            (true, true) => Some(self.settle(wait, now)),
        }
    }

    /// Gives out addresses and compiles what changed, until no folder comes in any more that changes what others are.
    fn settle(&mut self, wait: Wait, now: Timestamp) -> Snapshot {
        loop {
            for tenant in self.tenants.values_mut() {
                tenant.turn_pages(now, self.islands.dev.is_some());
            }
            inject("addresses", "all");
            let assignment = self.assign();
            let deployment = self.deployment(assignment.root.clone(), year_in_chicago(now));
            self.compile(&assignment, &deployment, now);
            let (_, is_read) = self.take_done(wait, now);
            if !is_read {
                return self.renew(&deployment);
            }
        }
    }

    /// Lets nobody wait for tenants that take long: what is not done soon is taken by [`Registry::reload_done`].
    #[must_use]
    pub fn impatient(mut self) -> Self {
        self.is_patient = false;
        self
    }

    /// A snapshot of what is compiled now.
    fn renew(&mut self, deployment: &Arc<Deployment>) -> Snapshot {
        self.share();
        self.tenants.values_mut().for_each(Tenant::settle);
        let replaced = self.tenants.values_mut().map(|tenant| &mut tenant.replaced);
        replaced::prune_all(replaced, self.now);
        self.snapshot(deployment)
    }

    /// The next moment at which a page comes or goes, anywhere.
    #[must_use]
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        self.tenants
            .values()
            .filter_map(|tenant| tenant.next_change(now))
            .min()
    }

    /// Whether this is for authors (`--dev`).
    fn is_dev(&self) -> bool {
        self.islands.dev.is_some()
    }

    /// Where the folders are.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Everything that there is to say, by file and line.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.notes.clone();
        report.extend(self.deployment_report());
        report.extend(self.themes.report().cloned());
        for tenant in self.tenants.values() {
            report.extend(tenant.content.clone());
            report.extend(tenant.result.clone());
            report.extend(tenant.conflicts.clone());
        }
        report.extend(self.hosts.report.clone());
        report.extend(self.cross_tenant());
        report.sorted()
    }

    /// Why the folders or `deployment.yaml` are of no use, while what they held is served.
    #[must_use]
    pub fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref().or(self.addresses.alarm())
    }

    /// How every tenant is doing, for the admin listener.
    #[must_use]
    pub fn status(&self) -> Status {
        let tenants = self
            .tenants
            .iter()
            .map(|(id, tenant)| tenant.status(id))
            .collect();
        Status {
            complete: self.is_started,
            alarm: self.alarm().map(ToOwned::to_owned),
            polling: self.is_polled,
            tenants,
        }
    }

    /// The tenants' content as it is served.
    pub fn sites(&self) -> impl Iterator<Item = (&Site, &Compiled)> {
        self.tenants.values().filter_map(|tenant| {
            let made_from = tenant.made_from.as_ref()?;
            Some((made_from.site.as_ref(), tenant.compiled.as_deref()?))
        })
    }

    /// What all tenants share; the same `Arc` as before when nothing of it changed.
    fn deployment(&mut self, root: Option<TenantId>, year: i16) -> Arc<Deployment> {
        let site = root
            .as_ref()
            .and_then(|root| self.tenants.get(root)?.site.as_deref());
        let origin = &self.places.origin;
        let company = site.and_then(|site| site.manifest.company.clone());
        let deployment = Deployment {
            origin: origin.clone(),
            company: company.unwrap_or_else(|| anonymous(origin)),
            image: site.and_then(|site| render::default_image(site, origin)),
            root,
            year,
            hsts: site.map(|site| site.manifest.hsts).unwrap_or_default(),
            caching: self.places.caching,
        };
        if let Some(before) = &self.deployment
            && **before == deployment
        {
            return Arc::clone(before);
        }
        let deployment = Arc::new(deployment);
        self.deployment = Some(Arc::clone(&deployment));
        deployment
    }

    /// Compresses the shared files again when a theme changed.
    fn share(&mut self) {
        let mut themes = self.themes.all();
        // A theme that stands in for its folder has files, too.
        for made_from in self
            .tenants
            .values()
            .filter_map(|tenant| tenant.made_from.as_ref())
        {
            let used = &made_from.inputs.templates;
            if !themes.iter().any(|theme| Arc::ptr_eq(theme, used)) {
                themes.push(Arc::clone(used));
            }
        }
        let same = themes.len() == self.shared_by.len()
            && themes
                .iter()
                .zip(&self.shared_by)
                .all(|(one, other)| Arc::ptr_eq(one, other));
        let is_new = !same || self.shared.is_empty();
        if is_new {
            let secure = self.places.origin.is_secure();
            let cache = &self.shared_cache.cache;
            cache.begin();
            let make = || render::shared(&themes, &self.islands, secure, cache);
            match guard("shared files", "all", "themes", make) {
                Ok(shared) => {
                    let before = (!self.shared.is_empty()).then_some(&*self.shared);
                    self.replaced.turn(before, &shared, self.now);
                    self.shared = Arc::new(shared);
                    self.shared_by = themes;
                }
                // Tried again with the next change.
                Err(diagnostic) => self.notes.push(diagnostic),
            }
        }
        self.replaced.prune(self.now);
        if self.replaced.is_new() || is_new {
            let mut served = ResourceTable::clone(&self.shared);
            for (path, resource) in self.replaced.files() {
                served.insert(path.into(), Arc::clone(resource));
            }
            self.shared_served = Arc::new(served);
            self.is_shared_new = true;
        }
    }

    /// The pictures that the last snapshot has open slots for. Until they are drawn their addresses answer 404, which nobody who reads a page comes to see.
    pub fn undrawn(&mut self) -> Vec<Undrawn> {
        let secure = self.places.origin.is_secure();
        self.hosts.undrawn(&self.compiled(), secure)
    }

    /// Draws them all, into the last snapshot.
    pub fn draw(&mut self) {
        self.undrawn().into_par_iter().for_each(|picture| {
            if let Err(problem) = picture.draw() {
                warn!(problem, "a picture cannot be drawn");
            }
        });
    }

    fn compiled(&self) -> Vec<Arc<Compiled>> {
        let compiled = self.tenants.values();
        compiled
            .filter_map(|tenant| tenant.compiled.clone())
            .collect()
    }

    fn snapshot(&mut self, deployment: &Arc<Deployment>) -> Snapshot {
        let tenants = self.compiled();
        let origin = &self.places.origin;
        let absent = self.absent();
        let mut routes = self
            .hosts
            .routes(&tenants, &absent, deployment, self.addresses.owners());
        for tenant in self.tenants.values() {
            let mounts = tenant.compiled.iter().flat_map(|compiled| &compiled.mounts);
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
        Snapshot {
            hosts,
            shared: Arc::clone(&self.shared_served),
            unknown_host: Some(render::unknown_host(origin.is_secure())),
        }
    }
}

/// The year of the copyright line: the studio's, in Chicago.
#[must_use]
pub fn year_in_chicago(now: Timestamp) -> i16 {
    now.in_tz("America/Chicago").map_or_else(
        |_| now.to_zoned(jiff::tz::TimeZone::UTC).year(),
        |there| there.year(),
    )
}

/// The company where no tenant tells of one: the domain itself.
fn anonymous(origin: &Origin) -> Company {
    serde_json::from_value(serde_json::json!({
        "name": origin.domain(),
        "legal_name": origin.domain(),
        "description": "",
        "email": format!("postmaster@{}", origin.domain()),
    }))
    .unwrap_or_else(|error| unreachable!("the profile is whole: {error}"))
}
