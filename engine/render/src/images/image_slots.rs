//! Slots for generated images, and the work that fills them.
//!
//! A slot lives as long as a snapshot shows it. Tenants with the same image share a slot.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::StatusCode;

use super::{GeneratedImage, ImageSpec, RasterFormat};
use crate::compile::cache::{self, Cache};
use crate::compile::compiled_tenant::CompiledTenant;
use crate::resources::encodings::compress::{self, CompressionLevel};
use crate::resources::header_fields::{self, BodyKind};
use release::snapshot::{Body, Resource, Slot};

/// The number of slots below which unused slots are not removed.
const MIN_PRUNED_SLOTS: usize = 1_000;

/// The slots of all generated images, by the digest of the spec.
#[derive(Debug, Default)]
pub struct ImageSlots {
    slots: HashMap<[u8; 32], Weak<Slot<Resource>>>,
    /// The number of slots after unused slots were last removed.
    pruned: usize,
}

impl ImageSlots {
    /// Returns the slot of an image, filled or open.
    pub fn slot(&mut self, image: &GeneratedImage) -> Arc<Slot<Resource>> {
        // Unused slots are removed each time the map has doubled, so the cost per slot is constant.
        if self.slots.len() > 2 * self.pruned + MIN_PRUNED_SLOTS {
            self.slots.retain(|_, slot| slot.strong_count() > 0);
            self.pruned = self.slots.len();
        }
        let place = self.slots.entry(image.spec.digest).or_default();
        place.upgrade().unwrap_or_else(|| {
            let slot = Arc::default();
            *place = Arc::downgrade(&slot);
            slot
        })
    }

    /// Gives the image a new, open slot at the next call of [`ImageSlots::slot`].
    pub fn forget(&mut self, image: &GeneratedImage) {
        self.slots.remove(&image.spec.digest);
    }

    /// Returns the bytes of an image, if it is rendered.
    #[must_use]
    pub fn file_of(&self, image: &GeneratedImage) -> Option<Bytes> {
        let slot = self.slots.get(&image.spec.digest)?.upgrade()?;
        match slot.get()? {
            Resource::Body(body) => body.variants.identity()?.bytes.in_memory().cloned(),
            Resource::Redirect(_) => None,
        }
    }

    /// Returns the total size of the rendered images, in bytes.
    #[must_use]
    pub fn bytes_of(&self, images: &[GeneratedImage]) -> usize {
        let images = images.iter();
        let slots = images.filter_map(|image| self.slots.get(&image.spec.digest));
        slots.map(rendered_bytes).sum()
    }

    /// Returns a task for each image of a tenant that is not rendered yet.
    #[must_use]
    pub fn open_tasks(&self, tenant: &CompiledTenant, is_secure: bool) -> Vec<ImageTask> {
        let (mut tasks, mut named) = (Vec::new(), HashSet::new());
        for image in &tenant.images {
            let digest = &image.spec.digest;
            if let Some(slot) = self.slots.get(digest)
                && slot.upgrade().is_some_and(|slot| slot.is_open())
                && named.insert(digest)
            {
                tasks.push(ImageTask {
                    image: image.clone(),
                    slot: Weak::clone(slot),
                    cache: Arc::clone(&tenant.cache),
                    is_secure,
                });
            }
        }
        tasks
    }
}

impl GeneratedImage {
    /// Renders the image outside of a snapshot, or returns it from the tenant's cache.
    ///
    /// # Errors
    /// Returns the name of the image and the reason if it cannot be rendered.
    pub fn render(&self, tenant: &CompiledTenant, is_secure: bool) -> Result<Resource, String> {
        let drawn = resource(&self.spec, is_secure, &tenant.cache);
        drawn.map_err(|reason| format!("{}: {reason}", self.name()))
    }

    /// Returns the digest of the spec, which identifies the image.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.spec.digest
    }

    /// Returns the source file and the URL of the image, for logs.
    fn name(&self) -> String {
        let Self { host, path, spec } = self;
        format!("{}: {host}{path}", spec.file)
    }
}

/// A task that renders an image into its slot.
#[derive(Debug)]
pub struct ImageTask {
    image: GeneratedImage,
    slot: Weak<Slot<Resource>>,
    cache: Arc<Cache>,
    is_secure: bool,
}

impl ImageTask {
    /// Returns the digest of the spec, which identifies the image.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.image.digest()
    }

    /// Returns the source file and the URL of the image, for logs.
    #[must_use]
    pub fn name(&self) -> String {
        self.image.name()
    }

    /// Renders the image into its slot, unless no snapshot shows it any longer, or its source was dropped.
    ///
    /// # Errors
    /// Returns the name of the image and the reason if it cannot be rendered. Rendering is not retried.
    pub fn run(&self) -> Result<(), String> {
        let Some(slot) = self.slot.upgrade().filter(|slot| slot.is_open()) else {
            return Ok(());
        };
        let result = resource(&self.image.spec, self.is_secure, &self.cache);
        if result.is_err() && !self.image.spec.has_source() {
            // The tenant was evicted. Its next pages have the source again, and the slot may be that of other tenants, too.
            return Ok(());
        }
        let problem = result.as_ref().err();
        let problem = problem.map_or(Ok(()), |reason| Err(format!("{}: {reason}", self.name())));
        slot.fill(result.ok());
        self.image.spec.drop_source();
        problem
    }
}

/// Returns the size of the content of a slot, in bytes.
fn rendered_bytes(slot: &Weak<Slot<Resource>>) -> usize {
    match slot.upgrade().as_ref().and_then(|slot| slot.get()) {
        Some(Resource::Body(body)) => {
            let bytes = body.variants.iter().filter_map(|one| one.bytes.in_memory());
            bytes.map(Bytes::len).sum()
        }
        _ => 0,
    }
}

/// Marks the cached results of these images as used, so that the cache keeps them even if no request needs them.
pub(crate) fn reuse_cached(images: &[GeneratedImage], cache: &Cache) {
    for image in images {
        cache.reuse(&key(&image.spec.digest));
    }
}

/// Whether the image of a spec is in the cache.
pub(crate) fn is_cached(spec: &ImageSpec, cache: &Cache) -> bool {
    cache.has(&key(&spec.digest))
}

fn key(digest: &[u8; 32]) -> cache::CacheKey {
    cache::key("drawn", &[digest])
}

fn resource(spec: &ImageSpec, is_secure: bool, cache: &Cache) -> Result<Resource, String> {
    // A panic of the renderer must not end the thread, which draws all other images.
    let render = || {
        let drawn = catch_unwind(AssertUnwindSafe(|| spec.render()));
        drawn.unwrap_or_else(|_| Err("the renderer failed".to_owned()))
    };
    let bytes = cache.get(key(&spec.digest), || {
        render().map(|png| Bytes::from(png.into_boxed_slice()))
    })?;
    // The icon has a fixed name; all other names contain a hash.
    let (kind, media_type) = match spec.form {
        RasterFormat::Png(..) => (BodyKind::Immutable, "image/png"),
        RasterFormat::Ico(_) => (BodyKind::Plain, "image/vnd.microsoft.icon"),
        RasterFormat::WebP(..) => (BodyKind::Immutable, "image/webp"),
        // The AVIF was larger, so the bytes are WebP.
        #[cfg(feature = "avif")]
        RasterFormat::Avif(..) if bytes.starts_with(b"RIFF") => (BodyKind::Immutable, "image/webp"),
        #[cfg(feature = "avif")]
        RasterFormat::Avif(..) => (BodyKind::Immutable, "image/avif"),
    };
    Ok(Resource::Body(Body {
        status: StatusCode::OK,
        fields: header_fields::fields(&kind, media_type, is_secure),
        cache_tag: None,
        variants: compress::variants(bytes, false, CompressionLevel::Page),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\"><path d=\"M0 0h1v1H0z\"/></svg>";

    fn image() -> GeneratedImage {
        GeneratedImage {
            host: "studio.example".to_owned(),
            path: "/favicon.ico".to_owned(),
            spec: Arc::new(ImageSpec::new(
                SQUARE,
                RasterFormat::Ico(4),
                None,
                &Arc::default(),
            )),
        }
    }

    #[test]
    fn image_without_source_leaves_its_slot_open_for_the_next_pages() {
        let mut slots = ImageSlots::default();
        let (evicted, rendered) = (image(), image());
        let slot = slots.slot(&evicted);
        evicted.spec.drop_source();
        let run = |image: GeneratedImage| {
            let task = ImageTask {
                image,
                slot: Arc::downgrade(&slot),
                cache: Arc::default(),
                is_secure: true,
            };
            task.run()
        };
        assert_eq!(run(evicted), Ok(()));
        assert!(slot.is_open());
        assert_eq!(run(rendered), Ok(()));
        assert!(slot.get().is_some());
    }
}
