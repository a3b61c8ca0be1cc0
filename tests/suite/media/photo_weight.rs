//! The bytes of a photo for a visitor, and the colour before it is loaded.

use std::io::Cursor;

use http::header::CONTENT_TYPE;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use rowhouse_tests::TestSite;

use crate::pages::broken_links::answer;

const HOST: &str = "corner.studio.example";

/// Makes an image like a photo: shapes of every size, from half of the image to a pixel.
///
/// Photos have about the same contrast in each octave of sizes: their spectrum falls with the square of the frequency. The finest octave is blurred by lens and sensor, and has some noise. Bright areas, such as a sky or a wall, are smooth.
/// Pure noise would be unrealistic: no photo is like that, and no encoder makes it smaller.
fn photo(width: u32, height: u32) -> Vec<u8> {
    const OCTAVES: u32 = 10;
    let mut state = 1_u32;
    let mut picture = DynamicImage::from(RgbImage::from_pixel(1, 1, Rgb([120, 128, 112])));
    for octave in (1..OCTAVES).rev() {
        let side = |side: u32| (side >> octave).max(1);
        let filter = FilterType::CatmullRom;
        let mut next = picture
            .resize_exact(side(width), side(height), filter)
            .into_rgb8();
        // In levels of 256.
        let contrast = if octave == 1 { 6 } else { 22 };
        for pixel in next.pixels_mut() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Light and shade, and a little colour.
            let [_, tint, fine, light] = state.to_le_bytes().map(|byte| i16::from(byte) - 128);
            let is_smooth = octave < 6 && pixel.0[1] > 128;
            let contrast = if is_smooth { contrast / 3 } else { contrast };
            for (part, own) in pixel.0.iter_mut().zip([tint, 0, fine]) {
                let change = (light * 3 + own) / 4 * contrast / 128;
                *part = (i16::from(*part) + change).clamp(0, 255) as u8;
            }
        }
        picture = next.into();
    }
    let picture = picture.resize_exact(width, height, FilterType::CatmullRom);
    let mut picture = picture.into_rgb8();
    for part in picture.iter_mut() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *part = part.saturating_add((state >> 30) as u8);
    }
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 90)
        .encode_image(&picture)
        .expect("a picture");
    bytes
}

fn coded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image
        .into()
        .write_to(&mut bytes, format)
        .expect("a picture");
    bytes.into_inner()
}

fn create_site(body: &str) -> TestSite {
    let mut site = TestSite::fixture("sites");
    site.add_tenant("corner", "name: Corner\n");
    let page = format!("---\ntitle: Corner\n---\n{body}\n");
    site.write("tenants/corner/pages/index.md", page);
    site
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start} in {text}"));
    rest.split(end).next().unwrap_or_default()
}

/// Returns the file that a browser loads for a window width in CSS pixels and a pixel density: the smallest file that is large enough (HTML, section 4.8.4.3.7, as in Chromium).
fn chosen(html: &str, window: u32, dots: u32) -> (String, u32) {
    assert_eq!(
        between(html, " sizes=\"", "\""),
        "(min-width: 60rem) 60rem, 100vw"
    );
    let shown = if window >= 960 { 960 } else { window };
    let set = between(html, "<source type=\"image/webp\" srcset=\"", "\"");
    let sizes = set.split(", ").map(|one| {
        let (path, width) = one.split_once(' ').expect("a width");
        (
            path.to_owned(),
            width.trim_end_matches('w').parse().expect("a number"),
        )
    });
    let sizes: Vec<(String, u32)> = sizes.collect();
    let enough = sizes.iter().find(|(_, width)| *width >= shown * dots);
    enough.or(sizes.last()).expect("a size").clone()
}

#[test]
fn photo_has_at_most_60_kilobytes_on_phone_and_250_on_desktop() {
    let original = photo(4_000, 3_000);
    // A photo of a phone has as many details; with fewer, the check would be too easy.
    assert!(original.len() > 2_000_000, "{} bytes", original.len());
    let mut site = create_site("![A hall](hall.jpg)");
    site.write("tenants/corner/assets/hall.jpg", &original)
        .reload()
        .render_images();
    let report = site.report_text();
    assert!(!report.contains("corner/assets"), "{report}");
    let html = site.page(HOST, "", "/").expect("a page");
    assert!(html.contains(" width=\"4000\" height=\"3000\""), "{html}");
    for (window, dots, width, most) in [
        (360, 2, 720, 60_000),
        (1_280, 1, 1_080, 250_000),
        (1_280, 2, 2_160, 250_000),
    ] {
        let (path, chosen) = chosen(&html, window, dots);
        assert_eq!(chosen, width, "{window} x {dots}");
        let found = answer(&site, HOST, &path, &[]);
        assert_eq!(found.headers()[CONTENT_TYPE], "image/webp");
        let bytes = found.body().len();
        assert!(bytes <= most, "{window} px, {dots} dots: {bytes} bytes");
        // The file is an image, and not an empty one.
        assert!(bytes > most / 10, "{window} px, {dots} dots: {bytes} bytes");
    }
}

#[test]
fn first_opaque_images_of_page_name_their_main_colour() {
    let red = RgbImage::from_fn(800, 600, |x, y| {
        let noise = (x * 7 + y * 13) % 9;
        Rgb([200 + noise as u8, 30, 40 + (x * y % 5) as u8])
    });
    let clear = RgbaImage::from_fn(800, 600, |x, y| {
        Rgba([
            (x * y % 251) as u8,
            (x % 256) as u8,
            (y % 256) as u8,
            (x % 256) as u8,
        ])
    });
    let mut site = create_site(
        "![Red](red.png) ![Clear](clear.png) ![3](red.png) ![4](red.png) ![5](red.png)",
    );
    site.write(
        "tenants/corner/assets/red.png",
        coded(red, ImageFormat::Png),
    )
    .write(
        "tenants/corner/assets/clear.png",
        coded(clear, ImageFormat::Png),
    )
    .reload();
    for (host, prefix) in [(HOST, ""), ("studio.example", "/corner")] {
        let html = site.page(host, prefix, "/").expect("a page");
        let image = |words: &str| {
            let mut images = html.split("<img ").skip(1);
            let image = images.find(|rest| rest.contains(&format!("alt=\"{words}\"")));
            image
                .and_then(|rest| rest.split('>').next())
                .expect("an image")
        };
        let colour = between(image("Red"), "data-ground=\"#", "\"");
        assert!(
            colour.starts_with("cc1e2") || colour.starts_with("cb1e2"),
            "{colour}"
        );
        assert!(!image("Clear").contains("data-ground"), "{html}");
        assert!(image("4").contains("data-ground") && !image("5").contains("data-ground"));
        assert!(!html.contains(" style="), "{html}");
    }
}
