//! Every tenant, theme and address, and how they become a snapshot.

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
use content::report::guard::inject;
use content::source::SourceError;
use content::tenant::Site;
use content::tenant::manifest::Company;
use release::snapshot::{HostEntry, Snapshot};
use render::link::Deployment;
use render::picture::Undrawn;
use render::{Compiled, Islands, Sheet};
use server::status::Status;

use super::addresses::Addresses;
use super::cards::Cards;
use super::hosts::Hosts;
use super::persisted::Persisted;
use super::places::Places;
use super::replaced;
use super::shared::Shared;
use super::tenant::Tenant;
use super::themes::Themes;
use super::work::Done;
use super::workers::{SOON, Wait, Workers};

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
    pub(super) places: Places,
    pub(super) islands: Arc<Islands>,
    pub(super) tenants: BTreeMap<TenantId, Tenant>,
    pub(super) addresses: Addresses,
    pub(super) themes: Themes,
    deployment: Option<Arc<Deployment>>,
    cards: Cards,
    pub(super) shared: Shared,
    hosts: Hosts,
    pub(super) notes: Report,
    pub(super) persisted: Option<Persisted>,
    /// Where tenants are read, checked and compiled.
    pub(super) workers: Workers<Done>,
    /// How often a folder was handed over to be read.
    pub(super) readings: u64,
    /// Whether those that take long are waited for, too.
    is_patient: bool,
    /// Whether a reload has ended.
    pub(super) is_started: bool,
    /// When folders were last read.
    now: Timestamp,
    pub(super) alarm: Option<String>,
    /// Whether changes are noticed by polling, although notifications were wanted.
    pub(super) is_polled: bool,
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
            cards: Cards::default(),
            shared: Shared::default(),
            now: Timestamp::UNIX_EPOCH,
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
            let assignment = self
                .addresses
                .assign(&self.places.origin, &mut self.tenants);
            let deployment = self.deployment(assignment.root.clone(), now);
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
        inject("loop", "snapshot");
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

    /// The year of the copyright line: the company's, where it is.
    pub(super) fn year(&self, now: Timestamp) -> i16 {
        let deployment = self.deployment.as_ref();
        let zone = deployment.map(|deployment| deployment.company.time_zone.clone());
        zone.unwrap_or_default().year(now)
    }

    /// Whether this is for authors (`--dev`).
    pub(super) fn is_dev(&self) -> bool {
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
        report.extend(
            self.addresses
                .report(self.tenants.keys().map(TenantId::as_str)),
        );
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
            let served = tenant.lifecycle.served()?;
            Some((served.inputs.site.as_ref(), served.result.as_ref()))
        })
    }

    /// What all tenants share; the same `Arc` as before when nothing of it changed.
    fn deployment(&mut self, root: Option<TenantId>, now: Timestamp) -> Arc<Deployment> {
        let site = root
            .as_ref()
            .and_then(|root| self.tenants.get(root)?.site.as_deref());
        let origin = &self.places.origin;
        let company = site.and_then(|site| site.manifest.company.clone());
        let company = company.unwrap_or_else(|| anonymous(origin));
        let sites = company.sites.iter().map(|one| {
            let site = TenantId::new(&one.tenant)
                .ok()
                .and_then(|id| self.tenants.get(&id)?.site.clone());
            let theme = |site: &Site| self.themes.get(&site.manifest.theme);
            let source = site.and_then(|site| theme(&site).map(|theme| (site, theme)));
            (one.clone(), source)
        });
        let sites = sites.collect();
        let deployment = Deployment {
            origin: origin.clone(),
            sites: self.cards.renew(sites),
            year: company.time_zone.year(now),
            company,
            image: site.and_then(|site| render::default_image(site, origin)),
            root,
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

    /// The files that every host serves: those of every theme that is rendered with, and the stylesheets of the tenants.
    fn share(&mut self) {
        let mut themes = self.themes.all();
        let mut sheets: BTreeMap<String, Arc<Sheet>> = BTreeMap::new();
        // A theme that stands in for its folder has files, too.
        let served = self.tenants.values();
        for served in served.filter_map(|tenant| tenant.lifecycle.served()) {
            let used = &served.inputs.inputs.templates;
            if !themes.iter().any(|theme| Arc::ptr_eq(theme, used)) {
                themes.push(Arc::clone(used));
            }
            let own = served.result.sheets.iter();
            sheets.extend(own.map(|sheet| (sheet.asset.hashed_name.clone(), Arc::clone(sheet))));
        }
        let secure = self.places.origin.is_secure();
        let sheets = sheets.into_values().collect();
        let failed = self
            .shared
            .renew(themes, sheets, &self.islands, secure, self.now);
        self.notes.extend(failed);
    }

    /// What is said to who comes by a name that nobody has: in the words of the root tenant, else of any theme.
    fn unknown_host(&self, root: Option<&TenantId>) -> Option<String> {
        let root = root.and_then(|root| self.tenants.get(root)?.site.as_deref());
        let own = root.and_then(|site| {
            let theme = self.themes.get(&site.manifest.theme)?;
            theme.unknown_host(site.manifest.language.as_str())
        });
        own.or_else(|| self.themes.all().first()?.unknown_host(""))
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
            .filter_map(|tenant| tenant.compiled().cloned())
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
        Snapshot {
            hosts,
            shared: Arc::clone(self.shared.served()),
            unknown_host: Some(render::unknown_host(
                self.unknown_host(deployment.root.as_ref()),
                origin.is_secure(),
            )),
        }
    }
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
