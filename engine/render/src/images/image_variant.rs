//! A variant of an author's image: another size and format, which browsers load instead of the original.
//!
//! Its name contains a digest of the original, the size, the format and the program's build. So a URL never returns different bytes.
//! WebP (RFC 9649) is made first and for every image with variants; AVIF for photos, if the program is built with it.

use super::{ImageSpec, RasterFormat};
use crate::compile::cache;
use crate::resources::asset::{Asset, hex};

/// The format of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariantFormat {
    /// AVIF (AV1 Image File Format, version 1.1).
    #[cfg(feature = "avif")]
    Avif,
    /// WebP (RFC 9649).
    WebP,
}

impl VariantFormat {
    /// All formats, in the order in which browsers are offered them.
    pub(crate) const ALL: &[Self] = &[
        #[cfg(feature = "avif")]
        Self::Avif,
        Self::WebP,
    ];

    /// Returns the media type.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            #[cfg(feature = "avif")]
            Self::Avif => "image/avif",
            Self::WebP => "image/webp",
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            #[cfg(feature = "avif")]
            Self::Avif => "avif",
            Self::WebP => "webp",
        }
    }

    const fn form(self, width: u32, height: u32) -> RasterFormat {
        match self {
            #[cfg(feature = "avif")]
            Self::Avif => RasterFormat::Avif(width, height),
            Self::WebP => RasterFormat::WebP(width, height),
        }
    }

    fn fits(self, original: &Asset) -> bool {
        match self {
            #[cfg(feature = "avif")]
            Self::Avif => original
                .raster
                .as_ref()
                .is_some_and(|raster| raster.is_photo),
            Self::WebP => original.raster.is_some(),
        }
    }
}

/// One size of an image in one format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageVariant<'a> {
    original: &'a Asset,
    format: VariantFormat,
    /// The width in pixels.
    pub(crate) width: u32,
    height: u32,
}

impl<'a> ImageVariant<'a> {
    /// Returns all variants of an image, in the order in which they are drawn.
    pub(crate) fn all(original: &'a Asset) -> impl Iterator<Item = Self> {
        let formats = VariantFormat::ALL.iter().rev();
        formats.flat_map(|format| Self::of(original, *format))
    }

    /// Returns the variants of an image in one format, the smallest first.
    pub(crate) fn of(original: &'a Asset, format: VariantFormat) -> impl Iterator<Item = Self> {
        let raster = original
            .raster
            .iter()
            .filter(move |_| format.fits(original));
        let sizes = raster.flat_map(|raster| &raster.sizes);
        sizes.map(move |(width, height)| Self {
            original,
            format,
            width: *width,
            height: *height,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let what = format!("{}x{} {}", self.width, self.height, self.format.extension());
        let original = &self.original.hashed_name;
        cache::key("variant", &[what.as_bytes(), original.as_bytes()])
    }

    /// Returns the file name: `hall.1a2b3c4d5e6f7a8b.720w.webp`.
    pub(crate) fn file_name(&self) -> String {
        let name = &self.original.hashed_name;
        let stem = name.split('.').next().unwrap_or(name);
        let digest = hex(&self.digest()[..8]);
        format!(
            "{stem}.{digest}.{}w.{}",
            self.width,
            self.format.extension()
        )
    }

    /// Returns the name of the file that is served until the variant is drawn. For AVIF it is the WebP of the same size, which is drawn earlier; for WebP it is the original.
    pub(crate) fn fallback_name(&self) -> String {
        match self.format {
            #[cfg(feature = "avif")]
            VariantFormat::Avif => Self {
                format: VariantFormat::WebP,
                ..*self
            }
            .file_name(),
            VariantFormat::WebP => self.original.hashed_name.clone(),
        }
    }

    /// Returns the spec of the variant. Messages name its source `file`.
    pub(crate) fn spec(&self, file: String) -> ImageSpec {
        let original = (&*self.original.hashed_name, self.original.bytes.clone());
        let form = self.format.form(self.width, self.height);
        ImageSpec::of_image(original, form, self.digest()).of_file(file)
    }
}

#[cfg(test)]
#[cfg(feature = "avif")]
mod tests {
    use super::*;

    #[test]
    fn avif_is_offered_first_and_drawn_last() {
        let pixels = image::RgbImage::from_fn(800, 600, |x, y| {
            image::Rgb([(x * y % 251) as u8, (x % 256) as u8, (y % 256) as u8])
        });
        let mut bytes = std::io::Cursor::new(Vec::new());
        let written = pixels.write_to(&mut bytes, image::ImageFormat::Jpeg);
        written.expect("an image");
        let asset = Asset::of_tenant("hall.jpg", bytes.into_inner().into());
        assert_eq!(VariantFormat::ALL.first(), Some(&VariantFormat::Avif));
        let made: Vec<_> = ImageVariant::all(&asset)
            .map(|size| (size.format, size.width))
            .collect();
        let of = |format| [360, 720, 800].map(|width| (format, width));
        assert_eq!(
            made,
            [of(VariantFormat::WebP), of(VariantFormat::Avif)].concat()
        );
        // Until the AVIF is drawn, the WebP of the same size is served.
        for size in ImageVariant::of(&asset, VariantFormat::Avif) {
            let webp = ImageVariant {
                format: VariantFormat::WebP,
                ..size
            };
            assert_eq!(size.fallback_name(), webp.file_name());
        }
    }
}
