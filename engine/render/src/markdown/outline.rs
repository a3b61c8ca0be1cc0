//! What a text is about, part by part: a heading with its fragment, and the words below it.

use pulldown_cmark::{Event, Tag, TagEnd};

use super::headings::heading_ids;
use crate::markdown::element_ids::PageIds;
use crate::markdown::events::parse;

/// The words from one heading, or one term that is defined, to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextPart {
    /// The fragment of the heading, or of the one above the term; none above the first.
    pub(crate) id: Option<String>,
    /// The heading or the term.
    pub(crate) heading: String,
    /// What stands below it, with blanks between.
    pub(crate) words: String,
}

/// The parts of a text, which is the body of the page whose `ids` it gets. Their fragments are those of the page.
#[must_use]
pub(crate) fn outline(text: &str, mut ids: PageIds) -> Vec<TextPart> {
    let mut parts = vec![TextPart::default()];
    let events = parse(text).events;
    let mut fragments = heading_ids(&events, |wanted| ids.assign(wanted)).into_iter();
    // The fragment of the heading above, and whether the words are a heading's.
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
    fn a_text_falls_into_its_parts() {
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
