//! Reads the properties of an image without decoding it: its type, its displayed size, and whether it is complete.
//!
//! **Invariant:** reads headers only, so an image that claims to be huge costs nothing.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use image::ImageDecoder as _;
use image::metadata::Orientation;
use imagesize::{Compression, ImageType};

use crate::media::media_type::tenant_type;
use content::report::{Code, Severity, size_text};

/// Limit on the pixels of an image, above the cameras of phones. Decoded, such an image takes 200 MB.
const MAX_PIXELS: usize = 50_000_000;
/// Images below this size in bytes get no variants: the gain is too small.
const MIN_RESIZED_BYTES: usize = 8 << 10;
/// Limit on images that are sent unchanged, such as animations, in bytes. A video is smaller above it.
const MAX_UNCHANGED_BYTES: usize = 1 << 20;
/// The widths of variants, in pixels: phones at two and three pixels per CSS pixel, and desktops.
const VARIANT_WIDTHS: [u32; 5] = [360, 720, 1080, 1440, 2160];
/// Limit on the sides of a WebP, in pixels (RFC 9649, section 2.4).
const MAX_WEBP_SIDE_PIXELS: u32 = 16_383;

/// The format in which phones take photos, and which most browsers do not show.
const HEIC: &str = "image/heic";

/// The properties of a raster image.
#[derive(Debug)]
pub(crate) struct Raster {
    /// The displayed width and height, if they are known and below the limit.
    pub(crate) size: Option<(u32, u32)>,
    /// The widths and heights of its variants.
    pub(crate) sizes: Vec<(u32, u32)>,
    /// Whether it is a photo: a JPEG.
    #[cfg(feature = "avif")]
    pub(crate) is_photo: bool,
    /// The problem that a diagnostic reports.
    pub(crate) problem: Option<ImageProblem>,
    shown: AtomicBool,
}

/// A problem of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageProblem {
    /// The image has more pixels than the limit: width and height.
    TooLarge(usize, usize),
    /// The file is not an image, or is incomplete.
    Broken,
    /// The type differs from the extension of the file.
    OtherType(&'static str),
    /// The image is sent unchanged and has too many pixels or bytes: width, height and bytes.
    Oversized(u32, u32, usize),
}

impl Raster {
    /// Reads the properties of a file. Returns `None` if the file name is not the name of a raster image.
    pub(crate) fn of(name: &str, bytes: &[u8]) -> Option<Self> {
        let (media_type, _) = tenant_type(name);
        if !media_type.starts_with("image/") || media_type.starts_with("image/svg") {
            return None;
        }
        let kind = imagesize::image_type(bytes);
        let mut raster = Self {
            size: None,
            sizes: Vec::new(),
            #[cfg(feature = "avif")]
            is_photo: matches!(kind, Ok(ImageType::Jpeg)),
            problem: None,
            shown: AtomicBool::new(false),
        };
        let (Ok(kind), Ok(size)) = (kind, imagesize::blob_size(bytes)) else {
            raster.problem = Some(ImageProblem::Broken);
            return Some(raster);
        };
        if size.width.saturating_mul(size.height) > MAX_PIXELS {
            raster.problem = Some(ImageProblem::TooLarge(size.width, size.height));
            return Some(raster);
        }
        let own = type_of(kind);
        let is_named = own.is_none_or(|own| own == media_type || media_type == "image/apng");
        if !is_named {
            raster.problem = own.map(ImageProblem::OtherType);
        } else if !is_complete(kind, bytes) {
            raster.problem = Some(ImageProblem::Broken);
        }
        let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        let (width, height) = (side(size.width), side(size.height));
        let (width, height) = match swaps_sides(kind, bytes) {
            true => (height, width),
            false => (width, height),
        };
        raster.size = Some((width, height));
        if raster.problem.is_none() && bytes.len() > MIN_RESIZED_BYTES && is_still(kind, bytes) {
            raster.sizes = sizes(width, height);
        }
        let is_oversized = bytes.len() > MAX_UNCHANGED_BYTES
            || (bytes.len() > MIN_RESIZED_BYTES && width > largest_width());
        if raster.problem.is_none() && raster.sizes.is_empty() && is_oversized {
            raster.problem = Some(ImageProblem::Oversized(width, height, bytes.len()));
        }
        Some(raster)
    }

    /// Marks the image as shown with variants on a page.
    pub(crate) fn mark_shown(&self) {
        self.shown.store(true, Relaxed);
    }

    /// Whether a page shows the image with variants.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.load(Relaxed)
    }
}

fn largest_width() -> u32 {
    VARIANT_WIDTHS.last().copied().unwrap_or_default()
}

/// Returns the sizes of the variants: never larger than the image, and its own size if that is not large.
fn sizes(width: u32, height: u32) -> Vec<(u32, u32)> {
    let largest = largest_width();
    let smaller = VARIANT_WIDTHS.into_iter().filter(|one| *one < width);
    let own = (width <= largest).then_some(width);
    let sized = smaller.chain(own).map(|one| {
        let high = u64::from(height) * u64::from(one) / u64::from(width.max(1));
        (one, u32::try_from(high).unwrap_or(u32::MAX).max(1))
    });
    sized
        .filter(|(_, high)| *high <= MAX_WEBP_SIDE_PIXELS)
        .collect()
}

/// Returns the media type for a detected type.
fn type_of(kind: ImageType) -> Option<&'static str> {
    match kind {
        ImageType::Gif => Some("image/gif"),
        ImageType::Ico => Some("image/x-icon"),
        ImageType::Jpeg => Some("image/jpeg"),
        ImageType::Png => Some("image/png"),
        ImageType::Webp => Some("image/webp"),
        ImageType::Bmp => Some("image/bmp"),
        ImageType::Tiff => Some("image/tiff"),
        ImageType::Heif(Compression::Av1) => Some("image/avif"),
        ImageType::Heif(Compression::Hevc) => Some(HEIC),
        _ => None,
    }
}

/// Whether the file reaches the end of its format. Damage in the middle shows only when it is decoded.
fn is_complete(kind: ImageType, bytes: &[u8]) -> bool {
    match kind {
        ImageType::Jpeg => bytes.ends_with(b"\xff\xd9"),
        ImageType::Png => bytes.ends_with(b"IEND\xae\x42\x60\x82"),
        ImageType::Webp => {
            let length = bytes.get(4..).and_then(<[u8]>::first_chunk);
            let length = length.map_or(u32::MAX, |length| u32::from_le_bytes(*length));
            usize::try_from(length).is_ok_and(|length| length <= bytes.len().saturating_sub(8))
        }
        _ => true,
    }
}

/// Whether the file is a still image in a format that can be resized.
fn is_still(kind: ImageType, bytes: &[u8]) -> bool {
    let has = |kind: &[u8]| bytes.windows(kind.len()).any(|part| part == kind);
    match kind {
        ImageType::Jpeg => true,
        // An animated PNG has an `acTL` chunk before the first `IDAT`.
        ImageType::Png => {
            let first = bytes.windows(4).position(|part| part == b"IDAT");
            !bytes[..first.unwrap_or_default()]
                .windows(4)
                .any(|part| part == b"acTL")
        }
        ImageType::Webp => !has(b"ANIM"),
        _ => false,
    }
}

/// Whether the orientation swaps width and height when the image is displayed.
fn swaps_sides(kind: ImageType, bytes: &[u8]) -> bool {
    let orientation = |mut decoder: Box<dyn image::ImageDecoder + '_>| decoder.orientation().ok();
    let cursor = std::io::Cursor::new(bytes);
    let found = match kind {
        ImageType::Jpeg => image::codecs::jpeg::JpegDecoder::new(cursor)
            .ok()
            .and_then(|decoder| orientation(Box::new(decoder))),
        ImageType::Png => image::codecs::png::PngDecoder::new(cursor)
            .ok()
            .and_then(|decoder| orientation(Box::new(decoder))),
        ImageType::Webp => image::codecs::webp::WebPDecoder::new(cursor)
            .ok()
            .and_then(|decoder| orientation(Box::new(decoder))),
        // The size of an AVIF already includes its rotation, and a GIF has no Exif data.
        _ => None,
    };
    matches!(
        found,
        Some(
            Orientation::Rotate90
                | Orientation::Rotate270
                | Orientation::Rotate90FlipH
                | Orientation::Rotate270FlipH
        )
    )
}

impl ImageProblem {
    /// Returns the severity and the code of the diagnostic.
    pub(crate) const fn kind(self) -> (Severity, Code) {
        match self {
            Self::TooLarge(..) => (Severity::Error, Code::TooLarge),
            Self::Broken => (Severity::Warning, Code::BrokenPicture),
            Self::OtherType(_) => (Severity::Warning, Code::PictureType),
            Self::Oversized(..) => (Severity::Warning, Code::OversizedPicture),
        }
    }

    /// Returns the hint of the diagnostic.
    pub(crate) fn hint(self) -> String {
        match self {
            Self::TooLarge(..) => {
                format!("use an image of at most {MAX_PIXELS} pixels, such as 8,000 x 6,000")
            }
            Self::Broken => "copy the file again, or export the image again".to_owned(),
            Self::OtherType(HEIC | "image/tiff") => {
                "export the image as JPEG, PNG, WebP or AVIF".to_owned()
            }
            Self::OtherType(own) => {
                format!("use the extension of {own}, or export the image again")
            }
            Self::Oversized(..) => format!(
                "make the image at most {} pixels wide and smaller than 1 MiB; or use a video (`.mp4`) for an animation, and JPEG, PNG or WebP for a photo",
                largest_width()
            ),
        }
    }
}

impl fmt::Display for ImageProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(width, height) => {
                write!(
                    formatter,
                    "has {width} x {height} pixels, more than {MAX_PIXELS}"
                )
            }
            Self::Broken => formatter.write_str("is not a valid image, or is incomplete"),
            Self::Oversized(width, height, bytes) => write!(
                formatter,
                "is sent to visitors unchanged: {width} x {height} pixels, {}",
                size_text(*bytes as u64)
            ),
            Self::OtherType(own) => {
                write!(
                    formatter,
                    "is of the type {own}, but has the extension of another type"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_never_larger_than_the_image() {
        let widths = |width, height| {
            let sizes = sizes(width, height);
            sizes
                .into_iter()
                .map(|(width, _)| width)
                .collect::<Vec<_>>()
        };
        assert_eq!(widths(4_000, 3_000), VARIANT_WIDTHS);
        assert_eq!(widths(800, 600), [360, 720, 800]);
        assert_eq!(widths(720, 600), [360, 720]);
        assert_eq!(widths(100, 100), [100]);
        assert_eq!(
            widths(1_000, 40_000),
            [360],
            "a side has at most 16,383 pixels"
        );
        assert_eq!(sizes(4_000, 3_000)[1], (720, 540));
    }

    #[test]
    fn problems_are_found_in_files_with_image_names_only() {
        let problem =
            |name: &str, bytes: &[u8]| Raster::of(name, bytes).map(|raster| raster.problem);
        assert_eq!(problem("a.png", b"words"), Some(Some(ImageProblem::Broken)));
        assert_eq!(problem("a.svg", b"words"), None);
        assert_eq!(problem("a.pdf", b"words"), None);
        let gif = b"GIF89a\x02\0\x02\0\0\0\0;";
        assert_eq!(problem("a.gif", gif), Some(None));
        assert_eq!(
            problem("a.png", gif),
            Some(Some(ImageProblem::OtherType("image/gif")))
        );
    }

    #[test]
    fn heic_photo_with_another_extension_is_recognised() {
        let heic = [
            &b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"[..],
            b"\0\0\0\x30meta\0\0\0\0\0\0\0\x24iprp\0\0\0\x1cipco",
            b"\0\0\0\x14ispe\0\0\0\0\0\0\0\x08\0\0\0\x10",
        ];
        let raster = Raster::of("a.jpg", &heic.concat()).expect("an image by name");
        assert_eq!(raster.problem, Some(ImageProblem::OtherType(HEIC)));
    }

    #[test]
    fn image_sent_unchanged_is_not_larger_than_a_screen() {
        let gif = |width: u16, length: usize| {
            let mut bytes = b"GIF89a".to_vec();
            bytes.extend(width.to_le_bytes());
            bytes.extend([2, 0, 0, 0, 0]);
            bytes.resize(length, 0);
            Raster::of("a.gif", &bytes).and_then(|raster| raster.problem)
        };
        assert_eq!(gif(2_160, 1 << 20), None);
        assert_eq!(gif(2_161, 1_000), None, "small files are not reported");
        let oversized = |width, length| Some(ImageProblem::Oversized(width, 2, length));
        assert_eq!(gif(2_161, 20_000), oversized(2_161, 20_000));
        assert_eq!(gif(100, 2 << 20), oversized(100, 2 << 20));
    }

    #[test]
    fn huge_image_is_recognised_by_its_header() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([60_000_u32.to_be_bytes(), 60_000_u32.to_be_bytes()].concat());
        png.extend(b"\x08\x06\0\0\0\0\0\0\0");
        let raster = Raster::of("huge.png", &png).expect("an image by name");
        assert_eq!(raster.problem, Some(ImageProblem::TooLarge(60_000, 60_000)));
        assert_eq!((raster.size, raster.sizes.len()), (None, 0));
    }
}
