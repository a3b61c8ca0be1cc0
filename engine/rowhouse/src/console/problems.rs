//! Errors and warnings as `rowhouse check` prints them, split into lines for styling.
//!
//! **Invariant:** adds no text of its own.

use annotate_snippets::Renderer;
use content::report::{Diagnostic, Severity};
use serde::Serialize;

/// An error or a warning.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ProblemView {
    /// `error`, `warning` or `note`.
    severity: &'static str,
    code: &'static str,
    /// The explanation of the code.
    explanation: &'static str,
    lines: Vec<ProblemLine>,
}

/// A line of a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ProblemLine {
    /// `head`, `place`, `code`, `caret` or `help`.
    kind: &'static str,
    text: String,
}

/// The numbers of errors and warnings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct ProblemCounts {
    pub(super) errors: usize,
    pub(super) warnings: usize,
}

impl ProblemCounts {
    pub(super) fn of(diagnostics: &[Diagnostic]) -> Self {
        let count = |severity| {
            let same = diagnostics.iter().filter(|one| one.severity == severity);
            same.count()
        };
        Self {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
        }
    }
}

impl ProblemView {
    pub(super) fn new(diagnostic: &Diagnostic) -> Self {
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let text = diagnostic.render(&Renderer::plain());
        let lines = text.lines().enumerate();
        Self {
            severity,
            code: diagnostic.code.as_str(),
            explanation: diagnostic.code.explanation(),
            lines: lines
                .map(|(index, line)| ProblemLine::new(index, line))
                .collect(),
        }
    }
}

impl ProblemLine {
    fn new(index: usize, text: &str) -> Self {
        let bare = text.trim_start_matches([' ', '|']);
        let kind = match index {
            0 => "head",
            _ if bare.starts_with("-->") => "place",
            _ if bare.starts_with('^') || bare.starts_with('-') => "caret",
            _ if bare.starts_with('=') => "help",
            _ => "code",
        };
        Self {
            kind,
            text: text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use content::report::{Code, TextPosition};

    use super::*;

    #[test]
    fn problem_lines_are_the_lines_of_check() {
        let place = TextPosition {
            line: 1,
            column: 1,
            length: 4,
        };
        let diagnostic = Diagnostic::error(
            Code::UnknownKey,
            "tenants/a/tenant.yaml",
            "unknown key `nmae`",
        )
        .at(place, "nmae: A\n")
        .hint("did you mean `name`?");
        let problem = ProblemView::new(&diagnostic);
        let lines: Vec<&str> = problem.lines.iter().map(|line| &*line.text).collect();
        assert_eq!(lines.join("\n"), diagnostic.render(&Renderer::plain()));
        let of = |kind| {
            let mut lines = problem.lines.iter().filter(|line| line.kind == kind);
            lines
                .next()
                .map(|line| line.text.trim())
                .unwrap_or_default()
        };
        assert_eq!(of("head"), "error[unknown-key]: unknown key `nmae`");
        assert_eq!(of("place"), "--> tenants/a/tenant.yaml:1:1");
        assert!(of("caret").ends_with("^^^^"), "{lines:?}");
        assert!(of("help").contains("did you mean `name`?"), "{lines:?}");
        let counts = ProblemCounts::of(&[diagnostic.clone(), diagnostic]);
        assert_eq!((counts.errors, counts.warnings), (2, 0));
    }
}
