//! The element ids of a page: one allocator for the theme, the sections, the headings and the footnotes.
//!
//! A theme's templates contain ids, and authors write fragments. Both are known before a page is rendered, and are never assigned to a heading or footnote.
//! Every id is in Unicode NFC (UAX 15), so that a fragment matches whichever way an editor composes its letters.
//!
//! **Invariant:** knows no Markdown. No id is assigned twice on a page.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

use content::name::nfc;

/// The start of an id attribute in a template.
const ATTRIBUTE: &str = "id=\"";

/// The ids in a theme's templates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ThemeIds {
    /// Complete ids.
    literal: BTreeSet<String>,
    /// The text before and after a number that a template fills in: `("title-", "")`.
    numbered: BTreeSet<(String, String)>,
}

impl ThemeIds {
    /// Collects the ids of a template.
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
                    // A completely templated id is an author's, or stands in full at the caller of the template.
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

/// The ids assigned on one page.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageIds {
    theme: Arc<ThemeIds>,
    /// Each id, with the number of times that it was requested.
    assigned: HashMap<String, usize>,
}

impl PageIds {
    /// Creates the allocator for a page in a theme.
    pub(crate) fn new(theme: Arc<ThemeIds>) -> Self {
        Self {
            theme,
            assigned: HashMap::new(),
        }
    }

    /// Reserves an id that an author or a section writes.
    pub(crate) fn reserve(&mut self, id: &str) {
        self.assigned.entry(nfc(id).into_owned()).or_insert(1);
    }

    /// Assigns the wanted id, or the wanted id with a number behind it if it is taken.
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

/// Makes a fragment from the text of a heading: letters with their marks and digits in lower case, separated by hyphens.
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

/// Whether the next character begins a word of the slug.
fn is_gap(slug: &str) -> bool {
    slug.is_empty() || slug.ends_with('-')
}

/// Whether a character belongs to the letter before it, such as a vowel or tone sign of Hindi or Thai.
fn is_mark(character: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(character);
    let is_combining = matches!(
        category,
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark
    );
    is_combining && !is_silent(character)
}

/// Whether a character is dropped without ending a word: apostrophes, joiners (Persian, Hindi) and emoji variation selectors.
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
    fn slug_contains_the_marks_of_every_script() {
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
