//! Executes the actions of the [`World`](crate::model::world::World) on the data of tenants, the job pool and the store.
//!
//! **Invariant:** decides nothing.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tracing::{info, warn};

use content::name::TenantId;
use content::report::guard::inject;
use release::snapshot::{ResourceTable, Snapshot};
use render::Cache;

use crate::jobs::compile::{CompressPages, StandInBuild, StandInInputs};
use crate::jobs::outcome::{JobOutcome, PageOrigin};
use crate::jobs::pin;
use crate::jobs::read::{self, ReadOptions};
use crate::model::event::{Action, ChangeSet, Event};
use crate::model::tenant::{BuildKey, TenantState as States};
use crate::runner::catalog::tenant::{ServedPages, TenantData};
use crate::runner::driver::{Environment, EventData};
use crate::runner::registry::Registry;
use crate::runner::threads::job_pool::Job;
use crate::runner::{preview, removal};
use crate::snapshot::replaced::ReplacedFiles;
use crate::state::tables::PersistedCache;
use crate::state::write::{self, persist_tenant};

impl Registry {
    /// Executes the actions that the world has decided on. Returns a snapshot if one is to be published.
    pub(crate) fn perform(
        &mut self,
        actions: Vec<Action>,
        event_data: &mut EventData,
        environment: &mut dyn Environment,
        now: Timestamp,
    ) -> Option<Snapshot> {
        let mut jobs = Vec::new();
        let mut snapshot = None;
        for action in actions {
            match action {
                Action::BeginReload(reload) => environment.begin_reload(reload),
                Action::Survey(reload) => {
                    let request = self.survey_request(reload.includes_themes);
                    environment.survey(reload, request);
                }
                Action::Read {
                    tenant,
                    number,
                    is_only,
                    waits,
                } => jobs.push(self.read_job(tenant, number, is_only, waits)),
                Action::ReportUnresponsive { tenant, number } => {
                    if let EventData::Unresponsive(folder) = event_data {
                        let (folder, is_secure) = (Arc::clone(folder), self.settings.is_secure());
                        jobs.push(read::report_unresponsive(tenant, number, folder, is_secure));
                    }
                }
                Action::Forget(tenant) => {
                    self.catalog.forget(&tenant);
                    self.job_pool.forget(&tenant);
                }
                Action::ReportRemoval(tenant) => removal::report(self, &tenant),
                Action::ReportReturn(tenant) => removal::report_return(&tenant),
                Action::ReportPreview { tenant, phase } => preview::report(self, &tenant, phase),
                Action::Restore(tenant) => {
                    if let EventData::Restored(restored) =
                        std::mem::replace(event_data, EventData::Nothing)
                    {
                        removal::restore(self, tenant, *restored, now);
                    }
                }
                Action::ForgetHistory(tenant) => removal::forget(self, &tenant),
                Action::PersistRemovals => removal::persist(self),
                Action::ReplaceContent(tenant) => {
                    if let EventData::Read(read) = std::mem::replace(event_data, EventData::Nothing)
                    {
                        let (catalog, is_persisting) =
                            (&mut self.catalog, self.persisted.is_some());
                        catalog.now = now;
                        catalog.replace_content(&tenant, *read, &self.settings, is_persisting);
                        write::persist_reading(self, &tenant);
                    }
                }
                Action::Plan(changes) => self.plan(&changes, now),
                Action::Build { tenant, key, opens } => {
                    jobs.extend(self.build_job(&tenant, key, opens));
                }
                Action::ReportBuild(tenant) => self.report_build(&tenant, event_data),
                Action::Serve { tenant, .. } => self.serve(&tenant, event_data, now),
                Action::ServeStandIn(tenant) => self.serve_stand_in(&tenant, event_data, now),
                Action::Close(tenant) => {
                    if let Some(tenant) = self.catalog.tenants.get_mut(&tenant) {
                        tenant.served = None;
                    }
                }
                Action::StandIn(tenant) => match self.stand_in_job(&tenant, now) {
                    Some(job) => jobs.push(job),
                    None => {
                        let is_found = false;
                        self.handle(Event::StoodIn { tenant, is_found }, now);
                    }
                },
                Action::Park { tenant, .. } => self.park(&tenant, event_data),
                Action::Evict { tenant, .. } => self.evict(&tenant, event_data),
                Action::LoadPin { tenant, number } => {
                    jobs.extend(self.store().map(|store| pin::load(store, tenant, number)));
                }
                Action::WritePin { tenant, to } => {
                    jobs.extend(self.store().map(|store| pin::write(store, tenant, to)));
                }
                Action::ServePin { tenant, is_pinned } => {
                    self.serve_pin(&tenant, is_pinned, event_data);
                }
                Action::Reply { ticket, reply } => self.commands.reply(ticket, reply),
                Action::Persist(tenant) => persist_tenant(self, &tenant),
                Action::Publish(changes) => {
                    inject("loop", "snapshot");
                    snapshot = Some(self.snapshot(changes));
                }
            }
        }
        if !jobs.is_empty() {
            inject("loop", "hand over");
            self.job_pool.hand_over(jobs);
        }
        snapshot
    }

    /// Assigns addresses, derives the inputs of builds, and reports them as [`Event::Planned`].
    fn plan(&mut self, changes: &ChangeSet, now: Timestamp) {
        inject("addresses", "all");
        let begun = Instant::now();
        let plans = self.catalog.plan(changes, &self.settings, now);
        if let Some(dormant) = &self.settings.dormant {
            dormant.set_needed(self.catalog.shown_by_all());
        }
        let took = begun.elapsed();
        self.handle(Event::Planned { plans, took }, now);
    }

    /// Returns a job that reads the folder of a tenant. A new tenant is added to the catalog.
    fn read_job(
        &mut self,
        id: TenantId,
        number: u64,
        is_only: bool,
        waits: bool,
    ) -> Job<JobOutcome> {
        let is_new = !self.catalog.tenants.contains_key(&id);
        let order = ReadOptions {
            settings: &self.settings,
            store: self
                .persisted
                .as_ref()
                .map(|persisted| Arc::clone(persisted.store())),
            number,
            is_only,
            waits,
            is_new,
            is_packed: self.catalog.is_packed,
        };
        let tenant = self.catalog.tenants.entry(id.clone());
        let tenant = tenant.or_insert_with(|| {
            Box::new(TenantData::new(
                PersistedCache::default(),
                ReplacedFiles::default(),
            ))
        });
        read::read(id, tenant, order)
    }

    /// Returns a job that builds a tenant, or `None` if inputs are missing.
    ///
    /// `opens`: requests wait at the addresses of the tenant, and the job runs in the background.
    fn build_job(&mut self, id: &TenantId, key: BuildKey, opens: bool) -> Option<Job<JobOutcome>> {
        let made_from = self.catalog.inputs(id, key, &self.settings)?;
        let sources = self.release_sources();
        let tenant = self.catalog.tenants.get_mut(id)?;
        tenant.persisted.cache.begin();
        let waiting = opens.then(|| tenant.open_mounts(&made_from)).flatten();
        let waiting: Vec<_> = waiting.into_iter().collect();
        let is_background = !waiting.is_empty();
        let compressed = self
            .settings
            .compression(!is_background && tenant.is_requested());
        let made_from = Arc::new(made_from);
        let copy = is_background.then(|| made_from.copy_job(id, &sources, &waiting, compressed));
        let job = made_from.job(id, &sources, waiting, is_background, compressed);
        Some(Job { copy, ..job })
    }

    /// Records the diagnostics and the duration of a build.
    fn report_build(&mut self, id: &TenantId, event_data: &mut EventData) {
        if let EventData::Built(built) = event_data
            && let Some((report, took)) = built.outcome.take()
            && let Some(tenant) = self.catalog.tenants.get_mut(id)
        {
            tenant.record_build(report, took);
            if built.origin == PageOrigin::Rendered && built.compiled.is_some() {
                self.settings.renders.observe(took);
            }
        }
    }

    /// Makes the pages of a build the current pages of the tenant.
    fn serve(&mut self, id: &TenantId, event_data: &EventData, now: Timestamp) {
        let EventData::Built(built) = event_data else {
            return;
        };
        let (is_secure, is_persisting) = (self.settings.is_secure(), self.persisted.is_some());
        let hosts = &self.publisher.hosts;
        let Some(tenant) = self.catalog.tenants.get_mut(id) else {
            return;
        };
        let Some(compiled) = &built.compiled else {
            return;
        };
        let before = tenant.rendered();
        let images = before.map(|before| hosts.replaced_images(before, compiled, is_secure));
        tenant.replace_files(compiled, images.unwrap_or_default(), now);
        match built.origin.persisted_key() {
            Some(response_key) => {
                self.demands.restored += 1;
                tenant
                    .recorded
                    .set_last(&built.made_from.inputs, response_key);
            }
            None => tenant.recorded.is_due |= is_persisting && !built.is_encoding,
        }
        tenant.served = Some(ServedPages {
            made_from: built.made_from.clone(),
            compiled: Arc::clone(compiled),
        });
        if !compiled.is_open() {
            if let Some(pinned) = &mut tenant.recorded.pinned {
                pinned.add_images(compiled);
            }
            self.job_pool.forget(id);
        }
    }

    /// Makes pages of persisted content the current pages of the tenant.
    fn serve_stand_in(&mut self, id: &TenantId, event_data: &mut EventData, now: Timestamp) {
        if let EventData::StandIn(found) = std::mem::replace(event_data, EventData::Nothing)
            && let Some(tenant) = self.catalog.tenants.get_mut(id)
        {
            let (compiled, made_from) = *found;
            tenant.replace_files(&compiled, ResourceTable::default(), now);
            tenant.served = Some(ServedPages {
                made_from,
                compiled: Arc::new(compiled),
            });
        }
    }

    /// Serves the loaded or prepared release of a tenant (`is_pinned`), or the pages of its folder. A tenant whose pinned release was not found is unavailable.
    fn serve_pin(&mut self, id: &TenantId, is_pinned: bool, event_data: &mut EventData) {
        let Some(tenant) = self.catalog.tenants.get_mut(id) else {
            return;
        };
        let recorded = &mut tenant.recorded;
        let event_data = std::mem::replace(event_data, EventData::Nothing);
        let release = match event_data {
            EventData::Release(release) => Some(*release),
            _ => recorded.prepared_rollback.take(),
        };
        recorded.pinned = release.filter(|_| is_pinned);
        recorded.prepared_rollback = None;
        let states = self.world.tenant(id.as_str());
        let unreadable = states.and_then(States::unreadable_pin);
        match &recorded.pinned {
            Some(pinned) => {
                info!(tenant = %id, release = pinned.number, "serving the pinned release; changes of the folder are not published");
                if (tenant.served.as_ref()).is_some_and(|served| served.compiled.is_open()) {
                    // No request waits for these pages, and the images of the release come from them.
                    self.job_pool.prioritise()(id.as_str());
                }
            }
            None => {
                if let Some(release) = unreadable {
                    warn!(tenant = %id, release, "the pinned release cannot be served; responding with 503 until `rowhouse rollback` to another release or `rowhouse resume`");
                }
            }
        }
    }

    /// Parks a job that compresses, loads or renders the pages of a tenant when a request arrives.
    fn park(&mut self, id: &TenantId, event_data: &EventData) {
        let waiting = match event_data {
            EventData::Built(built) => built.waiting.clone(),
            _ => Vec::new(),
        };
        let sources = self.release_sources();
        let Some(served) = self
            .catalog
            .tenants
            .get(id)
            .and_then(|tenant| tenant.served.clone())
        else {
            return;
        };
        let ServedPages {
            made_from,
            compiled,
        } = served;
        let job = match compiled.is_uncompressed() {
            true => made_from.compression_job(id, compiled, waiting),
            false => {
                let mut made_from = made_from;
                made_from.inputs.attempt = Arc::default();
                let waiting = [vec![compiled], waiting].concat();
                let made_from = Arc::new(made_from);
                made_from.job(id, &sources, waiting, true, CompressPages::OnRequest)
            }
        };
        self.job_pool.hold(job);
    }

    /// Evicts the pages of a tenant, and parks a job that restores the pages when a request arrives.
    fn evict(&mut self, id: &TenantId, event_data: &EventData) {
        let waiting = match event_data {
            EventData::Built(built) => built.waiting.clone(),
            _ => Vec::new(),
        };
        let sources = self.release_sources();
        let Some(tenant) = self.catalog.tenants.get_mut(id) else {
            return;
        };
        tenant.persisted.forget(sources.store.as_ref(), id);
        let Some((made_from, evicted)) = tenant.evict() else {
            return;
        };
        self.demands.evictions += 1;
        self.publisher.hosts.forget(&evicted.images);
        let (made_from, waiting) = (Arc::new(made_from), [vec![evicted], waiting].concat());
        let job = made_from.job(id, &sources, waiting, true, CompressPages::OnRequest);
        self.job_pool.hold(job);
    }

    /// Returns a job that builds pages from the persisted content of a tenant, if data is persisted.
    fn stand_in_job(&self, id: &TenantId, now: Timestamp) -> Option<Job<JobOutcome>> {
        let persisted = self.persisted.as_ref()?;
        let tenant = self.catalog.tenants.get(id)?;
        let site = Arc::clone(tenant.content.site.as_ref()?);
        let themes = &self.catalog.themes;
        let fallback = StandInBuild {
            packed: tenant.content.packed.clone(),
            addresses: Arc::clone(&tenant.addresses.0),
            inputs: StandInInputs {
                // No build has this key, so the pages of any build replace the stand-in.
                key: BuildKey::default(),
                deployment: Arc::clone(self.catalog.deployment.as_ref()?),
                islands: Arc::clone(&self.settings.islands),
                cache: Arc::<Cache>::clone(&tenant.persisted.cache),
                templates: themes.get(&site.manifest.theme).cloned(),
                persisted_themes: Arc::clone(&themes.last_valid),
                store: Arc::clone(persisted.store()),
                now,
                includes_hidden: self.settings.is_dev(),
            },
            site,
        };
        Some(fallback.job(id))
    }
}
