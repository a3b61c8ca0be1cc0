//! Turns a folder into a site that is valid by construction, or into all errors about it.
//!
//! 1. Parses `tenant.yaml` into a tree, checks it against the schema of [`Manifest`], and deserialises it.
//! 2. Splits each Markdown file under `pages` at its `---` lines. Its front matter is processed the same way, as [`FrontMatter`].
//! 3. Checks rules across files, for example paths that two pages claim.
//!
//! **Invariant:** reads no disk, knows no theme, no other tenant and no HTTP. Later stages do not repeat these checks.

pub mod app;
pub mod assets;
pub mod check_with_theme;
mod downloads;
mod languages;
pub mod local_values;
pub mod manifest;
mod outline;
pub mod page;
mod prose;
mod redirects;
mod role;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::formats::link::path_of;
use crate::formats::values::Moment;
use crate::formats::{self, checked_by};
use crate::name::reserved::is_reserved;
use crate::name::{TenantId, exported, is_route_path};
use crate::report::{Code, Diagnostic, Report, Severity, list, size_text};
use crate::schema::{FormattedText, Schema, Violation};
use crate::source::{Folder, LargeSourceFile};
use crate::yaml::{self, Node, Value};

pub use check_with_theme::ThemedValues;
pub use manifest::Manifest;
pub(crate) use page::FILE_START;
pub use page::{FrontMatter, HiddenReason, Page};
pub use role::MANIFEST;
use role::{FileRole, role_of};

/// The largest number of pages of a tenant. Every change renders all of them, and all are held in memory.
pub const MAX_PAGES: usize = 2_000;

/// The largest size of a page or manifest in bytes, more than a book needs. Each text is compressed and held in memory for every address.
pub const MAX_PAGE_BYTES: usize = 1 << 20;

/// The largest number of YAML values and keys in all files of a tenant. They are held in memory while the tenant is rendered.
pub const MAX_TENANT_NODES: usize = 200_000;

/// Limit on the pages that a note names.
const MAX_NAMED_PAGES: usize = 20;

/// The checked content of a tenant.
#[derive(Debug, Clone)]
pub struct Site {
    /// The tenant's id.
    pub id: TenantId,
    /// The folder's name in reports.
    pub label: String,
    /// The manifest.
    pub manifest: Manifest,
    /// The parts of the manifest that visitors read, in the languages after the default.
    pub translated: Vec<Manifest>,
    /// All texts of the manifest that have a format, such as links and assets, with their positions.
    pub formatted: Vec<FormattedText>,
    /// The pages by path.
    pub pages: BTreeMap<String, Box<Page>>,
    /// The paths of pages that are not served now, with the reason.
    pub hidden: BTreeMap<String, HiddenReason>,
    /// The files that pages show or offer, by key ([`assets`]).
    pub assets: BTreeMap<String, Bytes>,
    /// The files that are too large for memory, by key.
    pub large: BTreeMap<String, LargeSourceFile>,
    /// The values that the theme defines, and the texts of the files for reports.
    pub written: ThemedValues,
}

impl Site {
    /// Returns the parts of the manifest that visitors read in a language: the keys that may be by language ([`local_values`]).
    #[must_use]
    pub fn manifest_in(&self, language: usize) -> &Manifest {
        let translated = language.checked_sub(1);
        let translated = translated.and_then(|index| self.translated.get(index));
        translated.unwrap_or(&self.manifest)
    }

    /// Whether a page is named like a translation, in a language that the tenant does not have: `terms.es.md` beside `terms.md`.
    #[must_use]
    pub fn is_in_unlisted_language(&self, page: &Page) -> bool {
        let original = languages::unlisted_translation(&self.manifest, page);
        let mut pages = self.pages.values();
        original.is_some_and(|(original, _)| pages.any(|page| page.file == original))
    }

    /// Returns the page at a path or at an alias.
    #[must_use]
    pub fn page_at(&self, path: &str) -> Option<&Page> {
        let page = self.pages.get(path);
        let aliased = || {
            let mut pages = self.pages.values();
            pages.find(|page| page.paths().any(|known| known == path))
        };
        page.or_else(aliased).map(AsRef::as_ref)
    }

    /// Returns the translation of the page at a path in another language, if it is served.
    #[must_use]
    pub fn translation(&self, path: &str, language: usize) -> Option<&Page> {
        let (_, original) = self.manifest.split(path);
        let path = self.manifest.join(language, original);
        self.pages.get(&path).map(AsRef::as_ref)
    }

    /// Returns the site as it is served at time `now`: without drafts, and without pages that are not published yet or have expired. `includes_hidden` is for authors: these pages are served too, and marked.
    ///
    /// A marked page is hidden from search engines. Most sites have no such pages and are not copied.
    #[must_use]
    pub fn at(self: &Arc<Self>, now: Timestamp, includes_hidden: bool) -> Arc<Self> {
        let mut pages = self.pages.values();
        if pages.all(|page| page.hidden_at(now).is_none()) {
            return Arc::clone(self);
        }
        let mut site = Self::clone(self);
        let pages = std::mem::take(&mut site.pages);
        for (path, mut page) in pages {
            let hidden = page.hidden_at(now);
            let Some(reason) = hidden.filter(|_| !includes_hidden) else {
                page.front.noindex |= hidden.is_some();
                page.hidden = hidden;
                site.pages.insert(path, page);
                continue;
            };
            let paths = page.paths().map(|path| (path.to_owned(), reason));
            site.hidden.extend(paths);
        }
        Arc::new(site)
    }

    /// Returns the next time at which a page is published or expires.
    #[must_use]
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        self.pages
            .values()
            .flat_map(|page| [page.front.publish, page.front.expire])
            .flatten()
            .map(Moment::instant)
            .filter(|moment| *moment > now)
            .min()
    }

    /// Returns a note about the pages that visitors do not get at time `now` because of `publish` or `expire`, so that their times are not forgotten.
    #[must_use]
    pub fn scheduled_pages(&self, now: Timestamp) -> Option<Diagnostic> {
        let times = self.pages.values().filter_map(|page| {
            let time = match page.hidden_at(now)? {
                HiddenReason::Draft => return None,
                HiddenReason::Scheduled(time) => format!("appears at {time}"),
                HiddenReason::Expired(time) => format!("expired at {time}"),
            };
            Some(format!("`{}` {time}", page.path))
        });
        let times: Vec<String> = times.collect();
        let (named, more) = times.split_at(times.len().min(MAX_NAMED_PAGES));
        let mut named = named.join(", ");
        if !more.is_empty() {
            named += &format!(", and {} more", more.len());
        }
        let message = match times.len() {
            0 => return None,
            1 => format!("1 page is not served at this time: {named}"),
            count => format!("{count} pages are not served at this time: {named}"),
        };
        let diagnostic = Diagnostic::error(Code::Scheduled, self.label.clone(), message);
        Some(Diagnostic {
            severity: Severity::Note,
            ..diagnostic.hint(
                "correct `publish` or `expire` if a time is not intended; `rowhouse serve --dev` shows these pages",
            )
        })
    }

    /// Adds the position and the line to a diagnostic about one of the site's files.
    #[must_use]
    pub fn locate(
        &self,
        diagnostic: Diagnostic,
        file: &str,
        position: crate::report::TextPosition,
    ) -> Diagnostic {
        match self.written.texts.get(file) {
            Some(text) => diagnostic.at(position, text),
            None => diagnostic,
        }
    }

    /// Returns the position of a text in the manifest: of a top-level value, or directly within one, as in `languages: [en, de]`.
    #[must_use]
    pub fn position_of(&self, text: &str) -> Option<crate::report::TextPosition> {
        let manifest = yaml::parse(self.written.texts.get(MANIFEST)?, 1).ok()?;
        let Value::Map(pairs) = manifest.value else {
            return None;
        };
        let is_meant = |value: &&Node| matches!(&value.value, Value::Text(found) if found == text);
        let values = || pairs.iter().map(|(_, value)| value);
        let within = values().flat_map(|value| -> Vec<&Node> {
            match &value.value {
                Value::List(items) => items.iter().collect(),
                Value::Map(pairs) => pairs.iter().map(|(_, value)| value).collect(),
                _ => Vec::new(),
            }
        });
        let found = values().chain(within).find(is_meant)?;
        Some(found.position)
    }

    /// Returns the name of a file in reports.
    #[must_use]
    pub fn name_of(&self, file: &str) -> String {
        format!("{}/{file}", self.label)
    }
}

/// Reads a folder. Returns `None` if the report has errors.
#[must_use]
pub fn read(id: &TenantId, folder: &Folder) -> (Option<Site>, Report) {
    let (site, report) = read_or_themed_values(id, folder);
    (site.ok(), report)
}

/// Reads a folder, as [`read`] does. On errors, returns the values to check against the theme instead, so that an author sees all errors at once.
pub fn read_or_themed_values(
    id: &TenantId,
    folder: &Folder,
) -> (Result<Site, ThemedValues>, Report) {
    let mut reader = SiteReader {
        folder,
        report: Report::default(),
        texts: BTreeMap::new(),
        nodes: BTreeMap::new(),
        node_count: 0,
    };
    let manifest = reader.manifest();
    let pages = reader.pages(manifest.as_ref().map(|(manifest, ..)| manifest));
    let (assets, large) = assets::read(folder, &mut reader.report);
    if let Some((manifest, _, formatted)) = &manifest {
        let (file, text) = (folder.name_of(MANIFEST), reader.texts.get(MANIFEST));
        let written = (file.as_str(), text);
        let files = languages::WrittenFiles {
            folder,
            nodes: &reader.nodes,
            texts: &reader.texts,
        };
        languages::check(manifest, &pages, &files, &mut reader.report);
        redirects::check((manifest, formatted), &pages, written, &mut reader.report);
        downloads::check((manifest, formatted), &pages, written, &mut reader.report);
        let files = (pages.as_slice(), &assets, &large);
        downloads::check_texts((manifest, formatted), files, written, &mut reader.report);
    }
    reader.note_drafts(&pages);
    // Without a manifest, the folder may not be a tenant at all.
    if folder.files.contains_key(MANIFEST) {
        role::warn_of_unread_files(folder, &mut reader.report);
    }
    let report = reader.report.sorted();
    let written = ThemedValues::new(folder.label.clone(), reader.nodes, reader.texts);
    let of_preview = |manifest: Manifest| match id.is_preview() {
        true => manifest.of_preview(),
        false => manifest,
    };
    let site = match manifest {
        Some((manifest, translated, formatted)) if report.is_servable() => Ok(Site {
            id: id.clone(),
            label: folder.label.clone(),
            manifest: of_preview(manifest),
            translated: translated.into_iter().map(of_preview).collect(),
            formatted,
            pages: pages
                .into_iter()
                .map(|page| (page.path.clone(), Box::new(page)))
                .collect(),
            hidden: BTreeMap::new(),
            assets,
            large,
            written,
        }),
        _ => Err(written),
    };
    (site, report)
}

static MANIFEST_SCHEMA: LazyLock<Schema> = LazyLock::new(checked_by::<Manifest>);
static FRONT_MATTER_SCHEMA: LazyLock<Schema> = LazyLock::new(checked_by::<FrontMatter>);

struct SiteReader<'a> {
    folder: &'a Folder,
    report: Report,
    texts: BTreeMap<String, String>,
    /// The files that could be parsed as YAML, valid or not.
    nodes: BTreeMap<String, Node>,
    /// The number of values and keys in all of them.
    node_count: usize,
}

impl SiteReader<'_> {
    /// Reads the manifest: in the default language, and the parts that visitors read in each other language.
    fn manifest(&mut self) -> Option<(Manifest, Vec<Manifest>, Vec<FormattedText>)> {
        let Some(bytes) = self.folder.files.get(MANIFEST) else {
            self.report.push(
                Diagnostic::error(
                    Code::MissingManifest,
                    self.folder.label.clone(),
                    format!("the folder has no `{MANIFEST}`"),
                )
                .hint(role::manifest_hint(self.folder)),
            );
            return None;
        };
        let text = self.text(MANIFEST, bytes)?;
        let node = self.parsed(MANIFEST, &text, &text, 1)?;
        let languages = local_values::languages_of(&node);
        self.report_violations(MANIFEST, &text, local_values::problems(&node, &languages));
        let default = local_values::in_default_language(&node, &languages);
        let mut formatted = Vec::new();
        let manifest = self.checked(MANIFEST, &text, &default, &MANIFEST_SCHEMA, &mut formatted);
        let translated: Vec<Option<Manifest>> = (1..languages.len())
            .map(|language| {
                let node = local_values::translation(&node, &languages, language);
                self.checked(MANIFEST, &text, &node, &MANIFEST_SCHEMA, &mut formatted)
            })
            .collect();
        formatted.sort_by_key(|text: &FormattedText| text.position);
        formatted.dedup();
        if manifest.is_none() {
            self.explain_invisible_space(MANIFEST, &text, &text, 1);
        }
        self.warn_of_prose(MANIFEST, &text, &node, &formatted);
        self.nodes.insert(MANIFEST.to_owned(), node);
        let mut manifest: Manifest = manifest?;
        if let Some(first) = manifest.languages.first() {
            manifest.language = first.clone();
            self.report_two_language_keys(&text);
        }
        let translated: Option<Vec<Manifest>> = translated.into_iter().collect();
        Some((manifest, translated?, formatted))
    }

    /// Reports a manifest with `language` beside `languages`.
    fn report_two_language_keys(&mut self, text: &str) {
        let Some(Value::Map(pairs)) = self.nodes.get(MANIFEST).map(|node| &node.value) else {
            return;
        };
        if let Some((key, _)) = pairs.iter().find(|(key, _)| key.name == "language") {
            let message = "`language` and `languages` are both given";
            let diagnostic =
                Diagnostic::error(Code::BadValue, self.folder.name_of(MANIFEST), message);
            let hint = "remove `language`; the first of `languages` is the default";
            self.report
                .push(diagnostic.at(key.position, text).hint(hint));
        }
    }

    fn pages(&mut self, manifest: Option<&Manifest>) -> Vec<Page> {
        let files: Vec<(&String, &Bytes)> = self
            .folder
            .files
            .iter()
            .filter(|(path, _)| role_of(path) == FileRole::Page)
            .collect();
        if files.is_empty() && self.folder.files.contains_key(MANIFEST) {
            self.report.push(
                Diagnostic::error(
                    Code::NoPages,
                    self.folder.label.clone(),
                    "the tenant has no pages",
                )
                .hint("add `pages/index.md` with a title"),
            );
        }
        if files.len() > MAX_PAGES {
            let message = format!(
                "the tenant has {} pages; the limit is {MAX_PAGES}",
                files.len()
            );
            let diagnostic = Diagnostic::error(Code::TooLarge, self.folder.label.clone(), message);
            self.report.push(
                diagnostic.hint("split the tenant into several tenants, each in its own folder"),
            );
            return Vec::new();
        }
        let mut pages: Vec<Page> = Vec::with_capacity(files.len());
        // By file name in an export on a case-insensitive file system.
        let mut owners: BTreeMap<String, (String, String)> = BTreeMap::new();
        for (file, bytes) in files {
            let page = self.page(file, bytes, manifest);
            if self.node_count > MAX_TENANT_NODES {
                self.report_too_many_nodes(file);
                return Vec::new();
            }
            let Some(page) = page else {
                continue;
            };
            for path in page.paths() {
                if path != page.path
                    && let Err(reason) = exported::check_alias(path)
                {
                    self.report_path(
                        &page,
                        path,
                        (
                            Code::BadPath,
                            format!("the alias `{path}` is not valid: {reason}"),
                        ),
                    );
                }
                match owners.get(&exported::key(path)) {
                    Some((owner, same)) if same == path => {
                        self.report_duplicate_path(&page, path, owner)
                    }
                    Some((owner, like)) if owner != file => {
                        self.report_similar_paths(&page, path, (owner, like));
                    }
                    _ => {
                        let owner = (file.clone(), path.to_owned());
                        owners.insert(exported::key(path), owner);
                    }
                }
            }
            pages.push(page);
        }
        pages
    }

    fn page(&mut self, file: &str, bytes: &Bytes, manifest: Option<&Manifest>) -> Option<Page> {
        let path = match manifest {
            Some(manifest) => manifest.path_of_file(file)?,
            None => path_of(file)?,
        };
        if !is_route_path(&path) {
            self.report.push(
                Diagnostic::error(
                    Code::BadPath,
                    self.folder.name_of(file),
                    format!("the page's path `{path}` is not valid"),
                )
                .hint("use only letters, digits, `-`, `.`, `_` and `~` in the names of pages and their folders"),
            );
        } else if is_reserved(manifest.map_or(&path, |manifest| manifest.split(&path).1)) {
            let message = format!("the page's path {}", formats::reserved_message(&path));
            let diagnostic = Diagnostic::error(Code::BadPath, self.folder.name_of(file), message);
            self.report
                .push(diagnostic.hint(formats::RESERVED_PATH_HINT));
        } else if let Err(reason) = exported::check_own(&path) {
            let message = format!("the page's path `{path}` is not valid: {reason}");
            let diagnostic = Diagnostic::error(Code::BadPath, self.folder.name_of(file), message);
            self.report.push(diagnostic.hint("rename the file"));
        }
        let text = self.text(file, bytes)?;
        let Some(parts) = page::split(&text) else {
            let (message, hint, position) = page::why_not_split(&text);
            let name = self.folder.name_of(file);
            let diagnostic = Diagnostic::error(Code::BadFrontMatter, name, message);
            self.report.push(diagnostic.at(position, &text).hint(hint));
            return None;
        };
        let typed = self.typed(file, &text, parts.front, 2, &FRONT_MATTER_SCHEMA);
        if typed.is_none()
            && let Some(position) = page::end_of_front_matter(parts.front)
        {
            let name = self.folder.name_of(file);
            let message = "the front matter seems to end here, without its second line `---`";
            let diagnostic = Diagnostic::error(Code::BadFrontMatter, name, message);
            let hint = "add a line `---` above this line";
            self.report.push(diagnostic.at(position, &text).hint(hint));
        }
        let (front, formatted) = typed?;
        self.warn_of_dates(file, &text, &front);
        Some(Page {
            path,
            file: file.to_owned(),
            front,
            formatted,
            body: parts.body.to_owned(),
            body_line: parts.body_line,
            hidden: None,
        })
    }

    /// Reports too many values and stops reading: the remaining pages would take more memory than a tenant may have.
    fn report_too_many_nodes(&mut self, file: &str) {
        self.nodes.clear();
        let message = format!(
            "the front matter of all pages up to this page has {} keys and values; the limit of a tenant is {MAX_TENANT_NODES}",
            self.node_count
        );
        let diagnostic = Diagnostic::error(Code::TooLarge, self.folder.name_of(file), message);
        self.report.push(diagnostic.hint(
            "write long texts in Markdown, below the front matter, or split the tenant into several tenants",
        ));
    }

    fn report_duplicate_path(&mut self, page: &Page, path: &str, owner: &str) {
        let message = format!("`{owner}` already has the path `{path}`");
        self.report_path(page, path, (Code::PathTwice, message));
    }

    /// Reports two paths that are the same file in an export.
    fn report_similar_paths(&mut self, page: &Page, path: &str, (owner, like): (&str, &str)) {
        let message = format!(
            "the path `{path}` and the path `{like}` of `{owner}` are the same file in an export or on a case-insensitive disk"
        );
        self.report_path(page, path, (Code::PathTwice, message));
    }

    fn report_path(&mut self, page: &Page, path: &str, (code, message): (Code, String)) {
        let name = self.folder.name_of(&page.file);
        let text = self.texts.get(&page.file);
        self.report.add(Severity::Error, code, &name, || {
            let diagnostic = Diagnostic::error(code, &name, message)
                .hint("rename one of the files, or remove the path from `aliases`");
            let mut formatted = page.formatted.iter();
            let alias = formatted.find(|text| text.format == "route" && text.text == path);
            match (alias, text) {
                (Some(alias), Some(text)) => diagnostic.at(alias.position, text),
                _ => diagnostic,
            }
        });
    }

    /// Warns of dates that are valid but unlikely to be intended.
    fn warn_of_dates(&mut self, file: &str, text: &str, front: &FrontMatter) {
        let now = Timestamp::now();
        let Some(Value::Map(pairs)) = self.nodes.get(file).map(|node| &node.value) else {
            return;
        };
        for (key, message, hint) in page::unlikely_dates(front, now) {
            let name = self.folder.name_of(file);
            let diagnostic = Diagnostic::warning(Code::UnlikelyDate, name, message).hint(hint);
            let found = pairs.iter().find(|(found, _)| found.name == key);
            let position = found.map_or(FILE_START, |(key, _)| key.position);
            self.report.push(diagnostic.at(position, text));
        }
    }

    /// Notes the number of drafts, so that a draft is not forgotten on its day of publication.
    fn note_drafts(&mut self, pages: &[Page]) {
        let drafts: Vec<&str> = pages
            .iter()
            .filter(|page| page.front.draft)
            .map(|page| page.path.as_str())
            .collect();
        let message = match drafts.len() {
            0 => return,
            1 => format!("1 page is a draft: {}", list(drafts)),
            count => format!("{count} pages are drafts: {}", list(drafts)),
        };
        let diagnostic = Diagnostic::error(Code::Draft, self.folder.label.clone(), message);
        self.report.push(Diagnostic {
            severity: Severity::Note,
            ..diagnostic.hint(
                "remove `draft: true` to publish a draft; `rowhouse serve --dev` shows all drafts",
            )
        });
    }

    fn text(&mut self, file: &str, bytes: &Bytes) -> Option<String> {
        if bytes.len() > MAX_PAGE_BYTES {
            let message = format!(
                "the file has {}; the limit of a page or a manifest is {}",
                size_text(bytes.len() as u64),
                size_text(MAX_PAGE_BYTES as u64)
            );
            let name = self.folder.name_of(file);
            self.report.add(Severity::Error, Code::TooLarge, &name, || {
                Diagnostic::error(Code::TooLarge, &name, message).hint(
                    "split the file into several pages, or move data that is not text to `assets`",
                )
            });
            return None;
        }
        match self.folder.text(file, bytes) {
            Ok(text) => {
                self.texts.insert(file.to_owned(), text.to_owned());
                Some(text.to_owned())
            }
            Err(diagnostic) => {
                self.report.push(diagnostic);
                None
            }
        }
    }

    /// Parses `yaml`, which begins at `first_line` of the file's `text`, and deserialises it after a check against its schema.
    fn typed<T: DeserializeOwned>(
        &mut self,
        file: &str,
        text: &str,
        yaml: &str,
        first_line: usize,
        schema: &Schema,
    ) -> Option<(T, Vec<FormattedText>)> {
        let node = self.parsed(file, text, yaml, first_line)?;
        let mut formatted = Vec::new();
        let value = self.checked(file, text, &node, schema, &mut formatted);
        if value.is_none() {
            self.explain_invisible_space(file, text, yaml, first_line);
        }
        self.warn_of_prose(file, text, &node, &formatted);
        self.nodes.insert(file.to_owned(), node);
        Some((value?, formatted))
    }

    /// Parses `yaml`, which begins at `first_line` of the file's `text`.
    fn parsed(&mut self, file: &str, text: &str, yaml: &str, first_line: usize) -> Option<Node> {
        match yaml::parse(yaml, first_line) {
            Ok(node) => {
                self.node_count += node.count();
                Some(node)
            }
            Err(error) => {
                let name = self.folder.name_of(file);
                self.report.push(error.diagnostic(name, text));
                None
            }
        }
    }

    /// Deserialises a node after a check against its schema, and adds its texts with a format to `formatted`.
    fn checked<T: DeserializeOwned>(
        &mut self,
        file: &str,
        text: &str,
        node: &Node,
        schema: &Schema,
        formatted: &mut Vec<FormattedText>,
    ) -> Option<T> {
        let (problems, found) = schema.check(node);
        if !problems.is_empty() {
            self.report_violations(file, text, problems);
            return None;
        }
        formatted.extend(found);
        let mut json = node.to_json();
        // Sections are checked with the theme, from the node. A second copy would only use memory.
        if let Json::Object(pairs) = &mut json {
            pairs.shift_remove("sections");
        }
        match serde_json::from_value(json) {
            Ok(value) => Some(value),
            Err(error) => {
                let name = self.folder.name_of(file);
                self.report
                    .push(Diagnostic::error(Code::WrongType, name, error.to_string()));
                None
            }
        }
    }

    fn report_violations(&mut self, file: &str, text: &str, problems: Vec<Violation>) {
        let name = self.folder.name_of(file);
        for problem in problems {
            let code = problem.code;
            self.report
                .add(Severity::Error, code, &name, || Diagnostic {
                    hint: problem.hint,
                    ..Diagnostic::error(code, &name, problem.message).at(problem.position, text)
                });
        }
    }

    /// Names an invisible space, which may be the cause of all errors of a file.
    fn explain_invisible_space(&mut self, file: &str, text: &str, yaml: &str, first_line: usize) {
        if let Some(cause) = yaml::invisible_space(yaml) {
            let position = crate::report::TextPosition {
                line: cause.position.line + first_line - 1,
                ..cause.position
            };
            let name = self.folder.name_of(file);
            let diagnostic = Diagnostic::error(Code::BadYaml, name, cause.message);
            self.report
                .push(diagnostic.hint(cause.hint).at(position, text));
        }
    }

    /// Warns of texts that pages show differently from the source.
    fn warn_of_prose(&mut self, file: &str, text: &str, node: &Node, formatted: &[FormattedText]) {
        let name = self.folder.name_of(file);
        let elsewhere = ["sections", "settings", "strings"];
        for warning in prose::check(node, formatted, (&name, text), &elsewhere) {
            let code = warning.code;
            self.report.add(Severity::Warning, code, &name, || warning);
        }
    }
}
