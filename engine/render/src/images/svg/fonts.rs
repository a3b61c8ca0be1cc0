//! The theme's fonts, as drawings use them.
//!
//! Themes keep their fonts as WOFF 2, because browsers want them so; they are unpacked here, and no second copy has to be kept in step.
//! A drawing names a font as its file is named: `font-family="big-shoulders"` for `fonts/big-shoulders.woff2`. What a file calls itself within depends on who cut it.
//! A font may lie in several files, cut by characters so that a browser fetches those that a page needs. The name ends at the first dot: `big-shoulders.more.woff2` has more of the same font, and `big-shoulders.whole.woff2` has all of it.

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
    /// The code points that some font draws.
    drawable: BTreeSet<u32>,
    /// Those of them that only files with all of a font have.
    only_in_whole: BTreeSet<u32>,
    /// Of all fonts but these files.
    digest: [u8; 32],
    /// Of all fonts.
    whole_digest: [u8; 32],
}

impl Fonts {
    /// Unpacks the fonts of a theme. What is no font is left out: pages do without it too.
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
        // After the parts: what these draw does not change where a file with all of a font is added.
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

    /// For the renderer.
    pub(crate) fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database)
    }

    /// What a drawing in these fonts depends on.
    pub(crate) fn digest_for(&self, svg: &str) -> &[u8; 32] {
        let mut characters = svg.chars().map(u32::from);
        match characters.any(|character| self.only_in_whole.contains(&character)) {
            true => &self.whole_digest,
            false => &self.digest,
        }
    }

    /// Returns the characters of a text that no font draws. Spaces and characters that are never visible need no font.
    pub(crate) fn missing(&self, text: &str) -> BTreeSet<char> {
        let invisible = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let visible = text.chars().filter(|character| {
            !character.is_whitespace() && !character.is_control() && !invisible.contains(*character)
        });
        visible
            .filter(|character| !self.drawable.contains(&u32::from(*character)))
            .collect()
    }

    /// Selects the font that a drawing names, else any, so that no text is left out for its font's name.
    pub(crate) fn selection() -> FontSelectionFn<'static> {
        let named = FontResolver::default_font_selector();
        Box::new(move |font, database| {
            let any = database.faces().next().map(|face| face.id);
            named(font, database).or(any)
        })
    }

    /// Where a font lacks a character: another file of the same family that has it, else any other font.
    pub(crate) fn fallback() -> FallbackSelectionFn<'static> {
        Box::new(move |character, used, database| {
            let family = used.first().and_then(|id| family_of(database, *id))?;
            let any = || database.faces().map(|face| face.id);
            let other = with_character(database, parts(database, family), character, used);
            other.or_else(|| with_character(database, any(), character, used))
        })
    }

    /// How wide each text is, in units of the font's size; `None` when there is no such family. Pairs of letters that are set closer are not counted, so that a text is never wider than this.
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
        // What no font has is at most as wide as the font is large.
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

/// The files that a family lies in.
fn parts(database: &Database, family: &str) -> impl Iterator<Item = ID> {
    let faces = database.faces().map(|face| face.id);
    faces.filter(move |face| family_of(database, *face) == Some(family))
}

/// The first of these faces that has a character, and is not among those that were used.
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

/// Whether a file has all of a font that other files have in parts.
fn is_whole(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').nth(1) == Some("whole")
}

/// Adds a font's file. Returns the code points that it draws: none where the file is no font.
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

/// The code points that a face draws.
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

    /// Each character that is drawn in a family, with the name of the family that it is taken from.
    fn drawn(fonts: &Fonts, family: &str, words: &str) -> Vec<(String, Option<String>)> {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><text font-family=\"{family}\" font-weight=\"800\" y=\"9\">{words}</text></svg>"
        );
        let tree = read(&svg, fonts).expect("a drawing");
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

    /// Letters of the first file and of the second in turn, as words have them.
    const WORDS: &str = "Größe \u{201e}naïve\u{201c} \u{2013} Ærø\u{2019}s café \u{2014} 5 €\u{2026} \u{201c}Señor\u{201d} ½ × Łódź Ж";

    #[test]
    fn a_family_in_several_files_is_one() {
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
    fn drawings_depend_on_a_whole_font_only_for_its_own_letters() {
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
    fn every_letter_is_measured_by_the_file_that_has_it() {
        let fonts = fonts();
        let of = |text: &str| {
            let widths = fonts.widths("big-shoulders", 800, &[text.to_owned()]);
            widths.expect("a family")[0]
        };
        // An accent makes no letter wider, and no letter of this family is as wide as its size.
        assert!((of("Größe") - of("Gro") - of("ß") - of("e")).abs() < 0.001);
        assert!(of("ß") < 0.7 && of("\u{2026}") < 0.9);
        assert_eq!(of("Ж"), 1.0, "what no font has");
        assert_eq!(fonts.widths("none", 400, &["a".to_owned()]), None);
    }
}
