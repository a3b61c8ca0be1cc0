//! A rendered tenant in persisted form, without its pages. A later process with the same inputs restores the tenant and renders nothing.
//!
//! **Invariant:** a persisted tenant is read only by the build that wrote it, and only if all inputs are the same ([`release_key`]).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compile::cache::{CacheKey, key};
use crate::compile::compiled_tenant::{AddressMount, CompiledTenant};
use crate::compile::inputs::CompileInputs;
use crate::images::persisted_image::{PersistedSource, PersistedSpec};
use crate::images::{GeneratedImage, ImageSpec, is_cached};
use crate::lints::links::CrossTenantLink;
use crate::lints::pages::OrphanPage;
use crate::resources::asset::ASSETS;
use crate::resources::encodings::page_encodings::Encoder;
use crate::site_files::Listing;
use content::address::Address;
use content::report::{Diagnostic, Report};
use content::source::FolderStamp;
use content::tenant::Site;
use release::snapshot::Resource;
use release::store::AddressPages;

/// The zstd level. Lists of paths and links shrink to a quarter at the fastest level.
const ZSTD_LEVEL: i32 = 1;

/// The first part of a persisted tenant: everything except the sources of its images.
#[derive(Serialize, Deserialize)]
struct PersistedTenantFacts {
    /// The name of the theme's folder in `report`, which differs between machines.
    theme: String,
    pages: usize,
    cross_tenant_links: Vec<CrossTenantLink>,
    orphans: Vec<OrphanPage>,
    paths: Vec<Box<str>>,
    listing: Listing,
    specs: Vec<PersistedSpec>,
    /// Host, path, and index into `specs`.
    images: Vec<(String, String, usize)>,
    report: Vec<Diagnostic>,
}

/// A rendered tenant without its pages, ready to be persisted.
///
/// It is written as two parts: the facts that are always needed, and the sources of its images.
#[derive(Debug)]
pub struct PersistedTenant {
    compiled: Arc<CompiledTenant>,
    theme: String,
    report: Report,
    /// Each image spec once.
    specs: Vec<Arc<ImageSpec>>,
    /// The index of each image's spec.
    numbers: Vec<usize>,
    /// The sources of the specs, copied here. A spec drops its source when its image is rendered or its tenant is evicted.
    sources: Vec<PersistedSource>,
}

impl PersistedTenant {
    /// Creates the persisted form of a tenant and its report, which were made from these inputs.
    #[must_use]
    pub fn of(compiled: &Arc<CompiledTenant>, report: &Report, inputs: &CompileInputs) -> Self {
        let mut specs: Vec<Arc<ImageSpec>> = Vec::new();
        let mut known: HashMap<*const ImageSpec, usize> = HashMap::new();
        let numbers = compiled.images.iter().map(|image| {
            let number = known.entry(Arc::as_ptr(&image.spec));
            *number.or_insert_with(|| {
                specs.push(Arc::clone(&image.spec));
                specs.len() - 1
            })
        });
        Self {
            numbers: numbers.collect(),
            compiled: Arc::clone(compiled),
            theme: inputs.templates.theme.label.clone(),
            report: report.clone(),
            sources: specs.iter().map(|spec| spec.persisted_source()).collect(),
            specs,
        }
    }

    /// Serialises both parts. Returns `None` if that fails.
    #[must_use]
    pub fn parts(&self) -> Option<[Bytes; 2]> {
        let compiled = &self.compiled;
        let images = compiled.images.iter().zip(&self.numbers);
        let images = images.map(|(one, number)| (one.host.clone(), one.path.clone(), *number));
        let known = PersistedTenantFacts {
            theme: self.theme.clone(),
            pages: compiled.pages,
            cross_tenant_links: compiled.cross_tenant_links.clone(),
            orphans: compiled.orphans.clone(),
            paths: compiled.paths.to_vec(),
            listing: Listing::clone(&compiled.listing),
            specs: self.specs.iter().map(|one| one.persisted_spec()).collect(),
            images: images.collect(),
            report: self.report.iter().cloned().collect(),
        };
        Some([serialise(&known)?, serialise(&self.sources)?])
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
///
/// It is the same on every machine that knows the tenant's folder by the same name, wherever the theme is.
#[must_use]
pub fn release_key(
    folder: &[u8; 32],
    site: &Site,
    addresses: &[Address],
    inputs: &CompileInputs,
) -> CacheKey {
    let theme = &inputs.templates.theme;
    let pages = site.pages.iter();
    let pages: Vec<_> = pages
        .map(|(path, page)| (path, page.front.noindex, page.hidden))
        .collect();
    // Every field of these values affects some page. Their debug forms hold all fields in a fixed order.
    let rest = format!(
        "{:?}",
        (
            (&site.id, &site.label, pages, &site.hidden),
            addresses,
            &inputs.deployment,
            &theme.name,
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
pub fn reading_key(label: &str, stamp: &FolderStamp) -> CacheKey {
    key("reading", &[label.as_bytes(), stamp])
}

impl CompiledTenant {
    /// Restores the tenant of a [`PersistedTenant`].
    ///
    /// With `pages`, the pages of all its addresses, the tenant is complete, and its bodies are compressed if `inputs` say so. Without them it is evicted, and its mounts are open. Returns `None` if any part is missing.
    #[must_use]
    pub fn restore(
        [facts, sources]: [&[u8]; 2],
        site: &Site,
        addresses: &[Address],
        inputs: &CompileInputs,
        pages: Option<&[AddressPages]>,
    ) -> Option<(Self, Report)> {
        let known: PersistedTenantFacts = deserialise(facts)?;
        let cache = &inputs.cache;
        let mut specs: Vec<ImageSpec> = known.specs.into_iter().map(ImageSpec::from).collect();
        let open = |address| AddressMount::open(site.id.shared(), address);
        let mounts: Vec<AddressMount> = addresses.iter().map(open).collect();
        if let Some(pages) = pages {
            let sources: Vec<PersistedSource> = deserialise(sources)?;
            let original = |name: &str| original(name, pages);
            for (spec, source) in specs.iter_mut().zip(sources) {
                let has_source = source.add_to(spec, &inputs.templates.fonts, original);
                if !has_source && !is_cached(spec, cache) {
                    return None;
                }
            }
            cache.use_again();
            let mut encoder = Encoder::new(cache);
            for placed in &mounts {
                let Address { host, prefix, .. } = &placed.address;
                let mut pages = pages.iter();
                let own = pages.find(|one| one.host == *host && one.prefix == *prefix)?;
                let pages = match inputs.compresses {
                    true => encoder.encode(&own.pages),
                    false => own.pages.clone(),
                };
                placed.mount.pages.fill(Some(pages));
            }
        }
        let specs: Vec<Arc<ImageSpec>> = specs.into_iter().map(Arc::new).collect();
        let image = |(host, path, number): (String, String, usize)| {
            let spec = Arc::clone(specs.get(number)?);
            Some(GeneratedImage { host, path, spec })
        };
        let compiled = Self {
            mounts,
            is_rendered: true,
            cross_tenant_links: known.cross_tenant_links,
            orphans: known.orphans,
            paths: known.paths.into(),
            listing: Arc::new(known.listing),
            images: (known.images.into_iter())
                .map(image)
                .collect::<Option<_>>()?,
            cache: Arc::clone(cache),
            pages: known.pages,
        };
        let mut report = Report::default();
        let theme = &inputs.templates.theme.label;
        let known_report = known.report.into_iter();
        report.extend(known_report.map(|diagnostic| in_theme(diagnostic, &known.theme, theme)));
        Some((compiled, report))
    }
}

/// Returns a diagnostic with the current name of the theme's folder in place of its former one.
fn in_theme(mut diagnostic: Diagnostic, former: &str, current: &str) -> Diagnostic {
    let below = diagnostic.file.strip_prefix(former);
    if let Some(below) = below.filter(|below| below.is_empty() || below.starts_with('/')) {
        diagnostic.file = format!("{current}{below}");
    }
    diagnostic
}

/// Returns the bytes of the file with a hashed name.
fn original(name: &str, places: &[AddressPages]) -> Option<Bytes> {
    let path = format!("{ASSETS}{name}");
    let file = places.first()?.pages.resources.get(path.as_str())?;
    match &**file {
        Resource::Body(body) => body.variants.identity()?.bytes.in_memory().cloned(),
        Resource::Redirect(_) => None,
    }
}
