//! Finds the most frequent colour of an image, a placeholder until the image is loaded.

use std::collections::HashMap;

use image::DynamicImage;

use super::resize::{DecodedImage, is_large};

/// The number of pixels sampled per side.
const SAMPLES_PER_SIDE: u32 = 64;
/// The bits of a channel that decide whether two colours count as the same.
const COARSE_BITS: u8 = 0b1110_0000;

/// Returns the most frequent colour of an image.
///
/// Returns `None` for transparent images, for files that are not images, and for images that are too large to decode while a page waits.
pub(crate) fn dominant(image: &[u8]) -> Option<[u8; 3]> {
    if is_large(image) {
        return None;
    }
    let unpacked = DecodedImage::of(image).ok()?;
    let pixels = match &unpacked.image {
        DynamicImage::ImageRgb8(pixels) => pixels,
        DynamicImage::ImageRgba8(pixels) => {
            let is_opaque = pixels.pixels().all(|pixel| pixel.0[3] == u8::MAX);
            return is_opaque
                .then(|| most_frequent(&DynamicImage::from(pixels.clone()).into_rgb8()))
                .flatten();
        }
        _ => return None,
    };
    most_frequent(pixels)
}

fn most_frequent(pixels: &image::RgbImage) -> Option<[u8; 3]> {
    let step = |side: u32| usize::try_from(side.div_ceil(SAMPLES_PER_SIDE).max(1)).unwrap_or(1);
    let (across, down) = (step(pixels.width()), step(pixels.height()));
    // The channel sums and the number of pixels of each group of similar colours.
    let mut alike: HashMap<[u8; 3], [u32; 4]> = HashMap::new();
    for row in pixels.rows().step_by(down) {
        for pixel in row.step_by(across) {
            let sums = alike
                .entry(pixel.0.map(|part| part & COARSE_BITS))
                .or_default();
            for (sum, part) in sums.iter_mut().zip(pixel.0.into_iter().chain([1])) {
                *sum += u32::from(part);
            }
        }
    }
    // A tie goes to the darker colour, so that the result is deterministic.
    let most = alike
        .into_iter()
        .max_by_key(|(coarse, [.., count])| (*count, std::cmp::Reverse(*coarse)));
    let [red, green, blue, count] = most?.1;
    let mean = |sum: u32| u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX);
    Some([mean(red), mean(green), mean(blue)])
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{ImageFormat, Rgba, RgbaImage};

    use super::*;

    fn png(pixel: impl Fn(u32) -> [u8; 4]) -> Vec<u8> {
        let pixels = RgbaImage::from_fn(300, 200, |x, _| Rgba(pixel(x)));
        let mut bytes = Cursor::new(Vec::new());
        pixels.write_to(&mut bytes, ImageFormat::Png).expect("PNG");
        bytes.into_inner()
    }

    #[test]
    fn most_frequent_colour_wins() {
        let two = png(|x| match x {
            0..180 => [200, 40, 40, 255],
            _ => [10, 10, 250, 255],
        });
        assert_eq!(dominant(&two), Some([200, 40, 40]));
        assert_eq!(dominant(b"words"), None);
    }

    #[test]
    fn image_with_one_translucent_pixel_has_no_colour() {
        let almost = png(|x| [200, 40, 40, if x == 299 { 254 } else { 255 }]);
        assert_eq!(dominant(&almost), None);
    }
}
