//! Where the deployment has its folders, and where visitors find it.

use std::path::PathBuf;

use content::address::Origin;
use content::tenant::manifest::Hsts;
use render::Caching;

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
    /// For how much of the domain browsers remember to come over TLS only; without it, the root tenant says so.
    pub hsts: Option<Hsts>,
    /// How long shared caches may keep pages.
    pub caching: Caching,
}

impl Places {
    /// All folders and files that are read.
    #[must_use]
    pub fn roots(&self) -> Vec<PathBuf> {
        let others = [&self.themes, &self.deployment].into_iter().flatten();
        std::iter::once(&self.tenants)
            .chain(others)
            .cloned()
            .collect()
    }
}
