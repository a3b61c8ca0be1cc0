//! The languages of a tenant: which language a page is in, and which pages are translations of each other.
//!
//! The file `pages/terms.de.md` is the translation of `pages/terms.md`, and has the path `/de/terms`.
//!
//! **Invariant:** the path of a page decides its language. Only translations have paths below `/<language>`.

use std::collections::{BTreeMap, BTreeSet};

use super::manifest::Manifest;
use super::page::Page;
use super::role::MANIFEST;
use crate::formats::link::path_of;
use crate::formats::values::Language;
use crate::report::{Code, Diagnostic, Report, Severity, list};
use crate::source::Folder;
use crate::yaml::{Node, Value};

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
    #[must_use]
    pub fn join(&self, language: usize, path: &str) -> String {
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

/// Returns the file of the original and the suffix of a page whose name ends like a language tag, but that is in the default language.
pub(super) fn unlisted_translation<'p>(
    manifest: &Manifest,
    page: &'p Page,
) -> Option<(String, &'p str)> {
    let (original, suffix) = suffix_of(&page.file)?;
    // Three letters are a language only in a site with several: `terms.faq.md` is a page like any other.
    let longest = if manifest.languages.len() < 2 { 2 } else { 3 };
    let is_tag = (2..=longest).contains(&suffix.len())
        && suffix.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_tag && manifest.language_of(&page.path) == 0).then_some((original, suffix))
}

/// Splits the name of a page's file: `pages/terms.md` and `de` for `pages/terms.de.md`.
fn suffix_of(file: &str) -> Option<(String, &str)> {
    let (name, suffix) = file.strip_suffix(".md")?.rsplit_once('.')?;
    let is_named = !name.is_empty() && !name.ends_with('/') && !suffix.contains('/');
    is_named.then(|| (format!("{name}.md"), suffix))
}

/// The files of a tenant, for the positions of diagnostics.
pub(super) struct WrittenFiles<'a> {
    /// The folder.
    pub(super) folder: &'a Folder,
    /// The parsed manifest and front matter, by file.
    pub(super) nodes: &'a BTreeMap<String, Node>,
    /// The texts, by file.
    pub(super) texts: &'a BTreeMap<String, String>,
}

impl WrittenFiles<'_> {
    /// Returns a warning at the first of these keys that a file has.
    fn warning(&self, file: &str, keys: &[&str], code: Code, message: String) -> Diagnostic {
        let pairs = match self.nodes.get(file).map(|node| &node.value) {
            Some(Value::Map(pairs)) => pairs.as_slice(),
            _ => &[],
        };
        let position = |name: &&str| {
            let mut keys = pairs.iter().map(|(key, _)| key);
            keys.find(|key| key.name == **name).map(|key| key.position)
        };
        let diagnostic = Diagnostic::warning(code, self.folder.name_of(file), message);
        match (keys.iter().find_map(position), self.texts.get(file)) {
            (Some(position), Some(text)) => diagnostic.at(position, text),
            _ => diagnostic,
        }
    }
}

/// Reports translations that are missing, old or in no language of the tenant.
pub(super) fn check(
    manifest: &Manifest,
    pages: &[Page],
    written: &WrittenFiles<'_>,
    report: &mut Report,
) {
    let is_named: Vec<bool> = (pages.iter())
        .map(|page| check_name(manifest, page, written, report))
        .collect();
    if manifest.languages.len() < 2 {
        return;
    }
    let by_path: BTreeMap<&str, &Page> = pages
        .iter()
        .map(|page| (page.path.as_str(), page))
        .collect();
    let used: BTreeSet<usize> = by_path
        .keys()
        .map(|path| manifest.language_of(path))
        .collect();
    let others = || manifest.languages.iter().enumerate().skip(1);
    let unused: Vec<&str> = others()
        .filter(|(index, _)| !used.contains(index))
        .map(|(_, language)| language.as_str())
        .collect();
    if let Some(first) = unused.first() {
        let message = format!("no page is in {}", list(unused.iter().copied()));
        let hint = format!("add `pages/index.{first}.md`, or remove `{first}` from `languages`");
        let keys = ["languages"];
        let warning = written.warning(MANIFEST, &keys, Code::MissingTranslation, message);
        report.push(warning.hint(hint));
    }
    for (page, _) in pages.iter().zip(is_named).filter(|(_, named)| *named) {
        let (language, original) = manifest.split(&page.path);
        if language > 0 {
            check_age(page, by_path.get(original).copied(), written, report);
            continue;
        }
        let missing: Vec<&str> = others()
            .filter(|(index, _)| used.contains(index))
            .filter(|(index, _)| !by_path.contains_key(manifest.join(*index, original).as_str()))
            .map(|(_, language)| language.as_str())
            .collect();
        if let Some(first) = missing.first() {
            let file = page.file.trim_end_matches(".md");
            let misnamed = (["-", "_"].iter())
                .map(|mark| format!("{file}{mark}{first}.md"))
                .find(|name| written.folder.files.contains_key(name));
            let hint = match misnamed {
                Some(name) => format!("rename `{name}` to `{file}.{first}.md`"),
                None => format!("add `{file}.{first}.md`"),
            };
            let message = format!("the page has no translation in {}", list(missing));
            let code = Code::MissingTranslation;
            report.add(
                Severity::Warning,
                code,
                &written.folder.name_of(&page.file),
                || {
                    written
                        .warning(&page.file, &["title"], code, message)
                        .hint(hint)
                },
            );
        }
    }
}

/// Reports a translation that was last changed before its original.
fn check_age(
    page: &Page,
    original: Option<&Page>,
    written: &WrittenFiles<'_>,
    report: &mut Report,
) {
    let changed = |page: &Page| page.front.last_change().map(|date| date.day());
    let Some(original) = original else {
        return;
    };
    let (Some(own), Some(newest)) = (changed(page), changed(original)) else {
        return;
    };
    if own < newest {
        let message = format!(
            "the translation ({own}) is older than `{}` ({newest})",
            original.file
        );
        let code = Code::OldTranslation;
        let hint = "translate the changes, and set `updated` to the day of the original";
        let warning = written.warning(&page.file, &["updated", "date"], code, message);
        report.push(warning.hint(hint));
    }
}

/// Reports a page whose file name promises another language than its path has. Returns whether the name fits.
fn check_name(
    manifest: &Manifest,
    page: &Page,
    written: &WrittenFiles<'_>,
    report: &mut Report,
) -> bool {
    let folder = written.folder;
    let name = folder.name_of(&page.file);
    let (language, original) = manifest.split(&page.path);
    let suffix = suffix_of(&page.file);
    let tag = manifest.languages()[language].as_str();
    if language > 0 {
        let fits = suffix.is_some_and(|(_, suffix)| suffix == tag);
        if !fits {
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
        return fits;
    }
    let Some((source, suffix)) = suffix else {
        return true;
    };
    if !manifest.languages.is_empty() && suffix == tag {
        let message = format!("`{tag}` is the default language, whose pages have no suffix");
        report.push(
            Diagnostic::error(Code::BadPath, name, message)
                .hint(format!("rename the file to `{source}`")),
        );
        return false;
    }
    let is_translation = unlisted_translation(manifest, page)
        .is_some_and(|(original, _)| folder.files.contains_key(&original));
    if is_translation {
        let tags: Vec<&str> = manifest.languages().iter().map(Language::as_str).collect();
        let untranslated = (tags.iter().skip(1))
            .map(|tag| format!("{}.{tag}.md", source.trim_end_matches(".md")))
            // Three letters are an uncommon tag, and most often a misspelling.
            .find(|file| suffix.len() > 2 && !folder.files.contains_key(file));
        let rename = match untranslated {
            Some(file) => format!("rename the file to `{file}`"),
            None => "rename the file".to_owned(),
        };
        let message = format!("`{suffix}` is not in `languages`, so the page is not a translation");
        report.push(
            Diagnostic::warning(Code::MissingTranslation, name, message).hint(format!(
                "write `languages: [{}, {suffix}]` in `{MANIFEST}`, or {rename}",
                tags.join(", ")
            )),
        );
    }
    !is_translation
}
