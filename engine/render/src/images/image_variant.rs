//! A picture that an author names, in another size and another format: what a browser takes in the place of the original.
//!
//! Its name is a hash of the original, its width, its format, and the program's own build, so that no address ever answers other bytes.
//! WebP (RFC 9649) is made of all that have sizes, and first; AVIF of photos, where the program is built with it.

use super::{Drawing, PictureFormat};
use crate::compile::cache;
use crate::resources::asset::{Asset, hex};

/// What a size is coded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariantFormat {
    /// AVIF (AV1 Image File Format, version 1.1).
    #[cfg(feature = "avif")]
    Avif,
    /// WebP (RFC 9649).
    WebP,
}

impl VariantFormat {
    /// All of them, in the order in which a browser is to look at them.
    pub(crate) const ALL: &[Self] = &[
        #[cfg(feature = "avif")]
        Self::Avif,
        Self::WebP,
    ];

    /// The media type.
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

    const fn form(self, width: u32, height: u32) -> PictureFormat {
        match self {
            #[cfg(feature = "avif")]
            Self::Avif => PictureFormat::Avif(width, height),
            Self::WebP => PictureFormat::WebP(width, height),
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

/// One size of a picture in one format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageVariant<'a> {
    original: &'a Asset,
    format: VariantFormat,
    /// In pixels.
    pub(crate) width: u32,
    height: u32,
}

impl<'a> ImageVariant<'a> {
    /// All that are made of a picture, in the order in which they are made.
    pub(crate) fn all(original: &'a Asset) -> impl Iterator<Item = Self> {
        let formats = VariantFormat::ALL.iter().rev();
        formats.flat_map(|format| Self::of(original, *format))
    }

    /// All sizes that a picture is made in as a format, the smallest first.
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

    /// `hall.1a2b3c4d5e6f7a8b.720w.webp`.
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

    /// The file that is served until this one is made: of AVIF the WebP of the same size, which is made before it, and of that the original.
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

    /// What is to be made.
    pub(crate) fn drawing(&self, file: String) -> Drawing {
        let original = (&*self.original.hashed_name, self.original.bytes.clone());
        let form = self.format.form(self.width, self.height);
        Drawing::of_picture(original, form, self.digest()).of_file(file)
    }
}

#[cfg(test)]
#[cfg(feature = "avif")]
mod tests {
    use super::*;

    #[test]
    fn avif_is_offered_first_and_made_last() {
        let pixels = image::RgbImage::from_fn(800, 600, |x, y| {
            image::Rgb([(x * y % 251) as u8, (x % 256) as u8, (y % 256) as u8])
        });
        let mut bytes = std::io::Cursor::new(Vec::new());
        let written = pixels.write_to(&mut bytes, image::ImageFormat::Jpeg);
        written.expect("a picture");
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
        // Until it is there, the WebP of the same size stands in for it.
        for size in ImageVariant::of(&asset, VariantFormat::Avif) {
            let webp = ImageVariant {
                format: VariantFormat::WebP,
                ..size
            };
            assert_eq!(size.fallback_name(), webp.file_name());
        }
    }
}
