//! Finds markup that visitors would read as text: incomplete Markdown, and syntax of other generators (Hugo, Jekyll, Astro, VitePress, MkDocs, Obsidian).
//!
//! Code, comments and text behind a `\` are skipped, because their authors mean them to be read.
//!
//! - `text_run` splits the text into the runs that visitors read.
//! - `blocks` finds markup that begins a line or a block, and `inline` finds markup within a line.
//! - `references` finds references and footnotes without a definition.
//!
//! **Invariant:** every finding has the byte range of the markup in the source.

mod blocks;
mod inline;
mod references;
mod text_run;

use std::ops::Range;

use content::report::Code;

use self::text_run::{TextRun, runs};
use crate::markdown::events::parse;
use crate::markdown::mark_positions::MarkPositions;
use crate::markdown::truncated;

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
}

fn table_of_contents() -> (&'static str, String) {
    let hint = "remove it; a theme can list the headings of each page itself";
    (
        "is a table of contents of another generator",
        hint.to_owned(),
    )
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

    use super::references::MAX_COMPARED_BYTES;
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
