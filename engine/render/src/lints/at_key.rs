//! Warnings that point at a key of a page's front matter.

use content::report::{Code, Diagnostic, TextPosition};
use content::tenant::{Page, Site};

/// Makes a warning that points at a key of a page's front matter, or at the start of the file if the key is missing.
pub(crate) fn warning_at_key(
    site: &Site,
    page: &Page,
    key: &str,
    code: Code,
    message: String,
) -> Diagnostic {
    let text = site
        .written
        .texts
        .get(&page.file)
        .map_or("", String::as_str);
    let starts = |line: &str| {
        line.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(':'))
    };
    let index = text.lines().position(starts);
    let place = TextPosition {
        line: index.map_or(1, |index| index + 1),
        column: 1,
        length: index.map_or(3, |_| key.chars().count()),
    };
    let diagnostic = Diagnostic::warning(code, site.name_of(&page.file), message);
    site.locate(diagnostic, &page.file, place)
}
