//! The settings of a supervisor, which do not change while the supervisor runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use release::store::Store;
use render::Islands;
use server::admin::status::RenderTimes;

use crate::deployment_config::DeploymentConfig;
use crate::jobs::compile::CompressPages;
use crate::jobs::shared_release::SharedReleases;
use crate::model::world::Mode;
use crate::snapshot::replaced::{self, Retention};
use crate::source::TenantSource;
use crate::source::dormant::DormantTenants;
use crate::source::folders::FolderSource;
use crate::source::watch::OpenFiles;

/// The settings of a supervisor.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: DeploymentConfig,
    pub(crate) source: Arc<dyn TenantSource>,
    pub(crate) islands: Arc<Islands>,
    pub(crate) mode: Mode,
    /// The limit on the memory of tenants, in bytes.
    pub(crate) memory: Option<usize>,
    /// The time for which replaced files are served.
    pub(crate) asset_retention: SignedDuration,
    /// The longest wait for files whose upload has not ended; `None` outside a server.
    pub(crate) settle_max: Option<Duration>,
    /// The files that programs are writing to.
    pub(crate) open_files: OpenFiles,
    /// Whether pages are compressed.
    pub(crate) compresses: bool,
    /// Whether the examples of section types become pages.
    pub(crate) shows_section_examples: bool,
    /// Whether folders of previews are left out.
    pub(crate) leaves_out_previews: bool,
    /// The histogram of the render times of tenants.
    pub(crate) renders: RenderTimes,
    /// The releases of the fleet, if this process is a replica.
    pub(crate) shared_releases: Option<Arc<dyn SharedReleases>>,
    /// The dormant tenants of the fleet, if this process is a replica.
    pub(crate) dormant: Option<Arc<dyn DormantTenants>>,
}

impl Settings {
    pub(crate) fn new(config: DeploymentConfig, islands: Arc<Islands>) -> Self {
        let source = FolderSource::new(
            config.tenants.clone(),
            config.deployment_file(),
            config.themes.clone(),
        );
        Self {
            source: Arc::new(source),
            config,
            islands,
            mode: Mode::Batch,
            memory: None,
            asset_retention: replaced::RETENTION_TIME,
            settle_max: None,
            open_files: OpenFiles::default(),
            compresses: true,
            shows_section_examples: false,
            leaves_out_previews: false,
            renders: RenderTimes::default(),
            shared_releases: None,
            dormant: None,
        }
    }

    /// Returns whether authors work on the tenants (`--dev`).
    pub(crate) fn is_dev(&self) -> bool {
        self.islands.dev.is_some()
    }

    /// Returns whether visitors use HTTPS.
    pub(crate) fn is_secure(&self) -> bool {
        self.config.origin.is_secure()
    }

    /// Returns when the pages of a build are compressed.
    pub(crate) fn compression(&self, is_requested: bool) -> CompressPages {
        match () {
            () if !self.compresses => CompressPages::Never,
            // Authors open the pages that they save.
            () if self.mode == Mode::Batch || self.is_dev() || is_requested => {
                CompressPages::Immediately
            }
            () => CompressPages::OnRequest,
        }
    }

    /// Returns the limits on the time and the disk space of replaced files: at most half of the state's disk space.
    pub(crate) fn retention(&self, store: Option<&Arc<Store>>) -> Retention {
        let limit = store.map(|store| store.max_bytes() / 2);
        Retention {
            time: self.asset_retention,
            large_bytes: limit.unwrap_or(u64::MAX),
        }
    }
}
