//! Unpacks a picture, makes it smaller and codes it anew.
//!
//! Its orientation is applied, and its colour profile goes along. What came as PNG, screenshots above all, is coded without loss where that is smaller.

use std::io::Cursor;

use fast_image_resize::pixels::U8x4;
use fast_image_resize::{IntoImageView as _, IntoImageViewMut as _, ResizeOptions, Resizer};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use img_parts::ImageICC as _;

use super::decode_memory::{self, Share};

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
const MAX_BYTES: u64 = 512 << 20;
/// A picture as it is stored, decoded.
pub(super) struct Unpacked {
    /// With eight bits for each of three or four channels.
    pub(super) image: DynamicImage,
    profile: Option<Vec<u8>>,
    orientation: Orientation,
    keeps_all: bool,
    _memory: Share,
}

impl Unpacked {
    /// Decodes a picture, once there is memory for it.
    pub(super) fn of(original: &[u8]) -> Result<Self, String> {
        let (mut decoder, keeps_all) = decoder(original)?;
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
            keeps_all,
            _memory: memory,
        })
    }
}

/// Whether a picture is too large to be decoded while a page waits for it. What cannot be decoded is not.
pub(super) fn is_large(original: &[u8]) -> bool {
    decoder(original).is_ok_and(|(decoder, _)| decode_memory::is_large(decoded_bytes(&decoder)))
}

/// A decoder that has read what the picture says of itself, and whether that loses nothing.
fn decoder(original: &[u8]) -> Result<(impl ImageDecoder, bool), String> {
    let mut reader = ImageReader::new(Cursor::new(original))
        .with_guessed_format()
        .map_err(|error| error.to_string())?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let keeps_all = reader.format() == Some(image::ImageFormat::Png);
    Ok((reader.into_decoder().map_err(message)?, keeps_all))
}

/// The memory that decoding takes: the pixels as they are stored, and with eight bits for each of four channels.
fn decoded_bytes(decoder: &impl ImageDecoder) -> u64 {
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    decoder.total_bytes().saturating_add(4 * pixels)
}

fn message(error: image::ImageError) -> String {
    error.to_string()
}

/// A picture in another size, with as many channels.
fn resized(from: DynamicImage, (width, height): (u32, u32)) -> Result<DynamicImage, String> {
    let has_alpha = from.color().has_alpha();
    let mut to = DynamicImage::new_rgba8(width, height);
    let options = ResizeOptions::new().use_alpha(has_alpha);
    draw(&from.into_rgba8().into(), &mut to, &options)?;
    Ok(match has_alpha {
        true => to,
        false => to.into_rgb8().into(),
    })
}

/// Draws a picture into one of another size. Both have four channels: the library makes code for each kind of pixel that it might meet otherwise, which is most of what there was to compile here.
fn draw(from: &DynamicImage, to: &mut DynamicImage, options: &ResizeOptions) -> Result<(), String> {
    let views = from.image_view::<U8x4>().zip(to.image_view_mut::<U8x4>());
    let (from, mut to) = views.ok_or_else(|| OTHER_COLOURS.to_owned())?;
    Resizer::new()
        .resize_typed(&from, &mut to, options)
        .map_err(|error| error.to_string())
}

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
        let unpacked = Unpacked::of(original)?;
        let orientation = unpacked.orientation;
        // It is turned when it is small.
        let mut probe = DynamicImage::new_luma8(2, 1);
        probe.apply_orientation(orientation);
        let size = match probe.height() {
            1 => (width, height),
            _ => (height, width),
        };
        let mut small = resized(unpacked.image, size)?;
        small.apply_orientation(orientation);
        Ok(Self {
            image: small,
            profile: unpacked.profile.filter(|profile| is_of_rgb(profile)),
            keeps_all: unpacked.keeps_all,
        })
    }

    /// As WebP, with its colour profile; the smaller of both ways of encoding, where it should lose nothing.
    pub(super) fn webp(&self) -> Result<Vec<u8>, String> {
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
        Ok(match &self.profile {
            Some(profile) => with_profile(coded, profile.clone()),
            None => coded,
        })
    }

    /// As AVIF where that is smaller, else as WebP: nobody is to load more for the newer format.
    #[cfg(feature = "avif")]
    pub(super) fn avif_if_smaller(self) -> Result<Vec<u8>, String> {
        // It costs little beside AVIF.
        let webp = self.webp()?;
        let avif = self.avif()?;
        Ok(match avif.len() < webp.len() {
            true => avif,
            false => webp,
        })
    }

    /// As AVIF, its colours made those of sRGB, which everybody takes for granted.
    #[cfg(feature = "avif")]
    fn avif(self) -> Result<Vec<u8>, String> {
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

#[cfg(test)]
#[cfg(feature = "avif")]
mod tests {
    use image::{ImageFormat, Rgb, RgbImage};

    use super::*;

    fn jpeg(pixels: RgbImage) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let written = pixels.write_to(&mut bytes, ImageFormat::Jpeg);
        written.expect("a picture");
        bytes.into_inner()
    }

    fn small(original: &[u8]) -> Small {
        Small::of(original, (360, 270)).expect("a picture")
    }

    #[test]
    fn a_photo_is_smaller_as_avif() {
        // Soft shapes with noise, as photos have them.
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
    fn what_is_no_smaller_as_avif_stays_webp() {
        let flat = jpeg(RgbImage::from_pixel(720, 540, Rgb([90, 120, 140])));
        let bytes = small(&flat).avif_if_smaller().expect("a picture");
        assert!(bytes.starts_with(b"RIFF"), "{} bytes", bytes.len());
    }
}
