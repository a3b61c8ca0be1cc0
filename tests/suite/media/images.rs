//! Images of authors: in sizes that fit, without private metadata, and never worse than the original.

use std::io::Cursor;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use image::{DynamicImage, ImageFormat, RgbImage};
use rowhouse::export::ExportOptions;
use rowhouse_tests::TestSite;

use crate::pages::broken_links::{answer, broken_of};

const HOST: &str = "corner.studio.example";
const PLACES: [(&str, &str); 3] = [
    (HOST, ""),
    ("studio.example", "/corner"),
    ("studio.example", "/apps/corner"),
];
const PLACE: &[u8] = b"GPS 41.8781 N, 87.6298 W";

/// Makes a smooth image with noise, like a photo.
pub(crate) fn photo(width: u32, height: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let pixels = RgbImage::from_fn(width, height, |x, y| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (state >> 29) as u8;
        let soft = |part: u32, whole: u32| (part * 200 / whole) as u8;
        image::Rgb([soft(x, width) + noise, soft(y, height) + noise, 120 + noise])
    });
    coded(&pixels.into(), ImageFormat::Jpeg)
}

fn coded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).expect("a picture");
    bytes.into_inner()
}

/// Adds Exif data as a phone does, with a location and an orientation.
fn with_exif(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut block = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    block.extend(PLACE);
    let length = u16::try_from(block.len() + 2).expect("short").to_be_bytes();
    [&jpeg[..2], b"\xff\xe1", &length, &block, &jpeg[2..]].concat()
}

fn create_site(body: &str) -> TestSite {
    let mut site = TestSite::fixture("sites");
    site.add_tenant("corner", "name: Corner\naliases: [/apps/corner]\n");
    let page = format!("---\ntitle: Corner\n---\n{body}\n");
    site.write("tenants/corner/pages/index.md", page);
    site
}

/// Returns the files of an image on a page, with their widths.
fn sizes(html: &str) -> Vec<(String, u32)> {
    let set = html.split(" srcset=\"").nth(1).unwrap_or_default();
    let set = set.split('"').next().unwrap_or_default();
    let sizes = set.split(", ").filter_map(|one| one.split_once(' '));
    sizes
        .map(|(path, width)| {
            let width = width.trim_end_matches('w').parse().expect("a width");
            (path.to_owned(), width)
        })
        .collect()
}

fn source(html: &str) -> String {
    let rest = html.split("<img src=\"").nth(1).expect("an image");
    rest.split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn photo_is_served_in_fitting_size_with_dimensions() {
    let mut site = create_site("![A hall](hall.jpg)\n\n![Again](hall.jpg)");
    site.write("tenants/corner/assets/hall.jpg", photo(1_600, 1_200));
    site.reload();
    assert!(
        !site.report_text().contains("corner/assets"),
        "{}",
        site.report_text()
    );
    for (host, prefix) in PLACES {
        let html = site.page(host, prefix, "/").expect("a page");
        assert!(html.contains(" alt=\"A hall\" width=\"1600\" height=\"1200\" fetchpriority=\"high\" decoding=\"async\""), "{html}");
        assert!(
            html.contains(
                " alt=\"Again\" width=\"1600\" height=\"1200\" loading=\"lazy\" decoding=\"async\""
            ),
            "{html}"
        );
        assert!(!html.contains(" style="), "{html}");
        let found: Vec<u32> = sizes(&html).into_iter().map(|(_, width)| width).collect();
        assert_eq!(found, [360, 720, 1080, 1440, 1600]);
    }

    // Until a size is made, its address redirects to the original, and the redirect is not cached.
    let html = site.page("studio.example", "/corner", "/").expect("a page");
    let original = source(&html);
    for (path, _) in sizes(&html) {
        let answer = answer(&site, "studio.example", &path, &[]);
        assert_eq!(answer.status(), 302, "{path}");
        assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
        let location = answer.headers()[LOCATION].to_str().expect("text");
        assert_eq!(format!("/corner/assets/{location}"), original);
    }

    let (_, broken) = broken_of(&mut site, "corner");
    assert!(broken.is_empty(), "{broken:#?}");
    let whole = answer(&site, "studio.example", &original, &[]).into_body();
    for (host, prefix) in PLACES {
        let html = site.page(host, prefix, "/").expect("a page");
        let mut before = 0;
        for (path, width) in sizes(&html) {
            let answer = answer(&site, host, &path, &[]);
            assert_eq!(answer.headers()[CONTENT_TYPE], "image/webp");
            let bytes = answer.into_body();
            let size = imagesize::blob_size(&bytes).expect("a picture");
            let width = usize::try_from(width).expect("small");
            assert_eq!((size.width, size.height), (width, width * 3 / 4), "{path}");
            assert!(bytes.len() > before && bytes.len() < whole.len(), "{path}");
            before = bytes.len();
        }
    }
}

#[test]
fn export_has_every_size() {
    let mut site = create_site("![A hall](hall.jpg)");
    site.write("tenants/corner/assets/hall.jpg", photo(800, 600))
        .reload()
        .render_images();
    let files = site.exported(ExportOptions::default()).expect("files");
    for (host, prefix) in PLACES {
        let html = site.page(host, prefix, "/").expect("a page");
        let sizes = sizes(&html);
        assert_eq!(sizes.len(), 3);
        for (path, _) in sizes {
            let file = files.get(&format!("{host}{path}")).expect("a file");
            assert!(file.starts_with(b"RIFF"), "{path}");
        }
        let rules = files.get(&format!("{host}/_redirects"));
        let rules = rules.map(|rules| String::from_utf8_lossy(rules).into_owned());
        assert!(!rules.unwrap_or_default().contains(".webp"));
    }
}

#[test]
fn served_files_do_not_contain_location_of_photo() {
    let mut site = create_site("![A hall](hall.jpg)");
    let whole = with_exif(&photo(900, 600), 6);
    assert!(whole.windows(PLACE.len()).any(|part| part == PLACE));
    site.write("tenants/corner/assets/hall.jpg", whole)
        .reload()
        .render_images();
    let html = site.page(HOST, "", "/").expect("a page");
    // The photo was taken upright.
    assert!(html.contains(" width=\"600\" height=\"900\""), "{html}");
    let files = site.exported(ExportOptions::default()).expect("files");
    for (file, bytes) in &files {
        assert!(
            !bytes.windows(PLACE.len()).any(|part| part == PLACE),
            "{file}"
        );
    }
    for (path, width) in sizes(&html) {
        let bytes = answer(&site, HOST, &path, &[]).into_body();
        let size = imagesize::blob_size(&bytes).expect("a picture");
        assert_eq!(size.width as u32, width);
        assert!(size.height > size.width, "{path} lies");
        // The left edge of the turned image is the lower edge of the stored one, where green is strong.
        let pixels = image::load_from_memory(&bytes)
            .expect("a picture")
            .into_rgb8();
        let (left, right) = (pixels.get_pixel(2, 100), pixels.get_pixel(width - 3, 100));
        assert!(left[1] > 150 && right[1] < 60, "{left:?} {right:?}");
    }
}

#[test]
fn screenshot_is_lossless_and_animated_or_small_images_are_unchanged() {
    let screen = RgbImage::from_fn(640, 480, |x, y| match (x / 40 + y / 40) % 2 {
        0 => image::Rgb([250, 250, 250]),
        _ => image::Rgb([20, 60, 120]),
    });
    let mut noisy = screen.clone();
    // Makes the PNG compressible, so that smaller sizes are worth it.
    for (number, pixel) in noisy.pixels_mut().enumerate().take(9_000) {
        *pixel = image::Rgb([
            (number % 251) as u8,
            (number % 13) as u8,
            (number % 7) as u8,
        ]);
    }
    let png = coded(&noisy.clone().into(), ImageFormat::Png);
    let mut site = create_site("![Screen](screen.png) ![Dot](dot.png) ![Moves](moves.gif)");
    site.write("tenants/corner/assets/screen.png", &png)
        .write(
            "tenants/corner/assets/dot.png",
            coded(&RgbImage::new(20, 20).into(), ImageFormat::Png),
        )
        .write(
            "tenants/corner/assets/moves.gif",
            coded(&screen.into(), ImageFormat::Gif),
        )
        .reload()
        .render_images();
    let html = site.page(HOST, "", "/").expect("a page");
    assert_eq!(
        html.matches("<picture ").count(),
        usize::from(png.len() > 8 << 10),
        "{html}"
    );
    assert!(
        html.contains(" alt=\"Dot\" width=\"20\" height=\"20\" loading=\"lazy\""),
        "{html}"
    );
    assert!(
        html.contains(" alt=\"Moves\" width=\"640\" height=\"480\" loading=\"lazy\""),
        "{html}"
    );
    let own = sizes(&html).into_iter().find(|(_, width)| *width == 640);
    if let Some((path, _)) = own {
        let bytes = answer(&site, HOST, &path, &[]).into_body();
        assert!(bytes.len() < png.len());
    }
}

#[test]
fn image_of_section_has_sizes() {
    let mut site = create_site("Words.");
    site.write("tenants/corner/tenant.yaml", "name: Corner\ntheme: plain\n")
        .write("tenants/corner/pages/index.md", "---\ntitle: Corner\nsections:\n  - kind: hero\n    image: ../assets/hall.jpg\n    image_text: A hall\n---\n")
        .write("tenants/corner/assets/hall.jpg", photo(800, 600));
    let themes = rowhouse_tests::workspace().join("themes/plain");
    rowhouse_tests::copy(&themes, &site.path("themes/plain"));
    site.reload();
    let html = site
        .page(HOST, "", "/")
        .unwrap_or_else(|| panic!("{}", site.report_text()));
    assert!(
        html.contains(" sizes=\"(min-width: 60rem) 50vw, 100vw\""),
        "{html}"
    );
    assert!(
        html.contains(" alt=\"A hall\" width=\"800\" height=\"600\" fetchpriority=\"high\""),
        "{html}"
    );
    let (_, broken) = broken_of(&mut site, "corner");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn changed_image_has_new_addresses_and_old_ones_serve_old_image() {
    let mut site = create_site("![A hall](hall.jpg)");
    site.write("tenants/corner/assets/hall.jpg", photo(800, 600))
        .reload();
    let before = sizes(&site.page(HOST, "", "/").expect("a page"));
    let old = source(&site.page(HOST, "", "/").expect("a page"));
    let bytes = answer(&site, HOST, &old, &[]).into_body();
    site.write("tenants/corner/assets/hall.jpg", photo(802, 600))
        .reload()
        .render_images();
    let after = sizes(&site.page(HOST, "", "/").expect("a page"));
    for (path, _) in &before {
        assert!(after.iter().all(|(other, _)| other != path), "{path}");
        let found = answer(&site, HOST, path, &[]);
        assert_eq!(found.status(), 302, "{path}");
        let location = found.headers()[LOCATION].to_str().expect("text");
        let found = answer(&site, HOST, &format!("/assets/{location}"), &[]);
        assert!(found.body() == &bytes, "{path}");
    }
    // The variants are still there.
    let made = |site: &TestSite| {
        let answers = after.iter().map(|(path, _)| answer(site, HOST, path, &[]));
        answers
            .map(|found| (found.status(), found.into_body()))
            .collect::<Vec<_>>()
    };
    let before = made(&site);
    assert!(before.iter().all(|(status, _)| *status == 200));
    site.write("tenants/corner/assets/hall.jpg", photo(804, 600))
        .reload();
    let now = sizes(&site.page(HOST, "", "/").expect("a page"));
    assert!(now.iter().all(|size| !after.contains(size)));
    assert!(made(&site) == before);
}

#[test]
fn huge_image_is_error_with_line() {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend([60_000_u32.to_be_bytes(), 60_000_u32.to_be_bytes()].concat());
    png.extend(b"\x08\x06\0\0\0\0\0\0\0");
    let mut site = create_site("Words.\n\n![A huge picture](huge.png)");
    site.write("tenants/corner/assets/huge.png", png)
        .reload()
        .render_images();
    let text = site.report_text();
    for says in [
        "error[too-large]: `assets/huge.png` has 60000 x 60000 pixels",
        "tenants/corner/pages/index.md:6:19",
        "hint: use an image of at most",
    ] {
        assert!(text.contains(says), "{says} in {text}");
    }
    assert!(site.page(HOST, "", "/").is_none());
    assert!(site.page("app.studio.example", "", "/").is_some());
}

#[test]
fn decoration_has_empty_alt_text_and_no_visible_mark() {
    let mut site = create_site("![](wave.png){.decorative} Words. ![](other.png)");
    let dot = coded(&RgbImage::new(20, 20).into(), ImageFormat::Png);
    site.write("tenants/corner/assets/wave.png", &dot)
        .write("tenants/corner/assets/other.png", &dot)
        .reload();
    let html = site.page(HOST, "", "/").expect("a page");
    assert!(
        !html.contains("decorative") && html.contains(" Words. <img"),
        "{html}"
    );
    let text = site.report_text();
    assert!(
        text.contains("the image `other.png` has no alt text"),
        "{text}"
    );
    assert!(!text.contains("the image `wave.png`"), "{text}");
}
