//! The folders of a deployment, and the origin at which visitors reach it.

use std::path::PathBuf;

use content::address::Origin;
use content::address::deployment::FILE;
use content::tenant::manifest::Hsts;
use render::CachePolicy;

/// The folders, the origin and the caching policy of one deployment.
#[derive(Debug, Clone)]
pub struct DeploymentConfig {
    /// The folder of tenants.
    pub tenants: PathBuf,
    /// The folder of themes. `None` uses the themes in the program.
    pub themes: Option<PathBuf>,
    /// The file with the addresses that tenants may claim. `None` uses `deployment.yaml` in the folder of tenants, if that exists.
    pub deployment: Option<PathBuf>,
    /// The origin at which visitors reach the deployment.
    pub origin: Origin,
    /// The scope of HTTP Strict Transport Security (RFC 6797). `None` uses the setting of the root tenant.
    pub hsts: Option<Hsts>,
    /// The policy for shared caches.
    pub caching: CachePolicy,
}

impl DeploymentConfig {
    /// Returns the path of `deployment.yaml`.
    pub(crate) fn deployment_file(&self) -> PathBuf {
        let within = || self.tenants.join(FILE);
        self.deployment.clone().unwrap_or_else(within)
    }

    /// Returns the paths of all folders and files to watch and read, without defaults.
    #[must_use]
    pub fn roots(&self) -> Vec<PathBuf> {
        let optional = [&self.themes, &self.deployment].into_iter().flatten();
        std::iter::once(&self.tenants)
            .chain(optional)
            .cloned()
            .collect()
    }
}
