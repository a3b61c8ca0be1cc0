//! The index of a tenant's pages, for a search in the page: `{"pages": [[href, title]...], "parts": [[page, fragment, heading, words]...]}`.
//!
//! It names every part of every page that is to be found, with the words in it that tell it from others: those that the fewest parts have come first, and as many stay as there is room for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use crate::link::Resolver;
use crate::markdown::outline::{Part, outline};
use content::tenant::{Page, Site};

/// Its media type.
pub(super) const MEDIA_TYPE: &str = "application/json";

/// The most bytes of an index: a visitor waits for it.
const LARGEST: usize = 50_000;

/// How many words of a part are tried, until the index is small enough.
const WORDS: [usize; 10] = [200, 100, 60, 40, 25, 15, 10, 5, 2, 0];

/// The shortest word that is worth its bytes.
const SHORTEST: usize = 3;

/// What is known of a tenant's pages, at whatever address.
pub(super) struct SearchIndex {
    /// The path and the title of each page.
    pages: Vec<(String, String)>,
    parts: Vec<Entry>,
}

/// A part of a page.
struct Entry {
    page: usize,
    id: Option<String>,
    heading: String,
    /// The rarest first.
    words: Vec<String>,
}

impl SearchIndex {
    /// The index of a tenant that wants one.
    pub(super) fn of(site: &Site) -> Option<Self> {
        if !site.manifest.search {
            return None;
        }
        let found: Vec<&Page> = site
            .pages
            .values()
            .filter(|page| !page.front.noindex)
            .collect();
        let title = |page: &Page| {
            page.front
                .heading
                .clone()
                .unwrap_or_else(|| page.front.title.clone())
        };
        let mut parts: Vec<Entry> = Vec::new();
        for (index, page) in found.iter().enumerate() {
            let mut outline = outline(&page.body);
            let about =
                sections_of(page) + " " + page.front.description.as_deref().unwrap_or_default();
            if let Some(first) = outline.first_mut() {
                first.words.push_str(&about);
            }
            parts.extend(outline.into_iter().map(|part| entry(index, &part)));
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

    /// The index with links that are right at an address.
    pub(super) fn text(&self, resolver: &Resolver) -> String {
        let pages: Vec<Json> = self
            .pages
            .iter()
            .map(|(path, title)| json!([resolver.href(path), title]))
            .collect();
        for most in WORDS {
            let text = self.with(&pages, self.parts.len(), most);
            if text.len() <= LARGEST {
                return text;
            }
        }
        // Only headings, and only as many of them as there is room for: half of them, and half of these.
        let mut parts = self.parts.len();
        while parts > 0 {
            parts /= 2;
            let text = self.with(&pages, parts, 0);
            if text.len() <= LARGEST {
                return text;
            }
        }
        let mut pages = pages;
        while !pages.is_empty() {
            pages.truncate(pages.len() / 2);
            let text = self.with(&pages, 0, 0);
            if text.len() <= LARGEST {
                return text;
            }
        }
        self.with(&[], 0, 0)
    }

    fn with(&self, pages: &[Json], parts: usize, words: usize) -> String {
        let parts = self.parts[..parts].iter().map(|part| {
            let words = &part.words[..part.words.len().min(words)];
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

fn entry(page: usize, part: &Part) -> Entry {
    let heading: BTreeSet<String> = words(&part.heading).collect();
    let own: BTreeSet<String> = words(&part.words)
        .filter(|word| !heading.contains(word))
        .collect();
    Entry {
        page,
        id: part.id.clone(),
        heading: part.heading.clone(),
        words: own.into_iter().collect(),
    }
}

/// The words of a text in lower case; `max-age` is one.
fn words(text: &str) -> impl Iterator<Item = String> {
    let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_');
    let pieces = text.split(move |sign| !is_part(sign));
    let pieces = pieces.map(|piece| piece.trim_matches(['-', '_']).to_lowercase());
    pieces.filter(|piece| piece.chars().count() >= SHORTEST)
}

/// What the sections of a page say: texts of more than one word, since others are names and links.
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
