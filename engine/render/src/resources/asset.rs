//! Files that pages refer to, with their hashed names.
//!
//! A hashed name contains the first 8 bytes of the file's SHA-256 in hexadecimal, so clients may cache the file for ever.
//! Hashed names consist of unreserved characters (RFC 3986, section 2.3), and are therefore the same in a URL, a header field, a style and on disk.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::images::image_header::Raster;
use crate::media::media_type::{UNKNOWN, tenant_type};
use content::name::is_unreserved;
use content::source;
use release::large::LargeFile;
use release::payload::Payload;

pub use content::name::reserved::ASSETS;

/// Limit on the stem of a hashed name, in characters. A complete file name has at most 255 bytes on common file systems.
const MAX_STEM_CHARS: usize = 160;
/// Limit on the extension of a hashed name, in characters.
const MAX_EXTENSION_CHARS: usize = 32;

/// A file with its hashed name.
#[derive(Debug, Clone)]
pub struct Asset {
    /// The file name that its author chose.
    pub name: String,
    /// The hashed name, for example `logo.1a2b3c4d5e6f7a8b.svg`.
    pub hashed_name: String,
    /// The bytes as they are served. Empty if the file is too large for memory.
    pub bytes: Bytes,
    /// The file on disk, if it is too large for memory.
    pub(crate) large: Option<LargeFile>,
    /// The bytes in the content encoding `br`, if they were compressed beforehand.
    pub(crate) brotli: Option<Bytes>,
    /// Whether a page or another file refers to it.
    used: Arc<AtomicBool>,
    /// The size and formats of a tenant's raster image.
    pub(crate) raster: Option<Arc<Raster>>,
}

impl Asset {
    /// Creates an asset and computes its hashed name.
    #[must_use]
    pub fn new(path: &str, bytes: Bytes) -> Self {
        let digest = Sha256::digest(&bytes).into();
        Self::with_digest(path, bytes, &digest)
    }

    fn with_digest(path: &str, bytes: Bytes, digest: &[u8; 32]) -> Self {
        let digest = hex(&digest[..8]);
        let name = path.rsplit('/').next().unwrap_or(path);
        let hashed_name = match name.rsplit_once('.') {
            Some((stem, extension)) => {
                let stem = unreserved(stem, MAX_STEM_CHARS);
                format!(
                    "{stem}.{digest}.{}",
                    unreserved(extension, MAX_EXTENSION_CHARS)
                )
            }
            None => format!("{}.{digest}", unreserved(name, MAX_STEM_CHARS)),
        };
        Self {
            name: name.to_owned(),
            ..Self::named(hashed_name, bytes)
        }
    }

    /// Creates an asset for a tenant's file.
    ///
    /// A file of an unknown type gets the extension `.bin`, so that no static host serves an exported file as a page or script.
    #[must_use]
    pub(crate) fn of_tenant(path: &str, bytes: Bytes) -> Self {
        let mut asset = Self::new(path, bytes);
        if tenant_type(&asset.name) != UNKNOWN {
            asset.raster = Raster::of(&asset.name, &asset.bytes).map(Arc::new);
            return asset;
        }
        let named = asset.name.replace('.', "-") + ".bin";
        Self {
            name: asset.name,
            ..Self::new(&named, asset.bytes)
        }
    }

    /// Creates an asset for a tenant's file that is too large for memory. Such files always have a known type.
    #[must_use]
    pub(crate) fn of_large(path: &str, file: &source::LargeSourceFile) -> Self {
        let (bytes, blocks) = (Arc::clone(&file.file), Arc::clone(&file.blocks));
        Self {
            large: Some(LargeFile::new((bytes, file.length, file.digest, blocks))),
            ..Self::with_digest(path, Bytes::new(), &file.digest)
        }
    }

    /// Returns its bytes, from memory or from the file on disk.
    #[must_use]
    pub fn payload(&self) -> Payload {
        match &self.large {
            Some(file) => file.clone().into(),
            None => self.bytes.clone().into(),
        }
    }

    /// Returns the asset with its `br` encoding, if there is one.
    #[must_use]
    pub(crate) fn with_brotli(self, brotli: Option<Bytes>) -> Self {
        Self { brotli, ..self }
    }

    /// Marks the asset as referred to.
    pub(crate) fn mark_used(&self) -> &Self {
        self.used.store(true, Relaxed);
        self
    }

    /// Whether a page or another file refers to it.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Relaxed)
    }

    /// Creates an asset for a file whose name already contains a hash.
    #[must_use]
    pub fn named(hashed_name: String, bytes: Bytes) -> Self {
        Self {
            name: hashed_name.clone(),
            hashed_name,
            bytes,
            large: None,
            brotli: None,
            used: Arc::default(),
            raster: None,
        }
    }
}

fn unreserved(name: &str, longest: usize) -> String {
    let kept = |character: char| u8::try_from(character).is_ok_and(is_unreserved);
    name.chars()
        .take(longest)
        .map(|character| if kept(character) { character } else { '-' })
        .collect()
}

/// Returns the hash of an inline element for the Content-Security-Policy, with its quotes (CSP Level 3, section 2.3.1).
#[must_use]
pub fn policy_hash(text: &str) -> String {
    use base64::Engine as _;
    let digest = Sha256::digest(text.as_bytes());
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    format!("'sha256-{digest}'")
}

/// Formats bytes as lower-case hexadecimal digits.
#[must_use]
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_name_is_unreserved_and_fits_a_file_system() {
        let name = |path: &str| Asset::of_tenant(path, Bytes::from_static(b"x")).hashed_name;
        assert_eq!(name("50% \u{fc}.png"), "50---.2d711642b726b044.png");
        assert_eq!(name("a/p.html"), "p-html.2d711642b726b044.bin");
        assert_eq!(name("LICENSE"), "LICENSE.2d711642b726b044.bin");
        assert!(name(&format!("{}.png", "a".repeat(240))).len() < 255);
        assert!(name(&format!("a.{}", "b".repeat(240))).len() < 255);
    }

    #[test]
    fn hashed_name_contains_stem_and_extension() {
        let asset = Asset::new("icons/arrow.svg", Bytes::from_static(b"<svg/>"));
        assert_eq!(asset.hashed_name, "arrow.d4dc56669143034f.svg");
    }
}
