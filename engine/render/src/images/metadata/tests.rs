//! Tests of the metadata that is removed from images, and of the data that stays.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, RgbImage};

use super::*;

const PLACE: &[u8] = b"GPS 41.8781 N, 87.6298 W";

/// Builds an Exif block with an orientation, followed by data that must be removed.
fn exif(orientation: u8) -> Vec<u8> {
    let mut block = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    block.extend(PLACE);
    block
}

fn picture() -> DynamicImage {
    DynamicImage::from(RgbImage::from_fn(40, 20, |x, y| {
        image::Rgb([x as u8 * 6, y as u8 * 12, 90])
    }))
}

fn coded(format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture().write_to(&mut bytes, format).expect("an image");
    bytes.into_inner()
}

fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).expect("short");
    [&[0xff, marker][..], &length.to_be_bytes(), content].concat()
}

fn jpeg_with(orientation: u8) -> Bytes {
    let plain = coded(ImageFormat::Jpeg);
    let mut whole = plain[..2].to_vec();
    whole.extend(segment(0xe1, &[EXIF, &exif(orientation)].concat()));
    whole.extend(segment(
        0xe1,
        &[b"http://ns.adobe.com/xap/1.0/\0", PLACE].concat(),
    ));
    whole.extend(segment(
        0xe2,
        &[b"ICC_PROFILE\0\x01\x01", &[7; 40][..]].concat(),
    ));
    whole.extend(segment(0xe2, &[b"MPF\0", PLACE].concat()));
    whole.extend(segment(0xed, PLACE));
    whole.extend(segment(0xfe, PLACE));
    whole.extend(&plain[2..]);
    // A preview behind the end of the image, as phones write it.
    whole.extend(segment(0xe1, PLACE));
    whole.into()
}

fn png_with(orientation: u8) -> Bytes {
    let mut png = Png::from_bytes(coded(ImageFormat::Png).into()).expect("a PNG");
    let text = [b"Comment\0", PLACE].concat();
    let chunk = img_parts::png::PngChunk::new(*b"tEXt", text.into());
    png.chunks_mut().insert(1, chunk);
    png.set_exif(Some(exif(orientation).into()));
    png.encoder().bytes()
}

fn webp_with(orientation: u8) -> Bytes {
    let coded = coded(ImageFormat::Png);
    let image = image::load_from_memory(&coded).expect("a PNG").into_rgb8();
    let coded = webp::Encoder::from_rgb(&image, 40, 20)
        .encode(80.0)
        .to_vec();
    let mut webp = WebP::from_bytes(coded.into()).expect("a WebP");
    webp.set_exif(Some(exif(orientation).into()));
    webp.encoder().bytes()
}

fn holds_place(bytes: &[u8]) -> bool {
    find(bytes, PLACE).is_some()
}

fn orientation(bytes: &[u8]) -> Orientation {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let decoder = reader.expect("a reader").into_decoder();
    decoder.expect("an image").orientation().expect("read")
}

#[test]
fn stripping_removes_the_location_and_leaves_the_pixels() {
    for whole in [jpeg_with(1), png_with(1), webp_with(1)] {
        assert!(holds_place(&whole));
        let freed = strip(&whole);
        assert!(!holds_place(&freed) && freed.len() < whole.len());
        let pixels = |bytes: &[u8]| {
            image::load_from_memory(bytes)
                .expect("an image")
                .into_rgb8()
        };
        assert!(pixels(&whole) == pixels(&freed));
        assert_eq!(strip(&freed), freed, "nothing is left to remove");
    }
    let profile = strip(&jpeg_with(1));
    assert!(
        find(&profile, b"ICC_PROFILE").is_some(),
        "colours change without the profile"
    );
}

#[test]
fn stripping_leaves_the_orientation() {
    for whole in [jpeg_with(6), webp_with(6)] {
        let freed = strip(&whole);
        assert!(!holds_place(&freed));
        assert_eq!(orientation(&freed), Orientation::Rotate90);
    }
    let png = Png::from_bytes(strip(&png_with(6))).expect("a PNG");
    let exif = png.exif().expect("a block");
    assert_eq!(
        Orientation::from_exif_chunk(&exif),
        Some(Orientation::Rotate90)
    );
}

#[test]
fn truncated_image_has_no_location_either() {
    for whole in [jpeg_with(6), png_with(6), webp_with(6)] {
        for length in 0..whole.len() {
            let freed = strip(&whole.slice(..length));
            assert!(freed.len() <= length && !holds_place(&freed), "{length}");
        }
    }
}

#[test]
fn file_that_is_not_an_image_is_unchanged() {
    for bytes in [&b"words"[..], b"", b"GIF89a", b"RIFF\0\0\0\0WAVE"] {
        assert_eq!(strip(&Bytes::from_static(bytes)), bytes);
    }
}

#[test]
fn orientation_applies_to_size_and_pixels_of_every_format() {
    use crate::images::image_header::Raster;
    for (name, whole) in [
        ("a.jpg", jpeg_with(6)),
        ("a.png", png_with(6)),
        ("a.webp", webp_with(6)),
    ] {
        let freed = strip(&whole);
        let raster = Raster::of(name, &freed).expect("an image");
        assert_eq!(raster.size, Some((20, 40)), "{name}");
        assert_eq!(orientation(&freed), Orientation::Rotate90, "{name}");
    }
}
