//! Assigns the ids of a text's headings: first the ids that the author wrote, then ids made from the heading texts.

use pulldown_cmark::{Event, Tag, TagEnd};

use crate::markdown::element_ids::slug;
use crate::markdown::events::SpannedEvent;

/// Returns the id of each heading in order. `assign` makes an id unique on the page.
pub(super) fn heading_ids(
    events: &[SpannedEvent<'_>],
    mut assign: impl FnMut(&str) -> String,
) -> Vec<String> {
    let mut wanted: Vec<(Option<String>, String)> = Vec::new();
    let mut words = String::new();
    let mut in_heading = false;
    for (event, _) in events {
        match event {
            Event::Start(Tag::Heading { id, .. }) => {
                words.clear();
                in_heading = true;
                wanted.push((id.as_ref().map(ToString::to_string), String::new()));
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((_, heading)) = wanted.last_mut() {
                    heading.clone_from(&words);
                }
                in_heading = false;
            }
            event if in_heading => words.push_str(word(event)),
            _ => {}
        }
    }
    // Ids that the author chose are assigned first, because links name them.
    let written: Vec<Option<String>> = (wanted.iter())
        .map(|(id, _)| id.as_deref().map(&mut assign))
        .collect();
    let ids = written.into_iter().zip(wanted);
    ids.map(|(id, (_, words))| id.unwrap_or_else(|| assign(&slug(&words))))
        .collect()
}

/// Returns the text of some events, without markup.
pub(super) fn plain_text(events: &[Event<'_>]) -> String {
    events.iter().map(word).collect()
}

fn word<'e>(event: &'e Event<'_>) -> &'e str {
    match event {
        Event::Text(text) | Event::Code(text) => text.as_ref(),
        Event::SoftBreak | Event::HardBreak => " ",
        _ => "",
    }
}
