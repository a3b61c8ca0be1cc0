//! Decodes, resizes and encodes an image.
//!
//! The orientation is applied, and the colour profile is preserved. An image that was PNG, such as a screenshot, is encoded losslessly if that is smaller.

use std::io::Cursor;

use fast_image_resize::pixels::U8x4;
use fast_image_resize::{IntoImageView as _, IntoImageViewMut as _, ResizeOptions, Resizer};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use img_parts::ImageICC as _;

use super::decode_memory::{self, MemoryShare};

/// The quality of lossy WebP, from 0 to 100.
const WEBP_QUALITY: f32 = 75.0;
/// The quality of AVIF, from 0 to 100. On AVIF's scale it looks like [`WEBP_QUALITY`] with fewer bytes.
#[cfg(feature = "avif")]
const AVIF_QUALITY: f32 = 60.0;
/// The speed of AVIF encoding, from 1 (slowest) to 10. At 7, the sizes for phones take one to two seconds.
#[cfg(feature = "avif")]
const AVIF_SPEED: u8 = 7;
const UNEXPECTED_COLOUR_TYPE: &str = "the decoded image has an unexpected colour type";
/// Limit on the memory for decoding one image, in bytes: the largest image with 16 bits per channel.
const MAX_DECODE_BYTES: u64 = 512 << 20;
/// A decoded image, in its stored orientation.
pub(super) struct DecodedImage {
    /// The pixels, with three or four channels of eight bits.
    pub(super) image: DynamicImage,
    profile: Option<Vec<u8>>,
    orientation: Orientation,
    is_lossless: bool,
    _memory: MemoryShare,
}

impl DecodedImage {
    /// Decodes an image, once there is memory for it.
    pub(super) fn of(original: &[u8]) -> Result<Self, String> {
        let (mut decoder, is_lossless) = decoder(original)?;
        let profile = decoder.icc_profile().ok().flatten();
        let orientation = decoder.orientation().map_err(message)?;
        let memory = decode_memory::acquire(decoded_bytes(&decoder));
        let image = DynamicImage::from_decoder(decoder).map_err(message)?;
        let image = match image.color().has_alpha() {
            true => DynamicImage::from(image.into_rgba8()),
            false => DynamicImage::from(image.into_rgb8()),
        };
        Ok(Self {
            image,
            profile,
            orientation,
            is_lossless,
            _memory: memory,
        })
    }
}

/// Whether an image is too large to decode while a page waits. Files that cannot be decoded are not.
pub(super) fn is_large(original: &[u8]) -> bool {
    decoder(original).is_ok_and(|(decoder, _)| decode_memory::is_large(decoded_bytes(&decoder)))
}

/// Returns a decoder that has read the headers, and whether the format is lossless.
fn decoder(original: &[u8]) -> Result<(impl ImageDecoder, bool), String> {
    let mut reader = ImageReader::new(Cursor::new(original))
        .with_guessed_format()
        .map_err(|error| error.to_string())?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODE_BYTES);
    reader.limits(limits);
    let is_lossless = reader.format() == Some(image::ImageFormat::Png);
    Ok((reader.into_decoder().map_err(message)?, is_lossless))
}

/// Returns the memory that decoding takes, in bytes: the stored pixels and a copy with four channels of eight bits.
fn decoded_bytes(decoder: &impl ImageDecoder) -> u64 {
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    decoder.total_bytes().saturating_add(4 * pixels)
}

fn message(error: image::ImageError) -> String {
    error.to_string()
}

/// Resizes an image. The result has the same channels.
fn resize(from: DynamicImage, (width, height): (u32, u32)) -> Result<DynamicImage, String> {
    let has_alpha = from.color().has_alpha();
    let mut to = DynamicImage::new_rgba8(width, height);
    let options = ResizeOptions::new().use_alpha(has_alpha);
    resize_into(&from.into_rgba8().into(), &mut to, &options)?;
    Ok(match has_alpha {
        true => to,
        false => to.into_rgb8().into(),
    })
}

/// Resizes an image into another image. Both have four channels, because the library compiles code for every pixel type that it may meet.
fn resize_into(
    from: &DynamicImage,
    to: &mut DynamicImage,
    options: &ResizeOptions,
) -> Result<(), String> {
    let views = from.image_view::<U8x4>().zip(to.image_view_mut::<U8x4>());
    let (from, mut to) = views.ok_or_else(|| UNEXPECTED_COLOUR_TYPE.to_owned())?;
    Resizer::new()
        .resize_typed(&from, &mut to, options)
        .map_err(|error| error.to_string())
}

/// A resized image in upright orientation, ready to encode.
pub(super) struct ResizedImage {
    image: DynamicImage,
    /// The colour profile (ICC.1), if it is for RGB.
    profile: Option<Vec<u8>>,
    /// Whether the original is lossless, so that a lossless encoding is tried.
    is_lossless: bool,
}

impl ResizedImage {
    /// Decodes an image and resizes it.
    pub(super) fn of(original: &[u8], (width, height): (u32, u32)) -> Result<Self, String> {
        let unpacked = DecodedImage::of(original)?;
        let orientation = unpacked.orientation;
        // Turning the resized image is cheaper, so the size for the stored orientation is found first.
        let mut probe = DynamicImage::new_luma8(2, 1);
        probe.apply_orientation(orientation);
        let size = match probe.height() {
            1 => (width, height),
            _ => (height, width),
        };
        let mut small = resize(unpacked.image, size)?;
        small.apply_orientation(orientation);
        Ok(Self {
            image: small,
            profile: unpacked.profile.filter(|profile| is_of_rgb(profile)),
            is_lossless: unpacked.is_lossless,
        })
    }

    /// Encodes the image as WebP with its colour profile. For a lossless original the smaller of the lossy and the lossless encoding is returned.
    pub(super) fn webp(&self) -> Result<Vec<u8>, String> {
        let (width, height) = (self.image.width(), self.image.height());
        let encoder = match &self.image {
            DynamicImage::ImageRgba8(pixels) => webp::Encoder::from_rgba(pixels, width, height),
            DynamicImage::ImageRgb8(pixels) => webp::Encoder::from_rgb(pixels, width, height),
            _ => return Err(UNEXPECTED_COLOUR_TYPE.to_owned()),
        };
        let encode = |lossless: bool| {
            let coded = encoder.encode_simple(lossless, WEBP_QUALITY);
            coded
                .map(|coded| coded.to_vec())
                .map_err(|error| format!("{error:?}"))
        };
        let mut coded = encode(false)?;
        if self.is_lossless {
            let whole = encode(true)?;
            if whole.len() <= coded.len() {
                coded = whole;
            }
        }
        Ok(match &self.profile {
            Some(profile) => with_profile(coded, profile.clone()),
            None => coded,
        })
    }

    /// Encodes the image as AVIF, or as WebP if that is smaller.
    #[cfg(feature = "avif")]
    pub(super) fn avif_if_smaller(self) -> Result<Vec<u8>, String> {
        // Encoding WebP takes little time beside AVIF.
        let webp = self.webp()?;
        let avif = self.avif()?;
        Ok(match avif.len() < webp.len() {
            true => avif,
            false => webp,
        })
    }

    /// Encodes the image as AVIF in sRGB, the default colour space of browsers.
    #[cfg(feature = "avif")]
    fn avif(self) -> Result<Vec<u8>, String> {
        let DynamicImage::ImageRgb8(mut pixels) = self.image else {
            return Err(UNEXPECTED_COLOUR_TYPE.to_owned());
        };
        if let Some(profile) = self.profile {
            convert_to_srgb(&mut pixels, &profile)?;
        }
        let (width, height) = (pixels.width() as usize, pixels.height() as usize);
        let colours: Vec<ravif::RGB8> = pixels
            .pixels()
            .map(|image::Rgb([red, green, blue])| ravif::RGB8::new(*red, *green, *blue))
            .collect();
        let coded = ravif::Encoder::new()
            .with_quality(AVIF_QUALITY)
            .with_speed(AVIF_SPEED)
            // The drawing threads already use all processors that the program may use.
            .with_num_threads(Some(1))
            .encode_rgb(ravif::Img::new(&colours, width, height));
        coded
            .map(|coded| coded.avif_file)
            .map_err(|error| error.to_string())
    }
}

/// Converts pixels from a colour profile to sRGB (IEC 61966-2-1).
#[cfg(feature = "avif")]
fn convert_to_srgb(pixels: &mut image::RgbImage, profile: &[u8]) -> Result<(), String> {
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

/// Whether a colour profile is for RGB (ICC.1, section 7.2). Profiles for print colours do not apply to decoded pixels.
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

#[cfg(test)]
#[cfg(feature = "avif")]
mod tests {
    use image::{ImageFormat, Rgb, RgbImage};

    use super::*;

    fn jpeg(pixels: RgbImage) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let written = pixels.write_to(&mut bytes, ImageFormat::Jpeg);
        written.expect("an image");
        bytes.into_inner()
    }

    fn small(original: &[u8]) -> ResizedImage {
        ResizedImage::of(original, (360, 270)).expect("an image")
    }

    #[test]
    fn photo_is_smaller_as_avif() {
        // Smooth shapes with noise, like a photo.
        let mut state = 1_u32;
        let photo = jpeg(RgbImage::from_fn(720, 540, |x, y| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 28) as f32;
            let wave = |x: u32, length: f32| (x as f32 / length).sin() * 40.0;
            let level = 120.0 + wave(x, 40.0) + wave(y, 60.0) + noise;
            Rgb([level as u8, (level * 0.8) as u8, (level * 0.5) as u8])
        }));
        let (webp, avif) = (small(&photo).webp(), small(&photo).avif_if_smaller());
        let (webp, avif) = (webp.expect("WebP"), avif.expect("AVIF"));
        assert_eq!(avif.get(4..12), Some(&b"ftypavif"[..]));
        assert!(avif.len() < webp.len(), "{} {}", avif.len(), webp.len());
        let size = imagesize::blob_size(&avif).expect("a size");
        assert_eq!((size.width, size.height), (360, 270));
    }

    #[test]
    fn image_that_is_not_smaller_as_avif_becomes_webp() {
        let flat = jpeg(RgbImage::from_pixel(720, 540, Rgb([90, 120, 140])));
        let bytes = small(&flat).avif_if_smaller().expect("an image");
        assert!(bytes.starts_with(b"RIFF"), "{} bytes", bytes.len());
    }
}
