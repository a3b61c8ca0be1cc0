//! Detects files that end before their content does: uploads in progress, and uploads that were cut off.
//!
//! Looks at marks and lengths only, and decodes nothing. Formats: JPEG, PNG, GIF, RIFF (WebP, WAV), ISO base media (AVIF, MP4), PDF and ZIP.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The number of bytes in which a ZIP file has its end record: the record and its longest comment.
const ZIP_END_BYTES: usize = 22 + 65_535;

/// The number of bytes that tell the format of a file.
const HEAD_BYTES: usize = 16;

/// Returns what is missing at the end of a file, or `None` if the file is complete or has another format.
#[must_use]
pub fn missing_end(bytes: &[u8]) -> Option<&'static str> {
    let read = |at: u64| head_at(bytes, at);
    match bytes {
        [0xFF, 0xD8, 0xFF, ..] => has_no_end(bytes).then_some("the end marker of the JPEG image"),
        [0x89, b'P', b'N', b'G', ..] => {
            (!contains(bytes, b"IEND")).then_some("the `IEND` chunk of the PNG image")
        }
        [b'G', b'I', b'F', b'8', ..] => {
            (bytes.last() != Some(&0x3B)).then_some("the trailer of the GIF image")
        }
        _ => missing_end_at(bytes.len() as u64, read, bytes),
    }
}

/// Returns what is missing at the end of a file that is too large for memory. As [`missing_end`], without images.
#[must_use]
pub fn missing_end_of_file(file: &File, length: u64) -> Option<&'static str> {
    let read = |at: u64| {
        let mut head = [0; HEAD_BYTES];
        let count = file.read_at(&mut head, at).ok()?;
        (count >= 8).then_some(head)
    };
    let mut end = vec![0; ZIP_END_BYTES.min(usize::try_from(length).unwrap_or(ZIP_END_BYTES))];
    let from = length.saturating_sub(end.len() as u64);
    let is_read = file.read_exact_at(&mut end, from);
    // The reader of the file reports the error.
    is_read.ok()?;
    missing_end_at(length, read, &end)
}

/// Returns what is missing at the end of a file with this length. `read` returns the bytes at an offset, and `end` is the end of the file.
fn missing_end_at(
    length: u64,
    read: impl Fn(u64) -> Option<[u8; HEAD_BYTES]>,
    end: &[u8],
) -> Option<&'static str> {
    let end = &end[end.len().saturating_sub(ZIP_END_BYTES)..];
    match read(0)? {
        [b'R', b'I', b'F', b'F', a, b, c, d, ..] => {
            let size = u32::from_le_bytes([a, b, c, d]);
            // A program that writes to a pipe does not know the length.
            let is_known = size != 0 && size != u32::MAX;
            let ends_early = is_known && u64::from(size) + 8 > length;
            ends_early.then_some("the end that its RIFF header announces")
        }
        [b'%', b'P', b'D', b'F', ..] => {
            (!contains(end, b"%%EOF")).then_some("the `%%EOF` marker of the PDF document")
        }
        [b'P', b'K', 3, 4, ..] => {
            (!contains(end, b"PK\x05\x06")).then_some("the end record of the ZIP archive")
        }
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => {
            has_open_box(length, read).then_some("the end of its last box (MP4 or AVIF)")
        }
        _ => None,
    }
}

/// Returns the bytes at an offset, with zeros after the end. Returns `None` for fewer than 8 bytes.
fn head_at(bytes: &[u8], at: u64) -> Option<[u8; HEAD_BYTES]> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let count = rest.len().min(HEAD_BYTES);
    let mut head = [0; HEAD_BYTES];
    head[..count].copy_from_slice(&rest[..count]);
    (count >= 8).then_some(head)
}

/// Returns whether a pattern occurs. Searches from the end, where complete files have it.
fn contains(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes
        .windows(pattern.len())
        .rev()
        .any(|window| window == pattern)
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
fn has_open_box(length: u64, read: impl Fn(u64) -> Option<[u8; HEAD_BYTES]>) -> bool {
    let mut at = 0;
    while at < length {
        let Some([a, b, c, d, _, _, _, _, large @ ..]) = read(at) else {
            return true;
        };
        let size = match u32::from_be_bytes([a, b, c, d]) {
            // The box extends to the end of the file.
            0 => return false,
            1 if length - at < HEAD_BYTES as u64 => return true,
            1 => u64::from_be_bytes(large),
            size => u64::from(size),
        };
        match size {
            // Not a box: other data follows the last box.
            0..8 => return false,
            size if size > length - at => return true,
            size => at += size,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Complete files, each with the number of bytes that tell its format.
    fn files() -> Vec<(Vec<u8>, usize)> {
        let jpeg = [
            &[0xFF, 0xD8, 0xFF, 0xE1, 0, 6, 0xFF, 0xD8, 0xFF, 0xD9][..],
            &[0xFF, 0xDA, 0, 2, 1, 2, 0xFF, 0, 3, 0xFF, 0xD9],
        ]
        .concat();
        let large_box = b"\0\0\0\x0cftypmp42\0\0\0\x01mdat\0\0\0\0\0\0\0\x18........";
        let zip = [&b"PK\x03\x04............"[..], b"PK\x05\x06", &[0; 18]].concat();
        vec![
            (jpeg, 3),
            (b"\x89PNG\r\n\x1a\n....IHDR....IDAT....IEND".to_vec(), 4),
            (b"GIF89a........\x3B".to_vec(), 4),
            (b"RIFF\x08\0\0\0WEBPVP8 ".to_vec(), 8),
            (b"\0\0\0\x0cftypmp42\0\0\0\x10moov........".to_vec(), 8),
            (large_box.to_vec(), 8),
            (b"%PDF-1.7 ... %%EOF".to_vec(), 8),
            (zip, 8),
        ]
    }

    #[test]
    fn truncated_file_is_detected_at_every_length() {
        for (file, head) in files() {
            assert_eq!(missing_end(&file), None, "{file:?}");
            for length in head..file.len() {
                let is_box_end = file[4..].starts_with(b"ftyp") && length == 12;
                let is_record = file.starts_with(b"PK") && length > file.len() - 19;
                assert!(
                    missing_end(&file[..length]).is_some() || is_box_end || is_record,
                    "{length} of {file:?}"
                );
            }
        }
        assert_eq!(missing_end(b"Some text."), None);
        assert_eq!(missing_end(b""), None);
    }

    #[test]
    fn file_on_disk_is_judged_like_bytes_in_memory() {
        let in_memory_only = |file: &[u8]| matches!(file[0], 0xFF | 0x89 | b'G');
        for (file, head) in files() {
            if in_memory_only(&file) {
                continue;
            }
            for length in head..=file.len() {
                let mut on_disk = tempfile::tempfile().expect("a file");
                on_disk.write_all(&file[..length]).expect("a write");
                assert_eq!(
                    missing_end_of_file(&on_disk, length as u64),
                    missing_end(&file[..length]),
                    "{length} of {file:?}"
                );
            }
        }
    }

    #[test]
    fn data_after_the_last_box_and_unknown_lengths_are_complete() {
        assert_eq!(missing_end(b"\0\0\0\x0cftypmp42\0\0\0\x03....."), None);
        assert_eq!(missing_end(b"RIFF\xFF\xFF\xFF\xFFWAVEfmt "), None);
    }
}
