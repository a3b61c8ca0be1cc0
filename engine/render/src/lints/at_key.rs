//! Warnings with their places in a page's file.

use content::report::{Code, Diagnostic, Place};
use content::tenant::{Page, Site};

/// A warning at a key of a page's front matter, or at its beginning.
pub(crate) fn keyed(
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
    let place = Place {
        line: index.map_or(1, |index| index + 1),
        column: 1,
        length: index.map_or(3, |_| key.chars().count()),
    };
    let diagnostic = Diagnostic::warning(code, site.name_of(&page.file), message);
    site.locate(diagnostic, &page.file, place)
}
