//! The supervisor of all tenants: its parts, its settings and its reports.
//!
//! [`crate::runner::driver`] passes events to the [`World`], and executes its actions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use jiff::Timestamp;
use thiserror::Error;

use content::name::TenantId;
use content::report::{Diagnostic, Report, Severity};
use content::source::SourceError;
use content::tenant::Site;
use release::store::Store;
use render::{CompiledTenant, Islands};
use server::admin::status::{
    DeploymentStatus, PreviewStatus, RemovedTenant, RenderTimes, TenantStatus, by_id,
};
use server::snapshot_store::RequestNotice;

use crate::deployment_config::DeploymentConfig;
use crate::jobs::compile::ReleaseSources;
use crate::jobs::outcome::JobOutcome;
use crate::model::previews::PreviewPhase;
use crate::model::removal::removed_tenants::{Remembered, RemovedTenant as Removed};
use crate::model::world::{Mode, World};
use crate::runner::catalog::Catalog;
use crate::runner::memory::demand::DemandQueues;
use crate::runner::operator::commands::StartedCommands;
use crate::runner::settings::Settings;
use crate::runner::threads::job_pool::JobPool;
use crate::snapshot::assembly::Publisher;
use crate::snapshot::cross_tenant::cross_tenant;
use crate::snapshot::dev;
use crate::snapshot::template_failures::TemplateFailures;
#[cfg(feature = "bucket")]
use crate::source::bucket::BucketFollower;
use crate::source::survey::{RestoreRequest, SurveyRequest, ThemesRequest};
use crate::state::tables::PersistedState;

/// The reason that the folders of tenants or themes cannot be used.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The folder of tenants or themes cannot be listed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The folder of tenants has become empty. An unmounted volume is more likely than the removal of all tenants.
    #[error("the folder `{}` has become empty; serving its last tenants", .0.display())]
    Emptied(PathBuf),
}

/// The supervisor of all tenants.
#[derive(Debug)]
pub struct Registry {
    pub(crate) settings: Settings,
    pub(crate) world: World,
    pub(crate) catalog: Catalog,
    pub(crate) publisher: Publisher,
    pub(crate) persisted: Option<PersistedState>,
    /// The pool where tenants are read, checked and built.
    pub(crate) job_pool: JobPool<JobOutcome>,
    pub(crate) demands: DemandQueues,
    pub(crate) commands: StartedCommands,
    /// The reason that the last reload failed.
    pub(crate) alarm: Option<String>,
    /// Whether changes are noticed by polling, although notifications were requested.
    pub(crate) is_polling: bool,
}

impl Registry {
    /// Returns a supervisor without tenants.
    #[must_use]
    pub fn new(config: DeploymentConfig, islands: Arc<Islands>) -> Self {
        Self {
            settings: Settings::new(config, islands),
            world: World::new(Mode::Batch, Remembered::default()),
            catalog: Catalog::default(),
            publisher: Publisher::default(),
            persisted: None,
            job_pool: JobPool::new(),
            demands: DemandQueues::default(),
            commands: StartedCommands::default(),
            alarm: None,
            is_polling: false,
        }
    }

    /// Restores the persisted data, and persists new data from now on.
    #[must_use]
    pub fn with_persisted(mut self, persisted: PersistedState) -> Self {
        let pins = persisted.store().pins().into_iter();
        let pins = pins.filter_map(|(tenant, number)| Some((TenantId::new(&tenant).ok()?, number)));
        let remembered = Remembered {
            pins: pins.collect(),
            removed: persisted.removed(),
            tenants: persisted.tenants().cloned().collect(),
        };
        self.world = World::new(self.settings.mode, remembered);
        let is_secure = self.settings.is_secure();
        self.publisher.shared.cache = persisted.shared_cache();
        self.publisher.shared.replaced = persisted.shared_replaced(is_secure);
        self.catalog.addresses.restore(&persisted);
        self.persisted = Some(persisted);
        self
    }

    /// Reads the tenants that `follower` keeps, in place of a folder of tenants, and the published `deployment.yaml`, unless there is a local file. Shares releases with the other replicas.
    ///
    /// `themes` is a local folder that replaces the published themes.
    #[cfg(feature = "bucket")]
    #[must_use]
    pub fn with_bucket(mut self, follower: &BucketFollower, themes: Option<PathBuf>) -> Self {
        let config = &mut self.settings.config;
        config.themes = themes;
        let source = follower.source(config.themes.clone(), config.deployment.clone());
        self.settings.source = Arc::new(source);
        self.settings.shared_releases = Some(follower.releases());
        let origin = &self.settings.config.origin;
        self.settings.dormant = Some(follower.dormant(origin.domain()));
        self
    }

    /// Selects the mode of a server: slow tenants do not delay a snapshot, and follow in a later one.
    #[must_use]
    pub fn serving(mut self) -> Self {
        self.settings.mode = Mode::Serve;
        self.world.set_mode(Mode::Serve);
        self
    }

    /// Sets the time for which replaced files are served. The default is 24 hours.
    #[must_use]
    pub fn with_asset_retention(mut self, time: Duration) -> Self {
        let time = time.try_into();
        self.settings.asset_retention = time.unwrap_or(jiff::SignedDuration::MAX);
        self
    }

    /// Sets the time for which the history of a tenant without a folder is kept. The default is 30 days.
    #[must_use]
    pub const fn with_removed_retention(mut self, time: Duration) -> Self {
        self.world.set_removed_retention(time);
        self
    }

    /// Sets the age beyond which previews are not served. Without this call, there is no limit.
    #[must_use]
    pub const fn with_preview_max_age(mut self, age: Duration) -> Self {
        self.world.set_preview_max_age(age);
        self
    }

    /// Sets the histogram of the render times of tenants.
    #[must_use]
    pub fn with_render_times(mut self, renders: RenderTimes) -> Self {
        self.settings.renders = renders;
        self
    }

    /// Limits the memory of pages and images, in bytes.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.settings.memory = Some(bytes);
        self
    }

    /// Limits the memory of all jobs in flight (reading, rendering), in bytes.
    #[must_use]
    pub fn with_work_memory(self, bytes: u64) -> Self {
        self.job_pool.limit_memory(bytes);
        self
    }

    /// Disables the compression of pages.
    #[must_use]
    pub const fn without_compression(mut self) -> Self {
        self.settings.compresses = false;
        self
    }

    /// Leaves out the folders of previews.
    #[must_use]
    pub const fn without_previews(mut self) -> Self {
        self.settings.leaves_out_previews = true;
        self
    }

    /// Sets the longest wait for files whose upload has not ended. Without this call, folders are read as they are.
    #[must_use]
    pub const fn awaiting_uploads(mut self, settle_max: Duration) -> Self {
        self.settings.settle_max = Some(settle_max);
        self.world.set_settle_max(settle_max);
        self
    }

    /// Adds the examples of section types as pages, which all pages may embed in frames. The manual of the program uses such pages.
    #[must_use]
    pub const fn with_section_examples(mut self) -> Self {
        self.settings.shows_section_examples = true;
        self
    }

    /// Returns a request to list the tenants and to read `deployment.yaml`. `with_themes`: to read the themes again, too.
    pub(crate) fn survey_request(&self, with_themes: bool) -> SurveyRequest {
        let store = self.store();
        let themes = &self.catalog.themes;
        let themes = (with_themes || themes.is_empty()).then(|| ThemesRequest {
            source: Arc::clone(&self.settings.source),
            before: themes.clone(),
            store: store.cloned(),
        });
        let persisted = self.persisted.as_ref();
        let is_first = self.catalog.tenants.is_empty();
        let restore = persisted.map(|persisted| {
            let removed = self.world.removed();
            let is_served = |id: &&TenantId| removed.get(*id).is_none_or(|one| one.is_restored);
            let tenants = persisted.tenants().filter(|_| is_first);
            RestoreRequest {
                store: Arc::clone(persisted.store()),
                tenants: tenants.filter(is_served).cloned().collect(),
                removed: self.world.to_restore().cloned().collect(),
                is_secure: self.settings.is_secure(),
            }
        });
        SurveyRequest {
            source: Arc::clone(&self.settings.source),
            themes,
            restore,
        }
    }

    /// Returns the listed folders, or an error if the list is empty although tenants are known or persisted.
    pub(crate) fn check_listing(
        &self,
        folders: Result<BTreeMap<String, PathBuf>, SourceError>,
    ) -> Result<BTreeMap<String, PathBuf>, ReloadError> {
        let folders = folders?;
        let persisted = self.persisted.as_ref();
        let has_persisted = persisted.is_some_and(|persisted| persisted.tenants().next().is_some());
        if folders.is_empty() && (!self.catalog.tenants.is_empty() || has_persisted) {
            return Err(ReloadError::Emptied(self.settings.config.tenants.clone()));
        }
        Ok(folders)
    }

    /// Returns a callback that prioritises the pages, the image or the Markdown form that a request waits for.
    pub fn prioritise(&self) -> impl Fn(RequestNotice<'_>) + Send + Sync + 'static {
        let (prioritise, wake) = (self.job_pool.prioritise(), self.job_pool.waker());
        let images = self.demands.images.clone();
        let markdown = self.demands.markdown.clone();
        let requested = self.demands.requested.clone();
        let dormant = self.settings.dormant.clone();
        move |notice| match notice {
            RequestNotice::Dormant(id) => {
                if let Some(dormant) = &dormant {
                    dormant.request(id);
                }
            }
            RequestNotice::Pages(id) => prioritise(id),
            RequestNotice::Image(id) => {
                if images.add(id) {
                    wake();
                }
            }
            RequestNotice::Markdown(id, path) => {
                if markdown.add(id, path) {
                    wake();
                }
            }
            RequestNotice::Answered(id) => {
                requested.add(id);
                if let Some(dormant) = &dormant {
                    dormant.note_answered(id);
                }
            }
        }
    }

    /// Records that the last snapshot is served: pages may reference its shared files from now on.
    pub fn set_served(&self) {
        self.publisher.shared.set_served();
    }

    /// Returns the next time at which a page appears or expires.
    #[must_use]
    pub fn next_change(&self) -> Option<Timestamp> {
        self.catalog.next_change()
    }

    /// Returns the folders and the origin of the deployment.
    #[must_use]
    pub const fn config(&self) -> &DeploymentConfig {
        &self.settings.config
    }

    /// Returns the store, if data is persisted.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.persisted.as_ref().map(PersistedState::store)
    }

    /// Returns the places that may have pages of earlier renderings.
    pub(crate) fn release_sources(&self) -> ReleaseSources {
        ReleaseSources {
            store: self.store().cloned(),
            shared: self.settings.shared_releases.clone(),
        }
    }

    /// Returns the addresses that a tenant claims besides those of its name: hosts, paths of the origin, and `/` for the origin itself.
    #[must_use]
    pub fn claims(&self, tenant: &str) -> Vec<String> {
        let site = self.catalog.tenants.get(tenant);
        let Some(site) = site.and_then(|tenant| tenant.content.site.as_ref()) else {
            return Vec::new();
        };
        let manifest = &site.manifest;
        let hosts = manifest.hosts.iter().map(|host| host.as_str().to_owned());
        let aliases = manifest
            .aliases
            .iter()
            .map(|alias| alias.as_str().to_owned());
        let root = manifest.root.then(|| "/".to_owned());
        hosts.chain(aliases).chain(root).collect()
    }

    /// Returns all diagnostics, by file and line. A problem of a theme is reported once, and not for each tenant with the theme.
    #[must_use]
    pub fn report(&self) -> Report {
        let catalog = &self.catalog;
        let mut report = catalog.folder_report.clone();
        let names = catalog.tenants.keys().map(TenantId::as_str);
        report.extend(catalog.addresses.report(names, catalog.now));
        report.extend(catalog.themes.report().cloned());
        report.extend(self.publisher.report());
        let is_of_theme = |diagnostic: &Diagnostic| {
            diagnostic.severity == Severity::Error
                && !Path::new(&diagnostic.file).starts_with(&self.settings.config.tenants)
        };
        let mut failures = TemplateFailures::default();
        for tenant in catalog.tenants.values() {
            report.extend(tenant.reports.content.clone());
            report.extend(tenant.scheduled_pages(catalog.now));
            report.extend(tenant.reports.conflicts.clone());
            if catalog.has_theme_errors(tenant) {
                continue;
            }
            let result = tenant.reports.result.clone().into_iter();
            let (of_theme, of_tenant): (Vec<_>, Vec<_>) = result.partition(is_of_theme);
            failures.add(of_theme);
            report.extend(of_tenant);
        }
        report.extend(failures.into_diagnostics());
        report.extend(cross_tenant(catalog, &self.settings));
        report.sorted()
    }

    /// Returns the reason that the folders or `deployment.yaml` cannot be used. The last valid state is served meanwhile.
    #[must_use]
    pub fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref().or(self.catalog.addresses.alarm())
    }

    /// Returns the alarm for operators: [`Self::alarm`], or the tenants that are closed because `deployment.yaml` may misspell their names.
    #[must_use]
    pub fn any_alarm(&self) -> Option<&str> {
        self.alarm().or(self.catalog.addresses.misspelt_alarm())
    }

    /// Returns the state of every tenant, for the admin listener.
    #[must_use]
    pub fn status(&self) -> DeploymentStatus {
        let ids = self.catalog.tenants.keys();
        let all = ids.filter_map(|id| self.status_of(id.as_str()));
        self.status_with(by_id(all))
    }

    /// Returns the state of a tenant.
    pub(crate) fn status_of(&self, id: &str) -> Option<TenantStatus> {
        let (id, tenant) = self.catalog.tenants.get_key_value(id)?;
        let states = self.world.tenant(id.as_str())?;
        Some(tenant.status(id, states, self.preview_of(id)))
    }

    /// Returns the tenant that a preview shows, and its age. `None` for other tenants.
    fn preview_of(&self, id: &TenantId) -> Option<PreviewStatus> {
        let age = self.world.previews().age(id);
        id.is_preview().then(|| PreviewStatus {
            tenant: id.live_id().to_owned(),
            changed: age.map(|age| age.changed),
            ends: self.world.previews().end(id),
            is_ending: age.is_some_and(|age| age.phase == PreviewPhase::Ending),
        })
    }

    /// Returns the state of the server with the given states of its tenants.
    pub(crate) fn status_with(
        &self,
        tenants: OrdMap<Arc<str>, Arc<TenantStatus>>,
    ) -> DeploymentStatus {
        DeploymentStatus {
            complete: self.world.is_started(),
            alarm: self.any_alarm().map(ToOwned::to_owned),
            polling: self.is_polling,
            tenants,
            removed: self.removed_tenants(),
        }
    }

    /// Returns the removed tenants that are not served, for the admin listener.
    fn removed_tenants(&self) -> Arc<[RemovedTenant]> {
        let removed = self.world.removed().iter();
        let removed = removed.filter(|(id, _)| self.world.tenant(id.as_str()).is_none());
        let persisted = self.persisted.as_ref();
        let line = |(id, removed): (&TenantId, &Removed)| RemovedTenant {
            id: id.shared(),
            at: removed.at,
            is_persisted: persisted.is_some_and(|persisted| persisted.has_tenant(id)),
            was_valid: persisted.is_none_or(|persisted| persisted.has_tenant(id)),
        };
        removed.map(line).collect()
    }

    /// Returns the content and the pages of each served tenant.
    pub fn sites(&self) -> impl Iterator<Item = (&Site, &CompiledTenant)> {
        self.catalog.tenants.values().filter_map(|tenant| {
            let served = tenant.served.as_ref()?;
            Some((served.made_from.site.as_ref(), served.compiled.as_ref()))
        })
    }

    /// Returns all errors as JSON, for the browsers of authors. `problem`: the reason that the folders cannot be read.
    #[must_use]
    pub fn diagnostics(&self, problem: Option<&str>) -> String {
        dev::diagnostics(&self.catalog, &self.settings, problem)
    }
}
