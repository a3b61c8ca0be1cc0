//! Detects files whose upload has not ended. Otherwise a truncated image would be published.
//!
//! Checks only files written within the last few seconds. An older file is published without this check.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// Returns whether a file was written less than `pause` before `now` and ends before its content does.
pub(super) fn is_incomplete(
    bytes: &[u8],
    metadata: &Metadata,
    now: SystemTime,
    pause: Duration,
) -> bool {
    let is_recent = metadata.modified().is_ok_and(|written| {
        let age = now.duration_since(written);
        age.unwrap_or_else(|error| error.duration()) < pause
    });
    is_recent && ends_early(bytes)
}

/// Returns whether a file is truncated, for formats that mark their end: JPEG, PNG, GIF, RIFF (WebP, WAV), ISO base media (AVIF, MP4) and PDF.
fn ends_early(bytes: &[u8]) -> bool {
    let has = |pattern: &[u8]| contains(bytes, pattern);
    let number = |at: usize| bytes.get(at..)?.first_chunk::<4>();
    match bytes {
        [0xFF, 0xD8, 0xFF, ..] => has_no_end(bytes),
        [0x89, b'P', b'N', b'G', ..] => !has(b"IEND"),
        [b'G', b'I', b'F', b'8', ..] => bytes.last() != Some(&0x3B),
        [b'R', b'I', b'F', b'F', ..] => number(4)
            .is_none_or(|length| u64::from(u32::from_le_bytes(*length)) + 8 > bytes.len() as u64),
        [b'%', b'P', b'D', b'F', ..] => !has(b"%%EOF"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => has_open_box(bytes),
        _ => false,
    }
}

fn contains(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.windows(pattern.len()).any(|window| window == pattern)
}

/// Returns whether a JPEG file (ITU-T T.81, B.1) has no end-of-image marker after its first scan. A thumbnail within a segment has its own marker.
fn has_no_end(bytes: &[u8]) -> bool {
    let mut rest = &bytes[2..];
    loop {
        rest = match rest {
            // Scan data cannot contain this marker.
            [0xFF, 0xDA, scans @ ..] => return !contains(scans, &[0xFF, 0xD9]),
            [0xFF, 0xFF, ..] => &rest[1..],
            [0xFF, 0x01 | 0xD0..=0xD8, after @ ..] => after,
            [0xFF, _, high, low, ..] => {
                let length = 2 + usize::from(u16::from_be_bytes([*high, *low]));
                match rest.get(length..) {
                    Some(after) => after,
                    None => return true,
                }
            }
            // Not a JPEG file. The image decoder reports it.
            [byte, ..] if *byte != 0xFF => return false,
            _ => return true,
        };
    }
}

/// Returns whether the last box of an ISO base media file (ISO/IEC 14496-12, 4.2) extends beyond the end of the file.
fn has_open_box(mut rest: &[u8]) -> bool {
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, ..] = *head;
        let length = match u32::from_be_bytes([a, b, c, d]) {
            // The box extends to the end of the file.
            0 => return false,
            1 => match rest[8..].first_chunk::<8>() {
                Some(length) => u64::from_be_bytes(*length),
                None => return true,
            },
            length => u64::from(length),
        };
        match usize::try_from(length).ok().filter(|length| *length >= 8) {
            Some(length) if length <= rest.len() => rest = &rest[length..],
            _ => return true,
        }
    }
    !rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_file_is_detected_at_every_length() {
        let jpeg = [
            &[0xFF, 0xD8, 0xFF, 0xE1, 0, 6, 0xFF, 0xD8, 0xFF, 0xD9][..],
            &[0xFF, 0xDA, 0, 2, 1, 2, 0xFF, 0, 3, 0xFF, 0xD9],
        ]
        .concat();
        let png = b"\x89PNG\r\n\x1a\n....IHDR....IDAT....IEND";
        let webp = b"RIFF\x08\0\0\0WEBPVP8 ";
        let video = b"\0\0\0\x0cftypmp42\0\0\0\x10moov........";
        let files: [(&[u8], usize); 6] = [
            (&jpeg, 3),
            (png, 4),
            (b"GIF89a........\x3B", 4),
            (webp, 4),
            (video, 8),
            (b"%PDF-1.7 ... %%EOF", 4),
        ];
        for (file, head) in files {
            assert!(!ends_early(file), "{file:?}");
            for length in head..file.len() {
                let is_box_end = file == video && length == 12;
                assert!(
                    ends_early(&file[..length]) || is_box_end,
                    "{length} of {file:?}"
                );
            }
        }
        assert!(!ends_early(b"Some text."));
    }
}
