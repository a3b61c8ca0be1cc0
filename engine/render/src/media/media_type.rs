//! Decides how browsers treat a file: its media type, whether it is shown or saved, and whether compression pays off.
//!
//! Tenants' files have types from a fixed list, and other files are downloads. So nothing of a tenant runs on an origin that other tenants share.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use content::name::is_unreserved;

/// Whether a tenant's file is an SVG, which is sanitised.
#[must_use]
pub(crate) fn is_svg(path: &str) -> bool {
    extension(path) == "svg"
}

/// How a browser handles a tenant's file that a visitor opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// A part of pages, without any abilities of a document.
    Part,
    /// A document, which is sandboxed.
    Document,
    /// A download. PDFs are downloads, too: browsers do not show them under a sandbox policy.
    Download,
}

/// The element that a tenant's file becomes if Markdown shows it as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    /// An image.
    Image,
    /// A video.
    Video,
    /// An audio player.
    Audio,
    /// A link to the file.
    Link,
    /// A link to the file, of a type that hardly any browser opens.
    Unsupported,
}

impl MediaKind {
    /// Returns the kind of a file by its name.
    #[must_use]
    pub(crate) fn of(name: &str) -> Self {
        match tenant_type(name) {
            UNKNOWN => Self::Unsupported,
            (media_type, _) => match media_type.split('/').next() {
                Some("image") => Self::Image,
                Some("video") => Self::Video,
                Some("audio") => Self::Audio,
                _ => Self::Link,
            },
        }
    }
}

/// Names the supported types to which a file can be converted, by its extension.
#[must_use]
pub(crate) fn supported_types(name: &str) -> &'static str {
    match extension(name).as_str() {
        "3gp" | "avi" | "flv" | "m2ts" | "mkv" | "mov" | "mpeg" | "mpg" | "mts" | "qt" | "wmv" => {
            "MP4 (H.264) or WebM"
        }
        "aif" | "aiff" | "amr" | "caf" | "mid" | "midi" | "wma" => "MP3, M4A or Opus",
        "doc" | "docx" | "key" | "odp" | "ods" | "odt" | "pages" | "ppt" | "pptx" | "xls"
        | "xlsx" => "PDF",
        "heic" | "heif" | "tif" | "tiff" => "JPEG, PNG, WebP or AVIF",
        _ => "JPEG, PNG, WebP, AVIF or SVG",
    }
}

/// The type of files that are not on the list.
pub(crate) const UNKNOWN: (&str, Disposition) = ("application/octet-stream", Disposition::Download);

fn extension(name: &str) -> String {
    let (_, extension) = name.rsplit_once('.').unwrap_or_default();
    extension.to_ascii_lowercase()
}

/// Returns the media type and the disposition of a tenant's file by its name. No type on the list is executable.
#[must_use]
pub(crate) fn tenant_type(name: &str) -> (&'static str, Disposition) {
    use Disposition::{Document, Download, Part};
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

/// Returns the media type of a file of a theme or of the engine by its name.
#[must_use]
pub(crate) fn media_type(name: &str) -> &'static str {
    match extension(name).as_str() {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml",
        _ => tenant_type(name).0,
    }
}

/// Characters that need no encoding in an extended value (RFC 8187, section 3.2.1). `$` is excluded, because it begins a variable in exported server configurations.
const ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// Writes the `Content-Disposition` of a file that is saved under its own name (RFC 6266, section 4; appendix D on escapes).
#[must_use]
pub(crate) fn attachment(name: &str) -> String {
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

/// Whether compression makes files of a media type smaller.
#[must_use]
pub(crate) fn is_compressible(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || essence.ends_with("json")
        || matches!(essence, "application/xml" | "image/x-icon" | "font/ttf")
}
