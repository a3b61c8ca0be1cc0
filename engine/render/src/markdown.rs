//! Markdown to HTML: CommonMark with tables, footnotes, definition lists, strikethrough and smart punctuation.
//!
//! Headings get an id and an anchor, links and pictures are resolved for the place that the page is rendered for, and tables can be scrolled by keyboard.
//!
//! HTML within Markdown is an error, comments excepted: nobody could say where its links lead, whether its tags are closed and what its scripts do to the neighbours. What is rendered all the same shows it as text.
//! **Invariant:** whatever the text, what comes out is well-formed and made of the elements and attributes of Markdown alone.

pub(super) mod outline;

use std::collections::HashMap;

use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
};
use serde::Serialize;

pub(super) use super::escape::escape;
use super::highlight::highlight;
use super::link_context::LinkContext;
use super::media;
use content::report::LineIndex;

/// What a text became.
#[derive(Debug, Default, Clone)]
pub(super) struct Rendered {
    /// The HTML.
    pub html: String,
    /// The headings in their order.
    pub headings: Vec<Heading>,
}

/// A heading that links can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heading {
    /// Its fragment.
    pub id: String,
    /// Its words.
    pub text: String,
    /// 1 to 6.
    pub level: u8,
}

/// A link or picture as written, and the line of the text that it stands in, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// The destination.
    pub destination: String,
    /// The line.
    pub line: usize,
    /// Whether it is a picture.
    pub picture: bool,
    /// What stands between the brackets of a picture.
    pub words: String,
    /// Whether that is nothing, and the picture is not said to be a decoration.
    pub silent: bool,
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_SMART_PUNCTUATION
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_DEFINITION_LIST
}

/// Every link and picture of a text.
#[must_use]
pub(super) fn references(text: &str) -> Vec<Reference> {
    let lines = LineIndex::of(text);
    Parser::new_ext(text, options())
        .into_offset_iter()
        .filter_map(|(event, range)| {
            let (destination, picture) = match event {
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
                silent: picture
                    && text[range.clone()].starts_with("![]")
                    && !text[range.end..].starts_with(media::DECORATIVE),
                words: words_of(&text[range]).to_owned(),
                picture,
            })
        })
        .collect()
}

/// What stands between the brackets of a picture, as it is written.
fn words_of(written: &str) -> &str {
    let inner = written.strip_prefix("![");
    inner
        .and_then(|inner| inner.split(']').next())
        .unwrap_or_default()
}

/// The pieces of HTML in a text that are more than comments, with the lines that they begin at, from 1.
#[must_use]
pub(super) fn html(text: &str) -> Vec<(String, usize)> {
    let lines = LineIndex::of(text);
    let mut pieces: Vec<(String, usize)> = Vec::new();
    let mut block = None;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::HtmlBlock) => block = Some((String::new(), range.start)),
            Event::Html(part) => {
                if let Some((whole, _)) = &mut block {
                    whole.push_str(&part);
                }
            }
            Event::InlineHtml(part) => pieces.push((part.into_string(), lines.number(range.start))),
            Event::End(TagEnd::HtmlBlock) => {
                let piece = block.take();
                pieces.extend(piece.map(|(whole, start)| (whole, lines.number(start))));
            }
            _ => {}
        }
    }
    let mut open = 0_usize;
    let pieces = pieces.into_iter().filter_map(|(piece, line)| {
        let shown = without_comments(&piece);
        // Words behind a comment are text, and shown as such.
        let first = shown
            .lines()
            .map(str::trim)
            .find(|line| line.contains('<'))?;
        let closes = first.starts_with("</");
        // The end of what was told already says nothing new.
        let told = closes && open > 0;
        open = if closes {
            open.saturating_sub(1)
        } else {
            open + 1
        };
        (!told).then(|| (first.to_owned(), line))
    });
    pieces.collect()
}

/// Renders a text with its blocks.
#[must_use]
pub(super) fn render(text: &str, context: &LinkContext<'_>) -> Rendered {
    let mut rendered = Rendered::default();
    let mut events = Vec::new();
    let mut parser = Parser::new_ext(text, options());
    let mut ids = HashMap::new();
    // Of the table that is being rendered.
    let (mut columns, mut column, mut cell) = (Vec::new(), 0, "td");
    while let Some(event) = parser.next() {
        match event {
            Event::Start(Tag::Heading {
                level, id, classes, ..
            }) => {
                let inner: Vec<Event<'_>> = parser
                    .by_ref()
                    .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
                    .map(|event| resolved(event, context))
                    .collect();
                let words = plain(&inner);
                let id = unique(
                    &mut ids,
                    id.map_or_else(|| slug(&words), CowStr::into_string),
                );
                let label = context
                    .language
                    .word_with("engine.heading_link", "heading", &words);
                let anchor = format!(
                    "<a class=\"heading-anchor\" href=\"#{}\" aria-label=\"{}\"></a>",
                    escape(&id),
                    escape(&label)
                );
                events.push(Event::Start(Tag::Heading {
                    level,
                    id: Some(id.clone().into()),
                    classes,
                    // An author could write any attribute, such as one that holds a script.
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
                let label = escape(&context.language.word("engine.table"));
                events.push(Event::Html(
                    format!(
                        "<div class=\"table\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">"
                    )
                    .into(),
                ));
                // Aligned by attributes of its cells: the page's policy allows no style attribute.
                let plain = vec![Alignment::None; alignments.len()];
                events.push(Event::Start(Tag::Table(plain)));
                columns = alignments;
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                events.push(Event::Html(code_block(&kind, &mut parser).into()));
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                cell = if matches!(event, Event::Start(Tag::TableHead)) {
                    "th"
                } else {
                    "td"
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
            other => events.push(resolved(other, context)),
        }
    }
    let events = media::shown(events, context);
    pulldown_cmark::html::push_html(&mut rendered.html, events.into_iter());
    rendered
}

/// The text of a block of HTML, up to its end.
fn html_block<'a>(parser: &mut impl Iterator<Item = Event<'a>>) -> String {
    parser
        .take_while(|event| !matches!(event, Event::End(TagEnd::HtmlBlock)))
        .map(|event| match event {
            Event::Html(text) => text.into_string(),
            _ => String::new(),
        })
        .collect()
}

/// A block of code. Long lines are scrolled, by keyboard as well (WCAG 2.2, success criterion 2.1.1).
fn code_block<'a>(
    kind: &CodeBlockKind<'_>,
    parser: &mut impl Iterator<Item = Event<'a>>,
) -> String {
    let language = match kind {
        CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default(),
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

/// Renders a text that stands within a line: without the paragraph around it.
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

fn resolved<'a>(event: Event<'a>, context: &LinkContext<'_>) -> Event<'a> {
    match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            // The writer puts `mailto:` before an address.
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

/// How the theme is told of a column's alignment, where an author gave one that is not everybody's.
fn alignment(column: &Alignment) -> Option<&'static str> {
    match column {
        Alignment::None | Alignment::Left => None,
        Alignment::Center => Some("center"),
        Alignment::Right => Some("right"),
    }
}

/// HTML without its comments: they are notes between authors.
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

fn plain(events: &[Event<'_>]) -> String {
    events
        .iter()
        .map(|event| match event {
            Event::Text(text) | Event::Code(text) => text.as_ref(),
            Event::SoftBreak | Event::HardBreak => " ",
            _ => "",
        })
        .collect()
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

/// A fragment from a heading's words: letters and digits in lower case, hyphens between.
#[must_use]
pub(super) fn slug(words: &str) -> String {
    let mut slug = String::with_capacity(words.len());
    for character in words
        .chars()
        .filter(|character| !matches!(character, '\'' | '’'))
    {
        if character.is_alphanumeric() {
            slug.extend(character.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "section".to_owned()
    } else {
        slug.to_owned()
    }
}

/// An id that no heading before has: the second `a` is `a-2`, unless one is called so.
fn unique(ids: &mut HashMap<String, usize>, id: String) -> String {
    let mut count = ids.get(&id).copied().unwrap_or_default() + 1;
    let mut free = id.clone();
    if count > 1 {
        free = format!("{id}-{count}");
        while ids.contains_key(&free) {
            count += 1;
            free = format!("{id}-{count}");
        }
        ids.insert(free.clone(), 1);
    }
    ids.insert(id, count);
    free
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_made_of_words() {
        assert_eq!(slug("What’s new, in 2025?"), "whats-new-in-2025");
        assert_eq!(slug("Über uns"), "über-uns");
        assert_eq!(slug("!!!"), "section");
    }

    #[test]
    fn a_comment_of_several_lines_does_not_reach_the_page() {
        assert_eq!(
            without_comments("<!-- one\ntwo -->\n<p>Text</p><!-- three -->"),
            "\n<p>Text</p>"
        );
        assert_eq!(without_comments("<!-- never closed"), "");
    }

    #[test]
    fn html_is_found_and_comments_are_not() {
        let text = "One <b>bold</b> <!-- note --> word\n\n<!-- a\nb -->\n\n<div>\n<p>x\n</div>\n\n`<i>` &lt;i>\n";
        let found = html(text);
        let found: Vec<_> = found.iter().map(|(html, line)| (&**html, *line)).collect();
        assert_eq!(found, [("<b>", 1), ("<div>", 6)]);
    }

    #[test]
    fn an_id_is_given_once_whatever_headings_are_called() {
        let mut ids = HashMap::new();
        let mut id = |name: &str| unique(&mut ids, name.to_owned());
        assert_eq!(
            [id("a"), id("a-2"), id("a"), id("a")],
            ["a", "a-2", "a-3", "a-4"]
        );
        assert_eq!([id("b"), id("b"), id("b-2")], ["b", "b-2", "b-2-2"]);
    }

    #[test]
    fn references_know_their_lines() {
        let found = references("one [a](/a)\n\n![b](b.png)\n\n> [c][c]\n\n[c]: /c\n");
        let found: Vec<_> = found
            .iter()
            .map(|reference| {
                (
                    reference.destination.as_str(),
                    reference.line,
                    reference.picture,
                )
            })
            .collect();
        assert_eq!(
            found,
            [("/a", 1, false), ("b.png", 3, true), ("/c", 5, false)]
        );
    }
}
