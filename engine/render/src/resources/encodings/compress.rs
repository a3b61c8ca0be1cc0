//! The encodings of a body, made once so that none is made for a request.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use sha2::{Digest, Sha256};

use crate::compile::cache::{self, Cache};
use crate::resources::asset::hex;
use release::large::LargeFile;
use release::pack::{pack, unpack};
use release::snapshot::{Coding, Variant, Variants};

/// How hard to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Not at all: [`Encoder`](crate::resources::encodings::page_encodings::Encoder) does it once somebody asks.
    Later,
    /// Pages: they are many, change often, and somebody may wait for them. Brotli 5 and gzip 5 together cost a fifteenth of the best encoding, which is made later for what somebody asks for ([`improve`]). Zstandard is larger than Brotli at the same cost, and who takes it takes Brotli.
    Page,
    /// Error pages: every tenant has some at every address, and nobody comes for them. They are compressed in one way only, by gzip: everybody takes it.
    Error,
    /// Shared files: they are few and travel far.
    Shared,
}

/// Bodies below this many bytes fit one packet either way.
const MIN_COMPRESSED_BYTES: usize = 512;

/// Bodies above this many bytes are compressed by gzip only: it works in a quarter of a megabyte, Brotli needs as much again as the body.
const MAX_BROTLI_BYTES: usize = 4 << 20;

/// What a page has of what a server may send before it hears from the other side, in bytes: ten segments (RFC 6928) of 1,460, less what its header fields take.
const FIRST_ROUND_TRIP: usize = 14_600 - 2_200;

/// From this many bytes on, the encodings of a body together are no larger than the body: all of them stay in memory. Of a text that both encodings make two times smaller, both are kept; of one that hardly shrinks, the smallest.
const WEIGHED: usize = 64 << 10;

/// A body in the encodings of its level that make it smaller, smallest first, identity last.
#[must_use]
pub(crate) fn variants(bytes: Bytes, compressible: bool, level: Level) -> Variants {
    cached_variants(bytes, compressible, level, &Cache::default())
}

/// The same; what was compressed before is taken from the cache.
#[must_use]
pub(crate) fn cached_variants(
    bytes: Bytes,
    compressible: bool,
    level: Level,
    cache: &Cache,
) -> Variants {
    let digest = Sha256::digest(&bytes);
    let mut variants = Vec::with_capacity(3);
    let is_worth_it = compressible && level != Level::Later && bytes.len() >= MIN_COMPRESSED_BYTES;
    if is_worth_it {
        let key = cache::key("compressed", &[&[level as u8], &digest]);
        let work = || Ok::<_, ()>(compressed(&bytes, level).into());
        let packed = match level {
            Level::Shared => cache.get(key, work),
            Level::Later | Level::Page | Level::Error => cache.get_cheap(key, work),
        };
        let compressed = packed.ok().and_then(|packed| unpack(&packed));
        for (name, bytes) in compressed.unwrap_or_default() {
            let mut codings = Coding::ALL.into_iter();
            if let Some(coding) = codings.find(|coding| coding.token().as_bytes() == name) {
                variants.push(variant(coding, bytes));
            }
        }
        variants.sort_by_key(|variant| variant.bytes.len());
    }
    let best = match level {
        Level::Page if is_worth_it => cache.known(&best_key(&digest)),
        Level::Later | Level::Page | Level::Error | Level::Shared => Some(Bytes::new()),
    };
    variants.push(Variant {
        coding: Coding::Identity,
        etag: etag(&digest),
        bytes: bytes.into(),
    });
    let variants = Variants::new(variants.into_boxed_slice());
    if let Some(best) = best {
        put_best(&variants, best);
    }
    variants
}

/// A file that is too large for memory: it goes out as it is.
#[must_use]
pub(crate) fn large(file: LargeFile) -> Variants {
    let variants = Variants::from([Variant {
        coding: Coding::Identity,
        etag: etag(file.digest()),
        bytes: file.into(),
    }]);
    variants.improve(None);
    variants
}

/// A body whose best encoding was made before, and gzip for who does not take that.
#[must_use]
pub(crate) fn with_brotli(bytes: Bytes, brotli: Bytes) -> Variants {
    let gzip = gzip(&bytes, Level::Page).map(|gzip| variant(Coding::Gzip, gzip.into()));
    let smaller = [Some(variant(Coding::Brotli, brotli)), gzip].into_iter();
    let mut variants: Vec<Variant> = smaller
        .flatten()
        .filter(|variant| variant.bytes.len() < bytes.len() as u64)
        .collect();
    variants.sort_by_key(|variant| variant.bytes.len());
    variants.push(variant(Coding::Identity, bytes));
    let variants = Variants::new(variants.into_boxed_slice());
    variants.improve(None);
    variants
}

/// Makes the best encoding of a body: Brotli as small as it gets, which takes fifty times as long as the others. What was made before is taken from the cache.
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
        Ok::<_, ()>(fitted(bytes).unwrap_or_default().into())
    });
    put_best(variants, best.unwrap_or_default());
}

fn best_key(digest: &[u8]) -> cache::Key {
    cache::key("best", &[digest])
}

/// Adds the best encoding, unless there are smaller ones.
fn put_best(variants: &Variants, best: Bytes) {
    let smallest = variants.iter().map(|variant| variant.bytes.len()).min();
    let is_better =
        !best.is_empty() && smallest.is_some_and(|smallest| (best.len() as u64) < smallest);
    variants.improve(is_better.then(|| variant(Coding::Brotli, best)));
}

/// Every encoding that is smaller than the bytes, by its token.
fn compressed(bytes: &Bytes, level: Level) -> Vec<u8> {
    let mut codings = vec![(Coding::Gzip, gzip(bytes, level))];
    match level {
        Level::Page if bytes.len() <= MAX_BROTLI_BYTES => {
            codings.push((Coding::Brotli, brotli(bytes, 5)))
        }
        Level::Shared if bytes.len() <= MAX_BROTLI_BYTES => {
            codings.push((Coding::Brotli, brotli(bytes, 11)))
        }
        _ => {}
    }
    codings.sort_by_key(|(_, compressed)| compressed.as_ref().map(Vec::len));
    let mut left = match bytes.len() {
        WEIGHED.. => bytes.len(),
        _ => usize::MAX,
    };
    let smaller = codings.iter().filter_map(|(coding, compressed)| {
        let compressed = compressed
            .as_deref()
            .filter(|compressed| compressed.len() < bytes.len())?;
        left = left.checked_sub(compressed.len())?;
        Some((coding.token().as_bytes(), compressed))
    });
    pack(smaller)
}

/// Brotli 10, which is half the work of 11 and two parts in a hundred larger; 11 where that misses the first round trip.
fn fitted(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() > MAX_BROTLI_BYTES {
        return None;
    }
    let small = brotli(bytes, 10)?;
    match small.len() <= FIRST_ROUND_TRIP {
        true => Some(small),
        false => brotli(bytes, 11),
    }
}

fn variant(coding: Coding, bytes: Bytes) -> Variant {
    Variant {
        coding,
        etag: etag(&Sha256::digest(&bytes)),
        bytes: bytes.into(),
    }
}

fn etag(digest: &[u8]) -> HeaderValue {
    let tag = format!("\"{}\"", hex(&digest[..12]));
    HeaderValue::from_str(&tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
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

/// The smallest window that has room for all of a body, as a power of two: the encoder fills twice as much memory before it begins, which for a page would take longer than compressing it.
///
/// 17 is the smallest for which it has a good way of searching, and 22 its largest by default; RFC 7932 (section 9.1) takes 16 bytes off.
fn window(length: usize) -> i32 {
    (17..22)
        .find(|bits| length <= (1 << bits) - 16)
        .unwrap_or(22)
}

/// Gzip as it is for a level.
pub(crate) fn gzip(bytes: &[u8], level: Level) -> Option<Vec<u8>> {
    let level = match level {
        Level::Shared => Compression::best(),
        Level::Later | Level::Page | Level::Error => Compression::new(5),
    };
    // No time and no file name in the header (RFC 1952, section 2.3): the bytes depend on the content alone.
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
    fn every_coding_is_smaller_and_reads_back() {
        let text = Bytes::from("the same words again and again. ".repeat(100));
        for (level, codings) in [(Level::Error, 2), (Level::Page, 3), (Level::Shared, 3)] {
            let variants = variants(text.clone(), true, level);
            assert_eq!(variants.iter().count(), codings, "{level:?}");
            if level == Level::Page {
                improve(&variants, &Cache::default());
                assert_eq!(variants.iter().count(), 3, "in the place of the quick one");
            }
            assert!(!variants.can_improve());
            assert!(lengths(&variants).is_sorted());
            let identity = variants.identity().expect("the body");
            assert_eq!(
                (identity.coding, bytes(identity)),
                (Coding::Identity, &text)
            );
            for variant in variants.iter() {
                let mut back = Vec::new();
                match variant.coding {
                    Coding::Brotli => {
                        brotli::BrotliDecompress(&mut &bytes(variant)[..], &mut back)
                            .expect("brotli");
                    }
                    Coding::Gzip => {
                        std::io::copy(
                            &mut flate2::read::GzDecoder::new(&bytes(variant)[..]),
                            &mut back,
                        )
                        .expect("gzip");
                    }
                    Coding::Identity => back = bytes(variant).to_vec(),
                }
                assert_eq!(back, text, "{:?}", variant.coding);
            }
        }
    }

    #[test]
    fn the_best_coding_is_another_representation_and_made_once() {
        let text = Bytes::from("the same words again and again. ".repeat(100));
        let cache = Cache::default();
        let first = cached_variants(text.clone(), true, Level::Page, &cache);
        let tags = || first.iter().map(|variant| variant.etag.clone());
        let mut all: std::collections::BTreeSet<_> = tags().collect();
        improve(&first, &cache);
        all.extend(tags());
        assert_eq!(all.len(), 4, "RFC 9110, section 8.8.3.3");
        let again = cached_variants(text, true, Level::Page, &cache);
        assert!(!again.can_improve());
        assert_eq!(lengths(&again), lengths(&first));
    }

    #[test]
    fn a_window_holds_the_whole_body() {
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
    fn what_does_not_shrink_stays_alone() {
        for (bytes, compressible) in [(b"tiny".to_vec(), true), (vec![0; 4096], false)] {
            let variants = variants(bytes.into(), compressible, Level::Page);
            assert_eq!(variants.iter().count(), 1);
        }
    }

    #[test]
    fn the_codings_of_a_large_body_take_no_more_than_the_body() {
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
        for (body, codings) in [
            (random(b"0123456789abcdef", WEIGHED), 1),
            (random(b"ab", WEIGHED), 2),
            (random(b"0123456789abcdef", WEIGHED / 2), 2),
            (random(b"ab", MAX_BROTLI_BYTES + 1), 1),
        ] {
            let made = variants(body.clone(), true, Level::Page);
            let lengths = lengths(&made);
            let (own, compressed) = lengths.split_last().expect("the body");
            assert_eq!(compressed.len(), codings, "{} bytes", body.len());
            let compressed: usize = compressed.iter().sum();
            assert!(body.len() < WEIGHED || compressed <= *own);
        }
    }
}
