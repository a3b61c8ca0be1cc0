//! Parses Markdown into events with source ranges: the events of pulldown-cmark, with links for bare addresses.
//!
//! As on GitHub, `https://a.example`, `www.a.example` and `a@b.example` become links (GitHub Flavored Markdown, section 6.9). An invalid address stays text. An address with a `\` before its `:` or `@` stays text, too.
//!
//! **Invariant:** the crate parses Markdown only here, so checks, search and rendering see the same structure.

use std::ops::Range;

use pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use content::formats::link::{LinkTarget, parse_link};

/// A parsed text.
pub(super) struct ParsedText<'a> {
    /// The events in source order.
    pub(super) events: Vec<SpannedEvent<'a>>,
    /// References without a definition.
    pub(super) undefined: Vec<UndefinedReference>,
    /// The names of all link definitions.
    pub(super) definitions: Vec<String>,
}

/// An event and its byte range in the source.
pub(super) type SpannedEvent<'a> = (Event<'a>, Range<usize>);

/// A reference without a definition: `[text][name]`.
pub(super) struct UndefinedReference {
    /// The name.
    pub(super) name: String,
    /// Whether it is a shortcut, `[name]`, which may be plain text in brackets.
    pub(super) is_shortcut: bool,
    /// Its byte range in the source.
    pub(super) range: Range<usize>,
}

/// Returns the Markdown extensions that authors may use.
const fn options() -> Options {
    Options::ENABLE_TABLES
        .union(Options::ENABLE_FOOTNOTES)
        .union(Options::ENABLE_STRIKETHROUGH)
        .union(Options::ENABLE_SMART_PUNCTUATION)
        .union(Options::ENABLE_HEADING_ATTRIBUTES)
        .union(Options::ENABLE_DEFINITION_LIST)
        .union(Options::ENABLE_TASKLISTS)
        .union(Options::ENABLE_GFM)
}

/// Parses a text.
pub(super) fn parse(text: &str) -> ParsedText<'_> {
    let mut undefined = Vec::new();
    let note = |link: BrokenLink<'_>| {
        undefined.push(UndefinedReference {
            name: link.reference.to_string(),
            is_shortcut: link.link_type == LinkType::Shortcut,
            range: link.span,
        });
        None
    };
    let parser = Parser::new_with_broken_link_callback(text, options(), Some(note));
    let definitions = parser.reference_definitions().iter();
    let definitions = definitions.map(|(name, _)| name.to_owned()).collect();
    let events = with_bare_addresses(parser.into_offset_iter(), text);
    ParsedText {
        events,
        undefined,
        definitions,
    }
}

/// Replaces bare addresses in text events by links.
fn with_bare_addresses<'a>(
    events: impl Iterator<Item = SpannedEvent<'a>>,
    text: &str,
) -> Vec<SpannedEvent<'a>> {
    let mut linked = Vec::new();
    let mut run: Vec<SpannedEvent<'a>> = Vec::new();
    // The number of open links, images and code blocks.
    let mut depth = 0_usize;
    for (event, range) in events {
        let continues = run.last().is_none_or(|(_, last)| last.end == range.start);
        if depth == 0 && continues && matches!(event, Event::Text(_)) {
            run.push((event, range));
            continue;
        }
        flush(&mut run, text, &mut linked);
        match event {
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::CodeBlock(_)) => depth += 1,
            Event::End(TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock) => {
                depth = depth.saturating_sub(1);
            }
            Event::Text(_) if depth == 0 => {
                run.push((event, range));
                continue;
            }
            _ => {}
        }
        linked.push((event, range));
    }
    flush(&mut run, text, &mut linked);
    linked
}

/// Moves a run of adjacent texts to `linked`, as texts and links.
fn flush<'a>(run: &mut Vec<SpannedEvent<'a>>, text: &str, linked: &mut Vec<SpannedEvent<'a>>) {
    let words: String = run.iter().map(|placed| source_text(placed, text)).collect();
    let addresses = addresses(&words);
    let mut addresses = addresses.into_iter().peekable();
    if addresses.peek().is_none() {
        return linked.append(run);
    }
    let pieces = pieces(run, text);
    for (placed, piece) in run.drain(..).zip(&pieces) {
        let Range {
            start: from,
            end: to,
        } = piece.shown;
        let mut at = from;
        while let Some(address) = addresses.peek().filter(|address| address.range.start < to) {
            let (start, end) = (address.range.start.max(at), address.range.end.min(to));
            if at < start {
                let before = words[at..start].to_owned();
                linked.push((Event::Text(before.into()), piece.source_of(at..start)));
            }
            if address.range.start >= from {
                // The link has a single text event, even if the address spans several.
                let shown = words[address.range.clone()].to_owned();
                let place = source_of(&pieces, &address.range);
                let tag = Tag::Link {
                    link_type: address.kind,
                    dest_url: address.destination.clone().into(),
                    title: CowStr::Borrowed(""),
                    id: CowStr::Borrowed(""),
                };
                linked.push((Event::Start(tag), place.clone()));
                linked.push((Event::Text(shown.into()), place.clone()));
                linked.push((Event::End(TagEnd::Link), place));
            }
            at = end;
            if address.range.end > to {
                break;
            }
            addresses.next();
        }
        if at == from {
            linked.push(placed);
        } else if at < to {
            let after = words[at..to].to_owned();
            linked.push((Event::Text(after.into()), piece.source_of(at..to)));
        }
    }
}

/// A text event of a run: its range in the joined texts of the run, and its range in the source.
///
/// The lengths differ if the source is an entity: `&amp;` is shown as `&`.
struct TextPiece {
    shown: Range<usize>,
    source: Range<usize>,
    is_verbatim: bool,
}

impl TextPiece {
    /// Returns the source range of some of the shown bytes. An entity counts as a whole.
    fn source_of(&self, shown: Range<usize>) -> Range<usize> {
        if !self.is_verbatim {
            return self.source.clone();
        }
        let place = |at: usize| self.source.start + (at - self.shown.start);
        place(shown.start)..place(shown.end)
    }
}

/// Splits a run of texts into its pieces.
fn pieces(run: &[SpannedEvent<'_>], text: &str) -> Vec<TextPiece> {
    let mut end = 0;
    let pieces = run.iter().map(|placed| {
        let start = end;
        let shown = source_text(placed, text);
        end += shown.len();
        TextPiece {
            shown: start..end,
            source: placed.1.clone(),
            is_verbatim: text.get(placed.1.clone()) == Some(shown),
        }
    });
    pieces.collect()
}

/// Returns the source range of an address, from its first piece to its last.
fn source_of(pieces: &[TextPiece], address: &Range<usize>) -> Range<usize> {
    let within = pieces.iter().filter_map(|piece| {
        let start = address.start.max(piece.shown.start);
        let end = address.end.min(piece.shown.end);
        (start < end).then(|| piece.source_of(start..end))
    });
    let whole = within.reduce(|whole, part| whole.start..part.end);
    whole.unwrap_or_default()
}

/// Returns a text as its author wrote it, before quotes and dashes became typographic.
fn source_text<'e>((event, range): &'e SpannedEvent<'_>, text: &'e str) -> &'e str {
    let source = text.get(range.clone()).unwrap_or_default();
    let is_typographic = |sign: char| matches!(sign, '\'' | '"' | '-' | '.');
    match event {
        Event::Text(piece) if !source.chars().all(is_typographic) => piece,
        _ => source,
    }
}

/// A bare address in a text.
struct BareAddress {
    range: Range<usize>,
    kind: LinkType,
    destination: String,
}

/// The starts of web addresses, each with the scheme to add.
const ADDRESS_STARTS: [(&str, &str); 3] = [("https://", ""), ("http://", ""), ("www.", "https://")];

/// File extensions that look like a top-level domain: `icon@2x.png` is not an address.
const FILE_EXTENSIONS: [&str; 12] = [
    "avif", "css", "gif", "html", "jpeg", "jpg", "js", "json", "pdf", "png", "svg", "webp",
];

/// Limit on a web address that becomes a link, in bytes.
const MAX_ADDRESS_BYTES: usize = 2_000;

/// Returns the bare addresses of a text in order.
fn addresses(text: &str) -> Vec<BareAddress> {
    let mut found: Vec<BareAddress> = Vec::new();
    // `end` is the end of the characters that may belong to one address.
    let (mut at, mut end) = (0, 0);
    while let Some(next) = text[at..].find(['h', 'H', 'w', 'W', '@']) {
        let start = at + next;
        at = start + 1;
        let address = match text.as_bytes()[start] {
            b'@' => mail_address(text, start, found.last().map_or(0, |last| last.range.end)),
            _ => {
                if end <= start {
                    let rest = &text[start..];
                    end = start + rest.find(ends_address).unwrap_or(rest.len());
                }
                web_address(text, start, end)
            }
        };
        if let Some(address) = address {
            at = address.range.end;
            found.push(address);
        }
    }
    found
}

/// Returns the web address that begins at byte `start` and ends at `end` at the latest.
fn web_address(text: &str, start: usize, end: usize) -> Option<BareAddress> {
    let before = text[..start].chars().next_back();
    let rest = &text[start..end];
    let begins = |begin: &str| {
        let head = rest.get(..begin.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(begin))
    };
    let (begin, scheme) = ADDRESS_STARTS
        .into_iter()
        .find(|(begin, _)| begins(begin))?;
    let is_apart = match scheme {
        "" => !before.is_some_and(|sign| sign.is_ascii_alphanumeric()),
        _ => !before.is_some_and(|sign| sign.is_alphanumeric() || "/.-_@:".contains(sign)),
    };
    if !is_apart || rest.len() > MAX_ADDRESS_BYTES {
        return None;
    }
    let length = web_length(rest);
    if length <= begin.len() {
        return None;
    }
    let address = &rest[..length];
    let host = address[begin.len()..].split(['/', '?', '#']).next()?;
    let destination = format!("{scheme}{address}");
    let is_link = matches!(parse_link(&destination), Ok(LinkTarget::External));
    let is_host = scheme.is_empty() || host.contains('.');
    (is_link && is_host).then(|| BareAddress {
        range: start..start + length,
        kind: LinkType::Autolink,
        destination,
    })
}

/// Whether a character cannot be part of a web address.
fn ends_address(sign: char) -> bool {
    sign.is_whitespace()
        || sign.is_control()
        || "<>\"`“”„‘’«»".contains(sign)
        // Chinese and Japanese punctuation, which no space follows.
        || matches!(sign, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}')
}

/// Returns the length of a web address without the punctuation of the sentence around it.
fn web_length(rest: &str) -> usize {
    let end = rest.len();
    let open = |bracket| rest.matches(bracket).count();
    let (mut round, mut square) = (
        open(')').saturating_sub(open('(')),
        open(']').saturating_sub(open('[')),
    );
    let mut length = end;
    while let Some(last) = rest[..length].chars().next_back() {
        match last {
            ')' if round > 0 => round -= 1,
            ']' if square > 0 => square -= 1,
            last if "?!.,:;*_~'…|".contains(last) => {}
            _ => break,
        }
        length -= last.len_utf8();
    }
    length
}

fn mail_address(text: &str, sign: usize, from: usize) -> Option<BareAddress> {
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b".+_-".contains(&byte);
    let local = text.as_bytes()[from..sign].iter().rev();
    let start = sign - local.take_while(|byte| is_local(**byte)).count();
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let host = text.as_bytes()[sign + 1..].iter();
    let host = host.take_while(|byte| is_host(**byte)).count();
    let host = text[sign + 1..sign + 1 + host].trim_end_matches(['.', '-']);
    let (_, domain) = host.rsplit_once('.')?;
    let is_domain = domain.len() > 1 && domain.bytes().all(|byte| byte.is_ascii_alphabetic());
    let end = sign + 1 + host.len();
    let before = text[from..start].chars().next_back();
    let mut behind = text[end..].chars();
    let behind = (behind.next(), behind.next());
    // Part of something longer: `ssh://git@host`, `git@host:path`.
    let is_part = before.is_some_and(|sign| sign.is_alphanumeric() || "/:@".contains(sign))
        || matches!(behind, (Some('@' | '/' | '_'), _))
        || matches!(behind, (Some(':'), Some(next)) if !next.is_whitespace());
    let address = &text[start..end];
    let is_link = matches!(
        parse_link(&format!("mailto:{address}")),
        Ok(LinkTarget::External)
    );
    (is_link && is_domain && !is_part && !FILE_EXTENSIONS.contains(&domain)).then(|| BareAddress {
        range: start..end,
        kind: LinkType::Email,
        destination: address.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let links = parse(text).events.into_iter().filter_map(|(event, range)| {
            let Event::Start(Tag::Link { dest_url, .. }) = event else {
                return None;
            };
            assert!(text.get(range.clone()).is_some(), "{range:?} of {text}");
            Some(dest_url.into_string())
        });
        links.collect()
    }

    #[test]
    fn bare_address_becomes_link() {
        for (text, links) in [
            (
                "See https://a.example/b for c.",
                vec!["https://a.example/b"],
            ),
            (
                "https://a.example/x_y--z'?q=1&amp;r=2.",
                vec!["https://a.example/x_y--z'?q=1&r=2"],
            ),
            ("(http://a.example/b_(c))", vec!["http://a.example/b_(c)"]),
            ("**www.a.example**, too", vec!["https://www.a.example"]),
            (
                "詳しくはhttps://a.example/bへ。",
                vec!["https://a.example/bへ"],
            ),
            ("https://a.example/b。次", vec!["https://a.example/b"]),
            ("HTTPS://A.example", vec!["HTTPS://A.example"]),
            ("http://localhost:8080", vec!["http://localhost:8080"]),
            (
                "| a |\n|---|\n| https://a.example |",
                vec!["https://a.example"],
            ),
            ("write to post@a.example.", vec!["post@a.example"]),
            ("https://user@a.example/b", vec!["https://user@a.example/b"]),
        ] {
            assert_eq!(found(text), links, "{text}");
        }
    }

    #[test]
    fn address_with_an_entity_covers_its_complete_source() {
        for (text, source) in [
            (
                "See https://a.example/b_c&amp;🃁ᤠ .",
                "https://a.example/b_c&amp;🃁ᤠ",
            ),
            (
                "https://a.example/?q=&#x1F0C1;",
                "https://a.example/?q=&#x1F0C1;",
            ),
            ("(https://a.example/&ngE;d)", "https://a.example/&ngE;d"),
        ] {
            let events = parse(text).events.into_iter();
            let mut links = events.filter(|(event, _)| matches!(event, Event::Start(_)));
            let link = links.nth(1).map(|(_, range)| &text[range]);
            assert_eq!(link, Some(source));
        }
    }

    #[test]
    fn text_that_is_not_an_address_stays_text() {
        for text in [
            "`https://a.example`",
            "    https://a.example",
            "https\\://a.example",
            "https://",
            "https://…",
            "xhttps://a.example",
            "www.",
            "www.x",
            "git@a.example:b/c.git",
            "icon@2x.png",
            "package@1.2.3",
            "@name and a@b",
            "![https://a.example](x.png)",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(found("[https://a.example](/b)"), ["/b"]);
    }
}
