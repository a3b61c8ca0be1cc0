//! Footnotes: numbered by their first reference and placed at the end of the text, each with links back to its references.
//!
//! **Invariant:** the ids of references and notes are unique on the page.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pulldown_cmark::{Event, Tag, TagEnd};
use unicase::UniCase;

use crate::markdown::element_ids::slug;
use crate::markdown::escape::escape;
use crate::pages::links::text_context::LinkContext;

/// A footnote definition.
pub(super) struct Footnote<'a> {
    /// Its name in references.
    pub(super) name: String,
    /// Its content.
    pub(super) events: Vec<Event<'a>>,
}

/// A footnote with its number and id.
struct NumberedFootnote<'a> {
    events: Vec<Event<'a>>,
    id: String,
    number: usize,
    /// The ids of its references, in order.
    references: Vec<String>,
}

/// The notes of a text while its references are numbered.
struct FootnoteNumbering<'a, 'c> {
    context: &'c LinkContext<'c>,
    /// Notes without a reference so far, by name. Names are compared without case, like the names of link references.
    waiting: HashMap<UniCase<String>, (usize, Vec<Event<'a>>)>,
    /// The index of each name in `numbered`.
    numbers: HashMap<UniCase<String>, usize>,
    numbered: Vec<NumberedFootnote<'a>>,
}

/// Replaces footnote references by links, and appends the notes.
pub(super) fn place_notes<'a>(
    events: Vec<Event<'a>>,
    notes: Vec<Footnote<'a>>,
    context: &LinkContext<'_>,
) -> Vec<Event<'a>> {
    if notes.is_empty() {
        return events;
    }
    let mut repeated = Vec::new();
    let mut all = FootnoteNumbering {
        context,
        waiting: HashMap::new(),
        numbers: HashMap::new(),
        numbered: Vec::new(),
    };
    for (index, note) in notes.into_iter().enumerate() {
        let name = UniCase::new(note.name);
        match all.waiting.entry(name) {
            Entry::Occupied(_) => repeated.push(note.events),
            Entry::Vacant(free) => drop(free.insert((index, note.events))),
        }
    }
    let mut shown = all.linked(events);
    let mut next = 0;
    while next < all.numbered.len() {
        // A note may refer to another note.
        let events = std::mem::take(&mut all.numbered[next].events);
        all.numbered[next].events = all.linked(events);
        next += 1;
    }
    let mut rest: Vec<(usize, Vec<Event<'a>>)> =
        all.waiting.drain().map(|(_, note)| note).collect();
    rest.sort_by_key(|(index, _)| *index);
    let rest = rest.into_iter().map(|(_, events)| events).chain(repeated);
    let label = escape(&context.language.ui_string("engine.footnotes.label"));
    shown.push(html(format!(
        "<section class=\"footnotes\" aria-label=\"{label}\">\n<ol>\n"
    )));
    for note in std::mem::take(&mut all.numbered) {
        shown.push(html(format!("<li id=\"{}\">\n", escape(&note.id))));
        let (mut events, back) = (note.events, back(&note.references, note.number, context));
        if matches!(events.last(), Some(Event::End(TagEnd::Paragraph))) {
            events.pop();
            shown.append(&mut events);
            shown.push(html(back));
            shown.push(Event::End(TagEnd::Paragraph));
        } else {
            shown.append(&mut events);
            shown.push(Event::Start(Tag::Paragraph));
            shown.push(html(back.trim_start().to_owned()));
            shown.push(Event::End(TagEnd::Paragraph));
        }
        shown.push(html("</li>\n".to_owned()));
    }
    for mut events in rest {
        shown.push(html("<li>\n".to_owned()));
        shown.append(&mut events);
        shown.push(html("</li>\n".to_owned()));
    }
    shown.push(html("</ol>\n</section>\n".to_owned()));
    shown
}

/// Returns HTML that is written unchanged.
fn html<'a>(html: String) -> Event<'a> {
    Event::InlineHtml(html.into())
}

/// Returns the links from a note to its references.
fn back(references: &[String], number: usize, context: &LinkContext<'_>) -> String {
    let links = references.iter().enumerate().map(|(index, id)| {
        let (name, sign) = match index {
            0 => (number.to_string(), String::new()),
            index => (
                format!("{number}-{}", index + 1),
                format!("<sup>{}</sup>", index + 1),
            ),
        };
        let label = context
            .language
            .ui_string_with("engine.footnotes.back", "reference", &name);
        format!(
            " <a class=\"footnote-back\" href=\"#{}\" aria-label=\"{}\">↩\u{fe0e}{sign}</a>",
            escape(id),
            escape(&label)
        )
    });
    links.collect()
}

impl<'a> FootnoteNumbering<'a, '_> {
    /// Replaces the footnote references in events by links.
    fn linked(&mut self, events: Vec<Event<'a>>) -> Vec<Event<'a>> {
        let linked = events.into_iter().map(|event| match event {
            Event::FootnoteReference(name) => self.reference(&name),
            event => event,
        });
        linked.collect()
    }

    fn reference(&mut self, name: &str) -> Event<'a> {
        let key = UniCase::new(name.to_owned());
        let stem = slug(name);
        if let Some((_, events)) = self.waiting.remove(&key) {
            let id = self.context.assign(&format!("fn-{stem}"));
            self.numbers.insert(key.clone(), self.numbered.len());
            self.numbered.push(NumberedFootnote {
                events,
                id,
                number: self.numbered.len() + 1,
                references: Vec::new(),
            });
        }
        let found = self.numbers.get(&key).copied();
        let Some(note) = found.and_then(|index| self.numbered.get_mut(index)) else {
            return Event::Text(format!("[^{name}]").into());
        };
        let own = self.context.assign(&format!("fnref-{stem}"));
        let link = format!(
            "<sup class=\"footnote-reference\" id=\"{}\"><a href=\"#{}\">{}</a></sup>",
            escape(&own),
            escape(&note.id),
            note.number
        );
        note.references.push(own);
        html(link)
    }
}
