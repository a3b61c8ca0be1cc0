//! What keeps a template from running for ever: Tera counts nothing, so its loops are made to.
//!
//! Before a template is parsed, whatever it loops over, `EXPR` in `{% for x in EXPR %}` and `[x for x in EXPR]`, becomes `(EXPR) | counted`. The filter adds the number of turns to the page's account and fails when the account is overdrawn.
//! Turns are counted and not timed, so that a slow or busy machine decides as a quick one does.
//! What `{% set_global x = EXPR %}` keeps from one turn to the next is measured by the filter `kept`: a text that is doubled in every turn would fill the memory within the allowance.
//! What is written is bounded too, by a writer that takes no more than a page may have.
//!
//! **Invariant:** a place in the guarded text can be told in the author's own.

use std::io;

use tera::{Error, Kwargs, State, Tera, Value};

use super::template::{Scope, with_scope};
use content::report::Code;

/// How often all loops of one page may turn together. The largest of the six sites turns some two thousand times.
const TURNS: usize = 1_000_000;
/// The most bytes that one page may have.
const PAGE: usize = 8 << 20;
const COUNTED: &str = "counted";
const KEPT: &str = "kept";

/// A template with its loops counted.
#[derive(Debug, Default)]
pub(super) struct Guarded {
    /// What Tera parses.
    pub(super) text: String,
    /// What was put in: line and column (from 1, in characters, of the guarded text) and length.
    inserted: Vec<(usize, usize, usize)>,
}

impl Guarded {
    /// Guards a template. Text that Tera cannot parse is left for it to complain about.
    pub(super) fn new(source: &str) -> Self {
        let mut points = Vec::new();
        let mut scanner = Scanner { source, at: 0 };
        while let Some(tag) = scanner.next_tag() {
            loops_in(source, tag, &mut points);
        }
        points.sort_by_key(|(at, _)| *at);
        let mut guarded = Self::default();
        let mut from = 0;
        for (at, insert) in points {
            guarded.text.push_str(&source[from..at]);
            let (line, column) = position(&guarded.text);
            guarded.inserted.push((line, column, insert.len()));
            guarded.text.push_str(&insert);
            from = at;
        }
        guarded.text.push_str(&source[from..]);
        guarded
    }

    /// A column of the guarded text in the author's own; lines are the same.
    pub(super) fn column(&self, line: usize, column: usize) -> usize {
        let before = self
            .inserted
            .iter()
            .filter(|(at, start, _)| *at == line && *start < column);
        let shift: usize = before
            .map(|(_, start, length)| (*length).min(column - start))
            .sum();
        column - shift
    }
}

/// Makes the filters known that guarded templates use.
pub(super) fn register(tera: &mut Tera) {
    tera.register_filter(COUNTED, |value: Value, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            scope.turns = scope.turns.saturating_add(value.len().unwrap_or(1));
            if scope.turns > TURNS {
                return Err(over(scope, &format!("the page's loops turn more than {TURNS} times: loop over less, or not within so many loops")));
            }
            Ok(value)
        })
    });
    tera.register_filter(KEPT, |value: Value, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| match value.len() {
            Some(length) if length > PAGE => Err(over(
                scope,
                &format!(
                    "what is set here has more than {PAGE} parts: it may not grow without end"
                ),
            )),
            _ => Ok(value),
        })
    });
}

fn over(scope: &mut Scope, message: &str) -> Error {
    scope.failed = Some(Code::TooLarge);
    Error::message(message)
}

/// Takes what a page may have, and no more.
#[derive(Debug, Default)]
pub(super) struct Page(pub(super) Vec<u8>);

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > PAGE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_long()));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is said of a page that is too long.
pub(super) fn too_long() -> String {
    format!("the page has more than {PAGE} bytes: split it, or loop over less")
}

/// Finds tags: `{{ ... }}` and `{% ... %}`, but not comments and raw text.
struct Scanner<'a> {
    source: &'a str,
    at: usize,
}

impl Scanner<'_> {
    /// The next tag: what is between its marks.
    fn next_tag(&mut self) -> Option<std::ops::Range<usize>> {
        loop {
            let rest = &self.source[self.at..];
            let open = rest
                .match_indices('{')
                .map(|(at, _)| at)
                .find(|at| matches!(rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')))?;
            let start = self.at + open + 2;
            if rest.as_bytes()[open + 1] == b'#' {
                self.at = start + self.source[start..].find("#}")? + 2;
                continue;
            }
            let end = tag_end(self.source, start)?;
            self.at = end + 2;
            let inner = self.source[start..end].trim_matches(['-', ' ', '\n', '\t']);
            if inner == "raw" {
                self.at += self.source[self.at..].find("endraw")?;
                continue;
            }
            return Some(start..end);
        }
    }
}

/// Where a tag ends: at the first `}}` or `%}` that is in no text and no bracket.
fn tag_end(source: &str, start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for token in Tokens::new(source, start..source.len()) {
        match token.text {
            "}" if depth == 0 && source[token.at..].starts_with("}}") => return Some(token.at),
            "%" if depth == 0 && source[token.at..].starts_with("%}") => return Some(token.at),
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A `for` or `set_global` on its way to the expression that is guarded.
struct Open {
    depth: usize,
    /// What stands before the expression.
    mark: &'static str,
    filter: &'static str,
    expression: Option<usize>,
}

impl Open {
    const fn new(depth: usize, mark: &'static str, filter: &'static str) -> Self {
        Self {
            depth,
            mark,
            filter,
            expression: None,
        }
    }
}

/// Where something is to be put in, for each expression of a tag that is guarded.
fn loops_in(source: &str, tag: std::ops::Range<usize>, points: &mut Vec<(usize, String)>) {
    let mut depth = 0_usize;
    let mut open: Vec<Open> = Vec::new();
    let mut last = tag.start;
    let mut is_first = true;
    let mut close = |one: Option<Open>, end: usize| {
        if let Some((one, start)) = one.and_then(|one| Some((one.filter, one.expression?))) {
            points.push((start, "(".to_owned()));
            points.push((end, format!(") | {one}")));
        }
    };
    for token in Tokens::new(source, tag) {
        // The mark that trims white space is no part of an expression.
        if token.text == "-" && is_first {
            continue;
        }
        let inner = open.last_mut().filter(|one| one.depth == depth);
        match (token.text, inner) {
            ("for", _) => open.push(Open::new(depth, "in", COUNTED)),
            ("set_global", _) if is_first => open.push(Open::new(depth, "=", KEPT)),
            (mark, Some(one)) if mark == one.mark && one.expression.is_none() => {
                // Behind the space that follows.
                let rest = &source[token.end()..];
                one.expression = Some(token.end() + rest.len() - rest.trim_start().len());
            }
            ("if", Some(one)) if one.mark == "in" => close(open.pop(), last),
            ("(" | "[" | "{", _) => depth += 1,
            (")" | "]" | "}", inner) => {
                if inner.is_some() {
                    close(open.pop(), last);
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        is_first = false;
        if token.text != "-" {
            last = token.end();
        }
    }
    close(open.pop(), last);
}

/// A word, a text or a single character.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    at: usize,
    text: &'a str,
}

impl Token<'_> {
    const fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

struct Tokens<'a> {
    source: &'a str,
    range: std::ops::Range<usize>,
}

impl<'a> Tokens<'a> {
    const fn new(source: &'a str, range: std::ops::Range<usize>) -> Self {
        Self { source, range }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = &self.source[self.range.clone()];
        let trimmed = rest.trim_start();
        let at = self.range.start + rest.len() - trimmed.len();
        let first = trimmed.chars().next()?;
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let length = if is_word(first) {
            trimmed
                .find(|letter| !is_word(letter))
                .unwrap_or(trimmed.len())
        } else if matches!(first, '"' | '\'' | '`') {
            text_length(trimmed, first)
        } else {
            first.len_utf8()
        };
        self.range.start = at + length;
        Some(Token {
            at,
            text: &trimmed[..length],
        })
    }
}

/// The length of a text with its quotes; a backslash takes the next character with it.
fn text_length(text: &str, quote: char) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return at + letter.len_utf8();
        }
    }
    text.len()
}

/// The line and column behind a text, from 1.
fn position(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(source: &str) -> String {
        Guarded::new(source).text
    }

    #[test]
    fn every_loop_is_counted() {
        for (source, expected) in [
            ("{% for x in a %}", "{% for x in (a) | counted %}"),
            (
                "{%- for k, v in a.b -%}",
                "{%- for k, v in (a.b) | counted -%}",
            ),
            (
                "{% for x in [\"%}\", 'a in b'] %}",
                "{% for x in ([\"%}\", 'a in b']) | counted %}",
            ),
            (
                "{% for x in f(in=2) %}",
                "{% for x in (f(in=2)) | counted %}",
            ),
            (
                "{% for x in a | sort(by=\"b\") %}",
                "{% for x in (a | sort(by=\"b\")) | counted %}",
            ),
            (
                "{% set t = [e for e in p.q if e.t | length > 0] -%}",
                "{% set t = [e for e in (p.q) | counted if e.t | length > 0] -%}",
            ),
            (
                "{{ f(p={\"a\": {\"b\": [e.t for e in p]}}) }}",
                "{{ f(p={\"a\": {\"b\": [e.t for e in (p) | counted]}}) }}",
            ),
            (
                "{{ [[1 for b in c] for a in d] }}",
                "{{ [[1 for b in (c) | counted] for a in (d) | counted] }}",
            ),
            (
                "{% for x in [y for y in z] %}",
                "{% for x in ([y for y in (z) | counted]) | counted %}",
            ),
            (
                "{%- set_global x = x ~ f(a=1) -%}",
                "{%- set_global x = (x ~ f(a=1)) | kept -%}",
            ),
        ] {
            assert_eq!(guarded(source), expected);
        }
    }

    #[test]
    fn what_is_no_loop_stays() {
        for source in [
            "for x in a",
            "{# {% for x in a %} #}",
            "{% raw %}{% for x in a %}{% endraw %}",
            "{% if a in b %}{{ \"for x in y\" }}{% endif %}",
            "{{ form.for_in }} { {%",
            "a { b } {{ {\"a\": 1} }}",
        ] {
            assert_eq!(guarded(source), source);
        }
    }

    #[test]
    fn places_are_the_authors() {
        let guard = Guarded::new("é{% for x in abc %}{{ y }}\n{{ z }}");
        let author = "é{% for x in abc %}{{ y }}";
        let theirs = guard.text.lines().next().expect("a line");
        for word in ["for", "abc", "y"] {
            let column = |text: &str| {
                text.chars().count()
                    - text
                        .split_once(word)
                        .map_or(0, |(_, rest)| rest.chars().count() + word.len())
                    + 1
            };
            assert_eq!(guard.column(1, column(theirs)), column(author), "{word}");
        }
        assert_eq!(guard.column(2, 4), 4);
    }
}
