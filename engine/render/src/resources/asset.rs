//! Files that pages refer to, with their hashed names.
//!
//! A hashed name is the file's own name with the first 8 bytes of its SHA-256 in it, so that it can be kept for ever.
//! It has unreserved characters only (RFC 3986, section 2.3), so that it is the same in a URL, in a header field, in a style and on a disk.

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

/// The longest stem and extension in a hashed name, in characters: a file system takes 255 bytes.
const LONGEST_STEM: usize = 160;
const LONGEST_EXTENSION: usize = 32;

/// A file with its hashed name.
#[derive(Debug, Clone)]
pub struct Asset {
    /// The name that its author gave it.
    pub name: String,
    /// `logo.1a2b3c4d5e6f7a8b.svg`.
    pub hashed_name: String,
    /// The bytes as they are served; none where the file is too large for memory.
    pub bytes: Bytes,
    /// The file, where it is too large for memory.
    pub(crate) large: Option<LargeFile>,
    /// The same in the encoding `br`, where that was made before.
    pub(crate) brotli: Option<Bytes>,
    /// Whether something names it.
    used: Arc<AtomicBool>,
    /// What is known of a tenant's picture that is made of pixels.
    pub(crate) raster: Option<Arc<Raster>>,
}

impl Asset {
    /// Gives a file its name.
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
                let stem = unreserved(stem, LONGEST_STEM);
                format!(
                    "{stem}.{digest}.{}",
                    unreserved(extension, LONGEST_EXTENSION)
                )
            }
            None => format!("{}.{digest}", unreserved(name, LONGEST_STEM)),
        };
        Self {
            name: name.to_owned(),
            ..Self::named(hashed_name, bytes)
        }
    }

    /// Gives a tenant's file its name. One that is on no list is called `.bin`, so that no static host takes an exported page or script for one.
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

    /// Gives a tenant's file that is too large for memory its name. All of these are on the list of types.
    #[must_use]
    pub(crate) fn of_large(path: &str, file: &source::LargeFile) -> Self {
        let (bytes, blocks) = (Arc::clone(&file.file), Arc::clone(&file.blocks));
        Self {
            large: Some(LargeFile::new((bytes, file.length, file.digest, blocks))),
            ..Self::with_digest(path, Bytes::new(), &file.digest)
        }
    }

    /// Returns its bytes, wherever they are.
    #[must_use]
    pub fn payload(&self) -> Payload {
        match &self.large {
            Some(file) => file.clone().into(),
            None => self.bytes.clone().into(),
        }
    }

    /// The same with its encoding `br`, if that is there.
    #[must_use]
    pub(crate) fn compressed(self, brotli: Option<Bytes>) -> Self {
        Self { brotli, ..self }
    }

    /// Remembers that something names it.
    pub(crate) fn take(&self) -> &Self {
        self.used.store(true, Relaxed);
        self
    }

    /// Whether something does.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Relaxed)
    }

    /// Takes a file whose name is hashed already.
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

/// The hash of an inline element for the Content-Security-Policy (CSP Level 3, section 2.3.1), with its quotes.
#[must_use]
pub fn policy_hash(text: &str) -> String {
    use base64::Engine as _;
    let digest = Sha256::digest(text.as_bytes());
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    format!("'sha256-{digest}'")
}

/// Lower-case hexadecimal digits.
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
    fn a_hashed_name_has_unreserved_characters_only_and_fits_a_disk() {
        let name = |path: &str| Asset::of_tenant(path, Bytes::from_static(b"x")).hashed_name;
        assert_eq!(name("50% \u{fc}.png"), "50---.2d711642b726b044.png");
        assert_eq!(name("a/p.html"), "p-html.2d711642b726b044.bin");
        assert_eq!(name("LICENSE"), "LICENSE.2d711642b726b044.bin");
        assert!(name(&format!("{}.png", "a".repeat(240))).len() < 255);
        assert!(name(&format!("a.{}", "b".repeat(240))).len() < 255);
    }

    #[test]
    fn a_hashed_name_keeps_stem_and_extension() {
        let asset = Asset::new("icons/arrow.svg", Bytes::from_static(b"<svg/>"));
        assert_eq!(asset.hashed_name, "arrow.d4dc56669143034f.svg");
    }
}
