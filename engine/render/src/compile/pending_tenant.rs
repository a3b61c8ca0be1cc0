//! Tenants that are not rendered or not compressed now. Their mounts are open: requests wait at them. The mounts of an unavailable tenant are closed: requests get 503.

use std::sync::{Arc, OnceLock};

use crate::compile::cache::Cache;
use crate::compile::compiled_tenant::{AddressMount, CompiledTenant};
use crate::compile::inputs::CompileInputs;
use crate::resources::encodings::page_encodings::Encoder;
use crate::site_files::listing;
use content::address::Address;
use content::tenant::Site;
use release::snapshot::{Mount, MountPages, Slot};

impl CompiledTenant {
    /// Creates a tenant that is not rendered yet. Only its entries in the host's sitemap are known.
    ///
    /// Open mounts of `before` stay in use at the same addresses, so requests that wait there keep waiting. Returns `None` if the tenant has no address.
    #[must_use]
    pub fn pending(
        site: &Site,
        addresses: &[Address],
        inputs: &CompileInputs,
        before: Option<&Self>,
    ) -> Option<Self> {
        let canonical = addresses.first()?;
        let open = |address: &Address| {
            let mut before = before.into_iter().flat_map(|before| &before.mounts);
            let same = before.find(|placed| placed.address == *address && placed.is_open());
            same.cloned()
                .unwrap_or_else(|| AddressMount::open(site.id.shared(), address))
        };
        Some(Self {
            mounts: addresses.iter().map(open).collect(),
            is_rendered: false,
            cross_tenant_links: Vec::new(),
            orphans: Vec::new(),
            paths: Arc::default(),
            listing: Arc::new(listing(site, canonical, &inputs.deployment.origin)),
            images: Vec::new(),
            cache: Arc::clone(&inputs.cache),
            pages: site.pages.len(),
        })
    }

    /// Returns the tenant without its pages, at open mounts. Requests wait until it is rendered again with `cache`.
    #[must_use]
    pub fn evicted(&self, cache: &Arc<Cache>) -> Self {
        // The sources of pending images take as much memory as the pages, and are made again with them.
        let images = self.images.iter();
        images.for_each(|image| image.spec.drop_source());
        let mounts = self.mounts.iter();
        let open = |placed: &AddressMount| match placed.is_open() {
            true => AddressMount {
                uncompressed: None,
                ..placed.clone()
            },
            false => AddressMount::open(Arc::clone(&placed.mount.tenant), &placed.address),
        };
        Self {
            mounts: mounts.map(open).collect(),
            cache: Arc::clone(cache),
            ..self.clone()
        }
    }

    /// Returns the tenant without its pages and images, at mounts that never get pages. Requests get 503.
    #[must_use]
    pub fn unavailable(&self) -> Self {
        let mounts = self.mounts.iter();
        let closed = |placed: &AddressMount| {
            let closed = AddressMount::open(Arc::clone(&placed.mount.tenant), &placed.address);
            closed.mount.pages.fill(None);
            closed
        };
        Self {
            mounts: mounts.map(closed).collect(),
            listing: Arc::new(self.listing.without_pages()),
            images: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether requests have to wait for its pages.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.mounts.iter().any(AddressMount::is_open)
    }

    /// Whether its pages are rendered but not compressed yet.
    #[must_use]
    pub fn is_uncompressed(&self) -> bool {
        self.mounts
            .iter()
            .any(|placed| placed.uncompressed.is_some())
    }

    /// Opens its mounts and stores their uncompressed pages beside them. Requests wait until [`CompiledTenant::compress`] compresses the pages.
    pub fn set_aside(&mut self) {
        for placed in &mut self.mounts {
            let open = AddressMount::open(Arc::clone(&placed.mount.tenant), &placed.address);
            let made = std::mem::replace(placed, open);
            // The mount was just created, so no other reference exists.
            let pages = Arc::into_inner(made.mount).and_then(|mount| mount.pages.into_inner());
            placed.uncompressed = pages.map(Arc::new);
        }
    }

    /// Compresses the pages that were set aside. Fills its own mounts, and the open mounts of `waiting` at the same addresses.
    #[must_use]
    pub fn compress(&self, waiting: &[Arc<Self>]) -> Self {
        let mut mounts = self.mounts.clone();
        let mut encoder = Encoder::new(&self.cache);
        for placed in &mut mounts {
            if let Some(pages) = placed.uncompressed.take() {
                let coded = encoder.encode(&pages);
                for open in placed.open_in(waiting) {
                    open.pages.fill(Some(coded.clone()));
                }
                placed.mount.pages.fill(Some(coded));
            }
        }
        Self {
            mounts,
            ..self.clone()
        }
    }

    /// Puts its pages into the open mounts of `waiting` at the same addresses, so that waiting requests get a response before the next snapshot.
    ///
    /// The tenant adopts the first such mount of each address as its own.
    pub fn fill(&mut self, waiting: &[Arc<Self>]) {
        for placed in &mut self.mounts {
            let mut open = placed
                .open_in(waiting)
                .cloned()
                .collect::<Vec<_>>()
                .into_iter();
            let Some(own) = open.next() else {
                continue;
            };
            let made = std::mem::replace(&mut placed.mount, own);
            // The mount was just created, so no other reference exists.
            let made = Arc::into_inner(made).and_then(|mount| mount.pages.into_inner());
            for other in open {
                other.pages.fill(made.clone());
            }
            placed.mount.pages.fill(made);
        }
    }
}

impl AddressMount {
    pub(crate) fn open(tenant: Arc<str>, address: &Address) -> Self {
        let mount = Mount {
            tenant,
            prefix: address.prefix.as_str().into(),
            pages: Slot::default(),
            traffic: OnceLock::new(),
        };
        Self {
            address: address.clone(),
            mount: Arc::new(mount),
            uncompressed: None,
        }
    }

    /// Returns a mount with `pages` at the same address.
    pub(crate) fn with_pages(&self, pages: MountPages) -> Self {
        let other = Self::open(Arc::clone(&self.mount.tenant), &self.address);
        other.mount.pages.fill(Some(pages));
        other
    }

    fn is_open(&self) -> bool {
        self.mount.pages.is_open()
    }

    /// Returns the open mounts of `waiting` at its address.
    fn open_in<'a>(
        &'a self,
        waiting: &'a [Arc<CompiledTenant>],
    ) -> impl Iterator<Item = &'a Arc<Mount>> {
        let mounts = waiting.iter().flat_map(|waiting| &waiting.mounts);
        mounts
            .filter(|placed| placed.address == self.address && placed.is_open())
            .map(|placed| &placed.mount)
    }
}
