//! Markup that visitors would read as text: what is not complete, and what other generators have (Hugo, Jekyll, Astro, VitePress, MkDocs, Obsidian).
//!
//! Code and comments are left alone, and so is what a `\` comes before: it is meant to be read.
//!
//! **Invariant:** every finding names the bytes of the text that visitors read.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use unicase::UniCase;

use super::super::media::DECORATIVE;
use super::parsed::{Parsed, Undefined, parse};
use content::report::{Code, hint_for, nearest};

/// Markup that is not shown as its author meant it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The kind of diagnostic.
    pub(crate) code: Code,
    /// Where it is written.
    pub(crate) range: Range<usize>,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

/// The longest shortcode that is looked for, in bytes.
const LONGEST: usize = 2_000;
/// The most characters of markup that a message quotes.
const QUOTED: usize = 60;
/// The kinds of alert that there are.
const ALERTS: [&str; 5] = ["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"];
/// What may be done about markup of another generator.
const ANOTHER_WAY: &str =
    "write it in Markdown or as a section; between backticks visitors read it as it is";

/// Finds markup that visitors would read as text.
#[must_use]
pub(crate) fn findings(text: &str) -> Vec<Finding> {
    let parsed = parse(text);
    let mut finder = Finder {
        text,
        findings: Vec::new(),
        end: 0,
    };
    finder.blocks(&parsed);
    for run in runs(&parsed, text) {
        finder.run(&run);
    }
    for undefined in &parsed.undefined {
        finder.reference(undefined, &parsed.definitions);
    }
    finder.notes(&parsed);
    let mut findings = finder.findings;
    findings.sort_by_key(|finding| finding.range.start);
    findings
}

/// Text without a gap, which visitors read.
struct Run {
    range: Range<usize>,
    /// Whether a line begins with it.
    begins_line: bool,
    /// Whether a block begins with it.
    begins_block: bool,
}

/// The runs of a text.
fn runs(parsed: &Parsed<'_>, text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut begins_line, mut begins_block) = (true, true);
    // In code, or in a heading, whose attributes are read.
    let mut in_code = false;
    for (event, range) in &parsed.events {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(_) | Event::InlineHtml(_) | Event::Html(_) if !in_code => {
                let is_comment = text[range.clone()].trim_start().starts_with("<!--");
                let last = runs.last_mut();
                match last.filter(|last| last.range.end == range.start && !begins_line) {
                    _ if is_comment && !matches!(event, Event::Text(_)) => {}
                    Some(last) => last.range.end = range.end,
                    None => runs.push(Run {
                        range: range.clone(),
                        begins_line,
                        begins_block,
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

/// Looks for markup.
struct Finder<'a> {
    text: &'a str,
    findings: Vec<Finding>,
    /// The end of the last shortcode: what is within it is a part of it.
    end: usize,
}

impl Finder<'_> {
    fn add(&mut self, code: Code, range: Range<usize>, what: &str, hint: &str) {
        let quoted = shortened(&self.text[range.clone()]);
        self.findings.push(Finding {
            code,
            range,
            message: format!("`{quoted}` {what}"),
            hint: hint.to_owned(),
        });
    }

    fn as_text(&mut self, range: Range<usize>, what: &str, hint: &str) {
        let what = format!("{what}, which visitors read as text");
        self.add(Code::MarkupAsText, range, &what, hint);
    }

    /// Blocks that are something else on other platforms.
    fn blocks(&mut self, parsed: &Parsed<'_>) {
        for (event, range) in &parsed.events {
            let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) = event else {
                continue;
            };
            let line = line_of(self.text, range.start);
            let language = info.split([' ', ',', '{']).next().unwrap_or_default();
            if matches!(
                language,
                "mermaid" | "math" | "geojson" | "topojson" | "stl"
            ) {
                let what = "begins a drawing elsewhere, and here visitors read its code";
                let hint =
                    "add the drawing as an SVG file, and name it: `![What it shows](drawing.svg)`";
                self.add(Code::MarkupAsText, line.clone(), what, hint);
            }
            let code = self.text[range.clone()].trim_end();
            let last = code.rsplit('\n').next().unwrap_or_default();
            let last = last.trim_start_matches([' ', '\t', '>']).trim_end();
            let is_fence = last.len() > 2 && last.bytes().all(|sign| matches!(sign, b'`' | b'~'));
            if !is_fence || !code.contains('\n') {
                let what =
                    "begins code that nothing ends, so that all of the text behind it is code";
                let hint = "write the same fence in a line of its own where the code ends";
                self.add(Code::MarkupAsText, line, what, hint);
            }
        }
    }

    fn run(&mut self, run: &Run) {
        if run.begins_line {
            self.line(run);
        }
        let mut at = run.range.start.max(self.end);
        while at < run.range.end {
            let rest = &self.text[at..run.range.end];
            let Some(next) = rest.find(['{', '[', ']', '$', '^', '=', ':']) else {
                break;
            };
            at += next;
            let is_escaped = self.text[..at].ends_with('\\');
            at = match is_escaped {
                true => at + 1,
                false => self.sign(at, run).max(at + 1),
            };
        }
        self.end = self.end.max(at.min(run.range.end));
    }

    /// Looks at what begins with a sign, and returns where it ends.
    fn sign(&mut self, at: usize, run: &Run) -> usize {
        let rest = &self.text[at..];
        let here = &self.text[at..run.range.end];
        for (open, close, what) in [
            ("{{<", ">}}", "is a shortcode of Hugo"),
            ("{{%", "%}}", "is a shortcode of Hugo"),
            ("{{", "}}", "is a variable of another generator"),
            ("{%", "%}", "is a tag of Liquid"),
        ] {
            if let Some(length) = rest.strip_prefix(open).and_then(|rest| ends(rest, close)) {
                let end = at + open.len() + length;
                self.as_text(at..end, what, ANOTHER_WAY);
                self.end = end;
                return end;
            }
        }
        if here.starts_with('{') && !here.starts_with(DECORATIVE) {
            let end = ends(&here[1..], "}").map(|length| at + 1 + length);
            if let Some(end) = end.filter(|end| is_attributes(&self.text[at + 1..*end - 1])) {
                let hint = "remove it; a fragment may follow a heading: `## Prices {#fees}`";
                self.as_text(at..end, "is an attribute list of another generator", hint);
                return end;
            }
        }
        if here.starts_with("[[")
            && let Some(length) = ends(&rest[2..], "]]")
        {
            let name = rest[2..length].trim_matches('_').to_owned();
            let end = at + 2 + length;
            let (what, hint) = match name.to_lowercase().as_str() {
                "toc" => table_of_contents(),
                _ => (
                    "is a link of a wiki",
                    format!("write it as a link: `[{0}]({0}.md)`", shortened(&name)),
                ),
            };
            self.as_text(at..end, what, &hint);
            return end;
        }
        if let Some(rest) = here.strip_prefix("](") {
            let length = rest.find(')').unwrap_or(rest.len());
            let inner = &rest[..length];
            if inner.contains("{{") || inner.contains("{%") {
                return at + 2;
            }
            let begin = self.text[run.range.start..at].rfind('[');
            let begin = begin.map_or(at, |begin| run.range.start + begin);
            let end = (at + 2 + length + 1).min(run.range.end);
            let (what, hint) = match inner.trim() {
                name if name.contains(' ') && !name.contains(['"', '\'']) => (
                    "is not a link, since its address holds a space",
                    match name.split_once(':') {
                        Some(("tel" | "sms", number)) => {
                            format!(
                                "write the number without spaces: `{}`",
                                number.replace(' ', "-")
                            )
                        }
                        _ => format!(
                            "write `%20` for each space, or `<{name}>` with the angle brackets"
                        ),
                    },
                ),
                _ => (
                    "is not a link",
                    "write it in one line as `[words](address)`, without another link in it"
                        .to_owned(),
                ),
            };
            let what = format!("{what}: visitors read it as text");
            self.add(Code::MarkupAsText, begin..end, &what, &hint);
            return end;
        }
        if let Some(note) = here.strip_prefix("^[") {
            let end = ends(note, "]").map(|length| at + 2 + length);
            if let Some(end) = end {
                let hint =
                    "write `[^1]` here, and the note in a line of its own: `[^1]: The note.`";
                self.as_text(at..end, "is a footnote within a line", hint);
                return end;
            }
        }
        if let Some(end) = self.math(at, here).or_else(|| self.mark(at, here)) {
            return end;
        }
        at
    }

    /// Formulas: `$$E = mc^2$$`, and `$x^2$` where it cannot be an amount of money.
    fn math(&mut self, at: usize, here: &str) -> Option<usize> {
        let hint = "write it in words and Unicode signs (`E = mc²`), or add it as a picture";
        let (length, is_math) = match here.strip_prefix("$$") {
            Some(rest) => (4 + rest.find("$$")?, true),
            None => {
                let rest = here.strip_prefix('$')?;
                let length = rest.find('$')?;
                let inner = &rest[..length];
                let is_tight = !inner.starts_with(' ') && !inner.ends_with(' ');
                let is_formula = inner.contains(['\\', '^']) || inner.contains("_{");
                (2 + length, is_tight && is_formula)
            }
        };
        let end = at + length;
        is_math.then(|| self.as_text(at..end, "is a formula", hint))?;
        Some(end)
    }

    /// Marked words: `==so==`.
    fn mark(&mut self, at: usize, here: &str) -> Option<usize> {
        let rest = here.strip_prefix("==")?;
        let length = rest.find("==")?;
        let inner = &rest[..length];
        let is_mark = |sign: char| sign.is_whitespace() || sign == '=';
        let is_marked =
            !inner.is_empty() && !inner.starts_with(is_mark) && !inner.ends_with(is_mark);
        let end = at + 4 + length;
        is_marked.then(|| {
            let hint = "write `**` around words that matter";
            self.as_text(at..end, "is a mark of another dialect", hint);
        })?;
        Some(end)
    }

    /// Looks at how a line begins.
    fn line(&mut self, run: &Run) {
        // The first colon behind a paragraph is the mark of a definition.
        let colons = self.text[..run.range.start].bytes().rev();
        let colons = colons.take_while(|byte| *byte == b':').count();
        let range = run.range.start - colons..run.range.end;
        if self.text[..range.start].ends_with('\\') || range.start < self.end {
            return;
        }
        let line = self.text[range.clone()].lines().next().unwrap_or_default();
        let whole = line_of(self.text, range.start);
        let line_range = range.start..whole.end.max(range.start);
        let after = |marks: &str| line.strip_prefix(marks).map(str::trim);
        let is_word = |text: &str| text.starts_with(|sign: char| sign.is_alphabetic());
        if after(":::").is_some_and(|name| is_word(name.trim_start_matches([':', '{', '.', ' ']))) {
            let hint = "write `> [!NOTE]`, and each line of the text behind `> `";
            self.as_text(line_range, "begins a container of another generator", hint);
        } else if after("!!! ").or_else(|| after("??? ")).is_some_and(is_word) {
            let hint = "write `> [!NOTE]`, and each line of the text behind `> `";
            self.as_text(
                line_range,
                "begins an admonition of another generator",
                hint,
            );
        } else if line.starts_with("=== \"") || line.starts_with("--8<--") {
            self.as_text(line_range, "is markup of another generator", ANOTHER_WAY);
        } else if run.begins_block && is_script(line) {
            let hint = "remove the line: a page in Markdown runs no script";
            self.as_text(line_range, "is a line of MDX", hint);
        } else if is_row_of_dashes(line) {
            let hint = "give the head of the table and the line below it as many cells, and leave a line empty above them";
            self.as_text(line_range, "belongs to a table that is not complete", hint);
        } else if line.starts_with("*[") && line.contains("]:") {
            let hint = "write the abbreviation out where it is used first";
            self.as_text(line_range, "is an abbreviation of another generator", hint);
        } else if line.starts_with("##") && is_word(line.trim_start_matches('#')) {
            let hint = "write a space behind the last `#`";
            self.as_text(line_range, "is not a heading", hint);
        }
    }

    /// A reference that nothing defines.
    fn reference(&mut self, undefined: &Undefined, definitions: &[String]) {
        let (name, range) = (undefined.name.as_str(), undefined.range.clone());
        let is_inside = self
            .findings
            .iter()
            .any(|finding| finding.range.start <= range.start && range.end <= finding.range.end);
        if is_inside {
            return;
        }
        if let Some(kind) = name.strip_prefix('!').filter(|_| undefined.is_shortcut) {
            if !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                let hint = hint_for(&kind.to_uppercase(), ALERTS);
                self.as_text(range, "is not a kind of alert", &hint);
            }
            return;
        }
        let near = nearest(name, definitions.iter().map(String::as_str));
        if undefined.is_shortcut {
            if name.eq_ignore_ascii_case("toc") {
                let (what, hint) = table_of_contents();
                self.as_text(range, what, &hint);
            } else if let Some(near) = near.filter(|_| name.chars().count() > 3) {
                let hint = format!("did you mean `[{near}]`?");
                let what = "has no definition, and visitors read it as text";
                self.add(Code::UndefinedReference, range, what, &hint);
            }
            return;
        }
        // An index of a program: `list[0][1]`.
        let before = self.text[..range.start].chars().next_back();
        if before.is_some_and(char::is_alphanumeric) {
            return;
        }
        let hint = match near {
            Some(near) => format!("did you mean `[{near}]`?"),
            None => format!(
                "add a line `[{name}]: https://...`, or write the address in `( )` behind the words"
            ),
        };
        let what = format!(
            "has no definition of `{}`, and visitors read it as text",
            shortened(name)
        );
        self.add(Code::UndefinedReference, range, &what, &hint);
    }

    /// References to footnotes that are not there, and footnotes that nothing refers to.
    fn notes(&mut self, parsed: &Parsed<'_>) {
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
                let hint = "give one of the two notes another name";
                self.add(
                    Code::UndefinedReference,
                    place,
                    "is written twice, and references lead to the first",
                    hint,
                );
            } else if !used.contains(&name_of(name)) {
                let hint = format!("write `[^{name}]` where it belongs");
                self.add(
                    Code::UndefinedReference,
                    place,
                    "has no reference in the text",
                    &hint,
                );
            }
        }
        for run in runs(parsed, self.text) {
            let text = &self.text[run.range.clone()];
            for (at, _) in text.match_indices("[^") {
                let range = run.range.start + at;
                let Some(length) = ends(&text[at + 2..], "]") else {
                    continue;
                };
                let name = &text[at + 2..at + 1 + length];
                let is_name =
                    |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_' | '.');
                let range = range..range + 2 + length;
                if name.is_empty()
                    || !name.chars().all(is_name)
                    || self.text[..range.start].ends_with('\\')
                {
                    continue;
                }
                let hint = match nearest(name, names.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `[^{near}]`?"),
                    None => format!("add a line `[^{name}]: The note.`"),
                };
                self.add(
                    Code::UndefinedReference,
                    range,
                    "has no footnote, and visitors read it as text",
                    &hint,
                );
            }
        }
    }
}

fn table_of_contents() -> (&'static str, String) {
    let hint = "remove it: a theme shows the headings of a page where it has a place for them";
    (
        "is a table of contents of another generator",
        hint.to_owned(),
    )
}

/// How many bytes there are to the end of a mark, in the same paragraph.
fn ends(rest: &str, close: &str) -> Option<usize> {
    let mut most = rest.len().min(LONGEST);
    while !rest.is_char_boundary(most) {
        most -= 1;
    }
    let near = &rest[..most];
    let end = near.find(close)? + close.len();
    (!near[..end].contains("\n\n")).then_some(end)
}

/// Whether the inside of braces is attributes as kramdown, Goldmark and Pandoc have them: `: .note #id`, `.note`.
fn is_attributes(inner: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || " -_.#:='\"/".contains(sign);
    let mut signs = inner.chars();
    let begins = match signs.next() {
        Some(':') => !inner[1..].trim().is_empty(),
        Some('.' | '#') => signs.next().is_some_and(char::is_alphabetic),
        _ => false,
    };
    begins && inner.chars().all(is_part)
}

/// Whether a line is one that MDX runs.
fn is_script(line: &str) -> bool {
    let from = |line: &str| line.contains(" from '") || line.contains(" from \"");
    (line.starts_with("import ") && from(line))
        || line.starts_with("export const ")
        || line.starts_with("export default ")
        || line.starts_with("{/*")
}

/// Whether a line is the one below the head of a table.
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

/// The bytes of the line that a byte is in.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    at..at + text[at..end].trim_end().len()
}

/// Markup in one line, cut where it is long.
fn shortened(markup: &str) -> String {
    let words: Vec<&str> = markup.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(QUOTED) {
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
        ] {
            assert_eq!(quoted(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn hint_says_how_a_number_is_written() {
        let found = findings("[Call us](tel:+49 30 1234)");
        assert_eq!(
            found[0].hint,
            "write the number without spaces: `+49-30-1234`"
        );
    }

    proptest! {
        #[test]
        fn findings_lie_within_the_text(text in "(?s)(\\{\\{<|>\\}\\}|\\{%|%\\}|\\[\\[|\\]\\]|\\]\\(|\\[\\^|:::|\\$|==|```|\n|> |ä|[a-z \\\\.]){0,40}") {
            for finding in findings(&text) {
                prop_assert!(text.get(finding.range.clone()).is_some(), "{finding:?}");
            }
        }
    }
}
