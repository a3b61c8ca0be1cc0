//! Reads the inputs that all tenants share: the list of their folders, `deployment.yaml` and the themes.
//!
//! **Invariant:** decides nothing and changes nothing, so that a survey can run on any thread.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use content::name::TenantId;
use content::report::Diagnostic;
use content::report::guard::guard;
use content::source::SourceError;
use content::tenant::Site;
use release::store::Store;

use crate::runner::catalog::themes::Themes;
use crate::snapshot::replaced::ReplacedFiles;
use crate::source::TenantSource;
use crate::source::theme_folders::ThemeFolders;
use crate::state::tables::{PersistedCache, load_replaced, load_site};

/// The inputs to read.
#[derive(Debug, Clone)]
pub(crate) struct SurveyRequest {
    pub(crate) source: Arc<dyn TenantSource>,
    /// The themes to read again; `None` to read no themes.
    pub(crate) themes: Option<ThemesRequest>,
    /// The persisted tenants to restore; `None` without persisted data.
    pub(crate) restore: Option<RestoreRequest>,
}

/// The themes to read again, with their last state.
#[derive(Debug, Clone)]
pub(crate) struct ThemesRequest {
    pub(crate) source: Arc<dyn TenantSource>,
    pub(crate) before: Themes,
    pub(crate) store: Option<Arc<Store>>,
}

/// The persisted tenants to restore.
#[derive(Debug, Clone)]
pub(crate) struct RestoreRequest {
    pub(crate) store: Arc<Store>,
    /// The tenants to restore if no folders are listed; empty once tenants are known.
    pub(crate) tenants: Vec<TenantId>,
    /// The removed tenants to restore in any case.
    pub(crate) removed: Vec<TenantId>,
    pub(crate) is_secure: bool,
}

/// A tenant whose persisted content is served instead of its folder.
#[derive(Debug)]
pub(crate) struct RestoredTenant {
    pub(crate) site: Site,
    pub(crate) cache: PersistedCache,
    pub(crate) replaced: ReplacedFiles,
}

/// The result of a survey.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The tenants' folders by name.
    pub(crate) tenants: Result<BTreeMap<String, PathBuf>, SourceError>,
    /// The text of `deployment.yaml`; `None` if the file does not exist.
    pub(crate) deployment: Result<Option<String>, Diagnostic>,
    /// The themes, if the request includes themes.
    pub(crate) themes: Option<Result<Themes, SourceError>>,
    /// The persisted tenants, if no folders are listed at startup.
    pub(crate) restored: BTreeMap<TenantId, RestoredTenant>,
    /// The removed tenants to restore; `None` for a tenant without persisted content.
    pub(crate) removed: BTreeMap<TenantId, Option<RestoredTenant>>,
}

impl SurveyRequest {
    /// Reads everything. A call to a file system that does not respond does not return.
    pub(crate) fn run(self) -> Survey {
        let tenants = self.source.list();
        let is_missing = tenants.as_ref().map_or(true, BTreeMap::is_empty);
        let (mut restored, mut removed) = (BTreeMap::new(), BTreeMap::new());
        if let Some(restore) = self.restore {
            let read = |id: &TenantId| (id.clone(), restore.read(id, &*self.source));
            removed = restore.removed.iter().map(read).collect();
            if is_missing {
                let found = |(id, tenant): (_, Option<_>)| Some((id, tenant?));
                restored = restore.tenants.iter().map(read).filter_map(found).collect();
            }
        }
        Survey {
            restored,
            removed,
            tenants,
            deployment: self.source.deployment(),
            themes: self.themes.map(ThemesRequest::run),
        }
    }
}

impl ThemesRequest {
    fn run(self) -> Result<Themes, SourceError> {
        let mut themes = self.before;
        let location = self.source.themes();
        let label = location.as_ref().map(|location| location.label.clone());
        let read = location.map(ThemeFolders::read);
        themes.reload(label.as_deref(), read, self.store.as_ref())?;
        Ok(themes)
    }
}

impl RestoreRequest {
    /// Reads the persisted content of a tenant. Returns `None` if there is none, or if it is damaged.
    fn read(&self, id: &TenantId, source: &dyn TenantSource) -> Option<RestoredTenant> {
        let label = source.label(id);
        let find = || load_site(&self.store, id, &label);
        let site = guard("persisted", id.as_str(), &label, find)
            .ok()
            .flatten()?;
        Some(RestoredTenant {
            site,
            cache: PersistedCache::of_tenant(&self.store, id),
            replaced: load_replaced(&self.store, id, false, self.is_secure),
        })
    }
}
