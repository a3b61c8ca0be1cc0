//! The theme's fonts, for drawing SVGs.
//!
//! Themes contain WOFF 2 fonts for browsers. This module decompresses the same files, so themes need no second copy.
//! An SVG names a font by its file name: `font-family="big-shoulders"` for `fonts/big-shoulders.woff2`. The name inside the file is ignored.
//! A font may be split by characters into several files, so that a browser loads only the files that a page needs. The family name ends at the first dot: `big-shoulders.more.woff2` has more characters of the font, and `big-shoulders.whole.woff2` has all characters.

use std::collections::BTreeSet;
use std::sync::Arc;

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use resvg::usvg::fontdb::{Database, ID, Language, Source};
use resvg::usvg::{FallbackSelectionFn, FontResolver, FontSelectionFn};
use sha2::{Digest, Sha256};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider as _};

use content::report::guard::inject;
use content::theme::Theme;

/// A theme's fonts.
#[derive(Debug, Default)]
pub(crate) struct Fonts {
    database: Arc<Database>,
    /// The code points that some font contains.
    drawable: BTreeSet<u32>,
    /// The code points that only `whole` files contain.
    only_in_whole: BTreeSet<u32>,
    /// The digest of all fonts except for `whole` files.
    digest: [u8; 32],
    /// The digest of all fonts.
    whole_digest: [u8; 32],
}

impl Fonts {
    /// Loads the fonts of a theme. Files that are not fonts are skipped, as pages work without them.
    pub(crate) fn of(theme: &Theme) -> Self {
        inject("fonts", &theme.name);
        let mut database = Database::new();
        let files = theme.files.iter();
        let files = files.filter(|(path, _)| path.starts_with("fonts/"));
        let (whole, parts): (Vec<_>, Vec<_>) = files.partition(|(path, _)| is_whole(path));
        let mut hash = Sha256::new();
        let mut drawable = BTreeSet::new();
        for (path, bytes) in parts {
            drawable.extend(add(&mut database, &mut hash, path, bytes));
        }
        let digest = hash.clone().finalize().into();
        // `whole` files are added last, so that adding one does not change text that the parts draw.
        let mut only_in_whole = BTreeSet::new();
        for (path, bytes) in whole {
            only_in_whole.extend(add(&mut database, &mut hash, path, bytes));
        }
        only_in_whole.retain(|character| !drawable.contains(character));
        drawable.extend(&only_in_whole);
        Self {
            database: Arc::new(database),
            drawable,
            only_in_whole,
            digest,
            whole_digest: hash.finalize().into(),
        }
    }

    /// Returns the font database for the renderer.
    pub(crate) fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database)
    }

    /// Returns the digest of the fonts that a drawing of `svg` depends on.
    pub(crate) fn digest_for(&self, svg: &str) -> &[u8; 32] {
        let mut characters = svg.chars().map(u32::from);
        match characters.any(|character| self.only_in_whole.contains(&character)) {
            true => &self.whole_digest,
            false => &self.digest,
        }
    }

    /// Returns the characters of a text that no font contains. White space and invisible characters need no font.
    pub(crate) fn missing(&self, text: &str) -> BTreeSet<char> {
        let invisible = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let visible = text.chars().filter(|character| {
            !character.is_whitespace() && !character.is_control() && !invisible.contains(*character)
        });
        visible
            .filter(|character| !self.drawable.contains(&u32::from(*character)))
            .collect()
    }

    /// Returns the renderer's font selector: the font that the SVG names, else any font, so that the text is always drawn.
    pub(crate) fn selection() -> FontSelectionFn<'static> {
        let named = FontResolver::default_font_selector();
        Box::new(move |font, database| {
            let any = database.faces().next().map(|face| face.id);
            named(font, database).or(any)
        })
    }

    /// Returns the renderer's fallback for a missing character: another file of the same family, else any other font.
    pub(crate) fn fallback() -> FallbackSelectionFn<'static> {
        Box::new(move |character, used, database| {
            let family = used.first().and_then(|id| family_of(database, *id))?;
            let any = || database.faces().map(|face| face.id);
            let other = with_character(database, parts(database, family), character, used);
            other.or_else(|| with_character(database, any(), character, used))
        })
    }

    /// Returns the width of each text in units of the font size, or `None` if the family does not exist.
    ///
    /// Kerning is ignored. It only brings letters closer, so a text is never wider than its result.
    pub(crate) fn widths(&self, family: &str, weight: u16, texts: &[String]) -> Option<Vec<f32>> {
        let mut widths = vec![0.0; texts.len()];
        let mut unmeasured: Vec<Vec<char>> = texts.iter().map(|t| t.chars().collect()).collect();
        let own: Vec<ID> = parts(&self.database, family).collect();
        own.first()?;
        let others = self.database.faces().map(|face| face.id);
        let others = others.filter(|face| !own.contains(face));
        for face in own.iter().copied().chain(others) {
            self.database.with_face_data(face, |data, index| {
                let font = FontRef::from_index(data, index).ok()?;
                let place = font.axes().location([("wght", f32::from(weight))]);
                let metrics = font.glyph_metrics(Size::new(1.0), LocationRef::from(&place));
                let glyphs = font.charmap();
                for (width, left) in widths.iter_mut().zip(&mut unmeasured) {
                    left.retain(|character| {
                        let glyph = glyphs.map(*character);
                        let advance = glyph.and_then(|glyph| metrics.advance_width(glyph));
                        *width += advance.unwrap_or_default();
                        advance.is_none()
                    });
                }
                Some(())
            })?;
        }
        // Characters that no font contains count as one em.
        for (width, left) in widths.iter_mut().zip(&unmeasured) {
            *width += left.len() as f32;
        }
        Some(widths)
    }
}

fn family_of(database: &Database, face: ID) -> Option<&str> {
    let (family, _) = database.face(face)?.families.first()?;
    Some(family)
}

/// Returns the faces of a family.
fn parts(database: &Database, family: &str) -> impl Iterator<Item = ID> {
    let faces = database.faces().map(|face| face.id);
    faces.filter(move |face| family_of(database, *face) == Some(family))
}

/// Returns the first of `faces` that contains a character and is not in `used`.
fn with_character(
    database: &Database,
    mut faces: impl Iterator<Item = ID>,
    character: char,
    used: &[ID],
) -> Option<ID> {
    let has = |face: ID| {
        let glyph = database.with_face_data(face, |data, index| {
            let font = FontRef::from_index(data, index).ok()?;
            font.charmap().map(character)
        });
        glyph.flatten().is_some()
    };
    faces.find(|face| !used.contains(face) && has(*face))
}

/// Whether a file contains a complete font that other files contain in parts.
fn is_whole(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').nth(1) == Some("whole")
}

/// Adds a font file. Returns the code points it contains: none if the file is not a font.
fn add(database: &mut Database, hash: &mut Sha256, path: &str, bytes: &[u8]) -> Vec<u32> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let font = match name.rsplit_once('.') {
        Some((stem, "woff2")) => unpacked(bytes).map(|font| (stem, font)),
        Some((stem, "ttf" | "otf")) => Some((stem, bytes.to_vec())),
        _ => None,
    };
    let Some((stem, font)) = font else {
        return Vec::new();
    };
    hash.update(&font);
    let family = stem.split('.').next().unwrap_or(stem);
    let mut drawn = Vec::new();
    for id in database.load_font_source(Source::Binary(Arc::new(font))) {
        if let Some(mut face) = database.face(id).cloned() {
            face.families = vec![(family.to_owned(), Language::English_UnitedStates)];
            database.remove_face(id);
            let id = database.push_face_info(face);
            drawn.extend(characters(database, id));
        }
    }
    drawn
}

/// Returns the code points that a face contains.
fn characters(database: &Database, face: ID) -> Vec<u32> {
    let characters = database.with_face_data(face, |data, index| {
        let font = FontRef::from_index(data, index).ok()?;
        let mappings = font.charmap().mappings();
        let drawn = mappings.filter(|(_, glyph)| glyph.to_u32() != 0);
        Some(drawn.map(|(character, _)| character).collect())
    });
    characters.flatten().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use resvg::usvg::{Group, Node, Text};

    use super::*;
    use crate::images::read;

    fn fonts() -> Fonts {
        let (theme, report) = content::theme::load("base", &content::theme::embedded());
        Fonts::of(&theme.unwrap_or_else(|| panic!("{report:?}")))
    }

    fn text(group: &Group) -> Option<&Text> {
        group.children().iter().find_map(|node| match node {
            Node::Text(found) => Some(&**found),
            Node::Group(inner) => text(inner),
            _ => None,
        })
    }

    /// Returns each drawn character with the family that its glyph comes from.
    fn drawn(fonts: &Fonts, family: &str, words: &str) -> Vec<(String, Option<String>)> {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><text font-family=\"{family}\" font-weight=\"800\" y=\"9\">{words}</text></svg>"
        );
        let tree = read(&svg, fonts).expect("an SVG");
        let spans = text(tree.root()).expect("a text").layouted().iter();
        let glyphs = spans.flat_map(|span| &span.positioned_glyphs);
        let shown = |glyph: &resvg::usvg::layout::PositionedGlyph| {
            let there = glyph.id.0 != 0;
            let family = family_of(tree.fontdb(), glyph.font);
            let family = family.filter(|_| there).map(ToOwned::to_owned);
            (glyph.text.clone(), family)
        };
        glyphs.map(shown).collect()
    }

    /// Text with characters from the first and the second file of a family in turn.
    const WORDS: &str = "Größe \u{201e}naïve\u{201c} \u{2013} Ærø\u{2019}s café \u{2014} 5 €\u{2026} \u{201c}Señor\u{201d} ½ × Łódź Ж";

    #[test]
    fn files_of_a_family_act_as_one_font() {
        let fonts = fonts();
        let missing = ["Ж"];
        for family in ["big-shoulders", "public-sans", "public-sans-italic"] {
            let glyphs = drawn(&fonts, family, WORDS);
            assert_eq!(glyphs.len(), WORDS.chars().count(), "{family}");
            for (letter, from) in glyphs {
                let expected = (!missing.contains(&&*letter)).then_some(family);
                assert_eq!(from.as_deref(), expected, "{family}: {letter}");
            }
        }
    }

    #[test]
    fn drawings_depend_on_a_whole_font_only_for_its_own_characters() {
        let fonts = fonts();
        let plain = fonts.digest_for("<svg/>");
        assert_eq!(fonts.digest_for("<text>Größe 5 €</text>"), plain);
        assert_ne!(fonts.digest_for("<text>Łódź</text>"), plain);
    }

    #[test]
    fn visible_characters_without_a_font_are_missing() {
        let fonts = fonts();
        let missing = |text: &str| fonts.missing(text).into_iter().collect::<String>();
        assert_eq!(
            missing("Größe \u{2009}\u{ad}5\u{a0}€\u{fe0f}\u{200d}\n"),
            ""
        );
        assert_eq!(missing("Жук \u{300}e自🚲\u{200d}🚲"), "\u{300}Жку自🚲");
        assert_eq!(Fonts::default().missing("a b"), BTreeSet::from(['a', 'b']));
    }

    #[test]
    fn widths_use_the_file_that_contains_the_letter() {
        let fonts = fonts();
        let of = |text: &str| {
            let widths = fonts.widths("big-shoulders", 800, &[text.to_owned()]);
            widths.expect("a family")[0]
        };
        // An accent does not widen a letter, and no letter of this family is as wide as one em.
        assert!((of("Größe") - of("Gro") - of("ß") - of("e")).abs() < 0.001);
        assert!(of("ß") < 0.7 && of("\u{2026}") < 0.9);
        assert_eq!(of("Ж"), 1.0, "a character that no font contains");
        assert_eq!(fonts.widths("none", 400, &["a".to_owned()]), None);
    }
}
