//! Unpacks a picture, makes it smaller and codes it anew.
//!
//! Its orientation is applied, and its colour profile goes along. What came as PNG, screenshots above all, is coded without loss where that is smaller.

use std::io::Cursor;
use std::sync::{Mutex, PoisonError};

use fast_image_resize::Resizer;
use image::{DynamicImage, ImageDecoder as _, ImageReader, Limits};
use img_parts::ImageICC as _;

/// The quality of what loses something, where 100 is the best.
const QUALITY: f32 = 75.0;
/// The same for AVIF, whose scale is another: what looks alike has fewer bytes.
#[cfg(feature = "avif")]
const AVIF_QUALITY: f32 = 60.0;
/// How much work AVIF may be, where 1 is the most and 10 the least: a second or two for the sizes of phones.
#[cfg(feature = "avif")]
const AVIF_SPEED: u8 = 7;
const OTHER_COLOURS: &str = "the picture has other colours than were asked for";
/// The most bytes that unpacking takes: the largest picture, with 16 bits a channel.
const MOST_BYTES: u64 = 512 << 20;
/// Of pictures with more pixels, one is unpacked at a time, however many threads draw.
const LARGE: u64 = 8_000_000;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A picture in another size, upright, with what is needed to code it.
pub(super) struct Small {
    image: DynamicImage,
    /// Its colour profile (ICC.1), where it is one for red, green and blue.
    profile: Option<Vec<u8>>,
    /// Whether it should lose nothing.
    keeps_all: bool,
}

impl Small {
    /// Unpacks a picture and makes it smaller.
    pub(super) fn of(original: &[u8], (width, height): (u32, u32)) -> Result<Self, String> {
        let message = |error: image::ImageError| error.to_string();
        let mut reader = ImageReader::new(Cursor::new(original))
            .with_guessed_format()
            .map_err(|error| error.to_string())?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MOST_BYTES);
        reader.limits(limits);
        let keeps_all = reader.format() == Some(image::ImageFormat::Png);
        let mut decoder = reader.into_decoder().map_err(message)?;
        let profile = decoder.icc_profile().ok().flatten();
        let orientation = decoder.orientation().map_err(message)?;
        let (own_width, own_height) = decoder.dimensions();
        let is_large = u64::from(own_width) * u64::from(own_height) > LARGE;
        let turn = is_large.then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner));
        let image = DynamicImage::from_decoder(decoder).map_err(message)?;
        let image = match image.color().has_alpha() {
            true => DynamicImage::from(image.into_rgba8()),
            false => DynamicImage::from(image.into_rgb8()),
        };
        // It is turned when it is small.
        let mut probe = DynamicImage::new_luma8(2, 1);
        probe.apply_orientation(orientation);
        let (wide, high) = match probe.height() {
            1 => (width, height),
            _ => (height, width),
        };
        let mut small = DynamicImage::new(wide, high, image.color());
        Resizer::new()
            .resize(&image, &mut small, None)
            .map_err(|error| error.to_string())?;
        drop(image);
        drop(turn);
        small.apply_orientation(orientation);
        Ok(Self {
            image: small,
            profile: profile.filter(|profile| is_of_rgb(profile)),
            keeps_all,
        })
    }

    /// As WebP, with its colour profile; the smaller of both ways of coding, where it should lose nothing.
    pub(super) fn webp(self) -> Result<Vec<u8>, String> {
        let (width, height) = (self.image.width(), self.image.height());
        let encoder = match &self.image {
            DynamicImage::ImageRgba8(pixels) => webp::Encoder::from_rgba(pixels, width, height),
            DynamicImage::ImageRgb8(pixels) => webp::Encoder::from_rgb(pixels, width, height),
            _ => return Err(OTHER_COLOURS.to_owned()),
        };
        let encode = |lossless: bool| {
            let coded = encoder.encode_simple(lossless, QUALITY);
            coded
                .map(|coded| coded.to_vec())
                .map_err(|error| format!("{error:?}"))
        };
        let mut coded = encode(false)?;
        if self.keeps_all {
            let whole = encode(true)?;
            if whole.len() <= coded.len() {
                coded = whole;
            }
        }
        Ok(match self.profile {
            Some(profile) => with_profile(coded, profile),
            None => coded,
        })
    }

    /// As AVIF, its colours made those of sRGB, which everybody takes for granted.
    #[cfg(feature = "avif")]
    pub(super) fn avif(self) -> Result<Vec<u8>, String> {
        let DynamicImage::ImageRgb8(mut pixels) = self.image else {
            return Err(OTHER_COLOURS.to_owned());
        };
        if let Some(profile) = self.profile {
            in_srgb(&mut pixels, &profile)?;
        }
        let (width, height) = (pixels.width() as usize, pixels.height() as usize);
        let colours: Vec<ravif::RGB8> = pixels
            .pixels()
            .map(|image::Rgb([red, green, blue])| ravif::RGB8::new(*red, *green, *blue))
            .collect();
        let coded = ravif::Encoder::new()
            .with_quality(AVIF_QUALITY)
            .with_speed(AVIF_SPEED)
            // The drawing threads are those of the processor that may be used.
            .with_num_threads(Some(1))
            .encode_rgb(ravif::Img::new(&colours, width, height));
        coded
            .map(|coded| coded.avif_file)
            .map_err(|error| error.to_string())
    }
}

/// The colours of a profile as sRGB (IEC 61966-2-1).
#[cfg(feature = "avif")]
fn in_srgb(pixels: &mut image::RgbImage, profile: &[u8]) -> Result<(), String> {
    use moxcms::{ColorProfile, Layout, TransformOptions};
    let message = |error: moxcms::CmsError| error.to_string();
    let profile = ColorProfile::new_from_slice(profile).map_err(message)?;
    let srgb = ColorProfile::new_srgb();
    let transform = profile
        .create_transform_8bit(Layout::Rgb, &srgb, Layout::Rgb, TransformOptions::default())
        .map_err(message)?;
    let own = pixels.clone();
    transform.transform(&own, pixels).map_err(message)
}

/// Whether a colour profile is one for red, green and blue (ICC.1, section 7.2): that of a picture in printing colours says nothing of it once it is unpacked.
fn is_of_rgb(profile: &[u8]) -> bool {
    profile.get(16..20) == Some(b"RGB ")
}

fn with_profile(coded: Vec<u8>, profile: Vec<u8>) -> Vec<u8> {
    match img_parts::webp::WebP::from_bytes(coded.clone().into()) {
        Ok(mut webp) => {
            webp.set_icc_profile(Some(profile.into()));
            webp.encoder().bytes().to_vec()
        }
        Err(_) => coded,
    }
}
