//! What is known of a rendered tenant beside its pages, as bytes: a later process that finds it made from the same takes it up and renders nothing.
//!
//! **Invariant:** what is read was written by the same build, of a tenant made from the same ([`release_key`]); else there is nothing.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compile::cache::{Key, key};
use crate::compile::compiled_tenant::{Compiled, PlacedMount};
use crate::compile::inputs::Inputs;
use crate::images::persisted_drawing::{DrawingMaterial, DrawingOutline};
use crate::images::{Drawing, Picture, is_drawn};
use crate::lints::links::NeighbourLink;
use crate::lints::pages::Orphan;
use crate::resources::asset::ASSETS;
use crate::resources::encodings::page_encodings::Encoder;
use crate::site_files::Listing;
use content::address::Address;
use content::report::{Diagnostic, Report};
use content::source::Stamp;
use content::tenant::Site;
use release::snapshot::Resource;
use release::store::PlacedPages;

/// How hard it is compressed: lists of paths and links come to a fourth at once.
const LEVEL: i32 = 1;

/// What is known beside the pages.
#[derive(Serialize, Deserialize)]
struct OutcomeParts {
    pages: usize,
    neighbour_links: Vec<NeighbourLink>,
    orphans: Vec<Orphan>,
    paths: Vec<Box<str>>,
    listing: Listing,
    drawings: Vec<DrawingOutline>,
    /// Host, path, and the number of the drawing.
    pictures: Vec<(String, String, usize)>,
    report: Vec<Diagnostic>,
}

/// A rendered tenant without its pages, on its way to where it outlives the process. Two parts: what is always needed, and what its pictures are drawn from.
#[derive(Debug)]
pub struct Outcome {
    compiled: Arc<Compiled>,
    report: Report,
    /// Each once.
    drawings: Vec<Arc<Drawing>>,
    /// The number of each picture's drawing.
    numbers: Vec<usize>,
    /// Taken at once: it is let go when a picture is drawn, and when the tenant goes out of memory.
    materials: Vec<DrawingMaterial>,
}

impl Outcome {
    /// What is known of a tenant, with what was said of it.
    #[must_use]
    pub fn of(compiled: &Arc<Compiled>, report: &Report) -> Self {
        let mut drawings: Vec<Arc<Drawing>> = Vec::new();
        let mut known: HashMap<*const Drawing, usize> = HashMap::new();
        let numbers = compiled.pictures.iter().map(|picture| {
            let number = known.entry(Arc::as_ptr(&picture.drawing));
            *number.or_insert_with(|| {
                drawings.push(Arc::clone(&picture.drawing));
                drawings.len() - 1
            })
        });
        Self {
            numbers: numbers.collect(),
            compiled: Arc::clone(compiled),
            report: report.clone(),
            materials: drawings.iter().map(|drawing| drawing.material()).collect(),
            drawings,
        }
    }

    /// Both parts as bytes. `None` where they cannot be written.
    #[must_use]
    pub fn parts(&self) -> Option<[Bytes; 2]> {
        let compiled = &self.compiled;
        let pictures = compiled.pictures.iter().zip(&self.numbers);
        let pictures = pictures.map(|(one, number)| (one.host.clone(), one.path.clone(), *number));
        let known = OutcomeParts {
            pages: compiled.pages,
            neighbour_links: compiled.neighbour_links.clone(),
            orphans: compiled.orphans.clone(),
            paths: compiled.paths.to_vec(),
            listing: Listing::clone(&compiled.listing),
            drawings: self.drawings.iter().map(|one| one.outline()).collect(),
            pictures: pictures.collect(),
            report: self.report.iter().cloned().collect(),
        };
        Some([written(&known)?, written(&self.materials)?])
    }
}

fn written(part: &impl Serialize) -> Option<Bytes> {
    let text = serde_json::to_vec(part).ok()?;
    zstd::bulk::compress(&text, LEVEL).ok().map(Bytes::from)
}

fn read<T: DeserializeOwned>(part: &[u8]) -> Option<T> {
    let text = zstd::decode_all(part).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A digest of all that a tenant's pages depend on, with `folder` being that of its files.
#[must_use]
pub fn release_key(folder: &[u8; 32], site: &Site, addresses: &[Address], inputs: &Inputs) -> Key {
    let theme = &inputs.templates.theme;
    let pages = site.pages.iter();
    let pages: Vec<_> = pages
        .map(|(path, page)| (path, page.front.noindex))
        .collect();
    // Every field of these has its part in some page, and stands in their debug forms, which have one order.
    let rest = format!(
        "{:?}",
        (
            (&site.id, &site.label, pages, &site.hidden),
            addresses,
            &inputs.deployment,
            (&theme.name, &theme.label),
        )
    );
    let islands = inputs.islands.bundle.id().as_bytes();
    key(
        "release",
        &[folder, &theme.fingerprint, islands, rest.as_bytes()],
    )
}

/// A digest of a folder with this label and stamp, and of the build: what it has read of one folder is so of every other with the same.
#[must_use]
pub fn reading_key(label: &str, stamp: &Stamp) -> Key {
    key("reading", &[label.as_bytes(), stamp])
}

impl Compiled {
    /// The tenant of an [`Outcome`]: with `pages`, which it had at its addresses, and compressed as pages are; without them out of memory, at open mounts. `None` where anything is missing.
    #[must_use]
    pub fn restore(
        [known, materials]: [&[u8]; 2],
        site: &Site,
        addresses: &[Address],
        inputs: &Inputs,
        pages: Option<&[PlacedPages]>,
    ) -> Option<(Self, Report)> {
        let known: OutcomeParts = read(known)?;
        let cache = &inputs.cache;
        let mut drawings: Vec<Drawing> = known.drawings.into_iter().map(Drawing::from).collect();
        let open = |address| PlacedMount::open(site.id.shared(), address);
        let mounts: Vec<PlacedMount> = addresses.iter().map(open).collect();
        if let Some(pages) = pages {
            let materials: Vec<DrawingMaterial> = read(materials)?;
            let original = |name: &str| original(name, pages);
            for (drawing, material) in drawings.iter_mut().zip(materials) {
                let can_be_drawn = material.add_to(drawing, &inputs.templates.fonts, original);
                if !can_be_drawn && !is_drawn(drawing, cache) {
                    return None;
                }
            }
            cache.use_again();
            let mut encoder = Encoder::new(cache);
            for placed in &mounts {
                let Address { host, prefix, .. } = &placed.address;
                let mut pages = pages.iter();
                let own = pages.find(|one| one.host == *host && one.prefix == *prefix)?;
                placed.mount.pages.fill(Some(encoder.encode(&own.pages)));
            }
        }
        let drawings: Vec<Arc<Drawing>> = drawings.into_iter().map(Arc::new).collect();
        let picture = |(host, path, number): (String, String, usize)| {
            let drawing = Arc::clone(drawings.get(number)?);
            Some(Picture {
                host,
                path,
                drawing,
            })
        };
        let compiled = Self {
            mounts,
            is_rendered: true,
            neighbour_links: known.neighbour_links,
            orphans: known.orphans,
            paths: known.paths.into(),
            listing: Arc::new(known.listing),
            pictures: (known.pictures.into_iter())
                .map(picture)
                .collect::<Option<_>>()?,
            cache: Arc::clone(cache),
            pages: known.pages,
        };
        let mut report = Report::default();
        report.extend(known.report);
        Some((compiled, report))
    }
}

/// The bytes of a file by its hashed name.
fn original(name: &str, places: &[PlacedPages]) -> Option<Bytes> {
    let path = format!("{ASSETS}{name}");
    let file = places.first()?.pages.resources.get(path.as_str())?;
    match &**file {
        Resource::Body(body) => body.variants.identity()?.bytes.in_memory().cloned(),
        Resource::Redirect(_) => None,
    }
}
