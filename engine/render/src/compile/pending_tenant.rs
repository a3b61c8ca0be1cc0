//! A tenant that is not rendered now: its addresses with open mounts, at which requests wait.

use std::sync::{Arc, OnceLock};

use crate::compile::cache::Cache;
use crate::compile::compiled_tenant::{Compiled, PlacedMount};
use crate::compile::inputs::Inputs;
use crate::resources::encodings::page_encodings::Encoder;
use crate::site_files::listing;
use content::address::Address;
use content::tenant::Site;
use release::snapshot::{Mount, Pages, Slot};

impl Compiled {
    /// A tenant before it is rendered: what its host's sitemap says of it is known, and nothing else. Who waited at an address of `before` goes on waiting there. `None` where it has no address.
    #[must_use]
    pub fn pending(
        site: &Site,
        addresses: &[Address],
        inputs: &Inputs,
        before: Option<&Self>,
    ) -> Option<Self> {
        let canonical = addresses.first()?;
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
            paths: Arc::default(),
            listing: Arc::new(listing(site, canonical, &inputs.deployment.origin)),
            pictures: Vec::new(),
            cache: Arc::clone(&inputs.cache),
            pages: site.pages.len(),
        })
    }

    /// The same without its pages, at open mounts: whoever asks waits until it is rendered again, with `cache`.
    #[must_use]
    pub fn evicted(&self, cache: &Arc<Cache>) -> Self {
        // What is left to draw is as long as the pages, and made again with them.
        let pictures = self.pictures.iter();
        pictures.for_each(|picture| picture.drawing.forget());
        let mounts = self.mounts.iter();
        let open = |placed: &PlacedMount| match placed.is_open() {
            true => PlacedMount {
                uncoded: None,
                ..placed.clone()
            },
            false => PlacedMount::open(Arc::clone(&placed.mount.tenant), &placed.address),
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

    /// Whether its pages are there, and are still to be compressed.
    #[must_use]
    pub fn is_uncoded(&self) -> bool {
        self.mounts.iter().any(|placed| placed.uncoded.is_some())
    }

    /// Opens its mounts and keeps the pages beside them, which were not compressed: whoever asks waits until they are.
    pub fn set_aside(&mut self) {
        for placed in &mut self.mounts {
            let open = PlacedMount::open(Arc::clone(&placed.mount.tenant), &placed.address);
            let made = std::mem::replace(placed, open);
            // It was made a moment ago, and nobody else has it.
            let pages = Arc::into_inner(made.mount).and_then(|mount| mount.pages.into_inner());
            placed.uncoded = pages.map(Arc::new);
        }
    }

    /// Compresses the pages that were set aside, and puts them into its mounts, and into those of `waiting` that are open at the same addresses.
    #[must_use]
    pub fn coded(&self, waiting: &[Arc<Self>]) -> Self {
        let mut mounts = self.mounts.clone();
        let mut encoder = Encoder::new(&self.cache);
        for placed in &mut mounts {
            if let Some(pages) = placed.uncoded.take() {
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

    /// Puts its pages into the mounts of `waiting` that are open at the same addresses, so that who waits there is answered before there is another snapshot. Those of the first are its own from then on.
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
            // It was made a moment ago, and nobody else has it.
            let made = Arc::into_inner(made).and_then(|mount| mount.pages.into_inner());
            for other in open {
                other.pages.fill(made.clone());
            }
            placed.mount.pages.fill(made);
        }
    }
}

impl PlacedMount {
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
            uncoded: None,
        }
    }

    /// The same place with these pages.
    pub(crate) fn with(&self, pages: Pages) -> Self {
        let other = Self::open(Arc::clone(&self.mount.tenant), &self.address);
        other.mount.pages.fill(Some(pages));
        other
    }

    fn is_open(&self) -> bool {
        self.mount.pages.is_open()
    }

    /// The mounts at its address at which requests wait.
    fn open_in<'a>(&'a self, waiting: &'a [Arc<Compiled>]) -> impl Iterator<Item = &'a Arc<Mount>> {
        let mounts = waiting.iter().flat_map(|waiting| &waiting.mounts);
        mounts
            .filter(|placed| placed.address == self.address && placed.is_open())
            .map(|placed| &placed.mount)
    }
}
