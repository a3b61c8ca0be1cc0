//! The persisted outcome of rendering a tenant, without its pages. A later process with the same inputs restores the tenant from it and renders nothing.
//!
//! **Invariant:** an outcome is read only by the build that wrote it, and only if all inputs are the same ([`release_key`]).

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

/// The zstd level. Lists of paths and links shrink to a quarter at the fastest level.
const ZSTD_LEVEL: i32 = 1;

/// The first part of an outcome: everything except the materials for drawing.
#[derive(Serialize, Deserialize)]
struct OutcomeParts {
    pages: usize,
    neighbour_links: Vec<NeighbourLink>,
    orphans: Vec<Orphan>,
    paths: Vec<Box<str>>,
    listing: Listing,
    drawings: Vec<DrawingOutline>,
    /// Host, path, and index into `drawings`.
    pictures: Vec<(String, String, usize)>,
    report: Vec<Diagnostic>,
}

/// A rendered tenant without its pages, ready to be persisted.
///
/// It is written as two parts: the facts that are always needed, and the materials that its pictures are drawn from.
#[derive(Debug)]
pub struct Outcome {
    compiled: Arc<Compiled>,
    report: Report,
    /// Each drawing once.
    drawings: Vec<Arc<Drawing>>,
    /// The index of each picture's drawing.
    numbers: Vec<usize>,
    /// The materials of the drawings, copied when the outcome is created. A drawing drops its material when it is drawn or its tenant is evicted.
    materials: Vec<DrawingMaterial>,
}

impl Outcome {
    /// Creates the outcome of a tenant and its report.
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

    /// Serialises both parts. Returns `None` if that fails.
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
        Some([serialise(&known)?, serialise(&self.materials)?])
    }
}

fn serialise(part: &impl Serialize) -> Option<Bytes> {
    let text = serde_json::to_vec(part).ok()?;
    zstd::bulk::compress(&text, ZSTD_LEVEL)
        .ok()
        .map(Bytes::from)
}

fn deserialise<T: DeserializeOwned>(part: &[u8]) -> Option<T> {
    let text = zstd::decode_all(part).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns a digest of all inputs of a tenant's pages. `folder` is the digest of its files.
#[must_use]
pub fn release_key(folder: &[u8; 32], site: &Site, addresses: &[Address], inputs: &Inputs) -> Key {
    let theme = &inputs.templates.theme;
    let pages = site.pages.iter();
    let pages: Vec<_> = pages
        .map(|(path, page)| (path, page.front.noindex))
        .collect();
    // Every field of these values affects some page. Their debug forms hold all fields in a fixed order.
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

/// Returns a digest of a folder's label and stamp and of the build. Facts read from one folder hold for every folder with the same key.
#[must_use]
pub fn reading_key(label: &str, stamp: &Stamp) -> Key {
    key("reading", &[label.as_bytes(), stamp])
}

impl Compiled {
    /// Restores the tenant of an [`Outcome`].
    ///
    /// With `pages`, the pages of all its addresses, the tenant is complete and its bodies are compressed. Without them it is evicted, and its mounts are open. Returns `None` if any part is missing.
    #[must_use]
    pub fn restore(
        [facts, materials]: [&[u8]; 2],
        site: &Site,
        addresses: &[Address],
        inputs: &Inputs,
        pages: Option<&[PlacedPages]>,
    ) -> Option<(Self, Report)> {
        let known: OutcomeParts = deserialise(facts)?;
        let cache = &inputs.cache;
        let mut drawings: Vec<Drawing> = known.drawings.into_iter().map(Drawing::from).collect();
        let open = |address| PlacedMount::open(site.id.shared(), address);
        let mounts: Vec<PlacedMount> = addresses.iter().map(open).collect();
        if let Some(pages) = pages {
            let materials: Vec<DrawingMaterial> = deserialise(materials)?;
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

/// Returns the bytes of the file with a hashed name.
fn original(name: &str, places: &[PlacedPages]) -> Option<Bytes> {
    let path = format!("{ASSETS}{name}");
    let file = places.first()?.pages.resources.get(path.as_str())?;
    match &**file {
        Resource::Body(body) => body.variants.identity()?.bytes.in_memory().cloned(),
        Resource::Redirect(_) => None,
    }
}
