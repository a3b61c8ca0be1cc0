//! The data of all tenants, themes and addresses, from which the inputs of builds are derived.
//!
//! Each input has a revision: a number that changes whenever the input changes. A [`BuildKey`] holds the revisions of all inputs of a build.

pub(crate) mod access;
pub(crate) mod addresses;
pub(crate) mod cards;
pub(crate) mod complete_tenant;
pub(crate) mod tenant;
pub(crate) mod themes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use content::address::Address;
use content::name::preview::{is_preview, live_id};
use content::name::{TenantId, TenantIdError};
use content::report::{Code, Diagnostic, Report, Severity, hint_for};
use content::tenant::check_with_theme::check_with_theme;
use content::tenant::manifest::{Company, CompanySite};
use content::tenant::{MANIFEST, Site};
use render::CompileInputs;
use render::DeploymentFacts;
use render::Templates;
use render::translated_companies;

use crate::jobs::outcome::FolderReading;
use crate::jobs::packed_folder::FolderContent;
use crate::model::event::{BuildPlan, ChangeSet};
use crate::model::tenant::BuildKey;
use crate::runner::catalog::addresses::{AddressChanges, AssignedAddresses};
use crate::runner::catalog::cards::SiteCardCache;
use crate::runner::catalog::tenant::{BuildInputs, TenantData, hosts_of};
use crate::runner::catalog::themes::Themes;
use crate::runner::settings::Settings;

/// The number of tenants beyond which the content of idle tenants is packed.
const MAX_OPEN_TENANTS: usize = 256;

/// The revisions of the inputs of builds.
#[derive(Debug, Default)]
struct Revisions {
    last: u64,
    deployment: u64,
    /// The themes of builds with their revisions. Each theme is held, so that no other theme gets its address in memory.
    themes: Vec<(Arc<Templates>, u64)>,
}

impl Revisions {
    const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns the revision of a theme, which is new if the theme is new.
    fn of_theme(&mut self, templates: &Arc<Templates>) -> u64 {
        let known = self
            .themes
            .iter()
            .find(|(known, _)| Arc::ptr_eq(known, templates));
        if let Some((_, revision)) = known {
            return *revision;
        }
        self.themes
            .retain(|(known, _)| Arc::strong_count(known) > 1);
        let revision = self.next();
        self.themes.push((Arc::clone(templates), revision));
        revision
    }
}

/// The data of all tenants, themes and addresses.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tenants: BTreeMap<TenantId, Box<TenantData>>,
    pub(crate) addresses: AssignedAddresses,
    pub(crate) themes: Themes,
    pub(crate) deployment: Option<Arc<DeploymentFacts>>,
    cards: SiteCardCache,
    revisions: Revisions,
    /// Diagnostics of the folder of tenants itself.
    pub(crate) folder_report: Report,
    /// Whether the content of idle tenants is packed.
    pub(crate) is_packed: bool,
    /// The size of all packed content, in bytes.
    pub(crate) packed_bytes: usize,
    /// For each tenant, the next time at which one of its pages appears or expires.
    page_changes: BTreeSet<(Timestamp, TenantId)>,
    /// The time of the last survey, reading or plan.
    pub(crate) now: Timestamp,
}

impl Catalog {
    /// Returns the folders whose names are tenant ids, and adds a diagnostic for each other folder.
    pub(crate) fn name(
        &mut self,
        folders: BTreeMap<String, PathBuf>,
        settings: &Settings,
    ) -> BTreeMap<TenantId, PathBuf> {
        self.folder_report = Report::default();
        self.is_packed = settings.memory.is_some() && folders.len() > MAX_OPEN_TENANTS;
        let mut named = BTreeMap::new();
        let is_listed = |name: &str| !(settings.leaves_out_previews && is_preview(name));
        for (name, path) in folders.into_iter().filter(|(name, _)| is_listed(name)) {
            match TenantId::new(&name) {
                Ok(id) => drop(named.insert(id, path)),
                Err(error) => {
                    let own = "rename the folder; its name is the tenant's host and path";
                    let (severity, hint) = match &error {
                        TenantIdError::NotAHostLabel(_) => (Severity::Note, own.to_owned()),
                        TenantIdError::Reserved(_) => (Severity::Error, own.to_owned()),
                        TenantIdError::BadLabel { reason, .. } => {
                            (Severity::Error, reason.hint(live_id(&name)))
                        }
                    };
                    let label = path.display().to_string();
                    let message = error.to_string();
                    let diagnostic =
                        Diagnostic::error(Code::BadFolderName, label, message).hint(hint);
                    self.folder_report.push(Diagnostic {
                        severity,
                        ..diagnostic
                    });
                }
            }
        }
        let ids = named.keys();
        let previews = ids.filter(|id| id.is_preview() && !named.contains_key(id.live_id()));
        for id in previews {
            let tenant = id.live_id();
            let label = named[id].display().to_string();
            let message = format!("the preview shows the tenant `{tenant}`, which does not exist");
            let hint = format!(
                "correct the part before `@`, or rename the folder to `{tenant}` to make the site live; the preview is served all the same"
            );
            self.folder_report
                .push(Diagnostic::warning(Code::UnknownTenant, label, message).hint(hint));
        }
        named
    }

    /// Replaces the content of a tenant with the result of a reading. A folder with errors replaces only the diagnostics.
    pub(crate) fn replace_content(
        &mut self,
        id: &TenantId,
        mut read: FolderReading,
        settings: &Settings,
        is_persisting: bool,
    ) {
        let Some(tenant) = self.tenants.get_mut(id) else {
            return;
        };
        let (now, includes_hidden) = (self.now, settings.is_dev());
        if let Some(cache) = read.cache {
            tenant.persisted = cache;
        }
        if let Some(replaced) = read.replaced {
            tenant.replaced = replaced;
        }
        let packed_before = tenant.content.packed_bytes();
        tenant.reading.large = read.content.large().clone();
        if read.report.is_servable()
            && let Some(site) = read.site
        {
            tenant.retain_files(settings.is_secure());
            if is_persisting {
                if let Some(before) = &tenant.reading.files {
                    let changed = read.files.changed_since(before).cloned();
                    tenant.recorded.changed.extend(changed);
                }
                tenant.reading.files = Some(read.files);
            }
            tenant.content.packed = match &read.content {
                FolderContent::Packed(packed) => Some(Arc::clone(packed)),
                FolderContent::Open(_) => None,
            };
            tenant.set_content(site, now, includes_hidden);
            tenant.content.folder = read.fingerprint;
            tenant.reading.mark = read.mark;
            tenant.persisted.is_good = read.is_persisted;
            let is_pending = is_persisting && !read.is_persisted;
            tenant.content.pending = is_pending.then_some(read.content);
        } else if tenant.content.site.is_none()
            && let Some(site) = read.last_valid.take()
        {
            tenant.set_content(site, now, includes_hidden);
        }
        let theme = read.written.as_ref();
        let theme = theme.and_then(|written| Some((written, self.themes.get(&written.theme)?)));
        if let Some((written, templates)) = theme {
            read.report
                .extend(check_with_theme(written, &templates.theme).1);
        }
        self.packed_bytes = self.packed_bytes - packed_before + tenant.content.packed_bytes();
        tenant.reports.content = read.report;
        tenant.reading.report = read.reading;
        tenant.reading.fingerprint = read.fingerprint;
    }

    /// Assigns addresses, and derives the inputs of the builds that `changes` may affect.
    pub(crate) fn plan(
        &mut self,
        changes: &ChangeSet,
        settings: &Settings,
        now: Timestamp,
    ) -> Vec<BuildPlan> {
        self.now = now;
        let includes_hidden = settings.is_dev();
        let affects_all = changes.affects_all || self.deployment.is_none();
        let mut changed = Vec::new();
        for id in ids(affects_all, &changes.tenants, &self.tenants) {
            if let Some(tenant) = self.tenants.get_mut(&id) {
                let before = tenant.next_change();
                tenant.update_pages(now, includes_hidden);
                changed.push((id, before, tenant.next_change()));
            }
        }
        for (id, _, next) in changed {
            self.note_page_change(id, next);
        }
        let only = (!affects_all).then_some(&changes.tenants);
        let addresses = self
            .addresses
            .assign(&settings.config.origin, &mut self.tenants, only);
        let assignment = Arc::clone(self.addresses.assignment());
        let affects_all = affects_all || addresses == AddressChanges::OfAnyTenant;
        let known = self.deployment.clone();
        let is_shown = |id: &TenantId| self.is_shown_by_all(id);
        let deployment = match known {
            Some(known) if !affects_all && !changes.tenants.iter().any(is_shown) => known,
            _ => self.derive_deployment(assignment.root.clone(), settings, now),
        };
        let is_same = self
            .deployment
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, &deployment));
        if !is_same {
            self.revisions.deployment = self.revisions.next();
            self.deployment = Some(deployment);
        }
        let affects_all = affects_all || !is_same;
        let ids = ids(affects_all, &changes.tenants, &self.tenants);
        ids.into_iter()
            .filter_map(|id| {
                let addresses = assignment.addresses.get(&id).cloned();
                self.plan_tenant(id, addresses.unwrap_or_default())
            })
            .collect()
    }

    /// Records the next time at which a page of the tenant appears or expires.
    fn note_page_change(&mut self, id: TenantId, next: Option<Timestamp>) {
        if let Some(tenant) = self.tenants.get_mut(&id) {
            if let Some(before) = tenant.content.recorded_change.take() {
                self.page_changes.remove(&(before, id.clone()));
            }
            tenant.content.recorded_change = next;
        }
        if let Some(next) = next {
            self.page_changes.insert((next, id));
        }
    }

    /// Returns the build plan of a tenant, or `None` if the tenant has no valid content.
    fn plan_tenant(&mut self, id: TenantId, addresses: Arc<[Address]>) -> Option<BuildPlan> {
        let tenant = self.tenants.get_mut(&id)?;
        let site = Arc::clone(tenant.content.site.as_ref()?);
        let has_conflicts = !tenant.reports.conflicts.is_empty();
        let content = *tenant
            .content
            .revision
            .get_or_insert_with(|| self.revisions.next());
        if tenant.addresses.1 == 0 || tenant.addresses.0 != addresses {
            tenant.addresses = (addresses, self.revisions.next());
        }
        let key = match self.themes.get(&site.manifest.theme) {
            Some(templates) => Some(BuildKey {
                content,
                addresses: tenant.addresses.1,
                theme: self.revisions.of_theme(templates),
                deployment: self.revisions.deployment,
            }),
            None => {
                let report = unknown_theme(&site, self.themes.names());
                tenant.record_build(report, Duration::ZERO);
                None
            }
        };
        Some(BuildPlan {
            tenant: id,
            key,
            has_conflicts,
        })
    }

    /// Returns the inputs of the last planned build, whose key is `key`.
    pub(crate) fn inputs(
        &self,
        id: &TenantId,
        key: BuildKey,
        settings: &Settings,
    ) -> Option<BuildInputs> {
        let tenant = self.tenants.get(id)?;
        let site = tenant.content.site.as_ref()?;
        let templates = self.themes.get(&site.manifest.theme)?;
        Some(BuildInputs {
            key,
            site: Arc::clone(site),
            packed: tenant.content.packed.clone(),
            folder: tenant.content.folder,
            addresses: Arc::clone(&tenant.addresses.0),
            hosts: hosts_of(&tenant.addresses.0),
            inputs: CompileInputs {
                deployment: Arc::clone(self.deployment.as_ref()?),
                templates: Arc::clone(templates),
                islands: Arc::clone(&settings.islands),
                cache: Arc::clone(&tenant.persisted.cache),
                attempt: Arc::default(),
                compresses: true,
            },
        })
    }

    /// Returns whether pages of all tenants may show data of the tenant: the root tenant, or a site of the company.
    fn is_shown_by_all(&self, id: &TenantId) -> bool {
        let Some(deployment) = &self.deployment else {
            return true;
        };
        let company = deployment.company.as_ref();
        let mut sites = company.into_iter().flat_map(|company| &company.sites);
        deployment.root.as_ref() == Some(id) || sites.any(|site| site.tenant == id.as_str())
    }

    /// Returns the tenants whose data the pages of all tenants may show.
    pub(crate) fn shown_by_all(&self) -> BTreeSet<String> {
        let deployment = self.deployment.as_ref();
        let root = deployment.and_then(|deployment| deployment.root.as_ref());
        let company = deployment.and_then(|deployment| deployment.company.as_ref());
        let sites = company.into_iter().flat_map(|company| &company.sites);
        let sites = sites.map(|site| site.tenant.clone());
        let named = self.addresses.named_root().map(ToOwned::to_owned);
        let roots = root.map(ToString::to_string).into_iter().chain(named);
        roots.chain(sites).collect()
    }

    /// Returns the data that all tenants share. Returns the previous `Arc` if the data has not changed.
    fn derive_deployment(
        &mut self,
        root: Option<TenantId>,
        settings: &Settings,
        now: Timestamp,
    ) -> Arc<DeploymentFacts> {
        self.unpack_shown(root.as_ref(), settings, now);
        let site = root
            .as_ref()
            .and_then(|root| self.tenants.get(root)?.content.site.as_deref());
        let origin = &settings.config.origin;
        let mut company = site.and_then(|site| site.manifest.company.as_deref().cloned());
        // The pages of other tenants name neither a protected tenant nor a preview.
        let access = self.addresses.access();
        let is_shown =
            |site: &CompanySite| !access.names(&site.tenant) && !is_preview(&site.tenant);
        if let Some(company) = &mut company {
            company.sites.retain(is_shown);
        }
        let sites = company
            .iter()
            .flat_map(|company| &company.sites)
            .map(|company_site| {
                let site = TenantId::new(&company_site.tenant)
                    .ok()
                    .and_then(|id| self.tenants.get(&id)?.content.site.clone());
                let theme = |site: &Site| self.themes.get(&site.manifest.theme).cloned();
                let source = site.and_then(|site| theme(&site).map(|theme| (site, theme)));
                (company_site.clone(), source)
            });
        let sites = sites.collect();
        let (mut translated, linked_pages) = site.map(translated_companies).unwrap_or_default();
        for translated in translated.values_mut() {
            let sites = &mut translated.company.sites;
            sites.retain(is_shown);
        }
        let deployment = DeploymentFacts {
            origin: origin.clone(),
            sites: self.cards.update(sites),
            year: year(company.as_ref(), now),
            company,
            translated,
            linked_pages,
            image: site.and_then(|site| render::default_image(site, origin)),
            root,
            hsts: (settings.config.hsts)
                .or_else(|| site.map(|site| site.manifest.hsts))
                .unwrap_or_default(),
            caching: settings.config.caching,
            shows_section_examples: settings.shows_section_examples,
        };
        match &self.deployment {
            Some(before) if **before == deployment => Arc::clone(before),
            _ => Arc::new(deployment),
        }
    }

    /// Unpacks the content of tenants whose data the pages of all tenants may show.
    fn unpack_shown(&mut self, root: Option<&TenantId>, settings: &Settings, now: Timestamp) {
        let includes_hidden = settings.is_dev();
        let company = || {
            let site = self.tenants.get(root?)?.content.site.as_ref()?;
            site.manifest.company.clone()
        };
        let sites = company().map_or_else(Vec::new, |company| company.sites);
        let sites = sites.iter().map(|site| site.tenant.as_str());
        for id in root.map(TenantId::as_str).into_iter().chain(sites) {
            if let Some(tenant) = self.tenants.get_mut(id) {
                self.packed_bytes -= tenant.content.packed_bytes();
                tenant.unpack(now, includes_hidden);
                self.packed_bytes += tenant.content.packed_bytes();
            }
        }
    }

    /// Removes a tenant whose folder is gone.
    pub(crate) fn forget(&mut self, id: &TenantId) {
        self.note_page_change(id.clone(), None);
        if let Some(tenant) = self.tenants.remove(id) {
            self.packed_bytes -= tenant.content.packed_bytes();
        }
    }

    /// Returns the next time at which a page appears or expires.
    pub(crate) fn next_change(&self) -> Option<Timestamp> {
        self.page_changes.first().map(|(next, _)| *next)
    }

    /// Returns whether a tenant has no pages because its theme has errors, which the report of the theme lists.
    pub(crate) fn has_theme_errors(&self, tenant: &TenantData) -> bool {
        let site = tenant.content.site.as_ref();
        let mut result = tenant.reports.result.iter();
        site.is_some_and(|site| self.themes.has_errors(&site.manifest.theme))
            && result.any(|diagnostic| diagnostic.code == Code::UnknownTheme)
    }

    /// Returns the year of the copyright line, in the company's time zone.
    pub(crate) fn year(&self, now: Timestamp) -> i16 {
        let deployment = self.deployment.as_ref();
        year(
            deployment.and_then(|deployment| deployment.company.as_ref()),
            now,
        )
    }
}

/// Returns the changed tenants, or all tenants.
fn ids(
    affects_all: bool,
    changed: &BTreeSet<TenantId>,
    tenants: &BTreeMap<TenantId, Box<TenantData>>,
) -> Vec<TenantId> {
    match affects_all {
        true => tenants.keys().cloned().collect(),
        false => changed.iter().cloned().collect(),
    }
}

/// Returns the year in the time zone of the company, or in UTC without a company profile.
fn year(company: Option<&Company>, now: Timestamp) -> i16 {
    let zone = company.map(|company| company.time_zone.clone());
    zone.unwrap_or_default().year(now)
}

fn unknown_theme<'a>(site: &Site, themes: impl Iterator<Item = &'a str> + Clone) -> Report {
    let theme = &site.manifest.theme;
    let (message, hint) = if themes.clone().any(|known| known == theme.as_str()) {
        (
            format!("the theme `{theme}` has errors, so no page can be rendered"),
            format!("correct the errors of `themes/{theme}`"),
        )
    } else {
        (format!("unknown theme `{theme}`"), hint_for(theme, themes))
    };
    let mut report = Report::default();
    report.push(Diagnostic::error(Code::UnknownTheme, site.name_of(MANIFEST), message).hint(hint));
    report
}
