//! Checks the quality of finished pages: titles, descriptions, headings, alt texts, and pages that no page links to.
//!
//! Pages are checked as rendered, at the tenant's canonical address, so the theme's markup counts, too. All findings are warnings, and are reported only if there is no error.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::compile::inputs::CompileInputs;
use crate::lints::at_key::warning_at_key;
use crate::lints::page_facts::PageFacts;
use crate::lints::page_weight;
use crate::markdown;
use crate::pages::links::resolver::below;
use content::report::{Code, Diagnostic, Report, Severity, TextPosition};
use content::tenant::{Page, Site};
use release::snapshot::Mount;

/// Limit on a title, in characters. Search engines cut longer titles.
const MAX_TITLE_CHARS: usize = 60;
/// The length of a description that search engines show in full, in characters.
const DESCRIPTION_CHARS: std::ops::RangeInclusive<usize> = 50..=160;
/// A page that no page of its tenant links to. Another tenant may link to it, which only the supervisor knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrphanPage {
    /// The paths of the page.
    pub paths: Vec<String>,
    /// The warning, reported if no other tenant links to the page either.
    pub diagnostic: Diagnostic,
}

/// The placeholder comment of `rowhouse new` in YAML.
const FILL_IN_YAML: &str = "# fill in";
/// The placeholder comment of `rowhouse new` in Markdown.
const FILL_IN_TEXT: &str = "<!-- fill in -->";

/// Checks all pages of a tenant at its canonical address. `seen` holds the facts by path.
pub(super) fn check(
    site: &Site,
    mount: &Mount,
    seen: &BTreeMap<String, PageFacts>,
    inputs: &CompileInputs,
) -> (Report, Vec<OrphanPage>) {
    let mut auditor = Auditor {
        site,
        report: Report::default(),
        orphans: Vec::new(),
    };
    let mut linked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, seen) in seen {
        for to in &seen.links {
            linked.entry(to).or_default().insert(from);
        }
    }
    for page in site.pages.values() {
        let Some(seen) = seen.get(&page.path) else {
            continue;
        };
        if !page.front.noindex {
            auditor.description(page);
            let is_found = page.paths().any(|path| {
                let here = below(&mount.prefix, path);
                let from = linked.get(here.as_str());
                from.is_some_and(|from| from.iter().any(|from| *from != page.path))
            });
            if page.path != "/" && !is_found {
                auditor.orphan(page);
            }
        }
        auditor.title(page);
        auditor.headings(page, &seen.headings);
        auditor.check_images(page, &seen.silent);
        let resource = mount.resource(&page.path);
        let heavy = page_weight::check(site, page, seen, resource.map(AsRef::as_ref), inputs);
        auditor.report.extend(heavy);
    }
    auditor.duplicates();
    auditor.placeholders();
    (auditor.report, auditor.orphans)
}

struct Auditor<'a> {
    site: &'a Site,
    report: Report,
    orphans: Vec<OrphanPage>,
}

impl Auditor<'_> {
    /// Adds a warning at a key of a page's front matter, or at the start of the file.
    fn warn(&mut self, code: Code, page: &Page, key: &str, message: String, hint: &str) {
        let site = self.site;
        self.add(code, &page.file, || {
            warning_at_key(site, page, key, code, message).hint(hint)
        });
    }

    fn warn_at(
        &mut self,
        code: Code,
        page: &Page,
        place: TextPosition,
        message: String,
        hint: &str,
    ) {
        let site = self.site;
        self.add(code, &page.file, || {
            let diagnostic = Diagnostic::warning(code, site.name_of(&page.file), message);
            site.locate(diagnostic, &page.file, place).hint(hint)
        });
    }

    fn add(&mut self, code: Code, file: &str, make: impl FnOnce() -> Diagnostic) {
        let name = self.site.name_of(file);
        self.report.add(Severity::Warning, code, &name, make);
    }

    fn title(&mut self, page: &Page) {
        let length = page.front.title.chars().count();
        if length > MAX_TITLE_CHARS {
            let message = format!("the title has {length} characters, more than {MAX_TITLE_CHARS}");
            self.warn(
                Code::TitleLength,
                page,
                "title",
                message,
                "put the topic first, and move the rest to `heading`",
            );
        }
    }

    fn description(&mut self, page: &Page) {
        let (key, own) = match (&page.front.description, &page.front.excerpt) {
            (None, Some(excerpt)) => ("excerpt", Some(excerpt)),
            (description, _) => ("description", description.as_ref()),
        };
        let of_tenant = self
            .site
            .manifest
            .description
            .as_ref()
            .filter(|_| page.path == "/");
        let Some(text) = own.or(of_tenant) else {
            let message = "the page has no description of its own".to_owned();
            return self.warn(Code::MissingDescription, page, key, message, "add a `description` of 50 to 160 characters; search results and shared links show it");
        };
        let length = text.chars().count();
        if !DESCRIPTION_CHARS.contains(&length) {
            let message = format!("the description has {length} characters");
            self.warn(
                Code::DescriptionLength,
                page,
                key,
                message,
                "write 50 to 160 characters; search engines cut off longer texts",
            );
        }
    }

    fn orphan(&mut self, page: &Page) {
        // Another warning names the language that the tenant lacks.
        if self.site.is_in_unlisted_language(page) {
            return;
        }
        let message = format!("no page links to `{}`", page.path);
        let hint = "link to the page from another page, or set `noindex: true`";
        self.orphans.push(OrphanPage {
            paths: page.paths().map(ToOwned::to_owned).collect(),
            diagnostic: warning_at_key(self.site, page, "title", Code::OrphanPage, message)
                .hint(hint),
        });
    }

    fn headings(&mut self, page: &Page, levels: &[u8]) {
        let first = levels.iter().filter(|level| **level == 1).count();
        let mut before = 0;
        let skipped = levels.iter().find(|level| {
            let jumps = **level > before + 1;
            before = **level;
            jumps
        });
        let message = match (first, skipped) {
            (1, None) => return,
            (1, Some(level)) => format!("an `h{level}` has no `h{}` above it", level - 1),
            (count, _) => format!("the page has {count} `h1` headings instead of one"),
        };
        let place = first_heading(page);
        self.warn_at(
            Code::HeadingOrder,
            page,
            place,
            message,
            "begin with `##` below the page's own heading, and go down one level at a time",
        );
    }

    fn check_images(&mut self, page: &Page, silent: &[String]) {
        for reference in markdown::references(&page.body) {
            if reference.is_image && is_file_name(&reference.alt, &reference.destination) {
                let place = TextPosition {
                    line: page.body_line + reference.line - 1,
                    column: 1,
                    length: 2,
                };
                let message = format!("the alt text `{}` is the image's file name", reference.alt);
                let hint = "describe the image: `![A blue door](IMG_2034.jpg)`";
                self.warn_at(Code::AltIsFileName, page, place, message, hint);
            }
            if reference.lacks_alt {
                let place = TextPosition {
                    line: page.body_line + reference.line - 1,
                    column: 1,
                    length: 2,
                };
                let message = format!("the image `{}` has no alt text", reference.destination);
                self.warn_at(
                    Code::MissingAlt,
                    page,
                    place,
                    message,
                    "describe the image in the brackets: `![A blue door](door.png)`; write `{.decorative}` after a decorative image",
                );
            }
        }
        for source in silent {
            let message = format!("the image `{source}` has no `alt` attribute");
            self.warn(
                Code::MissingAlt,
                page,
                "title",
                message,
                "add `alt`; leave the value empty for a decorative image",
            );
        }
    }

    /// Warns of lines that still have the placeholder comment of `rowhouse new`.
    fn placeholders(&mut self) {
        let site = self.site;
        let pages = site.pages.values();
        let bodies: BTreeMap<&str, usize> = pages
            .map(|page| (page.file.as_str(), page.body_line))
            .collect();
        for (file, text) in &site.written.texts {
            let body = bodies.get(file.as_str()).copied().unwrap_or(usize::MAX);
            for (index, line) in text.lines().enumerate() {
                let mark = if index + 1 < body {
                    FILL_IN_YAML
                } else {
                    FILL_IN_TEXT
                };
                // A mark in backticks is part of the text.
                let is_mark = |at: &usize| !line[..*at].ends_with('`');
                let Some(at) = line.find(mark).filter(is_mark) else {
                    continue;
                };
                let words = line[..at].trim_end();
                self.add(Code::FillIn, file, || {
                    let start = words.chars().take_while(|letter| letter.is_whitespace());
                    let start = start.count();
                    let place = TextPosition {
                        line: index + 1,
                        column: start + 1,
                        length: words.chars().count() - start,
                    };
                    let message = "this line still has the text of `rowhouse new`";
                    let warning = Diagnostic::warning(Code::FillIn, site.name_of(file), message);
                    let located = site.locate(warning, file, place);
                    located.hint("write your own text, and remove the comment")
                });
            }
        }
    }

    /// Warns of pages that share a title or a description.
    fn duplicates(&mut self) {
        let site = self.site;
        let mut titles: BTreeMap<(usize, &str), &Page> = BTreeMap::new();
        let mut descriptions: BTreeMap<(usize, &str), &Page> = BTreeMap::new();
        for page in site.pages.values().filter(|page| !page.front.noindex) {
            let hint = "name the difference; search results can list both pages";
            // Translations may share a name.
            let language = site.manifest.language_of(&page.path);
            if let Some(other) = titles.insert((language, &page.front.title), page) {
                let message = format!("`{}` has the same title", other.file);
                self.warn(Code::DuplicateTitle, page, "title", message, hint);
            }
            if let Some(description) = &page.front.description
                && let Some(other) = descriptions.insert((language, description), page)
            {
                let message = format!("`{}` has the same description", other.file);
                self.warn(
                    Code::DuplicateDescription,
                    page,
                    "description",
                    message,
                    hint,
                );
            }
        }
    }
}

/// Whether an alt text is a file name: the complete name, or a stem that contains a digit, `_` or `-`.
fn is_file_name(words: &str, destination: &str) -> bool {
    let name = destination.rsplit('/').next().unwrap_or(destination);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_no_word = |sign: char| sign.is_ascii_digit() || matches!(sign, '_' | '-');
    !words.is_empty() && (words == name || (words == stem && stem.contains(is_no_word)))
}

/// Returns the place of the first Markdown heading, where the order is most often wrong, else the start of the file.
fn first_heading(page: &Page) -> TextPosition {
    let index = page.body.lines().position(|line| line.starts_with('#'));
    TextPosition {
        line: index.map_or(1, |index| page.body_line + index),
        column: 1,
        length: 3,
    }
}
