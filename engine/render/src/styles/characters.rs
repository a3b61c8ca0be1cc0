//! Finds the characters that a page may show, so that its style names only fonts that contain one of them.
//!
//! A named font that is not loaded takes browsers as long as a loaded font, since they look for a substitute for each text size.

use std::collections::BTreeSet;
use std::ops::Bound::Included;

use cssparser::{ParseError, Parser, ParserInput, Token, UnicodeRange};
use unicode_general_category::{GeneralCategory as Category, get_general_category};

use crate::styles::page_rules::FontFace;
use content::name::nfc;

/// Quotation marks that browsers generate for languages other than English (CSS Generated Content 3, section 3.2).
const QUOTES: &str = "«»‘’‚“”„‹›「」『』";

/// The characters that a page or a style may show.
#[derive(Debug)]
pub(super) enum Characters {
    /// Any character: visitors type into the page, or some content is known to the browser only.
    Any,
    /// These code points. The set may contain some that the page does not show.
    These(BTreeSet<u32>),
}

impl Default for Characters {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Characters {
    /// Returns the characters of a page in a language, and of the SVGs in its separate file.
    pub(super) fn of(html: &str, drawings: &str, language: &str) -> Self {
        let body = body_of(html);
        let mut found = BTreeSet::new();
        if !is_english(language) {
            found.extend(QUOTES.chars().map(u32::from));
        }
        let is_known = [body, drawings].iter().all(|text| add(text, &mut found));
        match is_known && !is_open(body) {
            true => Self::These(found),
            false => Self::Any,
        }
    }

    /// Returns the characters that a style generates.
    pub(super) fn of_style(css: &str) -> Self {
        let mut found = BTreeSet::new();
        let mut input = ParserInput::new(css);
        add_strings(&mut Parser::new(&mut input), &mut found);
        Self::These(found)
    }

    /// Adds the characters of `others`.
    pub(super) fn add(&mut self, others: Self) {
        match (&mut *self, others) {
            (Self::These(own), Self::These(others)) => own.extend(others),
            _ => *self = Self::Any,
        }
    }

    /// Whether one of the characters is in one of the ranges.
    pub(super) fn are_in(&self, ranges: &[UnicodeRange]) -> bool {
        match self {
            Self::Any => true,
            Self::These(found) => ranges.iter().any(|range| {
                let range = (Included(range.start), Included(range.end));
                found.range(range).next().is_some()
            }),
        }
    }
}

fn body_of(html: &str) -> &str {
    html.find("<body").map_or(html, |start| &html[start..])
}

fn is_english(language: &str) -> bool {
    language == "en" || language.starts_with("en-")
}

/// Whether visitors can type into the page, or an island is rendered by the browser only.
fn is_open(body: &str) -> bool {
    let fields = [
        "<input",
        "<textarea",
        " contenteditable",
        " render=\"browser\"",
    ];
    fields.iter().any(|field| body.contains(field))
}

/// The elements that browsers show in italics (WHATWG HTML, section 15.3.4). `address` is left out, because themes set it upright.
const ITALIC_ELEMENTS: [&str; 5] = ["cite", "dfn", "em", "i", "var"];

/// The letters of a page. Letters of one word have to be in one font file.
#[derive(Debug, Default)]
pub(super) struct Letters {
    all: BTreeSet<u32>,
    /// The letters of italic elements, and all non-ASCII letters, because styles may set them in italics.
    italic: BTreeSet<u32>,
    /// Whether visitors may type letters that are not in the page.
    are_open: bool,
}

impl Letters {
    /// Returns the letters of a page in a language, and of the SVGs in its separate file.
    pub(super) fn of(html: &str, drawings: &str, language: &str) -> Self {
        // Browsers compose a letter and its marks if a font has the composed letter.
        let body = nfc(body_of(html));
        let mut all = BTreeSet::new();
        add(&body, &mut all);
        add(drawings, &mut all);
        all.retain(|code| is_letter(*code));
        let mut italic = BTreeSet::new();
        for name in ITALIC_ELEMENTS {
            let (start, end) = (format!("<{name}"), format!("</{name}>"));
            for element in body.split(&start).skip(1) {
                if element.starts_with([' ', '>']) {
                    let inside = element.split(&end).next().unwrap_or_default();
                    add(&format!("<{inside}"), &mut italic);
                }
            }
        }
        italic.retain(|code| is_letter(*code));
        italic.extend(all.iter().filter(|code| **code > 0x7f));
        Self {
            all,
            italic,
            are_open: is_open(&body) && !is_english(language),
        }
    }

    /// Whether the page needs the complete file of a font, because its letters are spread over several parts.
    pub(super) fn need(&self, whole: &FontFace, parts: &[&FontFace]) -> bool {
        let letters = match whole.is_italic {
            true => &self.italic,
            false => &self.all,
        };
        let is_in = |code: u32, face: &FontFace| {
            let mut ranges = face.ranges.iter();
            ranges.any(|range| (range.start..=range.end).contains(&code))
        };
        let own = || letters.iter().filter(|code| is_in(**code, whole));
        let mut parts = parts.iter();
        self.are_open || !parts.any(|part| own().all(|code| is_in(*code, part)))
    }
}

fn is_letter(code: u32) -> bool {
    use Category::{
        EnclosingMark, LowercaseLetter, ModifierLetter, NonspacingMark, OtherLetter, SpacingMark,
        TitlecaseLetter, UppercaseLetter,
    };
    let category = char::from_u32(code).map(get_general_category);
    matches!(
        category,
        Some(
            EnclosingMark
                | LowercaseLetter
                | ModifierLetter
                | NonspacingMark
                | OtherLetter
                | SpacingMark
                | TitlecaseLetter
                | UppercaseLetter
        )
    )
}

/// Adds the characters of markup. Returns `false` if it contains an unknown entity, which may be any character.
fn add(markup: &str, found: &mut BTreeSet<u32>) -> bool {
    // Non-ASCII characters count wherever they are: browsers show some attributes, islands show their properties, and styles change the case.
    for letter in markup.chars().filter(|letter| !letter.is_ascii()) {
        found.insert(letter.into());
        found.extend(
            letter
                .to_uppercase()
                .chain(letter.to_lowercase())
                .map(u32::from),
        );
    }
    let mut is_known = true;
    for piece in markup.split('<') {
        let Some((tag, text)) = piece.split_once('>') else {
            continue;
        };
        if tag.starts_with("script") || tag.starts_with("style") {
            continue;
        }
        let mut rest = text.split('&');
        let first = rest.next().unwrap_or_default();
        found.extend(first.chars().map(u32::from));
        for entity in rest {
            let (letter, after) = match entity.split_once(';') {
                Some(("amp", after)) => ('&', after),
                Some(("quot" | "#34" | "#x22", after)) => ('"', after),
                Some(("apos" | "#39" | "#x27", after)) => ('\'', after),
                Some(("lt", after)) => ('<', after),
                Some(("gt", after)) => ('>', after),
                Some(_) => {
                    is_known = false;
                    continue;
                }
                None => ('&', entity),
            };
            found.insert(letter.into());
            found.extend(after.chars().map(u32::from));
        }
    }
    is_known
}

/// At-rules whose strings are names.
const NAMING_RULES: [&str; 2] = ["font-face", "property"];

/// Adds the characters of the strings of a style, except for URLs, names, and strings in selectors.
fn add_strings(style: &mut Parser<'_, '_>, found: &mut BTreeSet<u32>) {
    let mut is_naming = false;
    while let Ok(token) = style.next().cloned() {
        match token {
            Token::AtKeyword(name) => {
                is_naming = NAMING_RULES
                    .iter()
                    .any(|own| name.eq_ignore_ascii_case(own));
            }
            Token::CurlyBracketBlock if is_naming => is_naming = false,
            Token::QuotedString(text) => found.extend(text.chars().map(u32::from)),
            Token::Function(name) if name.eq_ignore_ascii_case("url") => {}
            Token::Function(_) | Token::ParenthesisBlock | Token::CurlyBracketBlock => {
                // Minifying already refused unreadable blocks.
                let _ = style.parse_nested_block(|inner| {
                    add_strings(inner, found);
                    Ok::<_, ParseError<'_, ()>>(())
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(characters: &Characters, letter: char) -> bool {
        let (start, end) = (letter.into(), letter.into());
        characters.are_in(&[UnicodeRange { start, end }])
    }

    fn has(html: &str, letter: char) -> bool {
        holds(&Characters::of(html, "", "en"), letter)
    }

    #[test]
    fn text_of_the_page_counts_as_shown() {
        let page = "<title>{</title><body class=\"a_b\" data-x='*'><p>One &lt; two &amp; &quot;3&quot;</p><script>if (a ^ b) {}</script>";
        for shown in ['O', '<', '&', '"', '3'] {
            assert!(has(page, shown), "{shown}");
        }
        for hidden in ['{', '_', '*', '^', '>', '=', 'é'] {
            assert!(!has(page, hidden), "{hidden}");
        }
    }

    #[test]
    fn non_ascii_letters_count_as_shown_in_both_cases() {
        let page = "<body><img alt=\"Café\"><p>straße</p>";
        for shown in ['é', 'É', 'ß', 'S'] {
            assert!(has(page, shown), "{shown}");
        }
        for hidden in ['ü', 'Ã'] {
            assert!(!has(page, hidden), "{hidden}");
        }
    }

    #[test]
    fn characters_in_svgs_count_as_shown() {
        let shown = Characters::of("<body>", "<svg><text>~</text></svg>", "en");
        assert!(holds(&shown, '~'));
    }

    #[test]
    fn quotation_marks_of_the_page_language_count_as_shown() {
        for (language, is_shown) in [("en", false), ("en-GB", false), ("de", true)] {
            let shown = Characters::of("<body><q>a</q>", "", language);
            assert_eq!(holds(&shown, '„'), is_shown, "{language}");
        }
    }

    #[test]
    fn strings_in_styles_count_as_shown() {
        let css = "a::before{content:\"\\2192\" attr(x)}b{background:url(\"a_b\")}@media print{[c=\"^\"]{content:\"{\"}}@property --p{syntax:\"<number>\"}p{quotes:\"~\"}";
        let mut shown = Characters::default();
        shown.add(Characters::of_style(css));
        for letter in ['→', '~', '{'] {
            assert!(holds(&shown, letter), "{letter}");
        }
        for hidden in ['_', '^', '<'] {
            assert!(!holds(&shown, hidden), "{hidden}");
        }
    }

    #[test]
    fn fields_and_unknown_entities_allow_any_character() {
        for page in [
            "<body><input name=a>",
            "<body><textarea></textarea>",
            "<body><p contenteditable>",
            "<body><row-island name=\"A\" render=\"browser\"></row-island>",
            "<body>&rarr;",
        ] {
            assert!(has(page, 'ü'), "{page}");
        }
    }
}
