//! The ids of a page: one allocator for its theme, its sections, its headings and its footnotes.
//!
//! A theme's templates write ids of their own, and authors write fragments: both are known before a page is rendered, and no heading or footnote gets one of them.
//! Every id is in the Unicode form NFC (UAX 15), so that a fragment matches however an editor composes its letters.
//!
//! **Invariant:** knows no Markdown; an id that was assigned once is not assigned again for the same page.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

use content::name::nfc;

/// The attribute in a template that gives an element its id.
const ATTRIBUTE: &str = "id=\"";

/// The ids that a theme's templates write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ThemeIds {
    /// Those that are written in full.
    literal: BTreeSet<String>,
    /// What stands before and after a number that a template fills in: `title-` and nothing.
    numbered: BTreeSet<(String, String)>,
}

impl ThemeIds {
    /// Reads the ids of a template.
    pub(crate) fn read(&mut self, template: &str) {
        for (at, _) in template.match_indices(ATTRIBUTE) {
            let is_apart = template[..at].ends_with(char::is_whitespace);
            let value = template[at + ATTRIBUTE.len()..].split_once('"');
            let Some((value, _)) = value.filter(|_| is_apart) else {
                continue;
            };
            match value.split_once("{{") {
                None => drop(self.literal.insert(nfc(value).into_owned())),
                Some((before, rest)) => {
                    let after = rest.split_once("}}").map_or("", |(_, after)| after);
                    // An id that is filled in completely is an author's, or is written where the template is called.
                    if !before.is_empty() || !after.is_empty() {
                        self.numbered.insert((before.to_owned(), after.to_owned()));
                    }
                }
            }
        }
    }

    /// Whether the theme's templates write this id on a page.
    pub(crate) fn contains(&self, id: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        self.literal.contains(id)
            || self.numbered.iter().any(|(before, after)| {
                let middle = id.strip_prefix(before.as_str());
                middle
                    .and_then(|rest| rest.strip_suffix(after.as_str()))
                    .is_some_and(is_number)
            })
    }
}

/// The ids that are assigned on one page.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageIds {
    theme: Arc<ThemeIds>,
    /// Each id with the number of times that it was wanted.
    assigned: HashMap<String, usize>,
}

impl PageIds {
    /// The ids of a page in a theme.
    pub(crate) fn new(theme: Arc<ThemeIds>) -> Self {
        Self {
            theme,
            assigned: HashMap::new(),
        }
    }

    /// Keeps an id for an element of which somebody else writes the id.
    pub(crate) fn reserve(&mut self, id: &str) {
        self.assigned.entry(nfc(id).into_owned()).or_insert(1);
    }

    /// Assigns an id: the one that is wanted or, where it is taken, the same with a number behind it.
    pub(crate) fn assign(&mut self, wanted: &str) -> String {
        let wanted = nfc(wanted).into_owned();
        let mut count = self.assigned.get(&wanted).copied().unwrap_or_default() + 1;
        let mut id = wanted.clone();
        if count > 1 || self.theme.contains(&id) {
            count = count.max(2);
            id = format!("{wanted}-{count}");
            while self.assigned.contains_key(&id) || self.theme.contains(&id) {
                count += 1;
                id = format!("{wanted}-{count}");
            }
            self.assigned.insert(id.clone(), 1);
        }
        self.assigned.insert(wanted, count);
        id
    }
}

/// A fragment from the words of a heading: letters with their marks and digits in lower case, hyphens between.
#[must_use]
pub(crate) fn slug(words: &str) -> String {
    let mut slug = String::with_capacity(words.len());
    for character in nfc(words).chars() {
        if character.is_alphanumeric() || (is_mark(character) && !is_gap(&slug)) {
            slug.extend(character.to_lowercase());
        } else if !is_silent(character) && !is_gap(&slug) {
            slug.push('-');
        }
    }
    match slug.trim_end_matches('-') {
        "" => "section".to_owned(),
        slug => nfc(slug).into_owned(),
    }
}

/// Whether the next character of a fragment begins a word.
fn is_gap(slug: &str) -> bool {
    slug.is_empty() || slug.ends_with('-')
}

/// Whether a character belongs to the letter before it: a vowel or a tone of Hindi or Thai.
fn is_mark(character: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(character);
    let is_combining = matches!(
        category,
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark
    );
    is_combining && !is_silent(character)
}

/// Whether a character neither belongs to a fragment nor ends a word: apostrophes, joiners (Persian, Hindi) and selectors of an emoji's look.
const fn is_silent(character: char) -> bool {
    matches!(
        character,
        '\'' | '’' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_keeps_the_marks_of_every_script() {
        for (words, fragment) in [
            ("What’s new, in 2025?", "whats-new-in-2025"),
            ("Über uns", "über-uns"),
            ("O\u{308}ffnungszeiten", "öffnungszeiten"),
            ("हिन्दी में", "हिन्दी-में"),
            ("ไทย ที่นี่", "ไทย-ที่นี่"),
            ("می‌خواهم", "میخواهم"),
            ("❤\u{fe0f} Love", "love"),
            ("!!!", "section"),
        ] {
            assert_eq!(slug(words), fragment, "{words}");
        }
    }

    #[test]
    fn ids_of_a_theme_are_never_assigned() {
        let mut theme = ThemeIds::default();
        theme.read("<main id=\"main\"><h2 id=\"title-{{ index }}\" data-id=\"own\">");
        theme.read("<p id=\"{{ section.id }}\"></p>");
        let mut ids = PageIds::new(theme.into());
        for (wanted, id) in [
            ("main", "main-2"),
            ("main", "main-3"),
            ("title-1", "title-1-2"),
            ("title-one", "title-one"),
            ("own", "own"),
        ] {
            assert_eq!(ids.assign(wanted), id);
        }
    }

    #[test]
    fn no_id_is_assigned_twice() {
        let mut ids = PageIds::default();
        ids.reserve("prices");
        for (wanted, id) in [
            ("prices", "prices-2"),
            ("prices", "prices-3"),
            ("a-2", "a-2"),
            ("a", "a"),
            ("a", "a-3"),
            ("u\u{308}ber", "über"),
            ("über", "über-2"),
        ] {
            assert_eq!(ids.assign(wanted), id);
        }
    }
}
