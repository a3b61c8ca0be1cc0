//! Splits HTML into the content that readers see (text, links, images) and the metadata around it.
//!
//! The content has a line for each sentence: `# Terms`, `- One`, `You may read [link: /x] this.`, `[image: /a.png "A house"]`.
//! Metadata are tags with their other attributes, scripts, styles, comments, templates and SVGs.
//!
//! **Invariant:** each visible character of the text and each attribute is in one of both parts. Tags without attributes are in none.

use std::borrow::Cow;
use std::ops::Range;

use super::lines::{HtmlTag, end_of_raw, is_inline, is_named, push_sentences, push_statements};

/// Elements whose content is not text of the page.
const HIDDEN_ELEMENTS: [&str; 2] = ["svg", "template"];
/// Elements that show the file of their `src`, with the word for it.
const FILES: [(&str, &str); 6] = [
    ("img", "image"),
    ("video", "video"),
    ("audio", "audio"),
    ("source", "file"),
    ("iframe", "frame"),
    ("embed", "file"),
];

/// The lines of a page, in the order of the page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HtmlContent {
    pub(super) shown: Vec<String>,
    pub(super) metadata: Vec<String>,
}

impl HtmlContent {
    /// Splits a page. Malformed HTML is split, too.
    pub(super) fn of(html: &str) -> Self {
        let mut reader = ContentReader::default();
        reader.read(html);
        reader.content
    }
}

/// The state while a page is read.
#[derive(Debug, Default)]
struct ContentReader<'h> {
    content: HtmlContent,
    /// The text since the last block began or ended.
    line: String,
    /// The mark before the next line: `# ` or `- `.
    mark: String,
    /// The targets of the open links.
    links: Vec<&'h str>,
    /// The open element whose content is hidden, with the number of open elements of its name.
    hidden: Option<(&'static str, usize)>,
}

impl<'h> ContentReader<'h> {
    fn read(&mut self, html: &'h str) {
        let mut start = 0;
        let mut at = 0;
        while let Some(open) = html[at..].find('<').map(|found| at + found) {
            let Some(tag) = HtmlTag::at(html, open) else {
                at = open + 1;
                continue;
            };
            self.text(&html[start..open]);
            at = tag.end;
            let source = &html[open..tag.end];
            let raw = ["script", "style", "title"];
            let raw = raw.iter().find(|name| is_named(tag.name, name));
            match raw.filter(|_| !tag.is_end && self.hidden.is_none()) {
                Some(name) => {
                    let content = &html[tag.end..];
                    let length = end_of_raw(content, tag.name);
                    self.raw(name, source, &content[..length]);
                    at = tag.end + length;
                }
                None => self.tag(&tag, source),
            }
            start = at;
        }
        self.text(&html[start..]);
        self.end_line();
    }

    fn text(&mut self, text: &str) {
        match self.hidden {
            Some(_) => push_owned(&mut self.content.metadata, text, push_sentences),
            None => self.line.push_str(text),
        }
    }

    /// Reads an element that contains no tags.
    fn raw(&mut self, name: &str, tag: &str, content: &str) {
        if name == "title" {
            self.end_line();
            self.line.push_str(content);
            self.mark = "title: ".to_owned();
            self.end_line();
            return;
        }
        self.metadata(tag, &[]);
        push_owned(&mut self.content.metadata, content, push_statements);
    }

    fn tag(&mut self, tag: &HtmlTag<'h>, source: &'h str) {
        if let Some((name, open)) = &mut self.hidden {
            if is_named(tag.name, name) {
                *open = if tag.is_end { *open - 1 } else { *open + 1 };
            }
            if *open == 0 {
                self.hidden = None;
            }
            self.content.metadata.push(joined(source));
            return;
        }
        let named = |name: &&&str| is_named(tag.name, name);
        if let Some(name) = HIDDEN_ELEMENTS.iter().find(named).filter(|_| !tag.is_end) {
            self.hidden = Some((name, 1));
            self.content.metadata.push(joined(source));
            return;
        }
        if tag.name.is_empty() {
            self.content.metadata.push(joined(source));
        } else if is_named(tag.name, "a") {
            self.link(tag.is_end, source);
        } else if let Some((_, word)) = FILES.iter().find(|(name, _)| is_named(tag.name, name)) {
            if !tag.is_end {
                self.file(word, source);
            }
        } else {
            self.other(tag, source);
        }
    }

    fn link(&mut self, is_end: bool, source: &'h str) {
        if !is_end {
            let href = attribute(source, "href");
            self.links.push(href.unwrap_or_default());
            self.metadata(source, &["href"]);
        } else if let Some(href) = self.links.pop().filter(|href| !href.is_empty()) {
            self.line.push_str(&format!(" [link: {href}]"));
        }
    }

    fn file(&mut self, word: &str, source: &str) {
        if let Some(file) = attribute(source, "src").filter(|file| !file.is_empty()) {
            let alt = attribute(source, "alt").filter(|alt| !alt.is_empty());
            let alt = alt.map_or_else(String::new, |alt| format!(" \"{alt}\""));
            self.line.push_str(&format!(" [{word}: {file}{alt}] "));
        }
        self.metadata(source, &["src", "alt"]);
    }

    fn other(&mut self, tag: &HtmlTag<'_>, source: &str) {
        if is_named(tag.name, "br") {
            self.line.push(' ');
        } else if !is_inline(tag.name) {
            self.end_line();
            if tag.is_end {
                self.mark.clear();
            } else if let Some(level) = heading_level(tag.name) {
                self.mark = format!("{} ", "#".repeat(level));
            } else if is_named(tag.name, "li") {
                self.mark = "- ".to_owned();
            }
        }
        if !tag.is_end {
            self.metadata(source, &[]);
        }
    }

    /// Adds a start tag to the metadata if it has other attributes than `shown`.
    fn metadata(&mut self, source: &str, shown: &[&str]) {
        let mut kept = String::new();
        let mut next = 0;
        let mut has_others = false;
        for Attribute { name, place, .. } in Attributes::of(source) {
            if shown.iter().any(|shown| is_named(name, shown)) {
                kept.push_str(&source[next..place.start]);
                next = place.end;
            } else {
                has_others = true;
            }
        }
        kept.push_str(&source[next..]);
        if has_others {
            self.content.metadata.push(joined(&kept));
        }
    }

    /// Adds the text of the line, split behind each sentence.
    fn end_line(&mut self) {
        let line = joined(&std::mem::take(&mut self.line));
        let before = self.content.shown.len();
        push_owned(&mut self.content.shown, &decoded(&line), push_sentences);
        if let Some(first) = self.content.shown.get_mut(before) {
            first.insert_str(0, &std::mem::take(&mut self.mark));
        }
    }
}

/// Splits a text into pieces that borrow from it.
type Split = for<'t> fn(&mut Vec<&'t str>, &'t str);

/// Adds the pieces into which `split` splits a text.
fn push_owned(lines: &mut Vec<String>, text: &str, split: Split) {
    let mut pieces = Vec::new();
    split(&mut pieces, text);
    lines.extend(pieces.into_iter().map(ToOwned::to_owned));
}

/// Returns a text with single spaces.
fn joined(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

fn heading_level(name: &str) -> Option<usize> {
    (1..=6).find(|level| is_named(name, &format!("h{level}")))
}

/// Returns a text with the characters that its most frequent character references name. Other references stay as they are.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let characters = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&#x2F;", "/"),
        ("&nbsp;", "\u{a0}"),
        // Last, so that `&amp;lt;` is the text `&lt;`.
        ("&amp;", "&"),
    ];
    let replaced = characters
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    Cow::Owned(replaced)
}

/// An attribute of a start tag.
#[derive(Debug)]
struct Attribute<'t> {
    name: &'t str,
    value: &'t str,
    /// The place in the tag.
    place: Range<usize>,
}

/// Returns the value of an attribute of a start tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let mut all = Attributes::of(tag);
    all.find(|attribute| is_named(attribute.name, name))
        .map(|attribute| attribute.value)
}

/// The attributes of a start tag.
#[derive(Debug)]
struct Attributes<'t> {
    tag: &'t str,
    at: usize,
}

impl<'t> Attributes<'t> {
    fn of(tag: &'t str) -> Self {
        let is_end = |character: char| character.is_ascii_whitespace() || character == '/';
        let at = tag.find(is_end).unwrap_or(tag.len());
        let tag = tag.strip_suffix('>').unwrap_or(tag);
        let at = at.min(tag.len());
        Self { tag, at }
    }

    /// Returns the length of the text at `at` up to a character for which `is_end` holds.
    fn until(&self, at: usize, is_end: impl Fn(char) -> bool) -> usize {
        self.tag[at..].find(is_end).unwrap_or(self.tag.len() - at)
    }
}

impl<'t> Iterator for Attributes<'t> {
    type Item = Attribute<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_space = |character: char| character.is_ascii_whitespace();
        let start = self.at + self.until(self.at, |one| !is_space(one) && one != '/');
        if start >= self.tag.len() {
            return None;
        }
        // A stray `=` is part of the name, as in browsers.
        let first = self.tag[start..].chars().next().map_or(1, char::len_utf8);
        let is_end = |one| is_space(one) || matches!(one, '=' | '/');
        let end = start + first + self.until(start + first, is_end);
        let name = &self.tag[start..end];
        let equals = end + self.until(end, |one| !is_space(one));
        if !self.tag[equals..].starts_with('=') {
            self.at = end;
            let value = "";
            let place = start..end;
            return Some(Attribute { name, value, place });
        }
        let begin = equals + 1 + self.until(equals + 1, |one| !is_space(one));
        let quote = self.tag[begin..].chars().next();
        let quote = quote.filter(|quote| matches!(quote, '"' | '\''));
        let (from, to) = match quote {
            Some(quote) => (
                begin + 1,
                begin + 1 + self.until(begin + 1, |one| one == quote),
            ),
            None => (begin, begin + self.until(begin, is_space)),
        };
        self.at = self.tag.len().min(to + usize::from(quote.is_some()));
        Some(Attribute {
            name,
            value: &self.tag[from..to],
            place: start..self.at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_links_and_images_are_shown_and_the_rest_is_metadata() {
        let html = "<!doctype html><html lang=en><title>The terms</title><meta name=description content='a > b'>\
            <style>a{b:c}</style><h1 id=t>Terms &amp; all</h1><p>You may <a class=x href=\"/x\">read</a> this.\n  It ends.\
            <ul><li><p>One<li>Two</ul><img alt=\"A house\" src=/a.png loading=lazy><svg><title>Sun</title></svg>";
        let content = HtmlContent::of(html);
        assert_eq!(
            content.shown,
            [
                "title: The terms",
                "# Terms & all",
                "You may read [link: /x] this.",
                "It ends.",
                "- One",
                "- Two",
                "[image: /a.png \"A house\"]",
            ]
        );
        assert_eq!(
            content.metadata,
            [
                "<!doctype html>",
                "<html lang=en>",
                "<meta name=description content='a > b'>",
                "a{",
                "b:c}",
                "<h1 id=t>",
                "<a class=x >",
                "<img loading=lazy>",
                "<svg>",
                "<title>",
                "Sun",
                "</title>",
                "</svg>",
            ]
        );
    }

    #[test]
    fn link_around_blocks_follows_them() {
        let content = HtmlContent::of("<a href=/x><h2>One</h2><p>Two</p></a>");
        assert_eq!(content.shown, ["## One", "Two", "[link: /x]"]);
        assert_eq!(content.metadata, [""; 0]);
    }

    #[test]
    fn malformed_html_does_not_panic_and_loses_no_text() {
        for (html, text) in [
            ("", ""),
            ("a < b", "a < b"),
            ("<a =x href=é title>b", "b"),
            ("<a href=\"x", ""),
            ("<img src=", ""),
            ("<é>", "<é>"),
            ("</svg>a", "a"),
            ("<svg><svg></svg>a", ""),
            ("<title>a", "title: a"),
            ("<a / href = 'x' >b</a></a>", "b [link: x]"),
            ("&amp;lt; &eacute;", "&lt; &eacute;"),
        ] {
            assert_eq!(HtmlContent::of(html).shown.concat(), text, "{html}");
        }
    }
}
