//! A tenant with its pages rendered, and what its owner has to know of it.

use std::sync::Arc;

use crate::compile::cache::Cache;
use crate::images::Picture;
use crate::lints::links::NeighbourLink;
use crate::lints::pages::Orphan;
use crate::site_files::Listing;
use content::address::Address;
use release::snapshot::{Mount, Pages};

/// A compiled tenant.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// One for each address.
    pub mounts: Vec<PlacedMount>,
    /// Whether its pages were rendered and looked at; else there is only what was known before.
    pub is_rendered: bool,
    /// Links that only the owner of all tenants can check.
    pub neighbour_links: Vec<NeighbourLink>,
    /// Pages that none of its own leads to.
    pub orphans: Vec<Orphan>,
    /// The paths that a neighbour may link to, in order.
    pub paths: Arc<[Box<str>]>,
    /// Its entries in the sitemap of its canonical host.
    pub listing: Arc<Listing>,
    /// What the owner has to draw for it.
    pub pictures: Vec<Picture>,
    /// What was worked out for it.
    pub cache: Arc<Cache>,
    /// How many pages it has.
    pub pages: usize,
}

impl Compiled {
    /// Whether a neighbour may link to a path.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let found = self.paths.binary_search_by(|known| (**known).cmp(path));
        found.is_ok()
    }
}

/// A mount and the host it belongs to.
#[derive(Debug, Clone)]
pub struct PlacedMount {
    /// Where.
    pub address: Address,
    /// What.
    pub mount: Arc<Mount>,
    /// Its pages before they are compressed, while nobody has requested them and the mount is open.
    pub uncoded: Option<Arc<Pages>>,
}

impl PlacedMount {
    /// Its pages, as far as they are in memory.
    #[must_use]
    pub fn pages(&self) -> Option<&Pages> {
        self.mount.pages.get().or(self.uncoded.as_deref())
    }
}
