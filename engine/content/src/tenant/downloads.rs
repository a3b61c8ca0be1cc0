//! The addresses of downloads: each is a path that a page could have, and nobody else's.

use std::collections::HashMap;

use super::formats::{OTHER_PATH, reserved};
use super::manifest::Manifest;
use super::page::Page;
use crate::name::is_route_path;
use crate::name::reserved::is_reserved;
use crate::report::{Code, Diagnostic, Report};
use crate::schema::Formatted;

/// Says which downloads cannot have their paths.
pub(super) fn check(
    (manifest, formatted): (&Manifest, &[Formatted]),
    pages: &[Page],
    (file, text): (&str, Option<&String>),
    report: &mut Report,
) {
    let paths = |page| Page::paths(page).map(move |path| (path, page));
    let pages: HashMap<&str, &Page> = pages.iter().flat_map(paths).collect();
    for (path, offered) in manifest.downloads() {
        let mut redirects = manifest.redirects.iter();
        let (code, message, hint) = if !is_route_path(&path) || path == "/" {
            let message = format!("the download would have the address `{path}`, which is none");
            let hint = "use letters, digits, `-`, `.`, `_` and `~` in its name";
            (Code::BadPath, message, hint)
        } else if is_reserved(&path) {
            (Code::BadPath, reserved(&path), OTHER_PATH)
        } else if let Some(page) = pages.get(path.as_str()) {
            let message = format!(
                "the path `{path}` of a download is taken by `{}`",
                page.file
            );
            (Code::PathTwice, message, "give the download another name")
        } else if redirects.any(|redirect| redirect.from.as_str() == path) {
            let message = format!("the path `{path}` of a download is redirected");
            let hint = "give the download another name, or take the redirect out";
            (Code::PathTwice, message, hint)
        } else {
            continue;
        };
        let diagnostic = Diagnostic::error(code, file, message).hint(hint);
        let mut files = formatted.iter().filter(|text| text.format == "file");
        let place = files.find(|text| text.text == offered.as_str());
        report.push(match (place, text) {
            (Some(found), Some(text)) => diagnostic.at(found.place, text),
            _ => diagnostic,
        });
    }
}
