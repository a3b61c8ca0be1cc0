//! Renders Markdown to HTML: CommonMark with tables, task lists, alerts, footnotes, definition lists, strikethrough, bare addresses and smart punctuation.
//!
//! Headings get an id and an anchor. Links and images are resolved for the address that the page is rendered for. Tables and code blocks can be scrolled by keyboard.
//!
//! HTML in Markdown is an error, except for comments. The engine could not check its links, its tags and its scripts. The renderer shows such HTML as text.
//!
//! **Invariant:** for every input, the output is well-formed and uses only the elements and attributes of Markdown.

pub(crate) mod element_ids;
pub(crate) mod escape;
mod events;
mod footnotes;
pub(super) mod foreign_markup;
mod headings;
pub(crate) mod highlight;
mod mark_positions;
pub(super) mod outline;

use std::ops::Range;

use pulldown_cmark::{
    Alignment, BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd,
};
use serde::Serialize;

pub(super) use crate::markdown::escape::escape;
use crate::markdown::highlight::highlight;
use crate::media;
use crate::pages::links::text_context::LinkContext;
use content::report::LineIndex;
use events::parse;
use footnotes::Footnote;
use headings::{heading_ids, plain_text};

/// A rendered text.
#[derive(Debug, Default, Clone)]
pub(super) struct RenderedText {
    /// The HTML.
    pub html: String,
    /// The headings in order.
    pub headings: Vec<Heading>,
}

/// A heading that fragments can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heading {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its level, 1 to 6.
    pub level: u8,
}

/// A link or image as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// The destination.
    pub destination: String,
    /// The line in the text, from 1.
    pub line: usize,
    /// Whether it is an image.
    pub is_image: bool,
    /// The alt text of an image, as written.
    pub alt: String,
    /// Whether an image has no alt text and is not marked as decorative.
    pub lacks_alt: bool,
}

/// Returns every link and image of a text.
#[must_use]
pub(super) fn references(text: &str) -> Vec<Reference> {
    let lines = LineIndex::of(text);
    parse(text)
        .events
        .into_iter()
        .filter_map(|(event, range)| {
            let (destination, is_image) = match event {
                Event::Start(Tag::Link {
                    link_type: LinkType::Email,
                    dest_url,
                    ..
                }) => (format!("mailto:{dest_url}"), false),
                Event::Start(Tag::Link { dest_url, .. }) => (dest_url.into_string(), false),
                Event::Start(Tag::Image { dest_url, .. }) => (dest_url.into_string(), true),
                _ => return None,
            };
            Some(Reference {
                destination,
                line: lines.number(range.start),
                lacks_alt: is_image
                    && text[range.clone()].starts_with("![]")
                    && !text[range.end..].starts_with(media::DECORATIVE_MARK),
                alt: alt_text_of(&text[range]).to_owned(),
                is_image,
            })
        })
        .collect()
}

/// Returns the ids that an author gave to headings, with the byte range of each heading.
#[must_use]
pub(super) fn author_ids(text: &str) -> Vec<(String, Range<usize>)> {
    let headings = parse(text).events.into_iter();
    let ids = headings.filter_map(|(event, range)| match event {
        Event::Start(Tag::Heading { id: Some(id), .. }) => Some((id.into_string(), range)),
        _ => None,
    });
    ids.collect()
}

/// Returns the start of a text, at most `most` bytes.
fn truncated(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Limit on the alt text of an image that is read, in bytes.
const MAX_ALT_BYTES: usize = 2_000;

/// Returns the alt text of an image from its source.
fn alt_text_of(written: &str) -> &str {
    let inner = written.strip_prefix("![");
    // The source of an image contains all images nested in it. Without a limit, the alt texts take quadratic space.
    inner
        .map(|inner| truncated(inner, MAX_ALT_BYTES))
        .and_then(|inner| inner.split(']').next())
        .unwrap_or_default()
}

/// Returns the HTML of a text except for comments: the first line of each piece, and its byte offset.
#[must_use]
pub(super) fn html(text: &str) -> Vec<(String, usize)> {
    let mut pieces: Vec<(String, usize)> = Vec::new();
    let mut block = None;
    for (event, range) in parse(text).events {
        match event {
            Event::Start(Tag::HtmlBlock) => block = Some((String::new(), range.start)),
            Event::Html(part) => {
                if let Some((whole, _)) = &mut block {
                    whole.push_str(&part);
                }
            }
            Event::InlineHtml(part) => pieces.push((part.into_string(), range.start)),
            Event::End(TagEnd::HtmlBlock) => {
                let piece = block.take();
                pieces.extend(piece);
            }
            _ => {}
        }
    }
    let mut open = 0_usize;
    let pieces = pieces.into_iter().filter_map(|(piece, start)| {
        let shown = without_comments(&piece);
        // Text behind a comment is not HTML and is shown as text.
        let first = shown
            .lines()
            .map(str::trim)
            .find(|line| line.contains('<'))?;
        let closes = first.starts_with("</");
        // The closing tag of a reported piece is not reported again.
        let told = closes && open > 0;
        open = if closes {
            open.saturating_sub(1)
        } else {
            open + 1
        };
        (!told).then(|| (first.to_owned(), start))
    });
    pieces.collect()
}

/// Renders a text of blocks.
#[must_use]
pub(super) fn render(text: &str, context: &LinkContext<'_>) -> RenderedText {
    let mut rendered = RenderedText::default();
    let mut events = Vec::new();
    let parsed = parse(text).events;
    let mut ids = heading_ids(&parsed, |wanted| context.assign(wanted)).into_iter();
    let mut parser = parsed.into_iter().map(|(event, _)| event);
    // The events around a footnote definition, which moves to the end of the text.
    let (mut around, mut notes) = (Vec::new(), Vec::new());
    // The number and the state of the table that is being rendered.
    let (mut tables, mut columns, mut column, mut cell) = (0, Vec::new(), 0, "td");
    while let Some(event) = parser.next() {
        match event {
            Event::Start(Tag::Heading { level, classes, .. }) => {
                let inner: Vec<Event<'_>> = parser
                    .by_ref()
                    .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
                    .map(|event| resolve_link(event, context))
                    .collect();
                let words = plain_text(&inner);
                let id = ids.next().unwrap_or_default();
                let language = context.language;
                let label = language.ui_string_with("engine.heading_link", "heading", &words);
                let anchor = format!(
                    "<a class=\"heading-anchor\" href=\"#{}\" aria-label=\"{}\"></a>",
                    escape(&id),
                    escape(&label)
                );
                events.push(Event::Start(Tag::Heading {
                    level,
                    id: Some(id.clone().into()),
                    classes,
                    // Authors could write any attribute, including event handlers.
                    attrs: Vec::new(),
                }));
                events.extend(inner);
                events.push(Event::InlineHtml(anchor.into()));
                events.push(Event::End(TagEnd::Heading(level)));
                rendered.headings.push(Heading {
                    id,
                    text: words,
                    level: number(level),
                });
            }
            Event::Start(Tag::Table(alignments)) => {
                tables += 1;
                events.push(Event::Html(table(tables, context).into()));
                // Cells are aligned by an attribute, because the page's policy allows no style attributes.
                let plain = vec![Alignment::None; alignments.len()];
                events.push(Event::Start(Tag::Table(plain)));
                columns = alignments;
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                events.push(Event::Html(code_block(&kind, &mut parser).into()));
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                cell = match event {
                    Event::Start(Tag::TableHead) => "th",
                    _ => "td",
                };
                column = 0;
                events.push(event);
            }
            Event::Start(Tag::TableCell) => {
                events.push(match columns.get(column).and_then(alignment) {
                    Some(align) => Event::Html(format!("<{cell} data-align=\"{align}\">").into()),
                    None => event,
                });
                column += 1;
            }
            Event::End(TagEnd::Table) => {
                events.push(Event::End(TagEnd::Table));
                events.push(Event::Html("</div>\n".into()));
            }
            Event::Start(Tag::HtmlBlock) => {
                let block = html_block(&mut parser);
                let shown = without_comments(&block);
                if !shown.trim().is_empty() {
                    events.push(Event::Start(Tag::Paragraph));
                    events.push(Event::Text(shown.trim().to_owned().into()));
                    events.push(Event::End(TagEnd::Paragraph));
                }
            }
            Event::Start(Tag::FootnoteDefinition(name)) => {
                around.push((name.into_string(), std::mem::take(&mut events)));
            }
            Event::End(TagEnd::FootnoteDefinition) => {
                if let Some((name, outer)) = around.pop() {
                    let events = std::mem::replace(&mut events, outer);
                    notes.push(Footnote { name, events });
                }
            }
            Event::Start(Tag::BlockQuote(Some(kind))) => {
                events.push(Event::Html(alert(kind, context).into()));
            }
            Event::End(TagEnd::BlockQuote(Some(_))) => {
                events.push(Event::Html("</div>\n".into()));
            }
            Event::TaskListMarker(is_done) => mark_task(&mut events, is_done, context),
            other => events.push(resolve_link(other, context)),
        }
    }
    let events = footnotes::place_notes(events, notes, context);
    let events = media::replace_images(events, context);
    pulldown_cmark::html::push_html(&mut rendered.html, events.into_iter());
    rendered
}

/// Returns the start of the element around the `number`th table, which scrolls by keyboard. Each table of a text has a name of its own.
fn table(number: usize, context: &LinkContext<'_>) -> String {
    let name = context.language.ui_string("engine.table");
    let label = match number {
        1 => escape(&name),
        _ => format!("{} {number}", escape(&name)),
    };
    format!("<div class=\"table\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">")
}

/// Returns the start of an alert in GitHub's syntax: `> [!NOTE]`.
fn alert(kind: BlockQuoteKind, context: &LinkContext<'_>) -> String {
    let kind = match kind {
        BlockQuoteKind::Note => "note",
        BlockQuoteKind::Tip => "tip",
        BlockQuoteKind::Important => "important",
        BlockQuoteKind::Warning => "warning",
        BlockQuoteKind::Caution => "caution",
    };
    let title = context.language.ui_string(&format!("engine.alerts.{kind}"));
    format!(
        "<div class=\"callout\" role=\"note\" data-kind=\"{kind}\">\n<p class=\"callout-title\">{}</p>\n",
        escape(&title)
    )
}

/// Turns the current list item into a task. Its mark has a label for screen readers.
fn mark_task(events: &mut Vec<Event<'_>>, is_done: bool, context: &LinkContext<'_>) {
    let item = events
        .iter_mut()
        .rfind(|event| matches!(event, Event::Start(Tag::Item)));
    if let Some(item) = item {
        *item = Event::Html("<li class=\"task\">".into());
    }
    let (word, sign) = match is_done {
        true => ("engine.tasks.done", '☑'),
        false => ("engine.tasks.open", '☐'),
    };
    let label = escape(&context.language.ui_string(word));
    let mark = format!("<span role=\"img\" aria-label=\"{label}\">{sign}</span> ");
    events.push(Event::InlineHtml(mark.into()));
}

/// Returns the text of an HTML block and consumes its events.
fn html_block<'a>(parser: &mut impl Iterator<Item = Event<'a>>) -> String {
    parser
        .take_while(|event| !matches!(event, Event::End(TagEnd::HtmlBlock)))
        .map(|event| match event {
            Event::Html(text) => text.into_string(),
            _ => String::new(),
        })
        .collect()
}

/// Renders a code block. Long lines scroll by keyboard (WCAG 2.2, success criterion 2.1.1).
fn code_block<'a>(
    kind: &CodeBlockKind<'_>,
    parser: &mut impl Iterator<Item = Event<'a>>,
) -> String {
    let language = match kind {
        CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or_default(),
        CodeBlockKind::Indented => "",
    };
    let class = match language {
        "" => String::new(),
        language => format!(" class=\"language-{}\"", escape(language)),
    };
    let pieces = parser.take_while(|event| !matches!(event, Event::End(TagEnd::CodeBlock)));
    let code: String = pieces
        .map(|event| match event {
            Event::Text(text) => text.into_string(),
            _ => String::new(),
        })
        .collect();
    let code = highlight(language, &code);
    format!("<pre tabindex=\"0\"><code{class}>{code}</code></pre>\n")
}

/// Renders a text without the paragraph around it, for use within a line.
#[must_use]
pub(super) fn render_inline(text: &str, context: &LinkContext<'_>) -> String {
    let html = render(text, context).html;
    let inner = html
        .trim()
        .strip_prefix("<p>")
        .and_then(|rest| rest.strip_suffix("</p>"));
    match inner {
        Some(inner) if !inner.contains("<p>") => inner.to_owned(),
        _ => html,
    }
}

fn resolve_link<'a>(event: Event<'a>, context: &LinkContext<'_>) -> Event<'a> {
    match event {
        // Without `href`, the element is a placeholder for a link (HTML, section 4.5.1).
        Event::Start(Tag::Link { dest_url, .. }) if context.resolver.lacks_fact(&dest_url) => {
            Event::InlineHtml("<a>".into())
        }
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            // pulldown-cmark adds `mailto:` itself.
            dest_url: match link_type {
                LinkType::Email => dest_url,
                _ => context.resolver.href(&dest_url).into(),
            },
            title,
            id,
        }),
        Event::InlineHtml(text) if text.starts_with("<!--") => Event::Text("".into()),
        Event::InlineHtml(text) => Event::Text(text),
        other => other,
    }
}

/// Returns the value of `data-align` for a column; `None` for the default alignment.
fn alignment(column: &Alignment) -> Option<&'static str> {
    match column {
        Alignment::None | Alignment::Left => None,
        Alignment::Center => Some("center"),
        Alignment::Right => Some("right"),
    }
}

/// Removes HTML comments, which are notes between authors.
fn without_comments(html: &str) -> String {
    let mut kept = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

const fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multi_line_comment_does_not_reach_the_page() {
        assert_eq!(
            without_comments("<!-- one\ntwo -->\n<p>Text</p><!-- three -->"),
            "\n<p>Text</p>"
        );
        assert_eq!(without_comments("<!-- never closed"), "");
    }

    #[test]
    fn html_is_found_but_comments_are_not() {
        let text = "One <b>bold</b> <!-- note --> word\n\n<!-- a\nb -->\n\n<div>\n<p>x\n</div>\n\n`<i>` &lt;i>\n";
        let found = html(text);
        let found: Vec<_> = found
            .iter()
            .map(|(html, start)| (html.as_str(), &text[*start..][..html.len()]))
            .collect();
        assert_eq!(found, [("<b>", "<b>"), ("<div>", "<div>")]);
    }

    #[test]
    fn alt_texts_of_nested_images_are_bounded() {
        let text = format!("{}{}", "![".repeat(2_000), "](a.png)".repeat(2_000));
        let found = references(&text);
        assert_eq!(found.len(), 2_000);
        assert!(found.iter().all(|image| image.alt.len() <= MAX_ALT_BYTES));
    }

    #[test]
    fn references_have_line_numbers() {
        let found = references("one [a](/a)\n\n![b](b.png)\n\n> [c][c]\n\n[c]: /c\n");
        let found: Vec<_> = found
            .iter()
            .map(|reference| {
                (
                    reference.destination.as_str(),
                    reference.line,
                    reference.is_image,
                )
            })
            .collect();
        assert_eq!(
            found,
            [("/a", 1, false), ("b.png", 3, true), ("/c", 5, false)]
        );
    }
}
