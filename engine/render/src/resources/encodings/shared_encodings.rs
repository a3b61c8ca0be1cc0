//! The content encodings of a release, for a process that has its pages without them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::compile::cache::{Cache, CacheKey};
use crate::resources::encodings::compress::compressed_key;
use crate::resources::encodings::page_encodings::{Encoder, level};
use release::pack::pack;
use release::snapshot::resources::ResourceWalk;
use release::snapshot::{Body, ContentEncoding, MountPages, Resource};
use release::store::AddressPages;

/// Returns the encodings of all bodies, and makes those that are missing. [`Encoder`] finds them in a [`Cache`] to which they were added.
#[must_use]
pub fn encodings_of(addresses: &[AddressPages]) -> BTreeMap<CacheKey, Bytes> {
    let cache = Cache::default();
    let mut encoder = Encoder::new(&cache);
    let encode = |place: &AddressPages| encoder.encode(&place.pages);
    let pages: Vec<MountPages> = addresses.iter().map(encode).collect();
    let mut walk = ResourceWalk::default();
    let resources = pages.iter().flat_map(|pages| {
        let errors = pages.not_found.iter().chain(&pages.method_not_allowed);
        let errors = errors.map(|(_, page)| page);
        let found = walk.visit(&pages.resources).map(|(_, resource)| resource);
        found.chain(errors)
    });
    let bodies = resources.filter_map(|resource: &Arc<Resource>| match &**resource {
        Resource::Body(body) => encodings_of_body(body),
        Resource::Redirect(_) => None,
    });
    bodies.collect()
}

/// Returns the packed encodings of a body, or `None` if it has no other encoding than identity.
fn encodings_of_body(body: &Body) -> Option<(CacheKey, Bytes)> {
    let identity = body.variants.identity()?.bytes.in_memory()?;
    let variants = body.variants.iter();
    let encoded = variants.filter(|variant| variant.encoding != ContentEncoding::Identity);
    let encoded: Vec<(&[u8], &[u8])> = encoded
        .filter_map(|variant| {
            let token = variant.encoding.token().as_bytes();
            Some((token, &variant.bytes.in_memory()?[..]))
        })
        .collect();
    let key = compressed_key(level(body.status), &Sha256::digest(identity));
    (!encoded.is_empty()).then(|| (key, pack(encoded).into()))
}
