//! What is known of a picture from its bytes without unpacking it: what it is, how large it is shown, whether it is whole.
//!
//! **Invariant:** reads headers only, so that a picture that claims to be huge costs nothing.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use image::ImageDecoder as _;
use image::metadata::Orientation;
use imagesize::{Compression, ImageType};

use crate::media::media_type::tenant_type;
use content::report::{Code, Severity};

/// The most pixels of a picture: more than the cameras of phones have. Unpacked, it takes 200 MB.
const MAX_PIXELS: usize = 50_000_000;
/// Pictures of fewer bytes are sent as they are: nothing is to be gained.
const SMALL: usize = 8 << 10;
/// The most bytes of a picture that is sent as it is, such as one that moves: more is worth a film.
const HEAVY: usize = 1 << 20;
/// The widths that a picture is made in, in pixels: a phone's, with two and three dots a pixel, and a desk's.
const WIDTHS: [u32; 5] = [360, 720, 1080, 1440, 2160];
/// The most pixels of a side that a WebP can have (RFC 9649, section 2.4).
const LONGEST_SIDE: u32 = 16_383;

/// What phones take photos in, and most browsers do not show.
const HEIC: &str = "image/heic";

/// A picture that is made of pixels.
#[derive(Debug)]
pub(crate) struct Raster {
    /// Width and height as it is shown, where they are known and not too many.
    pub(crate) size: Option<(u32, u32)>,
    /// The sizes that it is made in, too.
    pub(crate) sizes: Vec<(u32, u32)>,
    /// Whether it is a photo, as far as its type tells.
    #[cfg(feature = "avif")]
    pub(crate) is_photo: bool,
    /// What is wrong with it.
    pub(crate) problem: Option<ImageProblem>,
    shown: AtomicBool,
}

/// What is wrong with a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageProblem {
    /// It has more pixels than a picture may have.
    TooLarge(usize, usize),
    /// It is none, or ends too early.
    Broken,
    /// It is of another type than its name says.
    OtherType(&'static str),
    /// It is sent as it is, and nobody is ever shown so much of it: its width, height and bytes.
    Oversized(u32, u32, usize),
}

impl Raster {
    /// What a file is, if its name says that it is such a picture.
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
        } else if !is_whole(kind, bytes) {
            raster.problem = Some(ImageProblem::Broken);
        }
        let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        let (width, height) = (side(size.width), side(size.height));
        let (width, height) = match is_turned(kind, bytes) {
            true => (height, width),
            false => (width, height),
        };
        raster.size = Some((width, height));
        if raster.problem.is_none() && bytes.len() > SMALL && is_still(kind, bytes) {
            raster.sizes = sizes(width, height);
        }
        let is_oversized = bytes.len() > HEAVY || (bytes.len() > SMALL && width > largest_width());
        if raster.problem.is_none() && raster.sizes.is_empty() && is_oversized {
            raster.problem = Some(ImageProblem::Oversized(width, height, bytes.len()));
        }
        Some(raster)
    }

    /// Remembers that a page shows it in sizes.
    pub(crate) fn show(&self) {
        self.shown.store(true, Relaxed);
    }

    /// Whether a page does.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.load(Relaxed)
    }
}

fn largest_width() -> u32 {
    WIDTHS.last().copied().unwrap_or_default()
}

/// The sizes that fit: never larger than the picture, and its own where it is not large.
fn sizes(width: u32, height: u32) -> Vec<(u32, u32)> {
    let largest = largest_width();
    let smaller = WIDTHS.into_iter().filter(|one| *one < width);
    let own = (width <= largest).then_some(width);
    let sized = smaller.chain(own).map(|one| {
        let high = u64::from(height) * u64::from(one) / u64::from(width.max(1));
        (one, u32::try_from(high).unwrap_or(u32::MAX).max(1))
    });
    sized.filter(|(_, high)| *high <= LONGEST_SIDE).collect()
}

/// The media type of what is told apart by its bytes.
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

/// Whether it goes on to its end. What is missing in between only shows when it is unpacked.
fn is_whole(kind: ImageType, bytes: &[u8]) -> bool {
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

/// Whether it is one picture, and one that can be made smaller.
fn is_still(kind: ImageType, bytes: &[u8]) -> bool {
    let has = |kind: &[u8]| bytes.windows(kind.len()).any(|part| part == kind);
    match kind {
        ImageType::Jpeg => true,
        // What moves says so before the first picture.
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

/// Whether it lies on its side, and is turned when it is shown.
fn is_turned(kind: ImageType, bytes: &[u8]) -> bool {
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
        // Browsers turn AVIF by its own boxes, which its size counts already, and GIF has no Exif.
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
    /// The kind of problem that it is, and how bad.
    pub(crate) const fn kind(self) -> (Severity, Code) {
        match self {
            Self::TooLarge(..) => (Severity::Error, Code::TooLarge),
            Self::Broken => (Severity::Warning, Code::BrokenPicture),
            Self::OtherType(_) => (Severity::Warning, Code::PictureType),
            Self::Oversized(..) => (Severity::Warning, Code::OversizedPicture),
        }
    }

    /// What to do about it.
    pub(crate) fn hint(self) -> String {
        match self {
            Self::TooLarge(..) => {
                format!("give it a smaller one: {MAX_PIXELS} pixels are the most, as 8,000 x 6,000")
            }
            Self::Broken => "was it copied whole? Copy it again, or export it anew".to_owned(),
            Self::OtherType(HEIC | "image/tiff") => {
                "export it as JPEG, PNG, WebP or AVIF".to_owned()
            }
            Self::OtherType(own) => format!("name it as what it is, {own}, or export it anew"),
            Self::Oversized(..) => format!(
                "make it {} pixels wide at most and smaller than 1 MiB; what moves is far smaller as a film (`.mp4`), and a photo as JPEG, PNG or WebP comes in the sizes that fit",
                largest_width()
            ),
        }
    }
}

impl fmt::Display for ImageProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(width, height) => {
                write!(formatter, "claims to have {width} x {height} pixels")
            }
            Self::Broken => formatter.write_str("is no picture, or ends too early"),
            Self::Oversized(width, height, bytes) => write!(
                formatter,
                "is sent as it is to everybody: {width} x {height} pixels in {bytes} bytes"
            ),
            Self::OtherType(own) => {
                write!(formatter, "is of the type {own}, and its name says another")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fit_and_are_never_larger_than_the_picture() {
        let widths = |width, height| {
            let sizes = sizes(width, height);
            sizes
                .into_iter()
                .map(|(width, _)| width)
                .collect::<Vec<_>>()
        };
        assert_eq!(widths(4_000, 3_000), WIDTHS);
        assert_eq!(widths(800, 600), [360, 720, 800]);
        assert_eq!(widths(720, 600), [360, 720]);
        assert_eq!(widths(100, 100), [100]);
        assert_eq!(widths(1_000, 40_000), [360], "a side has 16,383 at most");
        assert_eq!(sizes(4_000, 3_000)[1], (720, 540));
    }

    #[test]
    fn what_is_no_picture_says_so_and_what_is_none_by_name_is_none() {
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
    fn photo_of_a_phone_under_another_name_is_told_apart() {
        let heic = [
            &b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"[..],
            b"\0\0\0\x30meta\0\0\0\0\0\0\0\x24iprp\0\0\0\x1cipco",
            b"\0\0\0\x14ispe\0\0\0\0\0\0\0\x08\0\0\0\x10",
        ];
        let raster = Raster::of("a.jpg", &heic.concat()).expect("a picture by name");
        assert_eq!(raster.problem, Some(ImageProblem::OtherType(HEIC)));
    }

    #[test]
    fn what_is_sent_as_it_is_should_not_be_larger_than_it_is_shown() {
        let gif = |width: u16, length: usize| {
            let mut bytes = b"GIF89a".to_vec();
            bytes.extend(width.to_le_bytes());
            bytes.extend([2, 0, 0, 0, 0]);
            bytes.resize(length, 0);
            Raster::of("a.gif", &bytes).and_then(|raster| raster.problem)
        };
        assert_eq!(gif(2_160, 1 << 20), None);
        assert_eq!(gif(2_161, 1_000), None, "so few bytes hurt nobody");
        let oversized = |width, length| Some(ImageProblem::Oversized(width, 2, length));
        assert_eq!(gif(2_161, 20_000), oversized(2_161, 20_000));
        assert_eq!(gif(100, 2 << 20), oversized(100, 2 << 20));
    }

    #[test]
    fn a_picture_that_claims_to_be_huge_is_told_by_its_header() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([60_000_u32.to_be_bytes(), 60_000_u32.to_be_bytes()].concat());
        png.extend(b"\x08\x06\0\0\0\0\0\0\0");
        let raster = Raster::of("huge.png", &png).expect("a picture by name");
        assert_eq!(raster.problem, Some(ImageProblem::TooLarge(60_000, 60_000)));
        assert_eq!((raster.size, raster.sizes.len()), (None, 0));
    }
}
