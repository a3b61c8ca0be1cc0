//! Splits a text into searchable parts: a heading with its fragment, and the text below it.

use pulldown_cmark::{Event, Tag, TagEnd};

use super::headings::heading_ids;
use crate::markdown::element_ids::PageIds;
use crate::markdown::events::parse;

/// The text from one heading, or one defined term, to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextPart {
    /// The fragment of the heading, or of the heading above the term; `None` above the first heading.
    pub(crate) id: Option<String>,
    /// The heading or the term.
    pub(crate) heading: String,
    /// The text below it, with a space between its pieces.
    pub(crate) words: String,
}

/// Returns the parts of a page's body, with the fragments that the rendered page has. `ids` is the page's id allocator before its body.
#[must_use]
pub(crate) fn outline(text: &str, mut ids: PageIds) -> Vec<TextPart> {
    let mut parts = vec![TextPart::default()];
    let events = parse(text).events;
    let mut fragments = heading_ids(&events, |wanted| ids.assign(wanted)).into_iter();
    // The fragment of the last heading, and whether the event is within a heading or term.
    let mut id: Option<String> = None;
    let mut in_heading = false;
    for (event, _) in events {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                id = fragments.next();
                parts.push(TextPart {
                    id: id.clone(),
                    ..TextPart::default()
                });
                in_heading = true;
            }
            Event::Start(Tag::DefinitionListTitle) => {
                parts.push(TextPart {
                    id: id.clone(),
                    ..TextPart::default()
                });
                in_heading = true;
            }
            Event::End(TagEnd::Heading(_) | TagEnd::DefinitionListTitle) => in_heading = false,
            Event::Text(piece) | Event::Code(piece) => {
                if let Some(part) = parts.last_mut() {
                    part.add(&piece, in_heading);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(part) = parts.last_mut() {
                    part.add(" ", in_heading);
                }
            }
            _ => {}
        }
    }
    parts
}

impl TextPart {
    fn add(&mut self, piece: &str, in_heading: bool) {
        if in_heading {
            self.heading.push_str(piece);
        } else {
            self.words.push(' ');
            self.words.push_str(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outline_splits_a_text_by_headings_and_terms() {
        let part = |id: Option<&str>, heading: &str, words: &str| TextPart {
            id: id.map(ToOwned::to_owned),
            heading: heading.to_owned(),
            words: words.to_owned(),
        };
        assert_eq!(
            outline(
                "One `two`\n\n## A b\n\nthree\n\n`--c`\n: four\n\n## A b {#c}\n\n## A b\n",
                PageIds::default()
            ),
            [
                part(None, "", " One  two"),
                part(Some("a-b"), "A b", " three"),
                part(Some("a-b"), "--c", " four"),
                part(Some("c"), "A b", ""),
                part(Some("a-b-2"), "A b", ""),
            ]
        );
    }
}
