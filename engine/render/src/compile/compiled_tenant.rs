//! A tenant with its pages rendered, and the facts about it that the supervisor needs.

use std::sync::Arc;

use crate::compile::cache::Cache;
use crate::images::GeneratedImage;
use crate::lints::links::CrossTenantLink;
use crate::lints::pages::OrphanPage;
use crate::site_files::Listing;
use content::address::Address;
use release::snapshot::{Mount, MountPages};

/// A compiled tenant: one mount per address, and the results of rendering.
#[derive(Debug, Clone)]
pub struct CompiledTenant {
    /// One mount for each address, the canonical one first.
    pub mounts: Vec<AddressMount>,
    /// Whether its pages were rendered and checked. If not, only facts from its folder are known.
    pub is_rendered: bool,
    /// Links to other tenants, which only the supervisor can check.
    pub cross_tenant_links: Vec<CrossTenantLink>,
    /// Pages that no page of the tenant links to.
    pub orphans: Vec<OrphanPage>,
    /// The paths that other tenants may link to, sorted.
    pub paths: Arc<[Box<str>]>,
    /// Its entries in the sitemap of its canonical host.
    pub listing: Arc<Listing>,
    /// The images that still have to be rendered for the tenant.
    pub images: Vec<GeneratedImage>,
    /// The results of costly work for the tenant.
    pub cache: Arc<Cache>,
    /// The number of its pages.
    pub pages: usize,
}

impl CompiledTenant {
    /// Whether other tenants may link to `path`.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let found = self.paths.binary_search_by(|known| (**known).cmp(path));
        found.is_ok()
    }
}

/// A mount and the address at which it is served.
#[derive(Debug, Clone)]
pub struct AddressMount {
    /// The address.
    pub address: Address,
    /// The mount.
    pub mount: Arc<Mount>,
    /// The rendered pages before compression. Present only while no request needs them and the mount is open.
    pub uncompressed: Option<Arc<MountPages>>,
}

impl AddressMount {
    /// Returns the pages if they are in memory, compressed or not.
    #[must_use]
    pub fn pages(&self) -> Option<&MountPages> {
        self.mount.pages.get().or(self.uncompressed.as_deref())
    }
}
