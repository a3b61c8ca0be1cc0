//! Removes metadata from images: the location, the camera, previews, comments.
//!
//! The colour profile and the orientation stay, because they decide how the image looks. The orientation (Exif 2.32, tag `Orientation`) moves to an Exif block of its own.
//! The pixels are not touched, so nothing is lost. A truncated image is processed up to its end. A file that is not an image is returned unchanged.

use bytes::Bytes;
use image::metadata::Orientation;
use img_parts::ImageEXIF;
use img_parts::png::Png;
use img_parts::webp::WebP;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8";
const EXIF: &[u8] = b"Exif\0\0";

/// Returns an image without its metadata.
#[must_use]
pub(crate) fn strip(bytes: &Bytes) -> Bytes {
    if bytes.starts_with(JPEG) {
        return jpeg(bytes);
    }
    if bytes.starts_with(PNG) {
        return png(bytes);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return webp(bytes);
    }
    bytes.clone()
}

/// Returns an Exif block with only the orientation, if the image must be rotated.
fn orientation_block(exif: &[u8]) -> Option<Bytes> {
    let orientation = Orientation::from_exif_chunk(exif)?;
    let number = orientation.to_exif();
    // TIFF 6.0, section 2: a header, and a directory of one entry.
    let mut block = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    block.extend([number, 0, 0, 0, 0, 0, 0, 0]);
    (orientation != Orientation::NoTransforms).then(|| block.into())
}

/// Strips a JPEG (ITU-T T.81, annex B): segments up to the first scan, then scans with segments between them. Data behind the end of the image is dropped.
fn jpeg(bytes: &Bytes) -> Bytes {
    const TEM: u8 = 0x01;
    const FIRST_RESTART: u8 = 0xd0;
    const LAST_RESTART: u8 = 0xd7;
    const END: u8 = 0xd9;
    const SCAN: u8 = 0xda;
    const APP0: u8 = 0xe0;
    const APP1: u8 = 0xe1;
    const APP2: u8 = 0xe2;
    const APP14: u8 = 0xee;
    const APP15: u8 = 0xef;
    const COMMENT: u8 = 0xfe;
    let mut kept = JPEG.to_vec();
    let (mut exif, mut behind_first) = (None, JPEG.len());
    let mut at = JPEG.len();
    while let Some([0xff, marker]) = bytes.get(at..).and_then(<[u8]>::first_chunk).copied() {
        match marker {
            // Any number of fill bytes may precede a marker.
            0xff => {
                at += 1;
                continue;
            }
            END => {
                kept.extend([0xff, END]);
                break;
            }
            TEM | FIRST_RESTART..=LAST_RESTART => {
                kept.extend([0xff, marker]);
                at += 2;
                continue;
            }
            _ => {}
        }
        let length = bytes.get(at + 2..).and_then(<[u8]>::first_chunk);
        let length = length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
        let Some(segment) = bytes.get(at..at + 2 + length).filter(|_| length >= 2) else {
            break;
        };
        let content = &segment[4..];
        let stays = match marker {
            APP0 => !content.starts_with(b"JFXX"),
            APP1 => {
                exif = exif.or_else(|| orientation_block(content.strip_prefix(EXIF)?));
                false
            }
            APP2 => content.starts_with(b"ICC_PROFILE\0"),
            // Adobe's segment, which decides how the colours are decoded.
            APP14 => true,
            APP0..=APP15 | COMMENT => false,
            _ => true,
        };
        at += segment.len();
        if stays {
            kept.extend_from_slice(segment);
            if marker == APP0 {
                behind_first = kept.len();
            }
        }
        if marker == SCAN {
            let end = at + scan(&bytes[at..]);
            kept.extend_from_slice(&bytes[at..end]);
            at = end;
        }
    }
    if let Some(block) = exif {
        let mut segment = vec![0xff, APP1, 0, 0];
        segment.extend(EXIF);
        segment.extend(block);
        let length = u16::try_from(segment.len() - 2).unwrap_or_default();
        segment[2..4].copy_from_slice(&length.to_be_bytes());
        kept.splice(behind_first..behind_first, segment);
    }
    kept.into()
}

/// Returns the length of a scan's data in bytes, up to the next marker of another kind.
fn scan(data: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr_ff(&data[at..]) {
        at += found;
        match data.get(at + 1) {
            Some(0 | 0xd0..=0xd7) => at += 2,
            Some(0xff) => at += 1,
            _ => return at,
        }
    }
    data.len()
}

fn memchr_ff(data: &[u8]) -> Option<usize> {
    data.iter().position(|byte| *byte == 0xff)
}

/// Strips a PNG (third edition, section 11): chunks up to `IEND`.
fn png(bytes: &Bytes) -> Bytes {
    const METADATA: [&[u8]; 5] = [b"eXIf", b"iTXt", b"tEXt", b"tIME", b"zTXt"];
    let mut kept = PNG.to_vec();
    let mut exif = None;
    let mut at = PNG.len();
    while let Some(length) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let end = length.checked_add(at + 12);
        let chunk = end.and_then(|end| bytes.get(at..end));
        let kind = bytes.get(at + 4..at + 8).unwrap_or_default();
        let is_metadata = METADATA.contains(&kind);
        let Some(chunk) = chunk else {
            // The file is truncated within this chunk.
            if !is_metadata {
                kept.extend_from_slice(&bytes[at..]);
            }
            break;
        };
        if kind == b"eXIf" {
            exif = orientation_block(&chunk[8..chunk.len() - 4]);
        }
        if !is_metadata {
            kept.extend_from_slice(chunk);
        }
        if kind == b"IEND" {
            break;
        }
        at += chunk.len();
    }
    let kept = Bytes::from(kept);
    match (exif, Png::from_bytes(kept.clone())) {
        (Some(exif), Ok(mut png)) => {
            png.set_exif(Some(exif));
            png.encoder().bytes()
        }
        _ => kept,
    }
}

/// Strips a WebP (RFC 9649, section 2). A truncated file is cut before its metadata, which is at the end.
fn webp(bytes: &Bytes) -> Bytes {
    match WebP::from_bytes(bytes.clone()) {
        Ok(mut webp) => {
            let exif = webp.exif();
            webp.remove_chunks_by_id(img_parts::webp::CHUNK_XMP);
            webp.set_exif(exif.and_then(|exif| orientation_block(&exif)));
            webp.encoder().bytes()
        }
        Err(_) => {
            let metadata = [b"EXIF", b"XMP "].map(|kind| find(bytes, kind));
            let end = metadata.into_iter().flatten().min();
            bytes.slice(..end.unwrap_or(bytes.len()))
        }
    }
}

fn find(bytes: &[u8], kind: &[u8]) -> Option<usize> {
    bytes.windows(kind.len()).position(|part| part == kind)
}

#[cfg(test)]
mod tests;
