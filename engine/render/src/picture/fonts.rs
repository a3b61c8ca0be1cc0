//! The theme's fonts, as drawings use them.
//!
//! Themes keep their fonts as WOFF 2, because browsers want them so; they are unpacked here, and no second copy has to be kept in step.
//! A drawing names a font as its file is named: `font-family="big-shoulders"` for `fonts/big-shoulders.woff2`. What a file calls itself within depends on who cut it.

use std::sync::Arc;

use resvg::usvg::fontdb::{Database, Family, Language, Query, Source, Weight};
use sha2::{Digest, Sha256};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider as _};

use content::report::guard::inject;
use content::theme::Theme;

/// A theme's fonts.
#[derive(Debug, Default)]
pub(crate) struct Fonts {
    database: Arc<Database>,
    digest: [u8; 32],
}

impl Fonts {
    /// Unpacks the fonts of a theme. What is no font is left out: pages do without it too.
    pub(crate) fn of(theme: &Theme) -> Self {
        inject("fonts", &theme.name);
        let mut database = Database::new();
        let mut hash = Sha256::new();
        let files = theme.files.iter();
        for (path, bytes) in files.filter(|(path, _)| path.starts_with("fonts/")) {
            let name = path.rsplit('/').next().unwrap_or(path);
            let font = match name.rsplit_once('.') {
                Some((stem, "woff2")) => unpacked(bytes).map(|font| (stem, font)),
                Some((stem, "ttf" | "otf")) => Some((stem, bytes.to_vec())),
                _ => None,
            };
            if let Some((stem, font)) = font {
                hash.update(&font);
                add(&mut database, stem, font);
            }
        }
        Self {
            database: Arc::new(database),
            digest: hash.finalize().into(),
        }
    }

    /// For the renderer.
    pub(super) fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database)
    }

    /// What drawings in these fonts depend on.
    pub(super) const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// How wide each text is, in units of the font's size; `None` when there is no such family. Pairs of letters that are set closer are not counted, so that a text is never wider than this.
    pub(super) fn widths(&self, family: &str, weight: u16, texts: &[String]) -> Option<Vec<f32>> {
        let face = self.database.query(&Query {
            families: &[Family::Name(family)],
            weight: Weight(weight),
            ..Query::default()
        })?;
        self.database.with_face_data(face, |data, index| {
            let font = FontRef::from_index(data, index).ok()?;
            let place = font.axes().location([("wght", f32::from(weight))]);
            let metrics = font.glyph_metrics(Size::new(1.0), LocationRef::from(&place));
            let glyphs = font.charmap();
            let width = |text: &String| {
                let advances = text.chars().map(|character| {
                    let glyph = glyphs.map(character).unwrap_or_default();
                    metrics.advance_width(glyph).unwrap_or(1.0)
                });
                advances.sum()
            };
            Some(texts.iter().map(width).collect())
        })?
    }
}

fn add(database: &mut Database, name: &str, font: Vec<u8>) {
    for id in database.load_font_source(Source::Binary(Arc::new(font))) {
        if let Some(mut face) = database.face(id).cloned() {
            face.families = vec![(name.to_owned(), Language::English_UnitedStates)];
            database.remove_face(id);
            database.push_face_info(face);
        }
    }
}

fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    wuff::decompress_woff2_with_custom_brotli(bytes, &mut |packed, length| {
        let mut unpacked = Vec::with_capacity(length);
        brotli::BrotliDecompress(&mut &packed[..], &mut unpacked)
            .map_err(|error| error.to_string())?;
        Ok(unpacked)
    })
    .ok()
}
