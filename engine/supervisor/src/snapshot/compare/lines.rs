//! Splits texts into lines that are short enough to show an edit.
//!
//! **Invariant:** the lines contain each character of the text in order, except white space. The contents of `<style>` elements come last, so that readers see the visible text first.

/// The length in bytes beyond which a line that is not HTML is split. Minified styles and scripts have no line breaks.
const LONG_LINE: usize = 200;

/// Elements that occur within a sentence.
const INLINE_ELEMENTS: [&str; 22] = [
    "a", "abbr", "b", "bdi", "br", "cite", "code", "del", "em", "i", "ins", "kbd", "mark", "q",
    "s", "small", "span", "strong", "sub", "sup", "time", "u",
];

/// Returns the lines of a text that is not HTML. Long lines are split behind each statement.
pub(super) fn text_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.len() > LONG_LINE {
            push_statements(&mut lines, line);
        } else {
            lines.push(line);
        }
    }
    lines
}

/// Returns a line for each block of HTML and for each sentence in a block. Malformed HTML is split, too.
pub(super) fn html_lines(html: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut styles = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(open) = html[at..].find('<').map(|found| at + found) {
        let Some(tag) = HtmlTag::at(html, open) else {
            at = open + 1;
            continue;
        };
        at = tag.end;
        if is_inline(tag.name) {
            continue;
        }
        if tag.is_end {
            push_sentences(&mut lines, &html[start..tag.end]);
            start = tag.end;
        } else {
            push_sentences(&mut lines, &html[start..open]);
            start = open;
        }
        if !tag.is_end && (is_named(tag.name, "script") || is_named(tag.name, "style")) {
            let content = &html[tag.end..];
            let length = end_of_raw(content, tag.name);
            lines.push(html[open..tag.end].trim());
            let into = match is_named(tag.name, "style") {
                true => &mut styles,
                false => &mut lines,
            };
            push_statements(into, &content[..length]);
            at = tag.end + length;
            start = at;
        }
    }
    push_sentences(&mut lines, &html[start..]);
    lines.append(&mut styles);
    lines
}

/// Returns whether an element of this name occurs within a sentence.
pub(super) fn is_inline(name: &str) -> bool {
    INLINE_ELEMENTS.iter().any(|inline| is_named(name, inline))
}

pub(super) fn is_named(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Returns the length of the text before the end tag of an element that contains no other tags.
pub(super) fn end_of_raw(text: &str, name: &str) -> usize {
    let mut ends = text.match_indices("</").map(|(at, _)| at);
    let is_end = |at: &usize| {
        text.get(at + 2..at + 2 + name.len())
            .is_some_and(|found| is_named(found, name))
    };
    ends.find(is_end).unwrap_or(text.len())
}

/// A tag in HTML.
#[derive(Debug)]
pub(super) struct HtmlTag<'h> {
    /// The name as written; empty for comments and declarations.
    pub(super) name: &'h str,
    pub(super) is_end: bool,
    /// The offset behind the tag.
    pub(super) end: usize,
}

impl<'h> HtmlTag<'h> {
    /// Returns the tag that begins with the `<` at `open`, if there is a tag. Quoted values may contain `>`. An unclosed tag ends with the text, as in browsers.
    pub(super) fn at(html: &'h str, open: usize) -> Option<Self> {
        let rest = &html[open + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            let behind = html.len() - comment.len();
            return Some(Self {
                name: "",
                is_end: false,
                end: (comment.find("-->")).map_or(html.len(), |at| behind + at + "-->".len()),
            });
        }
        let is_end = rest.starts_with('/');
        let rest = &rest[usize::from(is_end)..];
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let length = rest.bytes().take_while(|byte| is_name(*byte)).count();
        if length == 0 && !rest.starts_with('!') {
            return None;
        }
        let mut quote = None;
        let mut before = b' ';
        let mut is_close = |byte| {
            match (quote, byte) {
                (None, b'>') => return true,
                (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
                (Some(begun), byte) if begun == byte => quote = None,
                _ => {}
            }
            before = byte;
            false
        };
        let behind = html.len() - rest.len();
        let close = rest.bytes().position(&mut is_close);
        Some(Self {
            name: &rest[..length],
            is_end,
            end: close.map_or(html.len(), |at| behind + at + 1),
        })
    }
}

/// Adds a piece of HTML, split behind each sentence.
pub(super) fn push_sentences<'h>(lines: &mut Vec<&'h str>, piece: &'h str) {
    // An abbreviation splits a sentence, which does no harm.
    push_pieces(lines, piece, |character, next| match character {
        '.' | '!' | '?' => next.is_some_and(char::is_whitespace),
        _ => character == '\n',
    });
}

/// Adds a piece of a style, a script or JSON, split behind each statement.
pub(super) fn push_statements<'h>(lines: &mut Vec<&'h str>, piece: &'h str) {
    push_pieces(lines, piece, |character, _| {
        matches!(character, '{' | '}' | ';' | ',' | '\n')
    });
}

/// Adds the pieces of a text, trimmed and without empty pieces. `is_end` gets a character and the next character, and returns whether a piece ends between them.
fn push_pieces<'h>(
    lines: &mut Vec<&'h str>,
    text: &'h str,
    is_end: impl Fn(char, Option<char>) -> bool,
) {
    let mut push = |piece: &'h str| {
        let piece = piece.trim();
        if !piece.is_empty() {
            lines.push(piece);
        }
    };
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if is_end(character, characters.peek().map(|(_, next)| *next)) {
            let end = at + character.len_utf8();
            push(&text[start..end]);
            start = end;
        }
    }
    push(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_text_comes_before_styles() {
        let html = "<style>a{b:c;}</style><p>One. Two.</p><script>d;e</script>";
        let read = [
            "<style>",
            "</style>",
            "<p>One.",
            "Two.</p>",
            "<script>",
            "d;",
            "e",
            "</script>",
        ];
        let styles = ["a{", "b:c;", "}"];
        assert_eq!(html_lines(html), [&read[..], &styles].concat());
    }

    #[test]
    fn malformed_html_is_split_without_loss() {
        for text in [
            "",
            "<",
            "<p",
            "<p title=\"",
            "a < b > c",
            "<!--",
            "</",
            "<script>",
            "<style>a</stylé",
            "<!doctype",
            "é<é>",
            "</script",
            "<script></SCRIPT",
            "\u{feff}<P>.</P>",
        ] {
            let lines = html_lines(text);
            let joined: String = lines.concat();
            assert_eq!(joined, text.trim().replace('\n', ""), "{lines:?}");
        }
    }
}
