//! Markup that begins a line or a block: code blocks, containers, tables, headings, MDX.
//!
//! **Invariant:** looks at no text within a line.

use pulldown_cmark::{CodeBlockKind, Event, Tag};

use content::report::Code;

use crate::markdown::events::ParsedText;
use crate::markdown::foreign_markup::text_run::TextRun;
use crate::markdown::foreign_markup::{FORMULA_HINT, GENERATOR_HINT, MarkupFinder};

/// Code block languages that other platforms render as a diagram.
const DIAGRAM_LANGUAGES: [&str; 7] = [
    "geojson", "goat", "markmap", "mermaid", "plantuml", "stl", "topojson",
];

/// Code block languages that other platforms render as a formula.
const FORMULA_LANGUAGES: [&str; 3] = ["chem", "katex", "math"];

impl MarkupFinder<'_> {
    /// Reports code blocks that other platforms render differently, and code blocks without an end.
    pub(super) fn blocks(&mut self, parsed: &ParsedText<'_>) {
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

    /// Reports markup that begins a line.
    pub(super) fn line(&mut self, run: &TextRun) {
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
