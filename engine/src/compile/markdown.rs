//! Markdown to HTML: CommonMark with tables, footnotes, definition lists, strikethrough and smart punctuation.
//!
//! Headings get an id and an anchor, links and pictures are resolved for the place that the page is rendered for, and tables can be scrolled by keyboard.

use std::collections::{BTreeMap, HashMap};

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;

use super::asset::Asset;
use super::link::Resolver;

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
    /// Whether nothing stands between the brackets.
    pub silent: bool,
}

/// Where pictures come from and links lead.
pub(super) struct Surroundings<'a> {
    /// Makes links right.
    pub resolver: &'a Resolver,
    /// The tenant's files by name.
    pub assets: &'a BTreeMap<String, Asset>,
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
    Parser::new_ext(text, options())
        .into_offset_iter()
        .filter_map(|(event, range)| {
            let (destination, picture) = match event {
                Event::Start(Tag::Link { dest_url, .. }) => (dest_url, false),
                Event::Start(Tag::Image { dest_url, .. }) => (dest_url, true),
                _ => return None,
            };
            Some(Reference {
                destination: destination.into_string(),
                line: text[..range.start].matches('\n').count() + 1,
                silent: picture && text[range].starts_with("![]"),
                picture,
            })
        })
        .collect()
}

/// Renders a text with its blocks.
#[must_use]
pub(super) fn render(text: &str, surroundings: &Surroundings<'_>) -> Rendered {
    let mut rendered = Rendered::default();
    let mut events = Vec::new();
    let mut parser = Parser::new_ext(text, options());
    let mut ids = HashMap::new();
    while let Some(event) = parser.next() {
        match event {
            Event::Start(Tag::Heading {
                level,
                id,
                classes,
                attrs,
            }) => {
                let inner: Vec<Event<'_>> = parser
                    .by_ref()
                    .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
                    .map(|event| resolved(event, surroundings))
                    .collect();
                let words = plain(&inner);
                let id = unique(
                    &mut ids,
                    id.map_or_else(|| slug(&words), CowStr::into_string),
                );
                let anchor = format!(
                    "<a class=\"heading-anchor\" href=\"#{id}\" aria-label=\"Link to this section: {}\"></a>",
                    escape(&words)
                );
                events.push(Event::Start(Tag::Heading {
                    level,
                    id: Some(id.clone().into()),
                    classes,
                    attrs,
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
            Event::Start(Tag::Table(alignment)) => {
                events.push(Event::Html(
                    "<div class=\"table\" role=\"region\" aria-label=\"Table\" tabindex=\"0\">"
                        .into(),
                ));
                events.push(Event::Start(Tag::Table(alignment)));
            }
            Event::End(TagEnd::Table) => {
                events.push(Event::End(TagEnd::Table));
                events.push(Event::Html("</div>\n".into()));
            }
            Event::Start(Tag::HtmlBlock) => {
                let block: String = parser
                    .by_ref()
                    .take_while(|event| !matches!(event, Event::End(TagEnd::HtmlBlock)))
                    .map(|event| match event {
                        Event::Html(text) => text.into_string(),
                        _ => String::new(),
                    })
                    .collect();
                events.push(Event::Html(without_comments(&block).into()));
            }
            Event::InlineHtml(text) if text.starts_with("<!--") => {}
            other => events.push(resolved(other, surroundings)),
        }
    }
    html::push_html(&mut rendered.html, events.into_iter());
    rendered
}

/// Renders a text that stands within a line: without the paragraph around it.
#[must_use]
pub(super) fn render_inline(text: &str, surroundings: &Surroundings<'_>) -> String {
    let html = render(text, surroundings).html;
    let inner = html
        .trim()
        .strip_prefix("<p>")
        .and_then(|rest| rest.strip_suffix("</p>"));
    match inner {
        Some(inner) if !inner.contains("<p>") => inner.to_owned(),
        _ => html,
    }
}

fn resolved<'a>(event: Event<'a>, surroundings: &Surroundings<'_>) -> Event<'a> {
    match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: surroundings.resolver.href(&dest_url).into(),
            title,
            id,
        }),
        Event::Start(Tag::Image {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let file = surroundings.assets.get(dest_url.as_ref());
            let href = file.map(|asset| {
                surroundings.resolver.href(&format!(
                    "{}{}",
                    super::asset::ASSETS,
                    asset.hashed_name
                ))
            });
            Event::Start(Tag::Image {
                link_type,
                dest_url: href.map_or(dest_url, Into::into),
                title,
                id,
            })
        }
        other => other,
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

fn unique(ids: &mut HashMap<String, usize>, id: String) -> String {
    let count = ids.entry(id.clone()).or_insert(0);
    *count += 1;
    if *count == 1 {
        id
    } else {
        format!("{id}-{count}")
    }
}

/// Text for an attribute or an element (WHATWG HTML, escaping a string).
#[must_use]
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

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
