//! The one owner: folders in, a new snapshot out, and the last good state of every tenant kept.
//!
//! 1. Each changed folder is read and checked. A folder with mistakes changes nothing but its report.
//! 2. Addresses are given out anew over all tenants.
//! 3. Tenants whose content, addresses, theme or company profile changed are compiled; the others keep their mounts.
//! 4. The mounts become a snapshot.
//!
//! **Invariant:** the only one that sees both halves, `compile` and what is served. It serves nothing itself.

mod between;
mod dev;
mod hosts;
mod keep;
mod kept;
mod render;
mod retired;
mod tenant;
mod themes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use rayon::prelude::*;
use thiserror::Error;
use tracing::warn;

use crate::address::{self, Origin};
use crate::compile::link::Street;
use crate::compile::policy::Caching;
use crate::compile::template::Templates;
use crate::compile::{self, Compiled, Islands};
use crate::name::TenantId;
use crate::report::{Code, Diagnostic, Report, Severity};
use crate::serve::status::Status;
use crate::snapshot::{HostEntry, ResourceTable, Snapshot};
use crate::source::{self, Folder, Limits, SourceError};
use crate::tenant::Site;
use crate::tenant::manifest::Company;

pub use self::keep::Keeper;
pub(crate) use self::keep::tell;
pub use self::kept::Kept;

use self::hosts::Hosts;
use self::kept::KeptMemo;
use self::retired::Retired;
use self::tenant::Tenant;
use self::themes::Themes;

/// Where everything is.
#[derive(Debug, Clone)]
pub struct Places {
    /// The folder of tenants.
    pub tenants: PathBuf,
    /// A folder of themes; without one, those within the program.
    pub themes: Option<PathBuf>,
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

/// The owner of all tenants.
#[derive(Debug)]
pub struct Estate {
    places: Places,
    islands: Arc<Islands>,
    tenants: BTreeMap<TenantId, Tenant>,
    themes: Themes,
    street: Option<Arc<Street>>,
    shared: Arc<ResourceTable>,
    retired: Retired,
    shared_by: Vec<Arc<Templates>>,
    shared_memo: KeptMemo,
    hosts: Hosts,
    notes: Report,
    kept: Option<Kept>,
    alarm: Option<String>,
    /// Whether changes are noticed by polling, although notifications were wanted.
    is_polled: bool,
}

impl Estate {
    /// An estate without tenants.
    #[must_use]
    pub fn new(places: Places, islands: Arc<Islands>) -> Self {
        Self {
            places,
            islands,
            tenants: BTreeMap::new(),
            themes: Themes::default(),
            street: None,
            shared: Arc::default(),
            retired: Retired::default(),
            shared_by: Vec::new(),
            shared_memo: KeptMemo::default(),
            hosts: Hosts::default(),
            notes: Report::default(),
            kept: None,
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
    /// As [`Estate::reload`].
    pub fn reload_some(
        &mut self,
        now: Timestamp,
        tenants: Option<&BTreeSet<String>>,
        themes: bool,
    ) -> Result<Snapshot, ReloadError> {
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
            self.themes.reload(directory, self.kept.as_ref())?;
        }
        if let Some(folders) = folders {
            self.alarm = None;
            self.read_tenants(&folders, tenants, now);
        }
        for tenant in self.tenants.values_mut() {
            tenant.turn_pages(now, self.islands.dev.is_some());
        }
        let sites: Vec<Arc<Site>> = self
            .tenants
            .values()
            .filter_map(|tenant| tenant.site.clone())
            .collect();
        let assignment = address::assign(&self.places.origin, sites.iter().map(AsRef::as_ref));
        let street = self.street(assignment.root.clone(), year_in_chicago(now));
        self.compile(&assignment, &street, now);
        self.share();
        self.tenants.values_mut().for_each(Tenant::settle);
        Ok(self.snapshot(&street))
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
        report.extend(self.themes.report().cloned());
        for tenant in self.tenants.values() {
            report.extend(tenant.content.clone());
            report.extend(tenant.result.clone());
        }
        report.extend(self.neighbour_links());
        report.extend(self.orphans());
        report.sorted()
    }

    /// Why the folders are of no use, while what they held is served.
    #[must_use]
    pub fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref()
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
            ready: true,
            alarm: self.alarm.clone(),
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

    /// The tenants' folders. None at all, where there were some, is more likely an unmounted volume than a wish.
    fn list(&self) -> Result<BTreeMap<String, PathBuf>, ReloadError> {
        let folders = source::list(&self.places.tenants)?;
        let kept = self.kept.as_ref().and_then(|kept| kept.tenants().next());
        if folders.is_empty() && (!self.tenants.is_empty() || kept.is_some()) {
            return Err(ReloadError::Emptied(self.places.tenants.clone()));
        }
        Ok(folders)
    }

    /// Takes all tenants from what was kept, at a start that finds no folders.
    fn restore(&mut self, now: Timestamp) -> bool {
        let Some(kept) = self.kept.as_ref().filter(|_| self.tenants.is_empty()) else {
            return false;
        };
        for name in kept.tenants() {
            let label = self.places.tenants.join(name).display().to_string();
            let Ok(id) = TenantId::new(name) else {
                continue;
            };
            if let Some(site) = kept.site(&id, &label) {
                let mut tenant = Tenant::new(kept.tenant_memo(&id));
                tenant.take(site, now, self.islands.dev.is_some());
                let message = "the folder is gone; its last good copy is served";
                let mistake = Diagnostic::mistake(Code::Unreadable, label, message);
                tenant.content.push(mistake);
                self.tenants.insert(id, tenant);
            }
        }
        !self.tenants.is_empty()
    }

    fn read_tenants(
        &mut self,
        folders: &BTreeMap<String, PathBuf>,
        only: Option<&BTreeSet<String>>,
        now: Timestamp,
    ) {
        self.notes = Report::default();
        let mut present = BTreeSet::new();
        let mut wanted = Vec::new();
        for (name, path) in folders {
            let label = path.display().to_string();
            match TenantId::new(name) {
                Ok(id) => {
                    present.insert(id.clone());
                    let known = self.tenants.contains_key(&id);
                    if !known || only.is_none_or(|only| only.contains(name)) {
                        wanted.push((id, path, label));
                    }
                }
                Err(error) => self.notes.push(Diagnostic {
                    severity: Severity::Note,
                    ..Diagnostic::mistake(Code::BadFolderName, label, error.to_string())
                }),
            }
        }
        self.tenants.retain(|id, _| present.contains(id));
        if let Some(kept) = &mut self.kept {
            kept.keep_only(&present);
        }
        let known = &self.tenants;
        let kept = self.kept.as_ref();
        let read: Vec<(TenantId, Folder, Report, Option<KeptMemo>)> = wanted
            .into_par_iter()
            .map(|(id, path, label)| {
                let (folder, report) = source::read(path, &label, Limits::default());
                let is_new = !known.contains_key(&id);
                let memo = kept.filter(|_| is_new).map(|kept| kept.tenant_memo(&id));
                (id, folder, report, memo)
            })
            .collect();
        for (id, folder, mut report, memo) in read {
            let fingerprint = folder.fingerprint();
            let entry = self.tenants.entry(id.clone());
            let tenant = entry.or_insert_with(|| Tenant::new(memo.unwrap_or_default()));
            if tenant.fingerprint == Some(fingerprint) && report == Report::default() {
                continue;
            }
            let (site, problems) = crate::tenant::read(&id, &folder);
            report.extend(problems);
            if let (Some(site), true) = (site, report.is_servable()) {
                tenant.take(site, now, self.islands.dev.is_some());
                tenant.pending = self.kept.is_some().then_some(folder);
            } else if tenant.site.is_none()
                && let Some(kept) = &self.kept
                && let Some(site) = kept.site(&id, &folder.label)
            {
                tenant.take(site, now, self.islands.dev.is_some());
            }
            tenant.content = report;
            tenant.fingerprint = Some(fingerprint);
        }
    }

    /// What all tenants share; the same `Arc` as before when nothing of it changed.
    fn street(&mut self, root: Option<TenantId>, year: i16) -> Arc<Street> {
        let site = root
            .as_ref()
            .and_then(|root| self.tenants.get(root)?.site.as_deref());
        let origin = &self.places.origin;
        let company = site.and_then(|site| site.manifest.company.clone());
        let street = Street {
            origin: origin.clone(),
            company: company.unwrap_or_else(|| anonymous(origin)),
            image: site.and_then(|site| compile::default_image(site, origin)),
            root,
            year,
            caching: self.places.caching,
        };
        if let Some(before) = &self.street
            && **before == street
        {
            return Arc::clone(before);
        }
        let street = Arc::new(street);
        self.street = Some(Arc::clone(&street));
        street
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
        if !same || self.shared.is_empty() {
            let secure = self.places.origin.is_secure();
            let memo = &self.shared_memo.memo;
            memo.begin();
            let mut shared = compile::shared(&themes, &self.islands, secure, memo);
            self.retired.turn(&self.shared, &mut shared);
            self.shared = Arc::new(shared);
            self.shared_by = themes;
        }
    }

    /// Draws the pictures that are missing, `most` at once, and gives the snapshot that has them; `None` when none was. Until then their addresses answer 404, which nobody who reads a page comes to see.
    pub fn draw(&mut self, most: usize) -> Option<Snapshot> {
        let street = self.street.clone()?;
        let secure = self.places.origin.is_secure();
        for problem in self.hosts.draw(&self.compiled(), secure, most)? {
            warn!(problem, "a picture cannot be drawn");
        }
        Some(self.snapshot(&street))
    }

    fn compiled(&self) -> Vec<Arc<Compiled>> {
        let compiled = self.tenants.values();
        compiled
            .filter_map(|tenant| tenant.compiled.clone())
            .collect()
    }

    fn snapshot(&mut self, street: &Arc<Street>) -> Snapshot {
        let tenants = self.compiled();
        let origin = &self.places.origin;
        let absent = self.absent();
        let mut hosts: HashMap<Box<str>, HostEntry> = self
            .hosts
            .routes(&tenants, &absent, street)
            .into_iter()
            .map(|(host, routes)| (host.into(), HostEntry::Site(Arc::new(routes))))
            .collect();
        let labels = std::iter::once("www").chain(street.root.as_ref().map(TenantId::as_str));
        if let Some(home) = compile::moved_to(origin, street.root.as_ref()) {
            for label in labels {
                let host = format!("{label}.{}", origin.domain());
                hosts
                    .entry(host.into())
                    .or_insert_with(|| HostEntry::Moved(home.clone()));
            }
        }
        Snapshot {
            hosts,
            shared: Arc::clone(&self.shared),
            unknown_host: Some(compile::unknown_host(origin.is_secure())),
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
