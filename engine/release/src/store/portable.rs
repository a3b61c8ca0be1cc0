//! The pages of a release in one byte string, with all bodies, for another machine.
//!
//! **Invariant:** the encoding is that of the release files, with the blobs behind the pages.

use bytes::Bytes;

use super::pages::{self, AddressPages, PagesLayout};
use crate::pack::{pack, unpack};
use crate::payload::Payload;

/// The limit on the pages with all bodies, in bytes. They are in memory while they are packed.
const MAX_PORTABLE_BYTES: u64 = 32 << 20;

/// Packs the pages without content encodings. Returns `None` if they exceed 32 MiB, or a body is in a file.
#[must_use]
pub fn pack_pages(addresses: &[AddressPages]) -> Option<Vec<u8>> {
    let (pages, blobs) = pages::write(addresses).ok()?;
    let blobs: Vec<&Bytes> = blobs
        .iter()
        .map(|(_, payload)| payload.in_memory())
        .collect::<Option<_>>()?;
    let lengths = blobs.iter().map(|blob| blob.len() as u64);
    let length = lengths.fold(pages.len() as u64, u64::saturating_add);
    if length > MAX_PORTABLE_BYTES {
        return None;
    }
    let blobs = blobs.into_iter().map(|blob| &blob[..]);
    let parts = [&pages[..]].into_iter().chain(blobs);
    Some(pack(parts.map(|part| (&b""[..], part))))
}

/// Unpacks the pages. Returns `None` if the bytes are not packed pages of this version of the format.
#[must_use]
pub fn unpack_pages(packed: &Bytes) -> Option<Vec<AddressPages>> {
    let mut parts = unpack(packed)?.into_iter().map(|(_, part)| part);
    let pages = parts.next()?;
    // Copied, so that a body in memory does not keep all others in memory.
    let blobs: Vec<Payload> = parts.map(|part| part.to_vec().into()).collect();
    pages::read(&pages, &blobs, PagesLayout::ErrorPages)
}
