//! The paths that a manifest gives to downloads and text files. Each must be a valid page path that no page, redirect or other file uses.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::assets::named;
use super::manifest::{Manifest, Redirect};
use super::page::Page;
use super::role::MANIFEST;
use crate::formats::{RESERVED_PATH_HINT, reserved_message};
use crate::name::reserved::{is_free_for_text, is_reserved};
use crate::name::{exported, folded, is_route_path};
use crate::report::{Code, Diagnostic, Report};
use crate::schema::FormattedText;
use crate::source::LargeSourceFile;

/// The largest size, in bytes, of a text file listed under `files`.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;

/// Reports downloads that cannot have their paths.
pub(super) fn check(
    (manifest, formatted): (&Manifest, &[FormattedText]),
    pages: &[Page],
    (file, text): (&str, Option<&String>),
    report: &mut Report,
) {
    let paths = |page| Page::paths(page).map(move |path| (path, page));
    let pages: HashMap<&str, &Page> = pages.iter().flat_map(paths).collect();
    for (path, offered) in manifest.downloads() {
        let mut redirects = manifest.redirects.iter();
        let (code, message, hint) = if !is_route_path(&path) || path == "/" {
            let message = format!("the download's path `{path}` is not valid");
            let hint = "use only letters, digits, `-`, `.`, `_` and `~` in the name";
            (Code::BadPath, message, hint)
        } else if is_reserved(&path) {
            let message = format!("the download's path {}", reserved_message(&path));
            (Code::BadPath, message, RESERVED_PATH_HINT)
        } else if let Some(page) = pages.get(path.as_str()) {
            let message = format!("`{}` already has the download's path `{path}`", page.file);
            (Code::PathTwice, message, "rename the download")
        } else if redirects.any(|redirect| redirect.own_path().as_ref() == Some(&path)) {
            let message = format!("a redirect already has the download's path `{path}`");
            let hint = "rename the download, or remove the redirect";
            (Code::PathTwice, message, hint)
        } else {
            continue;
        };
        let diagnostic = Diagnostic::error(code, file, message).hint(hint);
        report.push(at(diagnostic, offered.as_str(), formatted, text));
    }
}

/// Reports text files that cannot have their paths, or are too large.
pub(super) fn check_texts(
    (manifest, formatted): (&Manifest, &[FormattedText]),
    (pages, assets, large): (
        &[Page],
        &BTreeMap<String, Bytes>,
        &BTreeMap<String, LargeSourceFile>,
    ),
    (file, text): (&str, Option<&String>),
    report: &mut Report,
) {
    // Paths in use, by file name in an export: some file systems ignore case.
    let paths = |page| Page::paths(page).map(move |path| (path, page));
    let paths = pages.iter().flat_map(paths);
    let of_page = |(path, page): (&str, &Page)| (exported::key(path), format!("`{}`", page.file));
    let of_list = |path: &str, list: &str| (folded(path), format!("`{list}:`"));
    let mut owners: HashMap<String, String> = paths.map(of_page).collect();
    let redirects = manifest.redirects.iter();
    let redirects = redirects.filter_map(Redirect::own_path);
    owners.extend(redirects.map(|path| of_list(path.trim_start_matches('/'), "redirects")));
    let downloads = manifest.downloads.keys();
    owners.extend(downloads.map(|name| of_list(name, "downloads")));
    for (path, named_file) in manifest.files() {
        let name = folded(&path[1..]);
        let page = exported::key(&path);
        let owner = owners.get(&name).or_else(|| owners.get(&page));
        let is_folder = || {
            let inner = format!("{name}/");
            let mut above = name.match_indices('/').map(|(slash, _)| &name[..slash]);
            above.any(|above| owners.contains_key(above))
                || owners.keys().any(|owner| owner.starts_with(&inner))
        };
        let asset = named(assets, named_file.as_str(), MANIFEST);
        let is_large = asset.is_some_and(|(_, bytes)| bytes.len() > MAX_TEXT_BYTES)
            || named(large, named_file.as_str(), MANIFEST).is_some();
        let (code, message, hint) = if !is_route_path(&path) || path == "/" {
            let message = format!("the text file's path `{path}` is not valid");
            let hint = "use only letters, digits, `-`, `.`, `_` and `~` in the name";
            (Code::BadPath, message, hint)
        } else if !is_free_for_text(&path) {
            let message = format!("the text file's path {}", reserved_message(&path));
            (Code::BadPath, message, RESERVED_PATH_HINT)
        } else if let Err(reason) = exported::check_text(&path) {
            let message = format!("the text file's path `{path}` is not valid: {reason}");
            (Code::BadPath, message, "choose another name")
        } else if let Some(owner) = owner {
            let message = format!("{owner} already has the text file's path `{path}`");
            (Code::PathTwice, message, "choose another name")
        } else if is_folder() {
            let message = format!(
                "the text file's path `{path}` is above or below another path of the tenant"
            );
            (Code::PathTwice, message, "choose another name")
        } else if is_large {
            let limit = MAX_TEXT_BYTES >> 10;
            let message = format!("the text file at `{path}` has more than {limit} KiB");
            (
                Code::TooLarge,
                message,
                "list the file under `downloads:` instead",
            )
        } else {
            owners.insert(name, "another key of `files:`".to_owned());
            continue;
        };
        let diagnostic = Diagnostic::error(code, file, message).hint(hint);
        report.push(at(diagnostic, named_file.as_str(), formatted, text));
    }
}

/// Adds the position at which the manifest names a file.
fn at(
    diagnostic: Diagnostic,
    named: &str,
    formatted: &[FormattedText],
    text: Option<&String>,
) -> Diagnostic {
    let mut files = formatted.iter().filter(|text| text.format == "file");
    let found = files.find(|text| text.text == named);
    match (found, text) {
        (Some(found), Some(text)) => diagnostic.at(found.position, text),
        _ => diagnostic,
    }
}
