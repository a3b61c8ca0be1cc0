//! Files that pages refer to: their hashed names, their types and the theme's one stylesheet.
//!
//! A hashed name is the file's own name with the first 8 bytes of its SHA-256 in it, so that it can be kept for ever.

use std::collections::BTreeMap;

use bytes::Bytes;
use sha2::{Digest, Sha256, Sha384};

use crate::report::{Code, Diagnostic, Report};
use crate::tenant::values::Colour;
use crate::theme::{Role, Theme};

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

/// Names the theme's files and joins its styles.
#[must_use]
pub fn theme_assets(theme: &Theme, report: &mut Report) -> ThemeAssets {
    let files: BTreeMap<String, Asset> = theme
        .files
        .iter()
        .filter(|(path, _)| is_public(path))
        .map(|(path, bytes)| (path.clone(), Asset::new(path, bytes.clone())))
        .collect();
    let mut css = String::new();
    for style in &theme.manifest.styles {
        match theme
            .files
            .get(style)
            .map(|bytes| std::str::from_utf8(bytes))
        {
            Some(Ok(text)) => css.push_str(&with_hashed_urls(text, style, &files, theme, report)),
            Some(Err(_)) => report.push(Diagnostic::mistake(
                Code::NotUtf8,
                format!("{}/{style}", theme.label),
                "the stylesheet is not UTF-8",
            )),
            None => report.push(Diagnostic::mistake(
                Code::MissingAsset,
                format!("{}/{}", theme.label, crate::theme::MANIFEST),
                format!("the theme has no stylesheet `{style}`"),
            )),
        }
        css.push('\n');
    }
    css.push_str(&role_styles(&theme.manifest.roles));
    ThemeAssets {
        files,
        stylesheet: Some(Asset::new(&format!("{}.css", theme.name), css.into())),
    }
}

/// Whether a theme's file may be asked for by name: no templates, sources, manifests, licences.
fn is_public(path: &str) -> bool {
    ["fonts/", "icons/", "houses/", "images/"]
        .iter()
        .any(|folder| path.starts_with(folder))
        && !path.ends_with(".txt")
}

/// `:root` with one custom property a role: `light-dark(day, night)` (CSS Color 5).
fn role_styles(roles: &BTreeMap<String, Role>) -> String {
    let properties: String = roles
        .iter()
        .map(|(name, role)| property(name, &role.day, &role.night))
        .collect();
    format!("@layer roles{{:root{{{properties}}}}}\n")
}

/// One custom property of a role.
#[must_use]
pub fn property(name: &str, day: &Colour, night: &Colour) -> String {
    format!(
        "--{}:light-dark({},{});",
        name.replace('_', "-"),
        day.as_str(),
        night.as_str()
    )
}

/// Replaces `url(...)` of the theme's own files by their hashed names. The sheet lies beside them in `/assets/`.
fn with_hashed_urls(
    css: &str,
    style: &str,
    files: &BTreeMap<String, Asset>,
    theme: &Theme,
    report: &mut Report,
) -> String {
    let folder = style.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut out = String::with_capacity(css.len());
    let mut rest = css;
    while let Some(start) = rest.find("url(") {
        let (before, after) = rest.split_at(start + 4);
        out.push_str(before);
        let end = after.find(')').unwrap_or(after.len());
        let (inside, behind) = after.split_at(end);
        let target = inside.trim().trim_matches(['"', '\'']);
        match files.get(&joined(folder, target)) {
            Some(asset) => out.push_str(&asset.hashed_name),
            None if target.starts_with('#') => out.push_str(inside),
            None => report.push(Diagnostic::mistake(
                Code::MissingAsset,
                format!("{}/{style}", theme.label),
                format!("the theme has no file `{target}`"),
            )),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// `../fonts/a.woff2` seen from `css`.
fn joined(folder: &str, target: &str) -> String {
    let mut segments: Vec<&str> = folder
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    segments.join("/")
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

    #[test]
    fn a_path_is_seen_from_its_stylesheet() {
        assert_eq!(joined("css", "../fonts/a.woff2"), "fonts/a.woff2");
        assert_eq!(joined("css/parts", "./b.svg"), "css/parts/b.svg");
    }
}
