//! The first line of an entry, which tells whether the rest is whole.

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// What the first line begins with. Another version of the format is another word.
const STAMP: &str = "rowhouse-state-1 ";

/// The first line of an entry.
pub(super) fn stamp(content: &[u8]) -> String {
    format!("{STAMP}{}\n", hex(&Sha256::digest(content)))
}

/// What is behind the first line, if that fits.
pub(super) fn content(file: &Bytes) -> Option<Bytes> {
    let end = file.iter().take(256).position(|byte| *byte == b'\n')?;
    let digest = file[..end].strip_prefix(STAMP.as_bytes())?;
    let content = file.slice(end + 1..);
    (digest == hex(&Sha256::digest(&content)).as_bytes()).then_some(content)
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
