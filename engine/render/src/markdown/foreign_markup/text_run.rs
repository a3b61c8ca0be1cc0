//! Splits a text into the runs that visitors read, without code and comments.
//!
//! **Invariant:** each run is contiguous in the source.

use std::ops::Range;

use pulldown_cmark::{Event, Tag, TagEnd};

use crate::markdown::events::ParsedText;

/// Contiguous text that visitors read.
pub(super) struct TextRun {
    pub(super) range: Range<usize>,
    /// Whether it is at the start of a line.
    pub(super) begins_line: bool,
    /// Whether it is at the start of a block.
    pub(super) begins_block: bool,
    /// Whether it is in an HTML block, in which Markdown is not parsed.
    pub(super) is_html: bool,
}

/// Returns the runs of a text.
pub(super) fn runs(parsed: &ParsedText<'_>, text: &str) -> Vec<TextRun> {
    let mut runs: Vec<TextRun> = Vec::new();
    let (mut begins_line, mut begins_block) = (true, true);
    // Whether the event is in code, or in a comment of several lines.
    let (mut in_code, mut in_comment) = (false, false);
    for (event, range) in &parsed.events {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::End(TagEnd::HtmlBlock) => in_comment = false,
            Event::Text(_) | Event::InlineHtml(_) | Event::Html(_) if !in_code => {
                let is_text = matches!(event, Event::Text(_));
                let piece = &text[range.clone()];
                let is_comment = !is_text && (in_comment || piece.trim_start().starts_with("<!--"));
                in_comment = is_comment && !piece.contains("-->");
                let last = runs.last_mut();
                match last.filter(|last| last.range.end == range.start && !begins_line) {
                    _ if is_comment => {}
                    Some(last) => last.range.end = range.end,
                    None => runs.push(TextRun {
                        range: range.clone(),
                        begins_line,
                        begins_block,
                        is_html: matches!(event, Event::Html(_)),
                    }),
                }
                (begins_line, begins_block) = (false, false);
                continue;
            }
            _ => {}
        }
        let is_block = match event {
            Event::Start(tag) => !is_inline(tag.to_end()),
            Event::End(tag) => !is_inline(*tag),
            _ => false,
        };
        begins_block = is_block;
        begins_line = is_block || matches!(event, Event::SoftBreak | Event::HardBreak);
    }
    runs
}

const fn is_inline(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}
