//! Finds markup that visitors would read as text: incomplete Markdown, and syntax of other generators (Hugo, Jekyll, Astro, VitePress, MkDocs, Obsidian).
//!
//! Code, comments and text behind a `\` are skipped, because their authors mean them to be read.
//!
//! **Invariant:** every finding has the byte range of the markup in the source.

use std::cmp::Reverse;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use unicase::UniCase;

use super::truncated;
use crate::markdown::events::{ParsedText, UndefinedReference, parse};
use crate::markdown::mark_positions::MarkPositions;
use crate::media::DECORATIVE_MARK;
use content::report::{Code, hint_for, nearest};

/// Markup that is not rendered as its author meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignMarkup {
    /// The code of the diagnostic.
    pub(crate) code: Code,
    /// The byte range in the source.
    pub(crate) range: Range<usize>,
    /// The message of the diagnostic.
    pub(crate) message: String,
    /// The hint of the diagnostic.
    pub(crate) hint: String,
}

/// Limit on a shortcode or another delimited text, in bytes.
const MAX_MARKED_BYTES: usize = 2_000;
/// Limit on the markup that a message quotes, in characters.
const MAX_QUOTED_CHARS: usize = 60;
/// Limit on the findings of one text. Reports list far fewer per code.
const MAX_FINDINGS: usize = 10_000;
/// Limit on the names that are compared for suggestions in one text, in bytes.
const MAX_COMPARED_BYTES: usize = 20_000_000;
/// Code block languages that other platforms render as a diagram.
const DIAGRAM_LANGUAGES: [&str; 7] = [
    "geojson", "goat", "markmap", "mermaid", "plantuml", "stl", "topojson",
];
/// Code block languages that other platforms render as a formula.
const FORMULA_LANGUAGES: [&str; 3] = ["chem", "katex", "math"];
/// The alert types.
const ALERT_TYPES: [&str; 5] = ["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"];
/// The hint for markup of another generator.
const GENERATOR_HINT: &str =
    "use Markdown or a section; put the text in backticks to show it unchanged";

/// The hint for a formula.
const FORMULA_HINT: &str =
    "write the formula in words and Unicode characters (`E = mc²`), or add it as an image";

/// Finds markup that visitors would read as text, in source order.
#[must_use]
pub(crate) fn findings(text: &str) -> Vec<ForeignMarkup> {
    let mut findings = found(text).findings;
    findings.sort_by_key(|finding| finding.range.start);
    findings
}

fn found(text: &str) -> MarkupFinder<'_> {
    let parsed = parse(text);
    let mut finder = MarkupFinder {
        text,
        findings: Vec::new(),
        end: 0,
        bracket: None,
        is_script: false,
        marks: MarkPositions::of(text),
        compared: 0,
    };
    let runs = runs(&parsed, text);
    finder.blocks(&parsed);
    for run in &runs {
        finder.run(run);
    }
    finder.references(&parsed);
    finder.notes(&parsed, &runs);
    finder
}

/// Contiguous text that visitors read.
struct TextRun {
    range: Range<usize>,
    /// Whether it is at the start of a line.
    begins_line: bool,
    /// Whether it is at the start of a block.
    begins_block: bool,
    /// Whether it is in an HTML block, in which Markdown is not parsed.
    is_html: bool,
}

/// Returns the runs of a text.
fn runs(parsed: &ParsedText<'_>, text: &str) -> Vec<TextRun> {
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

/// Searches a text for markup that is not rendered.
struct MarkupFinder<'a> {
    text: &'a str,
    findings: Vec<ForeignMarkup>,
    /// The end of the last shortcode. Markup before it belongs to the shortcode.
    end: usize,
    /// The position of the last `[` in the run.
    bracket: Option<usize>,
    /// Whether the block contains lines of MDX script.
    is_script: bool,
    marks: MarkPositions<'a>,
    /// The number of bytes of names compared so far.
    compared: usize,
}

impl MarkupFinder<'_> {
    fn add(&mut self, code: Code, range: Range<usize>, what: &str, hint: &str) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let quoted = shortened(&self.text[range.clone()]);
        self.findings.push(ForeignMarkup {
            code,
            range,
            // A code span that holds a backtick (CommonMark, section 6.1).
            message: match quoted.contains('`') {
                true => format!("`` {quoted} `` {what}"),
                false => format!("`{quoted}` {what}"),
            },
            hint: hint.to_owned(),
        });
    }

    fn as_text(&mut self, range: Range<usize>, what: &str, hint: &str) {
        let what = format!("{what}; visitors see the markup as text");
        self.add(Code::MarkupAsText, range, &what, hint);
    }

    /// Returns the end of the next `mark` in the same paragraph, if it is near.
    fn end_of(&mut self, mark: &'static str, from: usize) -> Option<usize> {
        let place = self.marks.next(mark, from)?;
        let end = place + mark.len();
        let is_near = place - from <= MAX_MARKED_BYTES;
        (is_near && self.marks.next("\n\n", from).is_none_or(|gap| gap >= place)).then_some(end)
    }

    /// Returns the position of the next `mark` in a run, if it is near.
    fn within(&mut self, mark: &'static str, from: usize, run: &TextRun) -> Option<usize> {
        let place = self.marks.next(mark, from)?;
        (place + mark.len() <= run.range.end && place - from <= MAX_MARKED_BYTES).then_some(place)
    }

    /// Returns the range from `at` to the end of its line.
    fn line_of(&mut self, at: usize) -> Range<usize> {
        let end = self.marks.next("\n", at).unwrap_or(self.text.len());
        at..at + self.text[at..end].trim_end().len()
    }

    /// Returns the name most similar to `name`. Returns `None` once the limit on comparisons is reached.
    fn nearest<'n>(&mut self, name: &str, names: &'n DefinitionNames) -> Option<&'n str> {
        if self.compared + names.bytes > MAX_COMPARED_BYTES {
            return None;
        }
        self.compared += names.bytes;
        nearest(name, names.list.iter().map(String::as_str))
    }

    /// Reports code blocks that other platforms render differently, and code blocks without an end.
    fn blocks(&mut self, parsed: &ParsedText<'_>) {
        for (event, range) in &parsed.events {
            let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) = event else {
                continue;
            };
            let line = self.line_of(range.start);
            let info = info.trim();
            let language = info.trim_start_matches(['{', '.']);
            let language = language.split([' ', ',', '{', '}']).next();
            let language = language.unwrap_or_default();
            if DIAGRAM_LANGUAGES.contains(&language) {
                let what = "begins a diagram on other platforms; here, visitors see its code";
                let hint =
                    "add the diagram as an SVG file, and show it: `![Alt text](diagram.svg)`";
                self.add(Code::MarkupAsText, line.clone(), what, hint);
            } else if FORMULA_LANGUAGES.contains(&language) {
                let what = "begins a formula on other platforms; here, visitors see its code";
                self.add(Code::MarkupAsText, line.clone(), what, FORMULA_HINT);
            } else if info.contains(['{', '=', '"']) {
                let what = "has options after the language; they have no effect";
                let hint = "write the language only; name a file in the text above";
                self.add(Code::MarkupAsText, line.clone(), what, hint);
            }
            let code = self.text[range.clone()].trim_end();
            let last = code.rsplit('\n').next().unwrap_or_default();
            let last = last.trim_start_matches([' ', '\t', '>']).trim_end();
            let is_fence = last.len() > 2 && last.bytes().all(|sign| matches!(sign, b'`' | b'~'));
            if !is_fence || !code.contains('\n') {
                let what = "begins a code block without an end; all text after it is code";
                let hint = "write the same fence on a line of its own where the code ends";
                self.add(Code::MarkupAsText, line, what, hint);
            }
        }
    }

    fn run(&mut self, run: &TextRun) {
        self.bracket = None;
        if run.begins_block {
            self.is_script = false;
        }
        if run.begins_line && !run.is_html {
            self.line(run);
        }
        self.escaped_formula(run);
        let mut at = run.range.start.max(self.end);
        while at < run.range.end {
            let rest = &self.text[at..run.range.end];
            let Some(next) = rest.find(['{', '[', ']', '$', '^', '~', '=', ':', '*']) else {
                break;
            };
            at += next;
            let is_escaped = self.text[..at].ends_with('\\');
            if self.text[at..].starts_with('[') {
                self.bracket = Some(at);
            }
            at = match is_escaped {
                true => at + 1,
                false => self.sign(at, run).max(at + 1),
            };
        }
        self.end = self.end.max(at.min(run.range.end));
    }

    /// Checks the markup that begins at `at`, and returns its end.
    fn sign(&mut self, at: usize, run: &TextRun) -> usize {
        let rest = &self.text[at..];
        let here = &self.text[at..run.range.end];
        for (open, close, what) in [
            ("{{<", ">}}", "is a Hugo shortcode"),
            ("{{%", "%}}", "is a Hugo shortcode"),
            ("{{", "}}", "is a variable of another generator"),
            ("{%", "%}", "is a Liquid tag"),
        ] {
            if rest.starts_with(open)
                && let Some(end) = self.end_of(close, at + open.len())
            {
                self.as_text(at..end, what, GENERATOR_HINT);
                self.end = end;
                return end;
            }
        }
        if run.is_html {
            return at;
        }
        if here.starts_with('{') && !here.starts_with(DECORATIVE_MARK) {
            let end = self.end_of("}", at + 1);
            let end = end.filter(|end| *end <= run.range.end);
            if let Some(end) = end.filter(|end| is_attributes(&self.text[at + 1..*end - 1])) {
                let hint = "remove it; headings may have an id: `## Prices {#fees}`";
                self.as_text(at..end, "is an attribute list of another generator", hint);
                return end;
            }
        }
        if here.starts_with("[[")
            && let Some(end) = self.end_of("]]", at + 2)
        {
            let name = self.text[at + 2..end - 2].trim_matches('_');
            let (what, hint) = match name.to_lowercase().as_str() {
                "toc" => table_of_contents(),
                _ => {
                    let (page, words) = name.split_once('|').unwrap_or((name, name));
                    let page = shortened(page.trim()).replace(' ', "-");
                    let link = format!("[{}]({page}.md)", shortened(words.trim()));
                    ("is a wiki link", format!("write a Markdown link: `{link}`"))
                }
            };
            self.as_text(at..end, what, &hint);
            self.end = self.end.max(end);
            return end;
        }
        if here.starts_with("](") {
            return self.link(at, run);
        }
        if here.starts_with("^[")
            && let Some(end) = self.end_of("]", at + 2)
        {
            let hint = "write `[^1]` here, and the note on a line of its own: `[^1]: The note.`";
            self.as_text(at..end, "is an inline footnote", hint);
            return end;
        }
        let end = match here.as_bytes()[0] {
            b'$' => self.math(at, run),
            b'=' => self.mark(at, run),
            b'^' => self.script(
                at,
                run,
                "^",
                "is superscript in another Markdown dialect",
                "²",
            ),
            b'~' => self.script(
                at,
                run,
                "~",
                "is subscript in another Markdown dialect",
                "₂",
            ),
            b'*' => self.strong(at, run),
            b':' => self.emoji(at, run).or_else(|| self.directive(at, run)),
            _ => None,
        };
        end.unwrap_or(at)
    }

    /// Reports `](` that does not end a link, and returns the end of the markup.
    fn link(&mut self, at: usize, run: &TextRun) -> usize {
        let close = self.within(")", at + 2, run);
        let inner = close.map_or("", |close| &self.text[at + 2..close]);
        if inner.contains("{{") || inner.contains("{%") {
            return at + 2;
        }
        let begin = self.bracket.take().unwrap_or(at);
        let end = close.map_or(at + 2, |close| close + 1);
        let (what, hint) = match inner.trim() {
            name if name.contains(' ') && !name.contains(['"', '\'']) => (
                "is not a valid link: its address contains a space",
                match name.split_once(':') {
                    Some(("tel" | "sms", number)) => {
                        format!(
                            "write the number without spaces: `{}`",
                            shortened(&number.replace(' ', "-"))
                        )
                    }
                    _ => format!(
                        "write `%20` for each space, or `<{}>` with the angle brackets",
                        shortened(name)
                    ),
                },
            ),
            _ => (
                "is not a valid link",
                "write `[text](address)` on one line, without another link inside".to_owned(),
            ),
        };
        let what = format!("{what}; visitors see the markup as text");
        self.add(Code::MarkupAsText, begin..end, &what, &hint);
        end
    }

    /// Reports formulas: `$$E = mc^2$$`, also over several lines, and `$x^2$` if it cannot be an amount of money.
    fn math(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        let here = &self.text[at..run.range.end];
        if here.starts_with("$$") {
            let end = self.end_of("$$", at + 2);
            let end = end.filter(|end| {
                let inner = &self.text[at + 2..*end - 2];
                let is_long = inner.contains('\n');
                !inner.is_empty() && (!is_long || inner.contains(['\\', '^', '_', '=', '+']))
            });
            // A formula that contains an empty line: only its opening `$$` is reported.
            let end = end.or_else(|| (here.trim_end() == "$$").then_some(at + 2))?;
            self.as_text(at..end, "is a formula", FORMULA_HINT);
            self.end = self.end.max(end);
            return Some(end);
        }
        let close = self.within("$", at + 1, run)?;
        let inner = &self.text[at + 1..close];
        let is_tight = !inner.starts_with(' ') && !inner.ends_with(' ');
        let is_math = is_tight && (inner.contains(['\\', '^']) || inner.contains("_{"));
        is_math.then(|| self.as_text(at..close + 1, "is a formula", FORMULA_HINT))?;
        Some(close + 1)
    }

    /// Reports formulas in `\(` and `\)`, or `\[` and `\]`. Markdown reads their brackets as escaped.
    fn escaped_formula(&mut self, run: &TextRun) {
        let at = run.range.start;
        let before = &self.text[..at];
        if run.is_html || at < self.end || !before.ends_with('\\') || before.ends_with("\\\\") {
            return;
        }
        let close = match self.text.as_bytes().get(at) {
            Some(b'[') => "\\]",
            Some(b'(') => "\\)",
            _ => return,
        };
        let Some(end) = self.end_of(close, at + 1) else {
            return;
        };
        let inner = &self.text[at + 1..end - 2];
        let commands = inner.split('\\').skip(1);
        let is_formula = inner.contains('^')
            || inner.contains("_{")
            || commands
                .into_iter()
                .any(|command| command.starts_with(|sign: char| sign.is_ascii_alphabetic()));
        if is_formula {
            self.as_text(at - 1..end, "is a formula", FORMULA_HINT);
            self.end = end;
        }
    }

    /// Reports highlighted words: `==so==`.
    fn mark(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        if !self.text[at..].starts_with("==") {
            return None;
        }
        let close = self.within("==", at + 2, run)?;
        let inner = &self.text[at + 2..close];
        let is_mark = |sign: char| sign.is_whitespace() || sign == '=';
        let is_marked =
            !inner.is_empty() && !inner.starts_with(is_mark) && !inner.ends_with(is_mark);
        is_marked.then(|| {
            let hint = "write `**` around important words";
            self.as_text(
                at..close + 2,
                "is highlighted in another Markdown dialect",
                hint,
            );
        })?;
        Some(close + 2)
    }

    /// Reports superscripts and subscripts: `x^2^` and `H~2~O`.
    fn script(
        &mut self,
        at: usize,
        run: &TextRun,
        mark: &'static str,
        what: &str,
        sign: &str,
    ) -> Option<usize> {
        let close = self.within(mark, at + 1, run)?;
        let inner = &self.text[at + 1..close];
        let is_short = (1..=20).contains(&inner.len()) && inner.chars().all(char::is_alphanumeric);
        let before = self.text[..at].chars().next_back();
        (is_short && before.is_some_and(char::is_alphanumeric)).then(|| {
            let hint = format!("write the Unicode character, such as `{sign}`");
            self.as_text(at..close + 1, what, &hint);
        })?;
        Some(close + 1)
    }

    /// Reports `**` that makes nothing bold, because a space or punctuation is on the wrong side.
    fn strong(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        if !self.text[at..].starts_with("**") {
            return None;
        }
        let close = self.within("**", at + 2, run)?;
        let inner = &self.text[at + 2..close];
        let before = self.text[run.range.start..at].chars().next_back();
        let behind = self.text[close + 2..run.range.end].chars().next();
        let is_space = |sign: Option<char>| sign.is_some_and(char::is_whitespace);
        let is_sum = is_space(before)
            && is_space(behind)
            && is_space(inner.chars().next())
            && is_space(inner.chars().next_back());
        let is_within = |sign: char| sign.is_ascii_alphanumeric() || sign == '*' || sign == '/';
        let is_words = inner.contains(char::is_alphabetic)
            && !inner.contains(['*', '/', '\\'])
            && !before.is_some_and(is_within)
            && !behind.is_some_and(|sign| matches!(sign, '*' | '/'));
        if is_sum {
            return Some(close + 2);
        }
        if !is_words {
            return None;
        }
        let hint = "put spaces outside the `**`, not inside; write `\\*` for an asterisk";
        self.as_text(at..close + 2, "is not bold", hint);
        Some(close + 2)
    }

    /// Reports emoji shortcodes: `:smile:`.
    fn emoji(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        let close = self.within(":", at + 1, run)?;
        let name = &self.text[at + 1..close];
        let before = self.text[run.range.start..at].chars().next_back();
        let is_apart = !before.is_some_and(|sign| sign.is_alphanumeric() || ":/".contains(sign));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte);
        if !is_apart || name.len() > 60 || !name.bytes().all(is_name) {
            return None;
        }
        let emoji = emojis::get_by_shortcode(name)?;
        let hint = format!("write the emoji itself: {emoji}");
        self.as_text(at..close + 1, "is an emoji shortcode", &hint);
        Some(close + 1)
    }

    /// Reports directives of Astro and remark: `:name[words]`, and `::name{a=b}` at the start of a line.
    fn directive(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        let before = self.text[run.range.start..at].chars().next_back();
        let rest = &self.text[at..run.range.end];
        let (name, is_leaf) = match rest.strip_prefix("::") {
            Some(name) => (name, true),
            None => (&rest[1..], false),
        };
        let is_apart = match is_leaf {
            true => run.begins_line && at == run.range.start,
            false => !before.is_some_and(|sign| sign.is_alphanumeric() || sign == ':'),
        };
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
        let inner = name.trim_start_matches(is_name);
        if !is_apart || !name.starts_with(|sign: char| sign.is_ascii_alphabetic()) {
            return None;
        }
        let close = match inner.as_bytes().first()? {
            b'[' => "]",
            b'{' => "}",
            _ => return None,
        };
        let end = self.end_of(close, run.range.end - inner.len() + 1)?;
        // Markdown reads the first colon behind a paragraph as the mark of a definition.
        let is_cut = at == run.range.start && self.text[..at].ends_with(':');
        let begin = at - usize::from(is_cut);
        self.as_text(
            begin..end,
            "is a directive of another generator",
            GENERATOR_HINT,
        );
        self.end = self.end.max(end);
        Some(end)
    }

    /// Reports markup that begins a line.
    fn line(&mut self, run: &TextRun) {
        // Markdown reads the first colon behind a paragraph as the mark of a definition.
        let colons = self.text[..run.range.start].bytes().rev();
        let colons = colons.take_while(|byte| *byte == b':').count();
        let range = run.range.start - colons..run.range.end;
        if self.text[..range.start].ends_with('\\') || range.start < self.end {
            return;
        }
        let line = self.text[range.clone()].lines().next().unwrap_or_default();
        let line_range = self.line_of(range.start);
        let after = |marks: &str| line.strip_prefix(marks).map(str::trim);
        let is_word = |text: &str| text.starts_with(|sign: char| sign.is_alphabetic());
        if after(":::").is_some_and(|name| is_word(name.trim_start_matches([':', '{', '.', ' ']))) {
            let hint = "write `> [!NOTE]`, and begin each line of the text with `> `";
            self.end = line_range.end;
            self.as_text(line_range, "begins a container of another generator", hint);
        } else if after("!!! ").or_else(|| after("??? ")).is_some_and(is_word) {
            let hint = "write `> [!NOTE]`, and begin each line of the text with `> `";
            self.as_text(
                line_range,
                "begins an admonition of another generator",
                hint,
            );
        } else if line.starts_with("=== \"") || line.starts_with("--8<--") {
            self.as_text(line_range, "is markup of another generator", GENERATOR_HINT);
        } else if (run.begins_block || self.is_script) && is_script(line) {
            let hint = "remove the line; Markdown pages do not run scripts";
            self.as_text(line_range, "is MDX code", hint);
            self.is_script = true;
        } else if run.begins_block && line.starts_with("| ") {
            let below = self.line_of((line_range.end + 1).min(self.text.len()));
            if !is_row_of_dashes(self.text[below].trim_start_matches(['>', ' '])) {
                let hint = "write `|---|---|` below the header row of the table, or remove the `|`";
                self.as_text(line_range, "is not part of a table", hint);
            }
        } else if is_row_of_dashes(line) {
            let hint = "give the header row and the line below it equally many cells, and leave an empty line above them";
            self.as_text(line_range, "belongs to an incomplete table", hint);
        } else if line.starts_with("*[") && line.contains("]:") {
            let hint = "spell out the abbreviation at its first use";
            self.as_text(line_range, "is an abbreviation of another generator", hint);
        } else if line.starts_with("##") && is_word(line.trim_start_matches('#')) {
            let hint = "write a space after the last `#`";
            self.as_text(line_range, "is not a heading", hint);
        }
    }

    /// Reports references without a definition, except for those within other reported markup.
    fn references(&mut self, parsed: &ParsedText<'_>) {
        let definitions = DefinitionNames::new(parsed.definitions.clone());
        let mut undefined: Vec<&UndefinedReference> = parsed.undefined.iter().collect();
        undefined.sort_by_key(|undefined| (undefined.range.start, Reverse(undefined.range.end)));
        let mut around: Vec<Range<usize>> =
            self.findings.iter().map(|it| it.range.clone()).collect();
        around.sort_by_key(|range| range.start);
        let mut around = around.into_iter().peekable();
        let mut end = 0;
        for undefined in undefined {
            while let Some(range) = around.next_if(|range| range.start <= undefined.range.start) {
                end = end.max(range.end);
            }
            if undefined.range.end <= end {
                continue;
            }
            let known = self.findings.len();
            self.reference(undefined, &definitions);
            if self.findings.len() > known {
                end = end.max(undefined.range.end);
            }
        }
    }

    /// Reports a reference without a definition.
    fn reference(&mut self, undefined: &UndefinedReference, definitions: &DefinitionNames) {
        let (name, range) = (undefined.name.as_str(), undefined.range.clone());
        if let Some(kind) = name.strip_prefix('!').filter(|_| undefined.is_shortcut) {
            if ALERT_TYPES.contains(&kind.to_uppercase().as_str()) {
                let what = "begins an alert only if it is alone on the first line of a quote";
                let hint = "write `> [!NOTE]` on a line of its own, and the text on the next line";
                self.as_text(range, what, hint);
            } else if !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                let hint = hint_for(&kind.to_uppercase(), ALERT_TYPES);
                self.as_text(range, "is not a valid alert type", &hint);
            }
            return;
        }
        let near = self.nearest(name, definitions);
        if undefined.is_shortcut {
            if name.eq_ignore_ascii_case("toc") {
                let (what, hint) = table_of_contents();
                self.as_text(range, what, &hint);
            } else if let Some(near) = near.filter(|_| name.chars().count() > 3) {
                let hint = format!("did you mean `[{near}]`?");
                let what = "has no definition; visitors see the markup as text";
                self.add(Code::UndefinedReference, range, what, &hint);
            }
            return;
        }
        // An array index in prose about code: `list[0][1]`.
        let before = self.text[..range.start].chars().next_back();
        if before.is_some_and(char::is_alphanumeric) {
            return;
        }
        let hint = match near {
            Some(near) => format!("did you mean `[{near}]`?"),
            None => format!(
                "add a line `[{name}]: https://...`, or write the address in `( )` after the text"
            ),
        };
        let what = format!(
            "has no definition of `{}`; visitors see the markup as text",
            shortened(name)
        );
        self.add(Code::UndefinedReference, range, &what, &hint);
    }

    /// Reports references to missing footnotes, and footnotes that are repeated or have no reference.
    fn notes(&mut self, parsed: &ParsedText<'_>, runs: &[TextRun]) {
        let name_of = |name: &str| UniCase::new(name.to_owned());
        let mut used = std::collections::HashSet::new();
        let mut defined = std::collections::HashSet::new();
        for (event, _) in &parsed.events {
            if let Event::FootnoteReference(name) = event {
                used.insert(name_of(name));
            }
        }
        let mut names: Vec<String> = Vec::new();
        for (event, range) in &parsed.events {
            let Event::Start(Tag::FootnoteDefinition(name)) = event else {
                continue;
            };
            names.push(name.to_string());
            let mark = format!("[^{name}]:");
            let begin = self.text[range.clone()].find(&mark).unwrap_or_default() + range.start;
            let place = begin..(begin + mark.len()).min(range.end);
            if !defined.insert(name_of(name)) {
                let hint = "rename one of the two footnotes";
                self.add(
                    Code::UndefinedReference,
                    place,
                    "is defined twice; references link to the first definition",
                    hint,
                );
            } else if !used.contains(&name_of(name)) {
                let hint = format!("write `[^{name}]` in the text, or remove the footnote");
                self.add(
                    Code::UndefinedReference,
                    place,
                    "has no reference in the text",
                    &hint,
                );
            }
        }
        let names = DefinitionNames::new(names);
        for run in runs {
            let text = &self.text[run.range.clone()];
            for (at, _) in text.match_indices("[^") {
                let begin = run.range.start + at;
                let Some(end) = self.end_of("]", begin + 2) else {
                    continue;
                };
                let name = &self.text[begin + 2..end - 1];
                let is_name =
                    |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_' | '.');
                if name.is_empty()
                    || end > run.range.end
                    || !name.chars().all(is_name)
                    || self.text[..begin].ends_with('\\')
                {
                    continue;
                }
                let hint = match self.nearest(name, &names) {
                    Some(near) => format!("did you mean `[^{near}]`?"),
                    None => format!("add a line `[^{name}]: The note.`"),
                };
                self.add(
                    Code::UndefinedReference,
                    begin..end,
                    "has no footnote; visitors see the markup as text",
                    &hint,
                );
            }
        }
    }
}

/// The names of definitions, for suggestions.
struct DefinitionNames {
    list: Vec<String>,
    bytes: usize,
}

impl DefinitionNames {
    fn new(list: Vec<String>) -> Self {
        let bytes = list.iter().map(String::len).sum();
        Self { list, bytes }
    }
}

fn table_of_contents() -> (&'static str, String) {
    let hint = "remove it; a theme can list the headings of each page itself";
    (
        "is a table of contents of another generator",
        hint.to_owned(),
    )
}

/// Whether the text between braces is an attribute list of kramdown, Goldmark or Pandoc: `: .note #id`, `.note`, `width=300`.
fn is_attributes(inner: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || " -_.#:=%;,'\"/".contains(sign);
    let mut signs = inner.chars();
    let begins = match signs.next() {
        Some(':') => !inner[1..].trim().is_empty(),
        Some('.' | '#') => signs
            .next()
            .is_some_and(|sign| sign.is_alphabetic() || sign == '_'),
        Some(sign) if sign.is_ascii_alphabetic() => {
            inner.split_once('=').is_some_and(|(key, value)| {
                let is_key = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                key.bytes().all(is_key) && !value.is_empty() && !value.starts_with(['=', ' '])
            })
        }
        _ => false,
    };
    begins && inner.chars().all(is_part)
}

/// Whether a line is MDX script.
fn is_script(line: &str) -> bool {
    let from = |line: &str| line.contains(" from '") || line.contains(" from \"");
    (line.starts_with("import ") && from(line))
        || line.starts_with("export const ")
        || line.starts_with("export default ")
        || line.starts_with("{/*")
}

/// Whether a line is the delimiter row of a table.
fn is_row_of_dashes(line: &str) -> bool {
    let line = line.trim();
    let cells = line.trim_matches('|').split('|');
    let is_dashes = |cell: &str| {
        let cell = cell.trim();
        let dashes = cell.trim_matches(':');
        dashes.len() > 1 && dashes.bytes().all(|byte| byte == b'-')
    };
    line.contains('|') && cells.clone().count() > 1 && cells.map(str::trim).all(is_dashes)
}

/// Returns markup on one line, cut after [`MAX_QUOTED_CHARS`] characters.
fn shortened(markup: &str) -> String {
    // A long run of white space is not searched to its end.
    let near = truncated(markup, MAX_QUOTED_CHARS * 8);
    let words: Vec<&str> = near.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(text: &str) -> Vec<&str> {
        let findings = findings(text).into_iter();
        findings.map(|finding| &text[finding.range]).collect()
    }

    #[test]
    fn markup_of_other_generators_is_found() {
        for (text, found) in [
            ("a {{< youtube abc >}} b", vec!["{{< youtube abc >}}"]),
            ("{{<youtube abc>}}", vec!["{{<youtube abc>}}"]),
            (
                "{{% notice info %}}\nText\n{{% /notice %}}",
                vec!["{{% notice info %}}", "{{% /notice %}}"],
            ),
            (
                "{{< figure src=\"a_b.jpg\"\n  title=\"*c*\" >}}",
                vec!["{{< figure src=\"a_b.jpg\"\n  title=\"*c*\" >}}"],
            ),
            (
                "{% include a.html b=\"c\" %} and {{ site.title }}",
                vec!["{% include a.html b=\"c\" %}", "{{ site.title }}"],
            ),
            ("[a]({{< ref \"b\" >}})", vec!["{{< ref \"b\" >}}"]),
            (":::note[Title]\nText\n:::", vec![":::note[Title]"]),
            ("Before\n\n:::note\nText\n:::", vec![":::note"]),
            (
                "Before\n\n:::tip[T]{a=\"b\"}\nText\n:::",
                vec![":::tip[T]{a=\"b\"}"],
            ),
            ("::: warning\nText\n:::", vec!["::: warning"]),
            ("!!! note\n    Text", vec!["!!! note"]),
            ("Text\n{: .note }", vec!["{: .note }"]),
            ("* TOC\n{:toc}", vec!["{:toc}"]),
            ("Text{.lead}", vec!["{.lead}"]),
            (
                "[[Prices]] [TOC] [[_TOC_]]",
                vec!["[[Prices]]", "[TOC]", "[[_TOC_]]"],
            ),
            ("> [!INFO]\n> Text", vec!["[!INFO]"]),
            (
                "import A from './A.astro';\n\nText",
                vec!["import A from './A.astro';"],
            ),
            ("a $$x^2$$ b $y^2$ c", vec!["$$x^2$$", "$y^2$"]),
            ("a ==b c== d", vec!["==b c=="]),
            ("a^[b c] d", vec!["^[b c]"]),
            ("*[HTML]: Markup", vec!["*[HTML]: Markup"]),
            ("```mermaid\na\n```", vec!["```mermaid"]),
            ("``` {mermaid}\na\n```", vec!["``` {mermaid}"]),
            ("```math\na\n```", vec!["```math"]),
            ("```js {2-3}\na\n```", vec!["```js {2-3}"]),
            ("```js title=\"a.js\"\na\n```", vec!["```js title=\"a.js\""]),
            ("Sponsors :heart: b", vec![":heart:"]),
            ("$$\na^2\n$$", vec!["$$\na^2\n$$"]),
            ("$$\na\n\nb\n$$", vec!["$$", "$$"]),
            (
                "a \\(\\KaTeX\\) b\n\n\\[\na [b][c] \\ce{d}\n\\]",
                vec!["\\(\\KaTeX\\)", "\\[\na [b][c] \\ce{d}\n\\]"],
            ),
            ("H~2~O and x^2^", vec!["~2~", "^2^"]),
            (
                "Text\n{._list}\n\nA{width=300}",
                vec!["{._list}", "{width=300}"],
            ),
            ("[a](/b){target=\"_blank\"}", vec!["{target=\"_blank\"}"]),
            (
                "import A from './A';\nimport {B} from 'b';",
                vec!["import A from './A';", "import {B} from 'b';"],
            ),
            (
                "a :abbr[HTML]{title=\"b\"}\n\n::video[Title]{id=1}",
                vec![":abbr[HTML]", "{title=\"b\"}", "::video[Title]", "{id=1}"],
            ),
            ("> [!NOTE] Title\n> Text", vec!["[!NOTE]"]),
            ("<div>\n{{< a >}}\n</div>", vec!["{{< a >}}"]),
        ] {
            assert_eq!(quoted(text), found, "{text}");
        }
    }

    #[test]
    fn incomplete_markup_is_found() {
        for (text, found) in [
            (
                "[Call us](tel:+49 30 1234)",
                vec!["[Call us](tel:+49 30 1234)"],
            ),
            ("![a](my photo.png)", vec!["[a](my photo.png)"]),
            ("An undefined [link][nowhere].", vec!["[link][nowhere]"]),
            ("[prizes]\n\n[prices]: /a", vec!["[prizes]"]),
            ("a[^missing]", vec!["[^missing]"]),
            ("a[^1]\n\n[^1]: b\n\n[^2]: c", vec!["[^2]:"]),
            ("##Prices", vec!["##Prices"]),
            ("| a | b |\n|---|---|---|\n| c | d |", vec!["|---|---|---|"]),
            ("```\na\n\nb", vec!["```"]),
            ("A **bold **word", vec!["**bold **"]),
            ("これは**「太字」**です", vec!["**「太字」**"]),
            ("| one\n| two", vec!["| one"]),
        ] {
            assert_eq!(quoted(text), found, "{text}");
        }
    }

    #[test]
    fn text_that_only_looks_like_markup_is_left_alone() {
        for text in [
            "`{{< youtube abc >}}` and `[[a]]`",
            "```liquid\n{% if a %}\n```",
            "    {{ a }}",
            "\\{{ a }}, \\[[a]], \\[^a]",
            "<!-- {{< a >}} -->",
            "[sic], [1], list[0][1], a [ ] b",
            "$5 and $10, {a}, {}, a::b",
            "a == b == c, 2^[n",
            "![a](b.png){.decorative}",
            "## Prices {#fees}",
            "> [!NOTE]\n> Text",
            "- [x] a\n- [ ] b",
            "| a | b |\n|---|---|\n| c | d |",
            "a[^1] b[^NOTE]\n\n[^1]: c\n[^note]: d",
            "# one\n\n#two",
            "```\na\n```\n\n> ```\n> b\n> ```",
            "It imports from 'x'.",
            "12:30:45",
            "at 10:100:30, std::io::Read, :none: and a:b[0]",
            "<!--\n{{< a >}}\n[b][c]\n-->",
            "<Note>\n[a](/b) **c ** :heart:\n</Note>",
            "2 ** 3 ** b, **/*.rs and **/*.md, f(**a)",
            "`a` \\[b\\] and \\(c\\)",
            "a ^ b ^ c, ~~2~~ and ~3~",
            "```rust,ignore\na\n```\n\n```console session\na\n```",
            "{name} = {a, b}, {a == b}",
            "| a | b |\n|---|---|\n| c \\| d | e |",
        ] {
            assert_eq!(quoted(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn hint_shows_a_valid_phone_number() {
        let found = findings("[Call us](tel:+49 30 1234)");
        assert_eq!(
            found[0].hint,
            "write the number without spaces: `+49-30-1234`"
        );
    }

    #[test]
    fn steps_grow_linearly_with_the_text() {
        let definitions = |count: usize| -> String {
            let lines = (0..count).map(|number| format!("[abce{number}]: /x\n"));
            lines.collect()
        };
        let steps = |text: &str| {
            let finder = found(text);
            assert!(finder.findings.len() <= MAX_FINDINGS, "{text:.20}");
            assert!(finder.compared <= MAX_COMPARED_BYTES, "{text:.20}");
            finder.marks.steps
        };
        for mark in [
            "[a][b] ", "[x]", "](", "](a b ", "{{", "{% a ", "{:a", "$a", "$$a ", "==a ", "[^a",
            "^[", "^a", "**a ", "a:", ":a", ":::", "[[", "a~", "| a\n\n", "{", "\\[a ",
        ] {
            let (short, long) = (mark.repeat(2_000), mark.repeat(4_000));
            let (short, long) = (steps(&short), steps(&long));
            assert!(long <= 2 * short + 1_000, "{mark}: {short}, {long}");
        }
        steps(&format!(
            "{}\n\n{}",
            "[abcd] ".repeat(5_000),
            definitions(5_000)
        ));
    }

    proptest! {
        #[test]
        fn findings_are_within_the_text(text in "(?s)(\\{\\{<|>\\}\\}|\\{%|%\\}|\\[\\[|\\]\\]|\\]\\(|\\[\\^|:::|\\$|==|```|\\*\\*|:smile:|:a\\[|\\\\\\[|\\^|~|\n|> |ä|[a-z \\\\.]){0,40}") {
            for finding in findings(&text) {
                prop_assert!(text.get(finding.range.clone()).is_some(), "{finding:?}");
            }
        }
    }
}
