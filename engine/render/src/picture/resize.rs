//! Unpacks a picture, makes it smaller and codes it as WebP (RFC 9649).
//!
//! Its orientation is applied, and its colour profile goes along. What came as PNG, screenshots above all, is coded without loss where that is smaller.

use std::io::Cursor;
use std::sync::{Mutex, PoisonError};

use fast_image_resize::Resizer;
use image::{DynamicImage, ImageDecoder as _, ImageReader, Limits};
use img_parts::ImageICC as _;

/// The quality of what loses something, where 100 is the best.
const QUALITY: f32 = 75.0;
/// The most bytes that unpacking takes: the largest picture, with 16 bits a channel.
const MOST_BYTES: u64 = 512 << 20;
/// Of pictures with more pixels, one is unpacked at a time, however many threads draw.
const LARGE: u64 = 8_000_000;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Makes a size of a picture.
pub(super) fn webp(original: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>, String> {
    let message = |error: image::ImageError| error.to_string();
    let mut reader = ImageReader::new(Cursor::new(original))
        .with_guessed_format()
        .map_err(|error| error.to_string())?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let is_png = reader.format() == Some(image::ImageFormat::Png);
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
    let lies = {
        let mut probe = DynamicImage::new_luma8(2, 1);
        probe.apply_orientation(orientation);
        probe.height() == 2
    };
    let (wide, high) = match lies {
        true => (height, width),
        false => (width, height),
    };
    let mut small = DynamicImage::new(wide, high, image.color());
    Resizer::new()
        .resize(&image, &mut small, None)
        .map_err(|error| error.to_string())?;
    drop(image);
    drop(turn);
    small.apply_orientation(orientation);
    let coded = coded(&small, is_png)?;
    Ok(match profile.filter(|profile| is_of_rgb(profile)) {
        Some(profile) => with_profile(coded, profile),
        None => coded,
    })
}

/// The smaller of both ways of coding, where the picture is one that should lose nothing.
fn coded(image: &DynamicImage, keeps_all: bool) -> Result<Vec<u8>, String> {
    let (width, height) = (image.width(), image.height());
    let encoder = match image {
        DynamicImage::ImageRgba8(pixels) => webp::Encoder::from_rgba(pixels, width, height),
        DynamicImage::ImageRgb8(pixels) => webp::Encoder::from_rgb(pixels, width, height),
        _ => return Err("the picture has other colours than were asked for".to_owned()),
    };
    let encode = |lossless: bool| {
        let coded = encoder.encode_simple(lossless, QUALITY);
        coded
            .map(|coded| coded.to_vec())
            .map_err(|error| format!("{error:?}"))
    };
    let lossy = encode(false)?;
    if !keeps_all {
        return Ok(lossy);
    }
    let whole = encode(true)?;
    Ok(if whole.len() <= lossy.len() {
        whole
    } else {
        lossy
    })
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
