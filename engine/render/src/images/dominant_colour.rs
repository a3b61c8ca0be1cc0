//! The colour that a picture has most of, which stands in its place until it is there.

use std::collections::HashMap;

use image::DynamicImage;

use super::resize::{Unpacked, is_large};

/// How many pixels of a side are looked at.
const SAMPLES: u32 = 64;
/// Colours that differ in the lower bits only are taken for one.
const COARSE: u8 = 0b1110_0000;

/// Returns the colour; none of a transparent picture, of a picture that is too large to be decoded while a page waits, and of what is not a picture.
pub(crate) fn dominant(picture: &[u8]) -> Option<[u8; 3]> {
    if is_large(picture) {
        return None;
    }
    let unpacked = Unpacked::of(picture).ok()?;
    let pixels = match &unpacked.image {
        DynamicImage::ImageRgb8(pixels) => pixels,
        DynamicImage::ImageRgba8(pixels) => {
            let is_opaque = pixels.pixels().all(|pixel| pixel.0[3] == u8::MAX);
            return is_opaque
                .then(|| most(&DynamicImage::from(pixels.clone()).into_rgb8()))
                .flatten();
        }
        _ => return None,
    };
    most(pixels)
}

fn most(pixels: &image::RgbImage) -> Option<[u8; 3]> {
    let step = |side: u32| usize::try_from(side.div_ceil(SAMPLES).max(1)).unwrap_or(1);
    let (across, down) = (step(pixels.width()), step(pixels.height()));
    // The sums of the colours that are alike, and how many they are.
    let mut alike: HashMap<[u8; 3], [u32; 4]> = HashMap::new();
    for row in pixels.rows().step_by(down) {
        for pixel in row.step_by(across) {
            let sums = alike.entry(pixel.0.map(|part| part & COARSE)).or_default();
            for (sum, part) in sums.iter_mut().zip(pixel.0.into_iter().chain([1])) {
                *sum += u32::from(part);
            }
        }
    }
    // Of as many the darker, so that it is the same each time.
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
    fn the_colour_is_the_one_that_there_is_most_of() {
        let two = png(|x| match x {
            0..180 => [200, 40, 40, 255],
            _ => [10, 10, 250, 255],
        });
        assert_eq!(dominant(&two), Some([200, 40, 40]));
        assert_eq!(dominant(b"words"), None);
    }

    #[test]
    fn a_picture_with_one_pixel_that_shines_through_has_none() {
        let almost = png(|x| [200, 40, 40, if x == 299 { 254 } else { 255 }]);
        assert_eq!(dominant(&almost), None);
    }
}
