//! The languages of a tenant: which language a page is in, and which pages are translations of each other.
//!
//! The file `pages/terms.de.md` is the translation of `pages/terms.md`, and has the path `/de/terms`.
//!
//! **Invariant:** the path of a page decides its language. Only translations have paths below `/<language>`.

use std::collections::BTreeSet;

use super::manifest::Manifest;
use super::page::Page;
use super::role::MANIFEST;
use crate::formats::link::path_of;
use crate::formats::values::Language;
use crate::report::{Code, Diagnostic, Report, list};
use crate::source::Folder;

impl Manifest {
    /// Returns the languages of the pages, the default language first.
    #[must_use]
    pub fn languages(&self) -> &[Language] {
        match self.languages.as_slice() {
            [] => std::slice::from_ref(&self.language),
            languages => languages,
        }
    }

    /// Returns the language of the page at a path, as an index into [`Self::languages`].
    #[must_use]
    pub fn language_of(&self, path: &str) -> usize {
        self.split(path).0
    }

    /// Returns the language of the page at a path, and the path in the default language: `/terms` for `/de/terms`.
    #[must_use]
    pub fn split<'p>(&self, path: &'p str) -> (usize, &'p str) {
        for (index, language) in self.languages.iter().enumerate().skip(1) {
            let rest = path.strip_prefix('/');
            match rest.and_then(|rest| rest.strip_prefix(language.as_str())) {
                Some("") => return (index, "/"),
                Some(rest) if rest.starts_with('/') => return (index, rest),
                _ => {}
            }
        }
        (0, path)
    }

    /// Returns the path of a language's home page: `/`, or `/de` for another language than the default.
    #[must_use]
    pub fn home_of(&self, language: usize) -> String {
        self.join(language, "/")
    }

    /// Returns the path in a language for a path in the default language.
    pub(super) fn join(&self, language: usize, path: &str) -> String {
        match (language, self.languages.get(language), path) {
            (0, ..) | (_, None, _) => path.to_owned(),
            (_, Some(language), "/") => format!("/{}", language.as_str()),
            (_, Some(language), path) => format!("/{}{path}", language.as_str()),
        }
    }

    /// Returns the path of a page's file: `/de/terms` for `pages/terms.de.md`.
    #[must_use]
    pub fn path_of_file(&self, file: &str) -> Option<String> {
        if let Some((original, suffix)) = suffix_of(file) {
            let mut languages = self.languages.iter().skip(1);
            if let Some(index) = languages.position(|language| language.as_str() == suffix) {
                return Some(self.join(index + 1, &path_of(&original)?));
            }
        }
        path_of(file)
    }
}

/// Splits the name of a page's file: `pages/terms.md` and `de` for `pages/terms.de.md`.
fn suffix_of(file: &str) -> Option<(String, &str)> {
    let (name, suffix) = file.strip_suffix(".md")?.rsplit_once('.')?;
    let is_named = !name.is_empty() && !name.ends_with('/') && !suffix.contains('/');
    is_named.then(|| (format!("{name}.md"), suffix))
}

/// Reports translations that are missing, old or in no language of the tenant.
pub(super) fn check(manifest: &Manifest, pages: &[Page], folder: &Folder, report: &mut Report) {
    for page in pages {
        check_name(manifest, page, folder, report);
    }
    if manifest.languages.len() < 2 {
        return;
    }
    let paths: BTreeSet<&str> = pages.iter().map(|page| page.path.as_str()).collect();
    let used: BTreeSet<usize> = paths
        .iter()
        .map(|path| manifest.language_of(path))
        .collect();
    for (index, language) in manifest.languages.iter().enumerate().skip(1) {
        if !used.contains(&index) {
            let tag = language.as_str();
            let message = format!("no page is in the language `{tag}`");
            let name = folder.name_of(MANIFEST);
            report.push(
                Diagnostic::warning(Code::MissingTranslation, name, message).hint(format!(
                    "add `pages/index.{tag}.md`, or remove `{tag}` from `languages`"
                )),
            );
        }
    }
    for page in pages {
        let (language, original) = manifest.split(&page.path);
        if language == 0 {
            let missing = manifest.languages.iter().enumerate().skip(1);
            let missing = missing.filter(|(index, _)| used.contains(index));
            let missing: Vec<&str> = missing
                .filter(|(index, _)| !paths.contains(manifest.join(*index, original).as_str()))
                .map(|(_, language)| language.as_str())
                .collect();
            if let Some(first) = missing.first() {
                let file = page.file.trim_end_matches(".md");
                let hint = format!("add `{file}.{first}.md`");
                let message = format!("the page has no translation in {}", list(missing));
                let name = folder.name_of(&page.file);
                report
                    .push(Diagnostic::warning(Code::MissingTranslation, name, message).hint(hint));
            }
            continue;
        }
        let source = pages.iter().find(|page| page.path == original);
        let changed = |page: &Page| page.front.last_change().map(|date| date.day());
        if let (Some(source), Some(own)) = (source, changed(page))
            && let Some(newest) = changed(source)
            && own < newest
        {
            let message = format!(
                "the translation ({own}) is older than `{}` ({newest})",
                source.file
            );
            let name = folder.name_of(&page.file);
            report.push(
                Diagnostic::warning(Code::OldTranslation, name, message)
                    .hint("translate the changes, and set `updated` to the day of the original"),
            );
        }
    }
}

/// Reports a page whose file name promises another language than its path has.
fn check_name(manifest: &Manifest, page: &Page, folder: &Folder, report: &mut Report) {
    let name = folder.name_of(&page.file);
    let (language, original) = manifest.split(&page.path);
    let suffix = suffix_of(&page.file);
    let tag = manifest.languages()[language].as_str();
    if language > 0 {
        if suffix.is_none_or(|(_, suffix)| suffix != tag) {
            let message = format!(
                "the path `{}` collides with `/{tag}`, the address of the pages in `{tag}`",
                page.path
            );
            let file = match original {
                "/" => "/index",
                path => path,
            };
            report.push(
                Diagnostic::error(Code::BadPath, name, message)
                    .hint(format!("rename the file to `pages{file}.{tag}.md`")),
            );
        }
        return;
    }
    let Some((source, suffix)) = suffix else {
        return;
    };
    if !manifest.languages.is_empty() && suffix == tag {
        let message = format!("`{tag}` is the default language, whose pages have no suffix");
        report.push(
            Diagnostic::error(Code::BadPath, name, message)
                .hint(format!("rename the file to `{source}`")),
        );
        return;
    }
    let is_tag = suffix.len() == 2 && suffix.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_tag && folder.files.contains_key(&source) {
        let tags: Vec<&str> = manifest.languages().iter().map(Language::as_str).collect();
        let message = format!("`{suffix}` is not in `languages`, so the page is not a translation");
        report.push(
            Diagnostic::warning(Code::MissingTranslation, name, message).hint(format!(
                "write `languages: [{}, {suffix}]` in `{MANIFEST}`, or rename the file",
                tags.join(", ")
            )),
        );
    }
}
