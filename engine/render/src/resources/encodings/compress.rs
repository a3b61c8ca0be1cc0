//! Makes the content encodings of a body before the first request, so that no request compresses anything.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::compile::cache::{self, Cache};
use crate::resources::encodings::etag::etag;
use release::large::LargeFile;
use release::pack::{pack, unpack};
use release::snapshot::{ContentEncoding, Variant, Variants};

/// How hard to compress a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompressionLevel {
    /// No compression now. [`Encoder`](crate::resources::encodings::page_encodings::Encoder) compresses the body when it is requested.
    Later,
    /// Pages, which are many and change often, and which a request may wait for.
    ///
    /// Brotli 5 and gzip 5 together cost a fifteenth of the best encoding. [`improve`] makes the best one later for requested pages.
    /// Zstandard is left out: its output is larger than Brotli's at the same cost, and clients that accept it also accept Brotli.
    Page,
    /// Error pages, which every tenant has at every address and which are rarely requested. They are compressed by gzip only, which every client accepts.
    Error,
    /// Shared files, which are few and sent to many visitors.
    Shared,
}

/// Bodies below this size in bytes are not compressed: they fit one packet anyway.
const MIN_COMPRESSED_BYTES: usize = 512;

/// Bodies above this size in bytes are compressed by gzip only. Gzip needs 256 KiB of memory, Brotli as much as the body.
const MAX_BROTLI_BYTES: usize = 4 << 20;

/// Bytes of a page's body that fit the first round trip of a TCP connection: ten segments of 1,460 bytes (RFC 6928), less the header fields.
const FIRST_ROUND_TRIP_BYTES: usize = 14_600 - 2_200;

/// From this size in bytes on, the compressed variants of a body together are no larger than the body, because all stay in memory.
///
/// If each encoding halves the body, both are kept. If the body hardly shrinks, only the smallest is kept.
const MIN_CAPPED_BYTES: usize = 64 << 10;

/// Returns a body in all content encodings of its level that make it smaller: smallest first, identity last.
#[must_use]
pub(crate) fn variants(bytes: Bytes, compressible: bool, level: CompressionLevel) -> Variants {
    cached_variants(bytes, compressible, level, &Cache::default())
}

/// Works like [`variants`], but looks up compressed bodies in `cache` first.
#[must_use]
pub(crate) fn cached_variants(
    bytes: Bytes,
    compressible: bool,
    level: CompressionLevel,
    cache: &Cache,
) -> Variants {
    let digest = Sha256::digest(&bytes);
    let mut variants = Vec::with_capacity(3);
    let is_worth_it =
        compressible && level != CompressionLevel::Later && bytes.len() >= MIN_COMPRESSED_BYTES;
    if is_worth_it {
        let key = compressed_key(level, &digest);
        let work = || Ok::<_, ()>(compressed(&bytes, level).into());
        let packed = match level {
            CompressionLevel::Shared => cache.get(key, work),
            CompressionLevel::Later | CompressionLevel::Page | CompressionLevel::Error => {
                cache.get_cheap(key, work)
            }
        };
        let compressed = packed.ok().and_then(|packed| unpack(&packed));
        for (name, bytes) in compressed.unwrap_or_default() {
            let mut encodings = ContentEncoding::ALL.into_iter();
            if let Some(encoding) = encodings.find(|encoding| encoding.token().as_bytes() == name) {
                variants.push(variant(encoding, bytes));
            }
        }
        variants.sort_by_key(|variant| variant.bytes.len());
    }
    let best = match level {
        CompressionLevel::Page if is_worth_it => cache.reuse(&best_key(&digest)),
        CompressionLevel::Later
        | CompressionLevel::Page
        | CompressionLevel::Error
        | CompressionLevel::Shared => Some(Bytes::new()),
    };
    variants.push(Variant {
        encoding: ContentEncoding::Identity,
        etag: etag(&digest),
        bytes: bytes.into(),
    });
    let variants = Variants::new(variants.into_boxed_slice());
    if let Some(best) = best {
        add_best(&variants, best);
    }
    variants
}

/// Returns the variants of a file that is too large for memory: identity only.
#[must_use]
pub(crate) fn large(file: LargeFile) -> Variants {
    let variants = Variants::from([Variant {
        encoding: ContentEncoding::Identity,
        etag: etag(file.digest()),
        bytes: file.into(),
    }]);
    variants.improve(None);
    variants
}

/// Returns the variants of a body whose best encoding was made beforehand, with gzip for clients that do not accept Brotli.
#[must_use]
pub(crate) fn with_brotli(bytes: Bytes, brotli: Bytes) -> Variants {
    let gzip = gzip(&bytes, CompressionLevel::Page)
        .map(|gzip| variant(ContentEncoding::Gzip, gzip.into()));
    let smaller = [Some(variant(ContentEncoding::Brotli, brotli)), gzip].into_iter();
    let mut variants: Vec<Variant> = smaller
        .flatten()
        .filter(|variant| variant.bytes.len() < bytes.len() as u64)
        .collect();
    variants.sort_by_key(|variant| variant.bytes.len());
    variants.push(variant(ContentEncoding::Identity, bytes));
    let variants = Variants::new(variants.into_boxed_slice());
    variants.improve(None);
    variants
}

/// Adds the best content encoding of a body: Brotli at its highest levels, which takes fifty times as long as lower levels. Looks it up in `cache` first.
pub(crate) fn improve(variants: &Variants, cache: &Cache) {
    let Some(identity) = variants.identity() else {
        return;
    };
    // Files that are too large for memory have no better encoding.
    let Some(bytes) = identity.bytes.in_memory() else {
        return;
    };
    let key = best_key(&Sha256::digest(bytes));
    let best = cache.get(key, || {
        // Without the encoder's spare capacity, because the bytes stay in memory while they are served.
        let best = best_brotli(bytes).unwrap_or_default();
        Ok::<_, ()>(best.into_boxed_slice().into())
    });
    add_best(variants, best.unwrap_or_default());
}

/// Returns the best content encoding of a body with its key, if the encoding was made with `cache`. Empty if no encoding is smaller than the others.
pub(crate) fn made_best(variants: &Variants, cache: &Cache) -> Option<(cache::CacheKey, Bytes)> {
    let bytes = variants.identity()?.bytes.in_memory()?;
    let key = best_key(&Sha256::digest(bytes));
    Some((key, cache.reuse(&key)?))
}

/// Returns the key of the packed encodings of a body. `digest` is the SHA-256 of the body.
pub(crate) fn compressed_key(level: CompressionLevel, digest: &[u8]) -> cache::CacheKey {
    cache::key("compressed", &[&[level as u8], digest])
}

fn best_key(digest: &[u8]) -> cache::CacheKey {
    cache::key("best", &[digest])
}

/// Adds the best encoding, unless another variant is smaller.
fn add_best(variants: &Variants, best: Bytes) {
    let smallest = variants.iter().map(|variant| variant.bytes.len()).min();
    let is_better =
        !best.is_empty() && smallest.is_some_and(|smallest| (best.len() as u64) < smallest);
    variants.improve(is_better.then(|| variant(ContentEncoding::Brotli, best)));
}

/// Compresses the bytes in every encoding of the level, and packs the smaller results by encoding token.
fn compressed(bytes: &Bytes, level: CompressionLevel) -> Vec<u8> {
    let mut encodings = vec![(ContentEncoding::Gzip, gzip(bytes, level))];
    match level {
        CompressionLevel::Page if bytes.len() <= MAX_BROTLI_BYTES => {
            encodings.push((ContentEncoding::Brotli, brotli(bytes, 5)))
        }
        CompressionLevel::Shared if bytes.len() <= MAX_BROTLI_BYTES => {
            encodings.push((ContentEncoding::Brotli, brotli(bytes, 11)))
        }
        _ => {}
    }
    encodings.sort_by_key(|(_, compressed)| compressed.as_ref().map(Vec::len));
    let mut left = match bytes.len() {
        MIN_CAPPED_BYTES.. => bytes.len(),
        _ => usize::MAX,
    };
    let smaller = encodings.iter().filter_map(|(encoding, compressed)| {
        let compressed = compressed
            .as_deref()
            .filter(|compressed| compressed.len() < bytes.len())?;
        left = left.checked_sub(compressed.len())?;
        Some((encoding.token().as_bytes(), compressed))
    });
    pack(smaller)
}

/// Compresses by Brotli 10, which takes half the time of Brotli 11 for 2 % more bytes. Uses 11 if the result does not fit the first round trip.
fn best_brotli(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() > MAX_BROTLI_BYTES {
        return None;
    }
    let small = brotli(bytes, 10)?;
    match small.len() <= FIRST_ROUND_TRIP_BYTES {
        true => Some(small),
        false => brotli(bytes, 11),
    }
}

fn variant(encoding: ContentEncoding, bytes: Bytes) -> Variant {
    Variant {
        encoding,
        etag: etag(&Sha256::digest(&bytes)),
        bytes: bytes.into(),
    }
}

fn brotli(bytes: &[u8], quality: i32) -> Option<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality,
        lgwin: window(bytes.len()),
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut compressed = Vec::with_capacity(bytes.len() / 3);
    brotli::BrotliCompress(&mut &bytes[..], &mut compressed, &parameters).ok()?;
    Some(compressed)
}

/// Returns the base-2 logarithm of the smallest Brotli window that holds the body.
///
/// The encoder clears twice that much memory before it begins. With a large window that takes longer than compressing a page.
/// 17 is the smallest window with an efficient search, and 22 the encoder's default. A window loses 16 bytes (RFC 7932, section 9.1).
fn window(length: usize) -> i32 {
    (17..22)
        .find(|bits| length <= (1 << bits) - 16)
        .unwrap_or(22)
}

/// Compresses bytes by gzip at a level.
pub(crate) fn gzip(bytes: &[u8], level: CompressionLevel) -> Option<Vec<u8>> {
    let level = match level {
        CompressionLevel::Shared => Compression::best(),
        CompressionLevel::Later | CompressionLevel::Page | CompressionLevel::Error => {
            Compression::new(5)
        }
    };
    // No time and no file name in the header (RFC 1952, section 2.3), so that the output depends on the content only.
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), level);
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(variant: &Variant) -> &Bytes {
        variant.bytes.in_memory().expect("bytes in memory")
    }

    fn lengths(variants: &Variants) -> Vec<usize> {
        variants
            .iter()
            .map(|variant| bytes(variant).len())
            .collect()
    }

    #[test]
    fn every_encoding_is_smaller_and_decodes_to_the_body() {
        let text = Bytes::from("the same words again and again. ".repeat(100));
        for (level, encodings) in [
            (CompressionLevel::Error, 2),
            (CompressionLevel::Page, 3),
            (CompressionLevel::Shared, 3),
        ] {
            let variants = variants(text.clone(), true, level);
            assert_eq!(variants.iter().count(), encodings, "{level:?}");
            if level == CompressionLevel::Page {
                improve(&variants, &Cache::default());
                assert_eq!(variants.iter().count(), 3, "it replaces the fast Brotli");
            }
            assert!(!variants.can_improve());
            assert!(lengths(&variants).is_sorted());
            let identity = variants.identity().expect("the body");
            assert_eq!(
                (identity.encoding, bytes(identity)),
                (ContentEncoding::Identity, &text)
            );
            for variant in variants.iter() {
                let mut back = Vec::new();
                match variant.encoding {
                    ContentEncoding::Brotli => {
                        brotli::BrotliDecompress(&mut &bytes(variant)[..], &mut back)
                            .expect("brotli");
                    }
                    ContentEncoding::Gzip => {
                        std::io::copy(
                            &mut flate2::read::GzDecoder::new(&bytes(variant)[..]),
                            &mut back,
                        )
                        .expect("gzip");
                    }
                    ContentEncoding::Identity => back = bytes(variant).to_vec(),
                }
                assert_eq!(back, text, "{:?}", variant.encoding);
            }
        }
    }

    #[test]
    fn best_encoding_has_its_own_etag_and_is_cached() {
        let text = Bytes::from("the same words again and again. ".repeat(100));
        let cache = Cache::default();
        let first = cached_variants(text.clone(), true, CompressionLevel::Page, &cache);
        let tags = || first.iter().map(|variant| variant.etag.clone());
        let mut all: std::collections::BTreeSet<_> = tags().collect();
        improve(&first, &cache);
        all.extend(tags());
        assert_eq!(all.len(), 4, "RFC 9110, section 8.8.3.3");
        let again = cached_variants(text, true, CompressionLevel::Page, &cache);
        assert!(!again.can_improve());
        assert_eq!(lengths(&again), lengths(&first));
    }

    #[test]
    fn brotli_window_holds_the_body() {
        for (length, bits) in [
            (0, 17),
            ((1 << 17) - 16, 17),
            ((1 << 17) - 15, 18),
            (1 << 20, 21),
            (1 << 30, 22),
        ] {
            assert_eq!(window(length), bits, "{length}");
        }
    }

    #[test]
    fn best_encoding_has_no_spare_capacity() {
        let text = Bytes::from("the same words again and again. ".repeat(1000));
        let variants = variants(text, true, CompressionLevel::Page);
        let cache = Cache::default();
        improve(&variants, &cache);
        let best = variants.iter().next().map(bytes).cloned();
        let best = best.expect("the best encoding");
        // The last owner gets the allocated buffer.
        drop((variants, cache));
        let length = best.len();
        assert_eq!(Vec::from(best).capacity(), length);
    }

    #[test]
    fn bodies_that_do_not_shrink_have_one_variant() {
        for (bytes, compressible) in [(b"tiny".to_vec(), true), (vec![0; 4096], false)] {
            let variants = variants(bytes.into(), compressible, CompressionLevel::Page);
            assert_eq!(variants.iter().count(), 1);
        }
    }

    #[test]
    fn variants_of_a_large_body_take_no_more_memory_than_the_body() {
        let random = |letters: &[u8], length: usize| -> Bytes {
            let mut state = 1_u64;
            let next = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                letters[(state >> 40) as usize % letters.len()]
            };
            std::iter::repeat_with(next).take(length).collect()
        };
        for (body, encodings) in [
            (random(b"0123456789abcdef", MIN_CAPPED_BYTES), 1),
            (random(b"ab", MIN_CAPPED_BYTES), 2),
            (random(b"0123456789abcdef", MIN_CAPPED_BYTES / 2), 2),
            (random(b"ab", MAX_BROTLI_BYTES + 1), 1),
        ] {
            let made = variants(body.clone(), true, CompressionLevel::Page);
            let lengths = lengths(&made);
            let (own, compressed) = lengths.split_last().expect("the body");
            assert_eq!(compressed.len(), encodings, "{} bytes", body.len());
            let compressed: usize = compressed.iter().sum();
            assert!(body.len() < MIN_CAPPED_BYTES || compressed <= *own);
        }
    }
}
