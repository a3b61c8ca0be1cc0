//! The best content encodings of a release, which one replica of a fleet makes for all.
//!
//! A replica that serves a requested tenant searches for the encodings in the object of the release. If they are not there, one replica makes them for all pages of the tenant and appends them to the object. The others look again from time to time.
//!
//! **Invariant:** found encodings equal own encodings, byte for byte. Without an answer from the store, a replica makes the encodings for itself.

use std::fmt::Debug;
use std::sync::{Arc, Weak};

use bytes::Bytes;

use release::pack::{pack, unpack};
use render::{CacheKey, CompiledTenant};

/// The limit on the encodings of a release, in bytes. They are in memory while they are packed.
const MAX_ENCODINGS_BYTES: usize = 32 << 20;

/// A search for the best encodings of a release. Dropping it lets another replica make them.
pub(crate) trait EncodingSearch: Debug + Send + Sync {
    /// Returns the state, without waiting.
    fn state(&self) -> EncodingState;
}

/// The state of a search.
#[cfg_attr(
    not(feature = "bucket"),
    expect(dead_code, reason = "only a bucket makes the values")
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EncodingState {
    /// The store has not answered yet, or another replica makes the encodings.
    Waiting,
    /// This replica makes the encodings for all.
    Granted,
    /// The packed encodings, which another replica has made.
    Found(Bytes),
    /// The release is not in the bucket or damaged, or the store does not answer.
    Unusable,
}

/// The search for the best encodings of a tenant's current pages.
#[derive(Debug)]
pub(crate) struct TenantSearch {
    pages: Weak<CompiledTenant>,
    inputs: CacheKey,
    search: Box<dyn EncodingSearch>,
}

impl TenantSearch {
    /// Returns the search for the encodings of these pages.
    pub(crate) fn new(
        pages: &Arc<CompiledTenant>,
        inputs: CacheKey,
        search: Box<dyn EncodingSearch>,
    ) -> Self {
        Self {
            pages: Arc::downgrade(pages),
            inputs,
            search,
        }
    }

    /// Returns the state if the search is for these pages.
    pub(crate) fn state_for(&self, pages: &Arc<CompiledTenant>) -> Option<EncodingState> {
        std::ptr::eq(self.pages.as_ptr(), Arc::as_ptr(pages)).then(|| self.search.state())
    }

    /// Returns the digest of the inputs of the release, and the search.
    pub(crate) fn into_parts(self) -> (CacheKey, Box<dyn EncodingSearch>) {
        (self.inputs, self.search)
    }
}

/// Packs the best encodings, or returns `None` if they are too large to share. They follow the parts of a release.
pub(crate) fn pack_encodings(compiled: &CompiledTenant) -> Option<Vec<u8>> {
    let encodings = compiled.best_encodings();
    let bytes: usize = encodings.values().map(Bytes::len).sum();
    if bytes > MAX_ENCODINGS_BYTES {
        return None;
    }
    let encodings = encodings.iter().map(|(key, bytes)| (&key[..], &bytes[..]));
    Some(pack([(&b""[..], &pack(encodings)[..])]))
}

/// Returns the results in packed encodings, or `None` if the bytes are damaged.
pub(crate) fn unpack_encodings(packed: &Bytes) -> Option<Vec<(CacheKey, Bytes)>> {
    let encodings = unpack(packed)?.into_iter();
    let encodings = encodings.map(|(key, encoded)| {
        // Copied, so that one body does not keep all others in memory.
        Some((key.as_ref().try_into().ok()?, encoded.to_vec().into()))
    });
    encodings.collect()
}
