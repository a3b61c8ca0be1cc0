//! Files that pages refer to: their hashed names and their types.
//!
//! A hashed name is the file's own name with the first 8 bytes of its SHA-256 in it, so that it can be kept for ever.
//! It has unreserved characters only (RFC 3986, section 2.3), so that it is the same in a URL, in a header field, in a style and on a disk.
//!
//! What a tenant's file is to a browser is a list of types, and what is not on it is a download: nothing of a tenant runs on an origin that it shares with others.

use std::collections::BTreeMap;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256, Sha384};

use super::stylesheet::stylesheet;
use super::svg;
use content::name::is_unreserved;
use content::report::{Diagnostic, Report};
use content::tenant::Site;
use content::theme::Theme;

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
    fn of_tenant(path: &str, bytes: Bytes) -> Self {
        let asset = Self::new(path, bytes);
        if tenant_type(&asset.name) != UNKNOWN {
            return asset;
        }
        let named = asset.name.replace('.', "-") + ".bin";
        Self {
            name: asset.name,
            ..Self::new(&named, asset.bytes)
        }
    }

    /// Takes a file whose name is hashed already.
    #[must_use]
    pub fn named(hashed_name: String, bytes: Bytes) -> Self {
        Self {
            name: hashed_name.clone(),
            hashed_name,
            integrity: integrity(&bytes),
            bytes,
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

/// A tenant's files by their path below `assets`, its drawings made harmless.
#[must_use]
pub(super) fn tenant_assets(site: &Site, report: &mut Report) -> BTreeMap<String, Asset> {
    let assets = site.assets.iter().map(|(path, bytes)| {
        let file = site.name_of(&format!("assets/{path}"));
        let (asset, found) = tenant_asset(path, bytes, &file);
        report.extend(found);
        (path.clone(), asset)
    });
    assets.collect()
}

/// One of a tenant's files, with what is to be said of it. `file` is how reports name it.
#[must_use]
pub(super) fn tenant_asset(path: &str, bytes: &Bytes, file: &str) -> (Asset, Vec<Diagnostic>) {
    if !is_drawing(path) {
        return (Asset::of_tenant(path, bytes.clone()), Vec::new());
    }
    // What is no drawing is an error, so that nobody ever sees what stands in for it.
    let (svg, found) =
        svg::clean(bytes, file).unwrap_or_else(|wrong| (String::new(), vec![*wrong]));
    (Asset::of_tenant(path, svg.into()), found)
}

/// Whether a file of a tenant is a drawing, and was made harmless as one.
#[must_use]
pub(super) fn is_drawing(path: &str) -> bool {
    extension(path) == "svg"
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

/// What a browser does with a file of a tenant when somebody opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// It is a part of pages, and holds nothing that a document could do.
    Part,
    /// It is a document of its own, which may do nothing.
    Document,
    /// It is saved. So is a PDF: browsers show none under a policy that keeps documents from running.
    Download,
}

const UNKNOWN: (&str, Opened) = ("application/octet-stream", Opened::Download);

fn extension(name: &str) -> String {
    let (_, extension) = name.rsplit_once('.').unwrap_or_default();
    extension.to_ascii_lowercase()
}

/// The media type of a tenant's file, from its name, and what opening it does. Nothing on this list runs.
#[must_use]
pub(super) fn tenant_type(name: &str) -> (&'static str, Opened) {
    use Opened::{Document, Download, Part};
    match extension(name).as_str() {
        "css" => ("text/css; charset=utf-8", Part),
        "otf" => ("font/otf", Part),
        "ttf" => ("font/ttf", Part),
        "woff" => ("font/woff", Part),
        "woff2" => ("font/woff2", Part),
        "apng" => ("image/apng", Part),
        "avif" => ("image/avif", Part),
        "gif" => ("image/gif", Part),
        "ico" => ("image/x-icon", Part),
        "jpeg" | "jpg" => ("image/jpeg", Part),
        "png" => ("image/png", Part),
        "webp" => ("image/webp", Part),
        "aac" => ("audio/aac", Part),
        "flac" => ("audio/flac", Part),
        "m4a" => ("audio/mp4", Part),
        "mp3" => ("audio/mpeg", Part),
        "oga" | "ogg" | "opus" => ("audio/ogg", Part),
        "wav" => ("audio/wav", Part),
        "m4v" | "mp4" => ("video/mp4", Part),
        "ogv" => ("video/ogg", Part),
        "webm" => ("video/webm", Part),
        "vtt" => ("text/vtt; charset=utf-8", Document),
        "svg" => ("image/svg+xml", Document),
        "json" => ("application/json", Document),
        "txt" => ("text/plain; charset=utf-8", Document),
        "csv" => ("text/csv; charset=utf-8", Download),
        "pdf" => ("application/pdf", Download),
        "zip" => ("application/zip", Download),
        _ => UNKNOWN,
    }
}

/// The media type of a file of a theme or of the program, from its name.
#[must_use]
pub fn media_type(name: &str) -> &'static str {
    match extension(name).as_str() {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" if name.starts_with("speculation.") => "application/speculationrules+json",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml",
        _ => tenant_type(name).0,
    }
}

/// What stays as it is in an extended value (RFC 8187, section 3.2.1).
const ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// `Content-Disposition` of a file that is saved under its own name (RFC 6266, section 4, and appendix D for what browsers take for escapes).
#[must_use]
pub(super) fn attachment(name: &str) -> String {
    let kept = |character: char| {
        u8::try_from(character).is_ok_and(|byte| byte == b' ' || is_unreserved(byte))
    };
    let plain: String = name
        .chars()
        .map(|character| if kept(character) { character } else { '-' })
        .collect();
    if plain == name {
        return format!("attachment; filename=\"{plain}\"");
    }
    let whole = utf8_percent_encode(name, ATTR_CHAR);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}")
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
        assert!(asset.integrity.starts_with("sha384-"));
    }
}
