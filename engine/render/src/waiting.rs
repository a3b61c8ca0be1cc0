//! A tenant that is not rendered now: its addresses with open mounts, at which requests wait.

use std::sync::{Arc, OnceLock};

use super::cache::Cache;
use super::compiled::{Compiled, PlacedMount};
use super::inputs::Inputs;
use super::link::Resolver;
use super::site_files::listing;
use content::address::Address;
use content::tenant::Site;
use release::snapshot::{Mount, Slot};

impl Compiled {
    /// A tenant before it is rendered: what its host's sitemap says of it is known, and nothing else. Who waited at an address of `before` goes on waiting there. `None` where it has no address.
    #[must_use]
    pub fn waiting(
        site: &Site,
        addresses: &[Address],
        inputs: &Inputs,
        before: Option<&Self>,
    ) -> Option<Self> {
        let resolver = Resolver::new(site, addresses.first()?, &inputs.deployment);
        let open = |address: &Address| {
            let mut before = before.into_iter().flat_map(|before| &before.mounts);
            let same = before.find(|placed| placed.address == *address && placed.is_open());
            same.cloned()
                .unwrap_or_else(|| PlacedMount::open(site.id.shared(), address))
        };
        Some(Self {
            mounts: addresses.iter().map(open).collect(),
            is_rendered: false,
            neighbour_links: Vec::new(),
            orphans: Vec::new(),
            fragments: Arc::default(),
            listing: Arc::new(listing(site, &resolver)),
            pictures: Vec::new(),
            cache: Arc::clone(&inputs.cache),
            pages: site.pages.len(),
        })
    }

    /// The same without its pages, at open mounts: whoever asks waits until it is rendered again, with `cache`.
    #[must_use]
    pub fn asleep(&self, cache: &Arc<Cache>) -> Self {
        // What is left to draw is as long as the pages, and made again with them.
        let pictures = self.pictures.iter();
        pictures.for_each(|picture| picture.drawing.forget());
        let mounts = self.mounts.iter();
        let open = |placed: &PlacedMount| {
            let tenant = Arc::clone(&placed.mount.tenant);
            PlacedMount::open(tenant, &placed.address)
        };
        Self {
            mounts: mounts.map(open).collect(),
            cache: Arc::clone(cache),
            ..self.clone()
        }
    }

    /// Whether requests have to wait for it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.mounts.iter().any(PlacedMount::is_open)
    }

    /// Puts its pages into open mounts, so that who waits there is answered before there is another snapshot.
    pub fn fill(&mut self, waiting: &[PlacedMount]) {
        for placed in &mut self.mounts {
            let same = waiting.iter().find(|open| open.address == placed.address);
            if let Some(open) = same.filter(|open| open.is_open()) {
                let made = std::mem::replace(&mut placed.mount, Arc::clone(&open.mount));
                // It was made a moment ago, and nobody else has it.
                let made = Arc::into_inner(made).and_then(|mount| mount.pages.into_inner());
                open.mount.pages.fill(made);
            }
        }
    }
}

impl PlacedMount {
    fn open(tenant: Arc<str>, address: &Address) -> Self {
        let mount = Mount {
            tenant,
            prefix: address.prefix.as_str().into(),
            pages: Slot::default(),
            traffic: OnceLock::new(),
        };
        Self {
            address: address.clone(),
            mount: Arc::new(mount),
        }
    }

    fn is_open(&self) -> bool {
        self.mount.pages.is_open()
    }
}
