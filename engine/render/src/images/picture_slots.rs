//! The slots that pictures are put into once they are drawn, and the work that fills them.
//!
//! A slot lives for as long as a snapshot shows it. Two tenants with the same drawing share one.

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

/// The number of slots that are worth a look for those that nothing shows.
const MIN_PRUNED: usize = 1_000;

/// The slots of all pictures, by the digests of their drawings.
#[derive(Debug, Default)]
pub struct PendingPictures {
    slots: HashMap<[u8; 32], Weak<Slot<Resource>>>,
    /// The number of slots after the last time that empty ones were removed.
    pruned: usize,
}

impl PendingPictures {
    /// The slot of a picture, filled or to be filled.
    pub fn slot(&mut self, picture: &Picture) -> Arc<Slot<Resource>> {
        // Each slot pays for a look at another one, so that no snapshot waits for a look at all.
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

    /// Gives a picture a slot of its own from the next time on, which is to be filled again.
    pub fn forget(&mut self, picture: &Picture) {
        self.slots.remove(&picture.drawing.digest);
    }

    /// What a picture is as a file, if it is drawn.
    #[must_use]
    pub fn file_of(&self, picture: &Picture) -> Option<Bytes> {
        let slot = self.slots.get(&picture.drawing.digest)?.upgrade()?;
        match slot.get()? {
            Resource::Body(body) => body.variants.identity()?.bytes.in_memory().cloned(),
            Resource::Redirect(_) => None,
        }
    }

    /// The bytes of those of these pictures that are drawn.
    #[must_use]
    pub fn bytes_of(&self, pictures: &[Picture]) -> usize {
        let pictures = pictures.iter();
        let slots = pictures.filter_map(|picture| self.slots.get(&picture.drawing.digest));
        slots.map(drawn).sum()
    }

    /// What is still to be drawn for a tenant.
    #[must_use]
    pub fn undrawn(&self, tenant: &Compiled, secure: bool) -> Vec<Undrawn> {
        let (mut undrawn, mut named) = (Vec::new(), HashSet::new());
        for picture in &tenant.pictures {
            let digest = &picture.drawing.digest;
            if let Some(slot) = self.slots.get(digest)
                && slot.upgrade().is_some_and(|slot| slot.is_open())
                && named.insert(digest)
            {
                undrawn.push(Undrawn {
                    picture: picture.clone(),
                    slot: Weak::clone(slot),
                    cache: Arc::clone(&tenant.cache),
                    secure,
                });
            }
        }
        undrawn
    }
}

impl Picture {
    /// Draws it, for who shows it in no snapshot. What was drawn before is in the cache of its tenant.
    ///
    /// # Errors
    /// Its name, and why it cannot be drawn.
    pub fn drawn(&self, tenant: &Compiled, secure: bool) -> Result<Resource, String> {
        let drawn = resource(&self.drawing, secure, &tenant.cache);
        drawn.map_err(|reason| format!("{}: {reason}", self.name()))
    }

    /// Tells its drawing from all others.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.drawing.digest
    }

    /// Where it is to be, and the file that it comes from.
    fn name(&self) -> String {
        let Self {
            host,
            path,
            drawing,
        } = self;
        format!("{}: {host}{path}", drawing.file)
    }
}

/// A picture that is still to be drawn.
#[derive(Debug)]
pub struct Undrawn {
    picture: Picture,
    slot: Weak<Slot<Resource>>,
    cache: Arc<Cache>,
    secure: bool,
}

impl Undrawn {
    /// Tells it from all others.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.picture.digest()
    }

    /// Where it is to be, and the file that it comes from.
    #[must_use]
    pub fn name(&self) -> String {
        self.picture.name()
    }

    /// Draws it and puts it into its slot, unless nobody shows it any longer.
    ///
    /// # Errors
    /// Its name, and why it cannot be drawn. Nobody tries again.
    pub fn draw(&self) -> Result<(), String> {
        let Some(slot) = self.slot.upgrade().filter(|slot| slot.is_open()) else {
            return Ok(());
        };
        let result = resource(&self.picture.drawing, self.secure, &self.cache);
        let problem = result.as_ref().err();
        let problem = problem.map_or(Ok(()), |reason| Err(format!("{}: {reason}", self.name())));
        slot.fill(result.ok());
        self.picture.drawing.forget();
        problem
    }
}

/// The bytes of what is in a slot.
fn drawn(slot: &Weak<Slot<Resource>>) -> usize {
    match slot.upgrade().as_ref().and_then(|slot| slot.get()) {
        Some(Resource::Body(body)) => {
            let bytes = body.variants.iter().filter_map(|one| one.bytes.in_memory());
            bytes.map(Bytes::len).sum()
        }
        _ => 0,
    }
}

/// Keeps in the cache what was drawn before of these pictures, whether or not somebody asks for it.
pub(crate) fn cache_drawn(pictures: &[Picture], cache: &Cache) {
    for picture in pictures {
        cache.known(&key(&picture.drawing.digest));
    }
}

/// Whether a drawing was drawn before, and is in the cache.
pub(crate) fn is_drawn(drawing: &Drawing, cache: &Cache) -> bool {
    cache.has(&key(&drawing.digest))
}

fn key(digest: &[u8; 32]) -> cache::Key {
    cache::key("drawn", &[digest])
}

fn resource(drawing: &Drawing, secure: bool, cache: &Cache) -> Result<Resource, String> {
    // A drawing that the renderer cannot bear must not end the thread that draws all others.
    let draw = || {
        let drawn = catch_unwind(AssertUnwindSafe(|| drawing.draw()));
        drawn.unwrap_or_else(|_| Err("the renderer failed".to_owned()))
    };
    let bytes = cache.get(key(&drawing.digest), || {
        draw().map(|png| Bytes::from(png.into_boxed_slice()))
    })?;
    // The icon has a fixed name, all others have their hash in it.
    let (kind, media_type) = match drawing.form {
        PictureFormat::Png(..) => (BodyKind::Immutable, "image/png"),
        PictureFormat::Ico(_) => (BodyKind::Plain, "image/vnd.microsoft.icon"),
        PictureFormat::WebP(..) => (BodyKind::Immutable, "image/webp"),
        // It was not smaller as AVIF.
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
