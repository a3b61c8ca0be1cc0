//! Files that pages refer to: their hashed names and their types.
//!
//! A hashed name is the file's own name with the first 8 bytes of its SHA-256 in it, so that it can be kept for ever.

use std::collections::BTreeMap;

use bytes::Bytes;
use sha2::{Digest, Sha256, Sha384};

use super::stylesheet::stylesheet;
use crate::report::Report;
use crate::theme::Theme;

/// The path below which shared files answer on every host, and a tenant's own below its mount.
pub const ASSETS: &str = "/assets/";

/// A file with its hashed name.
#[derive(Debug, Clone)]
pub struct Asset {
    /// `logo.1a2b3c4d5e6f7a8b.svg`.
    pub hashed_name: String,
    /// The bytes as they are served.
    pub bytes: Bytes,
    /// The `integrity` attribute's value (W3C Subresource Integrity, section 3.2).
    pub integrity: String,
}

impl Asset {
    /// Gives a file its name.
    #[must_use]
    pub fn new(path: &str, bytes: Bytes) -> Self {
        let digest = hex(&Sha256::digest(&bytes)[..8]);
        let name = path.rsplit('/').next().unwrap_or(path);
        let hashed_name = match name.rsplit_once('.') {
            Some((stem, extension)) => format!("{stem}.{digest}.{extension}"),
            None => format!("{name}.{digest}"),
        };
        Self::named(hashed_name, bytes)
    }

    /// Takes a file whose name is hashed already.
    #[must_use]
    pub fn named(hashed_name: String, bytes: Bytes) -> Self {
        Self {
            hashed_name,
            integrity: integrity(&bytes),
            bytes,
        }
    }
}

fn integrity(bytes: &[u8]) -> String {
    format!("sha384-{}", base64(&Sha384::digest(bytes)))
}

/// The hash of an inline element for the Content-Security-Policy (CSP Level 3, section 2.3.1), with its quotes.
#[must_use]
pub fn policy_hash(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())))
}

/// Base 64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The media type of a file, from its name.
#[must_use]
pub fn media_type(name: &str) -> &'static str {
    if name.starts_with("speculation.") && name.ends_with(".json") {
        return "application/speculationrules+json";
    }
    match name.rsplit('.').next().unwrap_or_default() {
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml",
        "woff2" => "font/woff2",
        "svg" => "image/svg+xml",
        _ => mime_guess::from_path(name)
            .first_raw()
            .unwrap_or("application/octet-stream"),
    }
}

/// Whether a type gains from compression.
#[must_use]
pub fn is_compressible(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || essence.ends_with("json")
        || matches!(essence, "application/xml" | "image/x-icon" | "font/ttf")
}

/// The theme's files by their path, the stylesheet among them as `theme.css`.
#[derive(Debug, Default)]
pub struct ThemeAssets {
    /// Fonts, icons, drawings: everything that is no template and no CSS source.
    pub files: BTreeMap<String, Asset>,
    /// All styles in their order.
    pub stylesheet: Option<Asset>,
}

/// Names the theme's files and writes its stylesheet.
#[must_use]
pub fn theme_assets(theme: &Theme, report: &mut Report) -> ThemeAssets {
    let files: BTreeMap<String, Asset> = theme
        .files
        .iter()
        .filter(|(path, _)| is_public(path))
        .map(|(path, bytes)| (path.clone(), Asset::new(path, bytes.clone())))
        .collect();
    let stylesheet = stylesheet(theme, &files, report);
    ThemeAssets {
        files,
        stylesheet: Some(stylesheet),
    }
}

/// Whether a theme's file may be asked for by name: no templates, sources, manifests, licences.
fn is_public(path: &str) -> bool {
    ["fonts/", "icons/", "houses/", "images/"]
        .iter()
        .any(|folder| path.starts_with(folder))
        && !path.ends_with(".txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hashed_name_keeps_stem_and_extension() {
        let asset = Asset::new("icons/arrow.svg", Bytes::from_static(b"<svg/>"));
        assert_eq!(asset.hashed_name, "arrow.d4dc56669143034f.svg");
        assert!(asset.integrity.starts_with("sha384-"));
    }
}
