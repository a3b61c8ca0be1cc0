//! Generated images: social images and icons drawn from SVG, and variants of authors' images.
//!
//! An [`ImageSpec`] is an SVG or an image, and the format to produce. Its name is a digest of both. So pages can name an image before it is rendered, and an image is never rendered twice.
//! Rendering an image takes longer than all other steps of a compilation, and no page waits for it. A snapshot shows a slot of [`ImageSlots`] for each image, which is filled once the image is rendered.
//!
//! | module | content |
//! |---|---|
//! | [`social_image`] | the theme's `social.svg` with a page's title |
//! | [`icon`] | a tenant's icon in the sizes that browsers and phones request |
//! | [`image_header`] | the properties of an image, read from its header |
//! | [`image_variant`] | the variants of an author's image |
//! | [`metadata`] | removes metadata from images |
//! | [`resize`] | decodes, resizes and encodes an image |
//! | [`dominant_colour`] | the placeholder colour of an image |
//! | [`svg`] | SVGs: sanitised, measured, and checked for their cost before they are drawn |
//! | `decode_memory` | the limit on the memory for decoded images |
//! | [`persisted_image`] | image specs in persisted form |
//! | [`image_slots`] | the slots of the images |
//!
//! **Invariant:** an image uses its own SVG and the theme's fonts only: no files, no system fonts, no network. The same spec gives the same bytes on any machine.

mod decode_memory;
pub(super) mod dominant_colour;
pub(super) mod icon;
pub(crate) mod image_header;
mod image_slots;
pub(super) mod image_variant;
pub(crate) mod metadata;
pub(super) mod persisted_image;
mod resize;
pub(super) mod social_image;
pub(crate) mod svg;

use std::collections::BTreeSet;
use std::iter::repeat_n;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::roxmltree::{Document, Node};
use resvg::usvg::{self, FontResolver, Group, ImageHrefResolver, Options, Tree};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::resources::asset::hex;
use svg::fonts::Fonts;
use svg::weight::WeightError;
use svg::{cost, weight};

pub use image_slots::{ImageSlots, ImageTask};
pub(super) use image_slots::{is_cached, reuse_cached};

/// A generated image and its URL.
#[derive(Debug, Clone)]
pub struct GeneratedImage {
    /// The host.
    pub host: String,
    /// The complete path.
    pub path: String,
    /// The source and format of the image.
    pub spec: Arc<ImageSpec>,
}

/// The format of a generated image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RasterFormat {
    /// A PNG of this width and height.
    Png(u32, u32),
    /// A Windows icon with one square image, for `/favicon.ico`.
    Ico(u32),
    /// A WebP of this width and height.
    WebP(u32, u32),
    /// An AVIF of this width and height, or a WebP if that is smaller.
    #[cfg(feature = "avif")]
    Avif(u32, u32),
}

/// The source of an image.
#[derive(Debug, Clone)]
enum ImageSource {
    /// An SVG.
    Svg(Arc<str>),
    /// An author's image, with its hashed name.
    Image(String, Bytes),
}

/// An image to render: its source and its format.
#[derive(Debug)]
pub struct ImageSpec {
    /// The source. `None` once the image is rendered and shown, and while its tenant is evicted.
    source: Mutex<Option<ImageSource>>,
    form: RasterFormat,
    /// The background colour, since generated images are opaque.
    ground: Option<Arc<str>>,
    fonts: Arc<Fonts>,
    digest: [u8; 32],
    /// The source file, for messages.
    file: String,
}

impl ImageSpec {
    /// Creates the spec of an image from an SVG. Its digest covers everything that its bytes depend on.
    pub(super) fn new(
        svg: impl Into<Arc<str>>,
        form: RasterFormat,
        ground: Option<&str>,
        fonts: &Arc<Fonts>,
    ) -> Self {
        let svg = svg.into();
        let mut hash = Sha256::new();
        hash.update(format!("{form:?} {:?} ", ground));
        hash.update(fonts.digest_for(&svg));
        hash.update(svg.as_bytes());
        Self {
            digest: hash.finalize().into(),
            source: Mutex::new(Some(ImageSource::Svg(svg))),
            form,
            ground: ground.map(Arc::from),
            fonts: Arc::clone(fonts),
            file: String::new(),
        }
    }

    /// Creates the spec of a variant of an author's image. `digest` identifies the variant.
    fn of_image((name, image): (&str, Bytes), form: RasterFormat, digest: [u8; 32]) -> Self {
        Self {
            source: Mutex::new(Some(ImageSource::Image(name.to_owned(), image))),
            form,
            ground: None,
            fonts: Arc::default(),
            digest,
            file: String::new(),
        }
    }

    /// Returns the spec with its source file: `tenants/corner/assets/icon.svg`.
    pub(super) fn of_file(self, file: String) -> Self {
        Self { file, ..self }
    }

    /// Returns the file name for a stem: `social.1a2b3c4d5e6f7a8b.png` for `social`.
    pub(super) fn file_name(&self, stem: &str) -> String {
        let extension = match self.form {
            RasterFormat::Png(..) => "png",
            RasterFormat::Ico(_) => "ico",
            RasterFormat::WebP(..) => "webp",
            #[cfg(feature = "avif")]
            RasterFormat::Avif(..) => "avif",
        };
        format!("{stem}.{}.{extension}", hex(&self.digest[..8]))
    }

    /// Returns the width and height in pixels.
    pub(super) const fn size(&self) -> (u32, u32) {
        match self.form {
            RasterFormat::Png(width, height) | RasterFormat::WebP(width, height) => (width, height),
            RasterFormat::Ico(side) => (side, side),
            #[cfg(feature = "avif")]
            RasterFormat::Avif(width, height) => (width, height),
        }
    }

    /// Drops the source, which takes as much memory as the image.
    pub(crate) fn drop_source(&self) {
        *self.source() = None;
    }

    /// Returns whether the image can be rendered again.
    fn has_source(&self) -> bool {
        self.source().is_some()
    }

    fn source(&self) -> MutexGuard<'_, Option<ImageSource>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renders the image. Returns its bytes, or the reason for the failure.
    fn render(&self) -> Result<Vec<u8>, String> {
        let source = self.source().clone().ok_or("the image was drawn before")?;
        let (width, height) = self.size();
        let svg = match source {
            ImageSource::Svg(svg) => svg,
            ImageSource::Image(_, image) => {
                let small = resize::ResizedImage::of(&image, (width, height))?;
                return match self.form {
                    #[cfg(feature = "avif")]
                    RasterFormat::Avif(..) => small.avif_if_smaller(),
                    _ => small.webp(),
                };
            }
        };
        weight::check(&svg).map_err(|heavy| heavy.message)?;
        let tree = read(&svg, &self.fonts)?;
        let place = centred(&tree, width, height);
        cost::check(&tree, place, width, height).map_err(|much| much.to_string())?;
        let mut pixmap = Pixmap::new(width, height).ok_or("the image has no area")?;
        pixmap.fill(self.ground.as_deref().map_or(Color::WHITE, colour));
        resvg::render(&tree, place, &mut pixmap.as_mut());
        let png = encode_png(&pixmap, self.form).map_err(|error| error.to_string())?;
        Ok(match self.form {
            RasterFormat::Ico(side) => wrap_in_ico(side, &png),
            _ => png,
        })
    }
}

/// Parses an SVG for the renderer. It can use no embedded images and no fonts but the theme's.
fn read(svg: &str, fonts: &Fonts) -> Result<Tree, String> {
    let options = Options {
        fontdb: fonts.database(),
        font_resolver: FontResolver {
            select_font: Fonts::selection(),
            select_fallback: Fonts::fallback(),
        },
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    };
    Tree::from_str(svg, &options).map_err(|error| error.to_string())
}

/// Returns the characters of an SVG's texts that the renderer cannot draw.
///
/// For non-ASCII texts it is not enough that some font has a character. The renderer combines glyphs of several fonts only if they agree on the number of glyphs. So the renderer's own layout decides.
fn missing_glyphs(document: &Document<'_>, fonts: &Fonts) -> BTreeSet<char> {
    let nodes = document.descendants();
    let texts = nodes.filter(|node| node.tag_name().name() == "text");
    let texts = texts.flat_map(|text| text.descendants().filter(Node::is_text));
    let texts: String = texts.filter_map(|text| text.text()).collect();
    let missing = fonts.missing(&texts);
    if texts.is_ascii() || !missing.is_empty() {
        return missing;
    }
    let svg = document.input_text();
    let read = || weight::check(svg).ok().and_then(|()| read(svg, fonts).ok());
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Some(tree)) => without_glyph(tree.root()),
        _ => BTreeSet::new(),
    }
}

/// Returns the characters of a group's texts that have no glyph.
fn without_glyph(group: &Group) -> BTreeSet<char> {
    let nodes = group.children().iter();
    nodes
        .flat_map(|node| match node {
            usvg::Node::Group(group) => without_glyph(group),
            usvg::Node::Text(text) => {
                let spans = text.layouted().iter();
                let glyphs = spans.flat_map(|span| &span.positioned_glyphs);
                let missing = glyphs.filter(|glyph| glyph.id.0 == 0);
                missing.flat_map(|glyph| glyph.text.chars()).collect()
            }
            _ => BTreeSet::new(),
        })
        .collect()
}

/// Returns an error if drawing the SVG at this size takes too much work. Invalid SVGs pass.
fn check(svg: &str, fonts: &Fonts, (width, height): (u32, u32)) -> Result<(), WeightError> {
    weight::check(svg)?;
    // A panic of the renderer must not end the compilation.
    let read = catch_unwind(AssertUnwindSafe(|| match read(svg, fonts) {
        Ok(tree) => cost::check(&tree, centred(&tree, width, height), width, height),
        Err(_) => Ok(()),
    }));
    let problem = match read {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(much)) => much.to_string(),
        Err(_) => "the renderer cannot draw the SVG".to_owned(),
    };
    Err(WeightError {
        message: problem,
        place: Some((1, 1)),
    })
}

/// Returns the transform that fits the SVG into the image and centres it.
fn centred(tree: &Tree, width: u32, height: u32) -> Transform {
    let size = tree.size();
    let (width, height) = (width as f32, height as f32);
    let scale = (width / size.width()).min(height / size.height());
    Transform::from_row(
        scale,
        0.0,
        0.0,
        scale,
        (width - size.width() * scale) / 2.0,
        (height - size.height() * scale) / 2.0,
    )
}

fn colour(text: &str) -> Color {
    let digits = text.trim_start_matches('#');
    let [_, red, green, blue] = u32::from_str_radix(digits, 16)
        .unwrap_or(0xff_ff_ff)
        .to_be_bytes();
    Color::from_rgba8(red, green, blue, 0xff)
}

fn encode_png(pixmap: &Pixmap, form: RasterFormat) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    // Areas of one colour compress best without a filter, and fastest.
    encoder.set_compression(png::Compression::Balanced);
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer;
    match form {
        // The image is opaque, so it needs no alpha channel.
        RasterFormat::Png(..) => {
            let pixels = pixmap.pixels().iter();
            let pixels: Vec<[u8; 3]> = pixels
                .map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
                .collect();
            if let Some((palette, data)) = palette_of(&pixels) {
                encoder.set_color(png::ColorType::Indexed);
                encoder.set_palette(palette.into_flattened());
                writer = encoder.write_header()?;
                writer.write_image_data(&data)?;
            } else {
                encoder.set_color(png::ColorType::Rgb);
                writer = encoder.write_header()?;
                writer.write_image_data(pixels.as_flattened())?;
            }
        }
        // Programs that read icons expect 32 bits per pixel.
        _ => {
            encoder.set_color(png::ColorType::Rgba);
            writer = encoder.write_header()?;
            writer.write_image_data(pixmap.data())?;
        }
    }
    writer.finish()?;
    Ok(bytes)
}

/// Returns the palette of an image and the palette index of each pixel, if there are at most 256 colours. Icons and social images have few colours, and a palette halves their size.
fn palette_of(pixels: &[[u8; 3]]) -> Option<(Vec<[u8; 3]>, Vec<u8>)> {
    let runs = || pixels.chunk_by(|one, other| one == other);
    let mut colours = BTreeSet::new();
    for colour in runs().filter_map(<[_]>::first) {
        colours.insert(*colour);
        if colours.len() > 256 {
            return None;
        }
    }
    let palette: Vec<[u8; 3]> = colours.into_iter().collect();
    let mut numbers = Vec::with_capacity(pixels.len());
    for run in runs() {
        let number = palette.binary_search(run.first()?).ok()?;
        numbers.extend(repeat_n(u8::try_from(number).ok()?, run.len()));
    }
    Some((palette, numbers))
}

/// Wraps a PNG in an icon file with one entry (Microsoft, ICONDIR and ICONDIRENTRY).
fn wrap_in_ico(side: u32, png: &[u8]) -> Vec<u8> {
    const HEADER: u32 = 22;
    let side = u8::try_from(side).unwrap_or(0);
    let length = u32::try_from(png.len()).unwrap_or(u32::MAX);
    let mut bytes = vec![0, 0, 1, 0, 1, 0, side, side, 0, 0, 1, 0, 32, 0];
    bytes.extend(length.to_le_bytes());
    bytes.extend(HEADER.to_le_bytes());
    bytes.extend(png);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 2 2\"><path fill=\"#ff0000\" d=\"M0 0h1v2H0z\"/><image href=\"/etc/passwd\" width=\"2\" height=\"2\"/></svg>";

    fn spec(form: RasterFormat) -> ImageSpec {
        ImageSpec::new(HALF.to_owned(), form, Some("#0000ff"), &Arc::default())
    }

    fn pixels(png: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        reader.next_frame(&mut bytes).expect("a frame");
        (reader.info().width, reader.info().height, bytes)
    }

    #[test]
    fn svg_is_centred_on_its_background() {
        let spec = spec(RasterFormat::Png(4, 2));
        let bytes = spec.render().expect("bytes");
        let (width, height, pixels) = pixels(&bytes);
        assert_eq!((width, height), (4, 2));
        let row = [[0, 0, 255], [255, 0, 0], [0, 0, 255], [0, 0, 255]].concat();
        assert_eq!(pixels, [row.clone(), row].concat());
        assert_eq!(
            bytes,
            spec.render().expect("bytes"),
            "drawing is deterministic"
        );
    }

    #[test]
    fn palette_is_used_for_few_colours_only() {
        let grey = |value: u8| [value; 3];
        let few = [grey(9), grey(9), grey(1), grey(9)];
        let (palette, numbers) = palette_of(&few).expect("few");
        assert_eq!(
            (palette, numbers),
            (vec![grey(1), grey(9)], vec![1, 1, 0, 1])
        );
        let mut many: Vec<[u8; 3]> = (0..=255).map(grey).collect();
        assert!(palette_of(&many).is_some());
        many.push([1, 2, 3]);
        assert!(palette_of(&many).is_none());
    }

    #[test]
    fn name_depends_on_everything_that_the_bytes_depend_on() {
        let names: std::collections::BTreeSet<String> = [
            RasterFormat::Png(4, 2),
            RasterFormat::Png(2, 4),
            RasterFormat::Ico(2),
        ]
        .map(|form| spec(form).file_name("x"))
        .into();
        assert_eq!(names.len(), 3, "{names:?}");
        let white = ImageSpec::new(
            HALF.to_owned(),
            RasterFormat::Png(4, 2),
            None,
            &Arc::default(),
        );
        assert_ne!(
            white.file_name("x"),
            spec(RasterFormat::Png(4, 2)).file_name("x")
        );
    }

    #[test]
    fn icon_is_a_directory_with_one_png() {
        let bytes = spec(RasterFormat::Ico(48)).render().expect("bytes");
        assert_eq!(bytes[..8], [0, 0, 1, 0, 1, 0, 48, 48]);
        let length = u32::from_le_bytes(bytes[14..18].try_into().expect("four")) as usize;
        let offset = u32::from_le_bytes(bytes[18..22].try_into().expect("four")) as usize;
        assert_eq!(offset + length, bytes.len());
        assert_eq!(pixels(&bytes[offset..]).0, 48);
    }

    fn undrawn_in(text: &str) -> String {
        let (theme, report) = content::theme::load("base", &content::theme::embedded());
        let fonts = Fonts::of(&theme.unwrap_or_else(|| panic!("{report:?}")));
        let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{text}</svg>");
        let document = Document::parse(&svg).expect("an SVG");
        missing_glyphs(&document, &fonts).into_iter().collect()
    }

    #[test]
    fn characters_without_a_glyph_are_found_in_every_text() {
        for (text, missing) in [
            (
                "<text font-family=\"public-sans\" y=\"9\">a<tspan>Ж</tspan></text>",
                "Ж",
            ),
            ("<svg><g><text y=\"9\">&#x81EA;</text></g></svg>", "自"),
            ("<title>Ж</title><text y=\"9\">Größe: 5\u{a0}€</text>", ""),
            // Fonts seldom have the combining mark alone, so texts are normalised first.
            ("<text y=\"9\">o\u{308}</text>", "\u{308}"),
        ] {
            assert_eq!(undrawn_in(text), missing, "{text}");
        }
    }

    #[test]
    fn text_in_a_missing_font_is_drawn_in_another() {
        let (theme, _) = content::theme::load("base", &content::theme::embedded());
        let fonts = Arc::new(Fonts::of(&theme.expect("the theme")));
        let drawn = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><text font-family=\"none\" y=\"9\">{text}</text></svg>"
            );
            let spec = ImageSpec::new(svg, RasterFormat::Png(9, 9), None, &fonts);
            spec.render().expect("bytes")
        };
        assert_ne!(drawn("A"), drawn(" "));
    }

    #[test]
    fn drawing_of_an_invalid_svg_fails() {
        let spec = ImageSpec::new(
            "<p/>".to_owned(),
            RasterFormat::Png(1, 1),
            None,
            &Arc::default(),
        );
        assert!(spec.render().is_err());
    }
}
