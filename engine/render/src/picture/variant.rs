//! A picture that an author names, in another size and as WebP (RFC 9649): what a browser takes in the place of the original.
//!
//! Its name is a hash of the original, its width, and the program's own build, so that no address ever answers other bytes.

use super::super::asset::{Asset, hex};
use super::super::cache;
use super::Drawing;

/// One size of a picture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variant<'a> {
    original: &'a Asset,
    /// In pixels.
    pub(crate) width: u32,
    height: u32,
}

impl<'a> Variant<'a> {
    /// All sizes that a picture is made in, the smallest first.
    pub(crate) fn all(original: &'a Asset) -> impl Iterator<Item = Self> {
        let sizes = original.raster.iter().flat_map(|raster| &raster.sizes);
        sizes.map(move |(width, height)| Self {
            original,
            width: *width,
            height: *height,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let size = format!("{}x{} webp", self.width, self.height);
        let original = &self.original.hashed_name;
        let parts = [
            self.original.integrity.as_bytes(),
            size.as_bytes(),
            original.as_bytes(),
        ];
        cache::key("variant", &parts)
    }

    /// `hall.1a2b3c4d5e6f7a8b.720w.webp`.
    pub(crate) fn file_name(&self) -> String {
        let name = &self.original.hashed_name;
        let stem = name.split('.').next().unwrap_or(name);
        let digest = hex(&self.digest()[..8]);
        format!("{stem}.{digest}.{}w.webp", self.width)
    }

    /// What is to be made.
    pub(crate) fn drawing(&self, file: String) -> Drawing {
        let bytes = self.original.bytes.clone();
        Drawing::of_picture(bytes, (self.width, self.height), self.digest()).of_file(file)
    }
}
