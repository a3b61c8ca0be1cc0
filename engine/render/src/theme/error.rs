//! Converts Tera's errors to diagnostics with places in the theme's files.

use tera::ErrorKind;

use super::section::opening;
use content::report::{Code, Diagnostic, TextPosition};
use content::theme::Theme;

/// Converts a Tera error to diagnostics that point into the theme's files.
pub(super) fn located(error: &tera::Error, code: Code, theme: &Theme) -> Vec<Diagnostic> {
    match error.kind() {
        ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => {
            let span = report.span();
            let column = span.start_col + 1;
            let length = if span.end_line == span.start_line {
                (span.end_col + 1).saturating_sub(column).max(1)
            } else {
                1
            };
            let place = TextPosition {
                line: span.start_line,
                column,
                length,
            };
            vec![in_theme(
                report.message(),
                code,
                report.filename(),
                place,
                theme,
            )]
        }
        _ => split_reports(&error.to_string(), code, theme),
    }
}

/// Splits an error about unknown names, which is one text with several reports: `error: message` and `--> file:line:column`.
fn split_reports(text: &str, code: Code, theme: &Theme) -> Vec<Diagnostic> {
    let found: Vec<Diagnostic> = text
        .split("error: ")
        .filter_map(|block| {
            let (message, rest) = block.split_once('\n')?;
            let mut position = rest
                .lines()
                .find_map(|line| line.trim().strip_prefix("--> "))?
                .rsplitn(3, ':');
            let column = position.next()?.parse().ok()?;
            let line = position.next()?.parse().ok()?;
            let file = position.next()?;
            let place = TextPosition {
                line,
                column,
                length: 1,
            };
            Some(in_theme(message, code, file, place, theme))
        })
        .collect();
    if found.is_empty() {
        return vec![Diagnostic::error(code, theme.label.clone(), one_line(text))];
    }
    found
}

fn in_theme(
    message: &str,
    code: Code,
    file: &str,
    place: TextPosition,
    theme: &Theme,
) -> Diagnostic {
    let diagnostic = Diagnostic::error(code, theme.name_of(file), one_line(message));
    let place = match opening(file) {
        // The engine puts the opening of a component before the author's first line.
        Some(opening) if place.line == 1 => TextPosition {
            column: place.column.saturating_sub(opening.chars().count()).max(1),
            ..place
        },
        _ => place,
    };
    let text = theme
        .files
        .get(file)
        .and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text {
        Some(text) => diagnostic.at(place, text),
        None => diagnostic,
    }
}

/// Joins the lines of a text with spaces.
pub(super) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
