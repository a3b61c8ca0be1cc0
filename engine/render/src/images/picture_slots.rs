//! Slots for generated images, and the work that fills them.
//!
//! A slot lives as long as a snapshot shows it. Tenants with the same drawing share a slot.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::StatusCode;

use super::{Drawing, Picture, PictureFormat};
use crate::compile::cache::{self, Cache};
use crate::compile::compiled_tenant::Compiled;
use crate::resources::encodings::compress::{self, Level};
use crate::resources::header_fields::{self, BodyKind};
use release::snapshot::{Body, Resource, Slot};

/// The number of slots below which unused slots are not removed.
const MIN_PRUNED: usize = 1_000;

/// The slots of all generated images, by the digest of the drawing.
#[derive(Debug, Default)]
pub struct PendingPictures {
    slots: HashMap<[u8; 32], Weak<Slot<Resource>>>,
    /// The number of slots after unused slots were last removed.
    pruned: usize,
}

impl PendingPictures {
    /// Returns the slot of an image, filled or open.
    pub fn slot(&mut self, picture: &Picture) -> Arc<Slot<Resource>> {
        // Unused slots are removed each time the map has doubled, so the cost per slot is constant.
        if self.slots.len() > 2 * self.pruned + MIN_PRUNED {
            self.slots.retain(|_, slot| slot.strong_count() > 0);
            self.pruned = self.slots.len();
        }
        let place = self.slots.entry(picture.drawing.digest).or_default();
        place.upgrade().unwrap_or_else(|| {
            let slot = Arc::default();
            *place = Arc::downgrade(&slot);
            slot
        })
    }

    /// Gives the image a new, open slot at the next call of [`PendingPictures::slot`].
    pub fn forget(&mut self, picture: &Picture) {
        self.slots.remove(&picture.drawing.digest);
    }

    /// Returns the bytes of an image, if it is drawn.
    #[must_use]
    pub fn file_of(&self, picture: &Picture) -> Option<Bytes> {
        let slot = self.slots.get(&picture.drawing.digest)?.upgrade()?;
        match slot.get()? {
            Resource::Body(body) => body.variants.identity()?.bytes.in_memory().cloned(),
            Resource::Redirect(_) => None,
        }
    }

    /// Returns the total size of the rendered images, in bytes.
    #[must_use]
    pub fn bytes_of(&self, pictures: &[Picture]) -> usize {
        let pictures = pictures.iter();
        let slots = pictures.filter_map(|picture| self.slots.get(&picture.drawing.digest));
        slots.map(drawn).sum()
    }

    /// Returns a task for each image of a tenant that is not drawn yet.
    #[must_use]
    pub fn draw_tasks(&self, tenant: &Compiled, secure: bool) -> Vec<DrawTask> {
        let (mut tasks, mut named) = (Vec::new(), HashSet::new());
        for picture in &tenant.pictures {
            let digest = &picture.drawing.digest;
            if let Some(slot) = self.slots.get(digest)
                && slot.upgrade().is_some_and(|slot| slot.is_open())
                && named.insert(digest)
            {
                tasks.push(DrawTask {
                    picture: picture.clone(),
                    slot: Weak::clone(slot),
                    cache: Arc::clone(&tenant.cache),
                    secure,
                });
            }
        }
        tasks
    }
}

impl Picture {
    /// Draws the image outside of a snapshot, or returns it from the tenant's cache.
    ///
    /// # Errors
    /// Returns the name of the image and the reason if it cannot be drawn.
    pub fn drawn(&self, tenant: &Compiled, secure: bool) -> Result<Resource, String> {
        let drawn = resource(&self.drawing, secure, &tenant.cache);
        drawn.map_err(|reason| format!("{}: {reason}", self.name()))
    }

    /// Returns the digest of the drawing, which identifies it.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.drawing.digest
    }

    /// Returns the source file and the URL of the image, for logs.
    fn name(&self) -> String {
        let Self {
            host,
            path,
            drawing,
        } = self;
        format!("{}: {host}{path}", drawing.file)
    }
}

/// A task that draws an image into its slot.
#[derive(Debug)]
pub struct DrawTask {
    picture: Picture,
    slot: Weak<Slot<Resource>>,
    cache: Arc<Cache>,
    secure: bool,
}

impl DrawTask {
    /// Returns the digest of the drawing, which identifies it.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.picture.digest()
    }

    /// Returns the source file and the URL of the image, for logs.
    #[must_use]
    pub fn name(&self) -> String {
        self.picture.name()
    }

    /// Draws the image into its slot, unless no snapshot shows it any longer.
    ///
    /// # Errors
    /// Returns the name of the image and the reason if it cannot be drawn. Drawing is not retried.
    pub fn draw(&self) -> Result<(), String> {
        let Some(slot) = self.slot.upgrade().filter(|slot| slot.is_open()) else {
            return Ok(());
        };
        let result = resource(&self.picture.drawing, self.secure, &self.cache);
        let problem = result.as_ref().err();
        let problem = problem.map_or(Ok(()), |reason| Err(format!("{}: {reason}", self.name())));
        slot.fill(result.ok());
        self.picture.drawing.drop_source();
        problem
    }
}

/// Returns the size of the content of a slot, in bytes.
fn drawn(slot: &Weak<Slot<Resource>>) -> usize {
    match slot.upgrade().as_ref().and_then(|slot| slot.get()) {
        Some(Resource::Body(body)) => {
            let bytes = body.variants.iter().filter_map(|one| one.bytes.in_memory());
            bytes.map(Bytes::len).sum()
        }
        _ => 0,
    }
}

/// Marks the cached results of these images as used, so that the cache keeps them even if no request needs them.
pub(crate) fn reuse_cached(pictures: &[Picture], cache: &Cache) {
    for picture in pictures {
        cache.reuse(&key(&picture.drawing.digest));
    }
}

/// Whether the image of a drawing is in the cache.
pub(crate) fn is_drawn(drawing: &Drawing, cache: &Cache) -> bool {
    cache.has(&key(&drawing.digest))
}

fn key(digest: &[u8; 32]) -> cache::Key {
    cache::key("drawn", &[digest])
}

fn resource(drawing: &Drawing, secure: bool, cache: &Cache) -> Result<Resource, String> {
    // A panic of the renderer must not end the thread, which draws all other images.
    let draw = || {
        let drawn = catch_unwind(AssertUnwindSafe(|| drawing.draw()));
        drawn.unwrap_or_else(|_| Err("the renderer failed".to_owned()))
    };
    let bytes = cache.get(key(&drawing.digest), || {
        draw().map(|png| Bytes::from(png.into_boxed_slice()))
    })?;
    // The icon has a fixed name; all other names contain a hash.
    let (kind, media_type) = match drawing.form {
        PictureFormat::Png(..) => (BodyKind::Immutable, "image/png"),
        PictureFormat::Ico(_) => (BodyKind::Plain, "image/vnd.microsoft.icon"),
        PictureFormat::WebP(..) => (BodyKind::Immutable, "image/webp"),
        // The AVIF was larger, so the bytes are WebP.
        #[cfg(feature = "avif")]
        PictureFormat::Avif(..) if bytes.starts_with(b"RIFF") => {
            (BodyKind::Immutable, "image/webp")
        }
        #[cfg(feature = "avif")]
        PictureFormat::Avif(..) => (BodyKind::Immutable, "image/avif"),
    };
    Ok(Resource::Body(Body {
        status: StatusCode::OK,
        fields: header_fields::fields(&kind, media_type, secure),
        cache_tag: None,
        variants: compress::variants(bytes, false, Level::Page),
    }))
}
