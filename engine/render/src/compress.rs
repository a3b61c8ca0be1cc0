//! The codings of a body, made once so that none is made for a request.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use sha2::{Digest, Sha256};

use super::asset::hex;
use super::cache::{self, Cache};
use release::snapshot::{Coding, Variant};
use release::state::{pack, unpack};

/// How hard to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Pages: they are many and change often. Brotli 5 costs a fortieth of 11 and gives up a tenth of the size, which is taken where it saves a round trip. The other two are for the few who do not take Brotli.
    Page,
    /// Error pages: every tenant has some at every address, and nobody comes for them. They are compressed in one way only, by gzip: everybody takes it, and it costs a third of Brotli.
    Error,
    /// Shared files: they are few and travel far.
    Shared,
}

/// Bodies below this many bytes fit one packet either way.
const SMALLEST: usize = 512;

/// Bodies above this many bytes are compressed by gzip only: it works in a quarter of a megabyte, the other two need as much again as the body.
const LARGE: usize = 4 << 20;

/// What a server may send before it hears from the other side, in bytes: ten segments (RFC 6928) of 1,460.
pub(super) const FIRST_ROUND_TRIP: usize = 14_600;

/// From this many bytes on, the codings of a body together are no larger than the body: all of them stay in memory. Of a text that three codings make three times smaller, all are kept; of one that hardly shrinks, the smallest.
const WEIGHED: usize = 64 << 10;

/// A body in every coding of its kind that makes it smaller, smallest first, identity last.
#[must_use]
pub(super) fn variants(bytes: Bytes, compressible: bool, level: Level) -> Box<[Variant]> {
    kept_variants(bytes, compressible, level, &Cache::default())
}

/// The same; what was compressed before is taken from the cache.
#[must_use]
pub(super) fn kept_variants(
    bytes: Bytes,
    compressible: bool,
    level: Level,
    cache: &Cache,
) -> Box<[Variant]> {
    let mut variants = Vec::with_capacity(4);
    if compressible && bytes.len() >= SMALLEST {
        let key = cache::key("compressed", &[&[level as u8], &bytes]);
        let packed = cache.get(key, || Ok::<_, ()>(compressed(&bytes, level).into()));
        let compressed = packed.ok().and_then(|packed| unpack(&packed));
        for (name, bytes) in compressed.unwrap_or_default() {
            let mut codings = Coding::ALL.into_iter();
            if let Some(coding) = codings.find(|coding| coding.token().as_bytes() == name) {
                variants.push(variant(coding, bytes));
            }
        }
        variants.sort_by_key(|variant| variant.bytes.len());
    }
    variants.push(variant(Coding::Identity, bytes));
    variants.into_boxed_slice()
}

/// Every coding that is smaller than the bytes, by its token.
fn compressed(bytes: &Bytes, level: Level) -> Vec<u8> {
    let mut codings = vec![(Coding::Gzip, gzip(bytes, level))];
    if level != Level::Error && bytes.len() <= LARGE {
        codings.push((Coding::Brotli, fitted(bytes, level)));
        codings.push((Coding::Zstd, zstd(bytes, level)));
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

/// A page that misses the first round trip by little is compressed harder, so that it does not.
fn fitted(bytes: &[u8], level: Level) -> Option<Vec<u8>> {
    let quick = brotli(bytes, level)?;
    let misses = FIRST_ROUND_TRIP + 1..=FIRST_ROUND_TRIP / 5 * 6;
    match level == Level::Page && misses.contains(&quick.len()) {
        true => brotli(bytes, Level::Shared),
        false => Some(quick),
    }
}

fn variant(coding: Coding, bytes: Bytes) -> Variant {
    let tag = format!("\"{}\"", hex(&Sha256::digest(&bytes)[..12]));
    Variant {
        coding,
        etag: HeaderValue::from_str(&tag).unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
        bytes,
    }
}

fn brotli(bytes: &[u8], level: Level) -> Option<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: match level {
            Level::Page | Level::Error => 5,
            Level::Shared => 11,
        },
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

fn zstd(bytes: &[u8], level: Level) -> Option<Vec<u8>> {
    let level = match level {
        Level::Page | Level::Error => 3,
        Level::Shared => 19,
    };
    zstd::bulk::compress(bytes, level).ok()
}

fn gzip(bytes: &[u8], level: Level) -> Option<Vec<u8>> {
    let level = match level {
        Level::Page | Level::Error => Compression::new(5),
        Level::Shared => Compression::best(),
    };
    // No time and no file name in the header (RFC 1952, section 2.3): the bytes depend on the content alone.
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), level);
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coding_is_smaller_and_reads_back() {
        let text = Bytes::from("the same words again and again. ".repeat(100));
        for level in [Level::Page, Level::Shared] {
            let variants = variants(text.clone(), true, level);
            assert_eq!(variants.len(), 4);
            assert_eq!(variants[3].coding, Coding::Identity);
            for variant in &variants {
                let mut back = Vec::new();
                match variant.coding {
                    Coding::Brotli => {
                        brotli::BrotliDecompress(&mut &variant.bytes[..], &mut back)
                            .expect("brotli");
                    }
                    Coding::Zstd => back = zstd::decode_all(&variant.bytes[..]).expect("zstd"),
                    Coding::Gzip => {
                        std::io::copy(
                            &mut flate2::read::GzDecoder::new(&variant.bytes[..]),
                            &mut back,
                        )
                        .expect("gzip");
                    }
                    Coding::Identity => back = variant.bytes.to_vec(),
                }
                assert_eq!(back, text, "{:?}", variant.coding);
            }
        }
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
        assert_eq!(
            variants(Bytes::from_static(b"tiny"), true, Level::Page).len(),
            1
        );
        assert_eq!(
            variants(Bytes::from(vec![0; 4096]), false, Level::Page).len(),
            1
        );
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
            (random(b"ab", WEIGHED), 3),
            (random(b"0123456789abcdef", WEIGHED / 2), 3),
            (random(b"ab", LARGE + 1), 1),
        ] {
            let made = variants(body.clone(), true, Level::Page);
            assert_eq!(made.len() - 1, codings, "{} bytes", body.len());
            let (own, compressed) = made.split_last().expect("the body");
            let compressed: usize = compressed.iter().map(|variant| variant.bytes.len()).sum();
            assert!(body.len() < WEIGHED || compressed <= own.bytes.len());
        }
    }
}
