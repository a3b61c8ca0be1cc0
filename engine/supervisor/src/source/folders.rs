//! Tenants in folders on disk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use content::name::TenantId;
use content::report::Diagnostic;
use content::source::{self, Activity, FolderLimits, FolderTree, SourceError};

use crate::source::TenantSource;
use crate::source::theme_folders::ThemesLocation;

/// The limit on the size of `deployment.yaml`, in bytes.
const MAX_DEPLOYMENT_BYTES: u64 = 1 << 20;

/// Reads tenants from the folders in one directory.
#[derive(Debug, Clone)]
pub(crate) struct FolderSource {
    tenants: PathBuf,
    deployment: PathBuf,
    themes: Option<PathBuf>,
}

impl FolderSource {
    /// Returns the source with this directory of tenants, this `deployment.yaml` and this folder of themes.
    pub(crate) const fn new(
        tenants: PathBuf,
        deployment: PathBuf,
        themes: Option<PathBuf>,
    ) -> Self {
        Self {
            tenants,
            deployment,
            themes,
        }
    }
}

impl TenantSource for FolderSource {
    fn list(&self) -> Result<BTreeMap<String, PathBuf>, SourceError> {
        source::list(&self.tenants)
    }

    fn deployment(&self) -> Result<Option<String>, Diagnostic> {
        source::text(&self.deployment, MAX_DEPLOYMENT_BYTES)
    }

    fn themes(&self) -> Option<ThemesLocation> {
        let folder = self.themes.clone()?;
        Some(ThemesLocation {
            label: folder.clone(),
            folder: Ok(folder),
        })
    }

    fn label(&self, id: &TenantId) -> String {
        self.tenants.join(id.as_str()).display().to_string()
    }

    fn tree(&self, id: &TenantId, limits: FolderLimits, activity: &Activity) -> FolderTree {
        let folder = self.tenants.join(id.as_str());
        source::walk(&folder, &self.label(id), limits, activity)
    }
}
