//! Determines the role of each file in a tenant's folder: manifest, page, asset, notes, or unread.
//!
//! Every file has exactly one role. A file is either read, or reported to its author with a name that would work.
//!
//! **Invariant:** knows only names, not the content of files.

use std::collections::BTreeMap;

use crate::name::reserved::is_reserved;
use crate::report::{Code, Diagnostic, Report, nearest};
use crate::source::Folder;

/// The file name of the manifest.
pub const MANIFEST: &str = "tenant.yaml";
/// The folder of pages.
pub(super) const PAGES: &str = "pages/";
/// The folder of files that pages show or offer.
pub(super) const ASSETS: &str = "assets/";

/// The role of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
    /// The manifest, `tenant.yaml`.
    Manifest,
    /// A page in Markdown.
    Page,
    /// A file that pages show or offer.
    Asset,
    /// A file for people who work on the folder, such as a README.
    Notes,
    /// A file that is not read.
    Unread,
}

/// Returns the role of a file by its path in the folder.
pub(super) fn role_of(path: &str) -> FileRole {
    let (_, name) = split(path);
    if path == MANIFEST {
        FileRole::Manifest
    } else if path.starts_with(PAGES) || path.starts_with(ASSETS) {
        match leftover(path).or_else(|| working_name(path)) {
            Some(_) => FileRole::Unread,
            None if path.starts_with(PAGES) && name.ends_with(".md") => FileRole::Page,
            None => FileRole::Asset,
        }
    } else if is_for_people(path) {
        FileRole::Notes
    } else {
        FileRole::Unread
    }
}

/// Splits a path into its folder, including the slash, and its name.
fn split(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |slash| slash + 1))
}

/// Returns the stem of a name with a Markdown extension, in any spelling.
fn stem_of_markdown(name: &str) -> Option<&str> {
    const ENDINGS: [&str; 6] = ["md", "markdown", "mdown", "mdwn", "mkd", "mdx"];
    let (stem, ending) = name.rsplit_once('.')?;
    let is_markdown = ENDINGS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(ending));
    is_markdown.then_some(stem)
}

/// Returns the name under which the engine would read a page of another generator or editor. Returns `None` for a name that works.
fn working_name(path: &str) -> Option<String> {
    if !path.starts_with(PAGES) {
        return None;
    }
    let (_, name) = split(path);
    let stem = stem_of_markdown(name)?;
    let stem = match stem.eq_ignore_ascii_case("index") || stem.eq_ignore_ascii_case("_index") {
        true => "index",
        false => stem,
    };
    let works = format!("{stem}.md");
    (works != name).then_some(works)
}

/// Recognises a file that a program left as a copy or backup. Returns a description of the file.
fn leftover(path: &str) -> Option<String> {
    let (_, name) = split(path);
    let lower = name.to_ascii_lowercase();
    let conflict = |mark: &str| {
        let at = lower.find(mark)?;
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        Some(format!(
            "a conflict copy of `{}.{ending}`",
            name[..at].trim_end_matches(['.', ' ', '('])
        ))
    };
    // Conflict copies of Syncthing, Dropbox, Nextcloud and ownCloud.
    let copy = conflict(".sync-conflict-")
        .or_else(|| lower.contains("conflicted copy").then(|| conflict(" ("))?)
        .or_else(|| conflict("_conflict-").filter(|_| path.starts_with(PAGES)))
        .or_else(|| conflict(" (case conflict"));
    let system = matches!(&*lower, "thumbs.db" | "desktop.ini");
    let system = system.then(|| "a file of the operating system".to_owned());
    // Only among pages: a download may have such a name.
    let backup = |stem: &str| format!("a backup of `{stem}`");
    let of_editor = name.strip_suffix('~').map(backup).or_else(|| {
        let inner = name.strip_prefix('#')?.strip_suffix('#')?;
        Some(backup(inner))
    });
    let of_page = || {
        if !path.starts_with(PAGES) {
            return None;
        }
        let stem = name.strip_suffix(".md").unwrap_or(name);
        let (stem, ending) = stem.rsplit_once('.')?;
        let is_backup = ["bak", "backup", "orig", "rej", "swp", "tmp"].contains(&ending);
        is_backup.then(|| backup(&format!("{}.md", stem.strip_suffix(".md").unwrap_or(stem))))
    };
    copy.or(system).or(of_editor).or_else(of_page)
}

/// Returns whether a file at the top of the folder is for people who work on the folder.
fn is_for_people(path: &str) -> bool {
    const STEMS: [&str; 6] = [
        "readme",
        "license",
        "licence",
        "notice",
        "changelog",
        "authors",
    ];
    let stem = path.split('.').next().unwrap_or_default();
    !path.contains('/') && STEMS.iter().any(|known| known.eq_ignore_ascii_case(stem))
}

/// Warns of every file that is not read, and once of every such folder.
pub(super) fn warn_of_unread_files(folder: &Folder, report: &mut Report) {
    let mut outside: BTreeMap<&str, usize> = BTreeMap::new();
    for path in folder.files.keys() {
        if role_of(path) != FileRole::Unread {
            continue;
        }
        if !path.starts_with(PAGES) && !path.starts_with(ASSETS) {
            let top = path
                .find('/')
                .map_or(path.as_str(), |slash| &path[..=slash]);
            *outside.entry(top).or_default() += 1;
            continue;
        }
        let (message, hint) = match (leftover(path), working_name(path)) {
            (Some(what), _) => (
                format!("the file is not read: it looks like {what}"),
                "compare the two files, then remove or rename this file".to_owned(),
            ),
            (None, works) => (
                "the file is not read: its name is not a valid name of a page".to_owned(),
                format!(
                    "rename the file to `{}{}`",
                    split(path).0,
                    works.unwrap_or_default()
                ),
            ),
        };
        let file = folder.name_of(path);
        report.push(Diagnostic::warning(Code::UnreadFile, file, message).hint(hint));
    }
    for (top, count) in outside {
        let message = match (top.ends_with('/'), count) {
            (false, _) => "the file is not read".to_owned(),
            (true, 1) => "the folder is not read; it has 1 file".to_owned(),
            (true, count) => format!("the folder is not read; it has {count} files"),
        };
        let file = folder.name_of(top);
        report.push(Diagnostic::warning(Code::UnreadFile, file, message).hint(hint_for(top)));
    }
}

/// Returns the hint for a file or folder at the top that is not read.
fn hint_for(top: &str) -> String {
    let name = top.trim_end_matches('/');
    let rename = |to: &str| format!("rename the folder to `{to}`");
    match (name.to_ascii_lowercase().as_str(), top.ends_with('/')) {
        ("content" | "post" | "posts" | "_posts", true) => rename(PAGES),
        ("static" | "public" | "images" | "img" | "media" | "files" | "downloads", true) => {
            "move its files to `assets/`".to_owned()
        }
        (".well-known", true) => "move its files to `assets/`, and list them in `tenant.yaml`, under `files:`; for app stores, write `app:` instead".to_owned(),
        ("_redirects", _) => "write the redirects in `tenant.yaml`, under `redirects:`; `rowhouse import redirects` prints the lines".to_owned(),
        ("_headers", _) => "remove the file; rowhouse sets the header fields itself".to_owned(),
        ("cname", _) => "write the host in `tenant.yaml`, under `hosts:`".to_owned(),
        ("robots.txt", _) => "remove the file; rowhouse generates `/robots.txt`, and `noindex: true` in a page excludes the page from search engines".to_owned(),
        ("tenant.yml" | "tenant.yaml.txt", _) => format!("move its content to `{MANIFEST}`"),
        (_, false) if is_reserved(&format!("/{name}")) => {
            format!("remove the file; rowhouse generates `/{name}`")
        }
        (lower, true) => match nearest(lower, ["pages", "assets"]) {
            Some(near) => rename(&format!("{near}/")),
            None => "move pages to `pages/` and all other files to `assets/`".to_owned(),
        },
        (lower, false) if lower.ends_with(".md") => format!("move the file to `{PAGES}`"),
        (lower, false) if is_text(lower) => format!(
            "move the file to `{ASSETS}`; to serve it at `/{name}`, list it in `tenant.yaml`, under `files:`"
        ),
        _ => format!("move the file to `{ASSETS}`, or remove it"),
    }
}

/// Returns whether a file may be one by which another service verifies ownership of a host.
fn is_text(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    matches!(ending, Some("html" | "json" | "txt" | "xml"))
}

/// Returns the hint for a folder without a manifest, which may have the manifest under another name or path.
pub(super) fn manifest_hint(folder: &Folder) -> String {
    let is_like_it = |path: &&String| {
        let (_, name) = split(path);
        let stem = name.split('.').next().unwrap_or_default();
        let endings = ["yaml", "yml", "txt", "json", "toml"];
        let ending = name.rsplit('.').next().unwrap_or_default();
        let ending = ending.to_ascii_lowercase();
        path.matches('/').count() <= 1
            && matches!(&*stem.to_ascii_lowercase(), "tenant" | "tenants")
            && endings.contains(&&*ending)
    };
    match folder.files.keys().find(is_like_it) {
        Some(path) => match path.split_once('/') {
            Some((inner, MANIFEST)) => format!(
                "move all files of `{inner}/` up to `{}`: the tenant is one folder too deep",
                folder.label
            ),
            _ => format!("rename `{path}` to `{MANIFEST}`"),
        },
        None => "add a manifest; one line is enough: `name: My site`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(paths: &[&str]) -> Folder {
        let files = paths.iter();
        Folder {
            label: "tenants/corner".to_owned(),
            files: files.map(|path| ((*path).to_owned(), "x".into())).collect(),
            ..Folder::default()
        }
    }

    #[test]
    fn every_file_is_read_or_reported() {
        for (path, role) in [
            ("tenant.yaml", FileRole::Manifest),
            ("README.md", FileRole::Notes),
            ("pages/index.md", FileRole::Page),
            ("pages/blog/conflict-of-interest.md", FileRole::Page),
            ("pages/blog/old.md", FileRole::Page),
            ("pages/blog/hall.jpg", FileRole::Asset),
            ("assets/hall (1).jpg", FileRole::Asset),
            ("assets/dump.bak", FileRole::Asset),
            ("assets/guide.markdown", FileRole::Asset),
        ] {
            assert_eq!(role_of(path), role, "{path}");
        }
        for (path, hint) in [
            (
                "pages/terms.sync-conflict-20261101-101010-ABCDEFG.md",
                "conflict copy of `terms.md`",
            ),
            (
                "pages/terms (Anna's conflicted copy 2026-11-01).md",
                "conflict copy of `terms.md`",
            ),
            (
                "assets/logo.sync-conflict-20261101-101010-ABCDEFG.svg",
                "conflict copy of `logo.svg`",
            ),
            ("pages/terms.md~", "backup of `terms.md`"),
            ("pages/#terms.md#", "backup of `terms.md`"),
            ("pages/terms.md.bak", "backup of `terms.md`"),
            ("pages/terms.orig.md", "backup of `terms.md`"),
            (
                "pages/blog/_index.md",
                "rename the file to `pages/blog/index.md`",
            ),
            ("pages/Index.md", "rename the file to `pages/index.md`"),
            ("pages/a.markdown", "rename the file to `pages/a.md`"),
            ("pages/a.MD", "rename the file to `pages/a.md`"),
            ("assets/Thumbs.db", "operating system"),
            ("page/a.md", "rename the folder to `pages/`"),
            ("Pages/a.md", "rename the folder to `pages/`"),
            ("asset/a.txt", "rename the folder to `assets/`"),
            ("static/a.txt", "to `assets/`"),
            ("robots.txt", "noindex"),
            ("_redirects", "`redirects:`"),
            (".well-known/x", "`files:`"),
            ("google1a2b.html", "serve it at `/google1a2b.html`"),
            ("CNAME", "`hosts:`"),
            ("sitemap.xml", "rowhouse generates `/sitemap.xml`"),
            ("terms.md", "move the file to `pages/`"),
            ("tenant.yml", "`tenant.yaml`"),
            ("logo.svg", "move the file to `assets/`"),
        ] {
            let mut report = Report::default();
            warn_of_unread_files(&folder(&[path]), &mut report);
            let reported: Vec<_> = report.iter().collect();
            assert_eq!(reported.len(), 1, "{path}");
            let words = format!("{} {:?}", reported[0].message, reported[0].hint);
            assert!(words.contains(hint), "{path}: {words}");
        }
    }

    #[test]
    fn misplaced_manifest_is_named_in_the_hint() {
        let hint = |path: &str| manifest_hint(&folder(&[path, "pages/index.md"]));
        assert!(hint("tenant.yml").contains("rename `tenant.yml`"));
        assert!(hint("Tenant.yaml").contains("rename `Tenant.yaml`"));
        assert!(hint("tenant.yaml.txt").contains("rename `tenant.yaml.txt`"));
        assert!(hint("corner/tenant.yaml").contains("one folder too deep"));
        assert!(hint("assets/a.txt").contains("name: My site"));
    }
}
