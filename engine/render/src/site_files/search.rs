//! The search index of a tenant's pages in one language: `{"pages": [[href, title]...], "parts": [[page, fragment, heading, words]...]}`.
//!
//! The index contains every part of every page that search engines may index. Words of a page's description are always included, because the author chose them for search.
//! Other words are included as far as the size allows: the words that occur in the fewest parts first.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use unicode_general_category::get_general_category;

use crate::markdown::outline::{TextPart, outline};
use crate::pages::links::resolver::Resolver;
use crate::theme::PageScope;
use content::name::nfc;
use content::tenant::{Page, Site};

/// The media type of the index.
pub(super) const MEDIA_TYPE: &str = "application/json";

/// Limit on an index, in bytes, because a visitor waits for it.
const MAX_INDEX_BYTES: usize = 64_000;

/// Numbers of words per part, tried in turn until the index is small enough.
const WORD_COUNTS: [usize; 13] = [200, 100, 60, 40, 25, 15, 10, 8, 6, 4, 2, 1, 0];

/// The minimum length of a word, in characters. In a script without letter case one character can be a word: `駅`.
const MIN_WORD_LETTERS: usize = 2;

/// The searchable content of a tenant's pages, independent of the address.
pub(super) struct SearchIndex {
    /// The path and the title of each page.
    pages: Vec<(String, String)>,
    parts: Vec<SearchEntry>,
}

/// A searchable part of a page.
struct SearchEntry {
    page: usize,
    id: Option<String>,
    heading: String,
    /// Words of the page's description, which are always included.
    description: Vec<String>,
    /// Other words, the rarest first.
    words: Vec<String>,
}

impl SearchIndex {
    /// Builds the index of the pages in the language of `scope`, if the tenant's manifest enables search.
    ///
    /// The index also has the pages of the default language without a translation: links lead to them, too.
    pub(super) fn of(site: &Site, scope: &PageScope) -> Option<Self> {
        if !site.manifest.search {
            return None;
        }
        let is_listed = |page: &Page| match site.manifest.language_of(&page.path) {
            language if language == scope.language => true,
            0 => site.translation(&page.path, scope.language).is_none(),
            _ => false,
        };
        let found: Vec<&Page> = site
            .pages
            .values()
            .map(AsRef::as_ref)
            .filter(|page: &&Page| !page.front.noindex && is_listed(page))
            .collect();
        let title = |page: &Page| {
            page.front
                .heading
                .clone()
                .unwrap_or_else(|| page.front.title.clone())
        };
        let mut parts: Vec<SearchEntry> = Vec::new();
        for (index, page) in found.iter().enumerate() {
            let mut outline = outline(&page.body, scope.page_ids(Some(page)));
            if let Some(first) = outline.first_mut() {
                first.words.push_str(&sections_of(page));
            }
            let mut descriptions = page.front.description.iter();
            parts.extend(outline.into_iter().map(|part| {
                let description = descriptions.next().map(String::as_str);
                entry(index, &part, description.unwrap_or_default())
            }));
        }
        let mut spread: BTreeMap<String, usize> = BTreeMap::new();
        for word in parts.iter().flat_map(|part| &part.words) {
            *spread.entry(word.clone()).or_default() += 1;
        }
        for part in &mut parts {
            part.words.sort_by_key(|word| spread.get(word).copied());
        }
        Some(Self {
            pages: found
                .into_iter()
                .map(|page| (page.path.clone(), title(page)))
                .collect(),
            parts,
        })
    }

    /// Writes the index with the links of an address.
    pub(super) fn text(&self, resolver: &Resolver) -> String {
        let pages: Vec<Json> = self
            .pages
            .iter()
            .map(|(path, title)| json!([resolver.href(path), title]))
            .collect();
        let all: Vec<usize> = (0..self.parts.len()).collect();
        for most in WORD_COUNTS {
            let text = self.with(&pages, &all, most);
            if text.len() <= MAX_INDEX_BYTES {
                return text;
            }
        }
        // If headings alone are too large, as many parts are included as fit: the first parts of all pages, then other parts.
        let ranked = self.ranked_parts();
        let mut parts = ranked.len();
        while parts > 0 {
            let text = self.with(&pages, &ranked[..parts], 0);
            if text.len() <= MAX_INDEX_BYTES {
                return text;
            }
            parts = parts * MAX_INDEX_BYTES / text.len();
        }
        let mut pages = pages;
        while !pages.is_empty() {
            pages.truncate(pages.len() / 2);
            let text = self.with(&pages, &[], 0);
            if text.len() <= MAX_INDEX_BYTES {
                return text;
            }
        }
        self.with(&[], &[], 0)
    }

    /// Returns the positions of the parts: the first part of each page, then all other parts.
    fn ranked_parts(&self) -> Vec<usize> {
        let is_first = |part: &usize| match part.checked_sub(1) {
            Some(before) => self.parts[before].page != self.parts[*part].page,
            None => true,
        };
        let (mut first, other): (Vec<usize>, Vec<usize>) =
            (0..self.parts.len()).partition(is_first);
        first.extend(other);
        first
    }

    fn with(&self, pages: &[Json], parts: &[usize], words: usize) -> String {
        let parts = parts.iter().map(|part| &self.parts[*part]).map(|part| {
            let words = part.words.iter().take(words);
            let words: Vec<&str> = (part.description.iter().chain(words))
                .map(String::as_str)
                .collect();
            json!([
                part.page,
                part.id.as_deref().unwrap_or_default(),
                part.heading,
                words.join(" ")
            ])
        });
        json!({"pages": pages, "parts": parts.collect::<Vec<_>>()}).to_string()
    }
}

fn entry(page: usize, part: &TextPart, description: &str) -> SearchEntry {
    let mut seen: BTreeSet<String> = words(&part.heading).into_iter().collect();
    let mut unseen = |text: &str| -> BTreeSet<String> {
        let found = words(text).into_iter();
        found.filter(|word| seen.insert(word.clone())).collect()
    };
    SearchEntry {
        page,
        id: part.id.clone(),
        heading: part.heading.clone(),
        description: unseen(description).into_iter().collect(),
        words: unseen(&part.words).into_iter().collect(),
    }
}

/// Returns the words of a text in lower case: `max-age`, `c++`, `c#`. In scripts without spaces, the text between two punctuation marks counts as a word, and the search matches substrings.
fn words(text: &str) -> Vec<String> {
    let text = nfc(text);
    let pieces = text.split(|sign| !is_part(sign));
    let pieces = pieces.map(|piece| {
        let piece = piece.trim_start_matches(['-', '_', '+', '#']);
        piece.trim_end_matches(['-', '_']).to_lowercase()
    });
    pieces.filter(|piece| is_word(piece)).collect()
}

/// Whether a character is part of a word. Vowel signs and other marks belong to the letter before them.
fn is_part(sign: char) -> bool {
    sign.is_alphanumeric()
        || matches!(sign, '-' | '_' | '+' | '#')
        || (!sign.is_ascii() && is_mark(sign))
}

fn is_mark(sign: char) -> bool {
    use unicode_general_category::GeneralCategory::{NonspacingMark, SpacingMark};
    matches!(get_general_category(sign), NonspacingMark | SpacingMark)
}

fn is_word(piece: &str) -> bool {
    let mut signs = piece.chars();
    let is_sign = |sign: char| sign.is_alphabetic() && !sign.is_lowercase() && !sign.is_uppercase();
    match (signs.next(), signs.next()) {
        (Some(sign), None) => is_sign(sign),
        _ => piece.chars().count() >= MIN_WORD_LETTERS && piece.contains(char::is_alphanumeric),
    }
}

/// Returns the texts of a page's sections. Texts of a single word are left out, because they are names and links.
fn sections_of(page: &Page) -> String {
    let mut texts = String::new();
    page.front
        .sections
        .iter()
        .for_each(|section| gather(section, &mut texts));
    texts
}

fn gather(section: &Map<String, Json>, texts: &mut String) {
    section
        .values()
        .for_each(|value| gather_value(value, texts));
}

fn gather_value(value: &Json, texts: &mut String) {
    match value {
        Json::String(text) if text.contains(' ') => {
            texts.push(' ');
            texts.push_str(text);
        }
        Json::Array(items) => items.iter().for_each(|item| gather_value(item, texts)),
        Json::Object(section) => gather(section, texts),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_description_have_precedence() {
        let part = TextPart {
            words: "Another sentence.".to_owned(),
            ..TextPart::default()
        };
        let index = SearchIndex {
            pages: Vec::new(),
            parts: vec![entry(0, &part, "Make a backup, then restore it.")],
        };
        let text = index.with(&[], &[0], 0);
        assert!(text.contains("backup it make restore then"), "{text}");
        assert!(!text.contains("sentence"), "{text}");
    }

    #[test]
    fn short_words_and_words_of_other_scripts_are_found() {
        for (text, found) in [
            (
                "AI and Go, a C++ and C# course.",
                &["ai", "and", "go", "c++", "and", "c#", "course"][..],
            ),
            ("大阪の店、駅", &["大阪の店", "駅"]),
            ("हिन्दी กี่", &["हिन्दी", "กี่"]),
            ("a\u{308}u\u{308}", &["äü"]),
            ("max-age=1 -- + ++ # #tag 5G", &["max-age", "tag", "5g"]),
        ] {
            assert_eq!(words(text), found, "{text}");
        }
    }
}
