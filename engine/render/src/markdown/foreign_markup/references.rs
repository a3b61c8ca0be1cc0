//! References and footnotes that have no definition, and footnotes that are repeated or unused.
//!
//! **Invariant:** a reference within other reported markup is not reported.

use std::cmp::Reverse;
use std::ops::Range;

use pulldown_cmark::{Event, Tag};
use unicase::UniCase;

use content::report::{Code, hint_for, nearest};

use crate::markdown::events::{ParsedText, UndefinedReference};
use crate::markdown::foreign_markup::text_run::TextRun;
use crate::markdown::foreign_markup::{MarkupFinder, shortened, table_of_contents};

/// Limit on the names that are compared for suggestions in one text, in bytes.
pub(super) const MAX_COMPARED_BYTES: usize = 20_000_000;

/// The alert types.
const ALERT_TYPES: [&str; 5] = ["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"];

impl MarkupFinder<'_> {
    /// Reports references without a definition, except for those within other reported markup.
    pub(super) fn references(&mut self, parsed: &ParsedText<'_>) {
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
    pub(super) fn notes(&mut self, parsed: &ParsedText<'_>, runs: &[TextRun]) {
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

    /// Returns the name most similar to `name`. Returns `None` once the limit on comparisons is reached.
    fn nearest<'n>(&mut self, name: &str, names: &'n DefinitionNames) -> Option<&'n str> {
        if self.compared + names.bytes > MAX_COMPARED_BYTES {
            return None;
        }
        self.compared += names.bytes;
        nearest(name, names.list.iter().map(String::as_str))
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
