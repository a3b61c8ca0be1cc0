//! Checks a tenant against its theme: sections and settings against the theme's schemas, UI strings against the theme's.
//!
//! A tenant's folder is read without its theme, because either can change without the other. So the check runs whenever the tenant is rendered.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Json;

use super::local_values::{languages_of, themed_value};
use super::manifest::DEFAULT_THEME;
use super::prose::entities;
use super::{FILE_START, MANIFEST};
use crate::report::{Code, Diagnostic, Report, Severity, TextPosition, hint_for, list, nearest};
use crate::schema::{Formats, FormattedText, Violation};
use crate::theme::Theme;
use crate::theme::data_schema::{CheckedData, FRAGMENT};
use crate::theme::strings::{self, Strings};
use crate::yaml::{Node, Value};

/// The parts of a tenant's files that its theme defines, as parsed.
#[derive(Debug, Clone, Default)]
pub struct ThemedValues {
    /// The folder's name in reports.
    label: String,
    /// The name of the theme.
    pub theme: String,
    /// The languages of the tenant; empty for one language.
    languages: Vec<String>,
    settings: Option<Node>,
    strings: Option<Node>,
    /// The sections of each page, by file.
    sections: BTreeMap<String, Vec<Node>>,
    /// The texts of the manifest and the pages, by file.
    pub texts: BTreeMap<String, String>,
    /// The number of keys and values in all files.
    pub nodes: usize,
}

impl ThemedValues {
    /// Returns the text of the manifest alone, for reports about claimed addresses.
    pub(super) fn outline(manifest: Option<String>) -> Self {
        let text = manifest.map(|text| (MANIFEST.to_owned(), text));
        Self {
            texts: text.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Extracts the values from the files that could be read.
    pub(super) fn new(
        label: String,
        mut nodes: BTreeMap<String, Node>,
        texts: BTreeMap<String, String>,
    ) -> Self {
        let count = nodes.values().map(Node::count).sum();
        let mut manifest = nodes.remove(MANIFEST);
        let languages = manifest.as_ref().map(languages_of).unwrap_or_default();
        let mut remove = |name: &str| remove_key(manifest.as_mut()?, name);
        let theme = match remove("theme").map(|node| node.value) {
            Some(Value::Text(theme)) => theme,
            _ => DEFAULT_THEME.to_owned(),
        };
        let (settings, strings) = (remove("settings"), remove("strings"));
        let sections = nodes.into_iter().filter_map(|(file, mut front)| {
            match remove_key(&mut front, "sections")?.value {
                Value::List(sections) => Some((file, sections)),
                _ => None,
            }
        });
        Self {
            sections: sections.collect(),
            label,
            theme,
            languages,
            settings,
            strings,
            texts,
            nodes: count,
        }
    }

    /// Returns the settings in a language, or an empty mapping if there are none.
    fn settings(&self, language: usize) -> Node {
        match &self.settings {
            Some(settings) => themed_value(settings, &self.languages, language),
            None => Node {
                value: Value::Map(Vec::new()),
                position: FILE_START,
            },
        }
    }

    /// Returns the indices of the tenant's languages, the default language first.
    fn language_indices(&self) -> std::ops::Range<usize> {
        0..self.languages.len().max(1)
    }
}

/// Removes a key from a mapping and returns its value.
fn remove_key(node: &mut Node, name: &str) -> Option<Node> {
    let Value::Map(pairs) = &mut node.value else {
        return None;
    };
    let at = pairs.iter().position(|(key, _)| key.name == name)?;
    Some(pairs.swap_remove(at).1)
}

/// A tenant's content in the shapes that its theme defines.
#[derive(Debug, Default)]
pub struct ThemedContent {
    /// The settings in each language of the tenant, including the theme's defaults.
    settings: Vec<CheckedData>,
    /// The sections of each page, by the page's file.
    pub sections: BTreeMap<String, Vec<SectionData>>,
    /// All texts of sections and settings that have a format, with their positions, by file.
    pub formatted: BTreeMap<String, Vec<FormattedText>>,
    /// The tenant's own UI strings in each of its languages.
    strings: Vec<Strings>,
}

static NO_SETTINGS: CheckedData = CheckedData {
    value: Json::Null,
    formats: Formats::new(),
};
static NO_STRINGS: Strings = Strings::new();

impl ThemedContent {
    /// Returns the settings in a language.
    #[must_use]
    pub fn settings(&self, language: usize) -> &CheckedData {
        self.settings.get(language).unwrap_or(&NO_SETTINGS)
    }

    /// Returns the tenant's own UI strings in a language.
    #[must_use]
    pub fn strings(&self, language: usize) -> &Strings {
        self.strings.get(language).unwrap_or(&NO_STRINGS)
    }

    /// Returns the fragments that the sections in a file define.
    pub fn fragments(&self, file: &str) -> impl Iterator<Item = &FormattedText> {
        let texts = self.formatted.get(file).into_iter().flatten();
        texts.filter(|text| text.format == FRAGMENT)
    }
}

/// The data of a section as passed to its template, except for references that are resolved later.
#[derive(Debug)]
pub struct SectionData {
    /// The section type.
    pub kind: String,
    /// The data that the author wrote.
    pub data: CheckedData,
}

/// Checks a tenant against its theme. The tenant fits if the report has no errors.
#[must_use]
pub fn check_with_theme(written: &ThemedValues, theme: &Theme) -> (ThemedContent, Report) {
    let mut check = ThemeCheck {
        written,
        theme,
        report: Report::default(),
        formatted: BTreeMap::new(),
    };
    let languages = written.language_indices();
    let settings = languages.clone().map(|language| check.settings(language));
    let settings = settings.collect();
    let strings = languages.map(|language| check.strings(language)).collect();
    let mut sections = BTreeMap::new();
    for (file, nodes) in &written.sections {
        let read = nodes.iter().filter_map(|node| check.section(file, node));
        sections.insert(file.clone(), read.collect());
    }
    let content = ThemedContent {
        settings,
        sections,
        formatted: check.formatted,
        strings,
    };
    (content, check.report.sorted())
}

/// Returns a tenant's settings in the shape of its theme, in each of its languages, or `None` if they do not fit.
#[must_use]
pub fn settings(written: &ThemedValues, theme: &Theme) -> Option<Vec<CheckedData>> {
    let settings = written.language_indices().map(|language| {
        let settings = written.settings(language);
        let fits = theme.settings.check(&settings, "`settings`");
        fits.ok().map(|(data, _)| data)
    });
    settings.collect()
}

struct ThemeCheck<'a> {
    written: &'a ThemedValues,
    theme: &'a Theme,
    report: Report,
    formatted: BTreeMap<String, Vec<FormattedText>>,
}

impl ThemeCheck<'_> {
    fn settings(&mut self, language: usize) -> CheckedData {
        let written = self.written.settings(language);
        match self.theme.settings.check(&written, "`settings`") {
            Ok((data, formatted)) => {
                self.report_violations(MANIFEST, Severity::Warning, entities(&written, &formatted));
                let all = self.formatted.entry(MANIFEST.to_owned()).or_default();
                all.extend(formatted);
                all.sort_by_key(|text| text.position);
                all.dedup();
                data
            }
            Err(problems) => {
                self.report_violations(MANIFEST, Severity::Error, problems);
                CheckedData::default()
            }
        }
    }

    fn strings(&mut self, language: usize) -> Strings {
        let Some(node) = &self.written.strings else {
            return Strings::new();
        };
        let node = &themed_value(node, &self.written.languages, language);
        let (strings, problems) = strings::read(node);
        self.report_violations(MANIFEST, Severity::Error, problems);
        self.report_violations(MANIFEST, Severity::Warning, entities(node, &[]));
        let known: BTreeMap<&str, _> = self
            .theme
            .languages()
            .into_iter()
            .flat_map(|(_, strings)| strings)
            .map(|(key, text)| (key.as_str(), text))
            .collect();
        let positions = LazyCell::new(|| positions_of(node));
        let name = self.name_of(MANIFEST);
        let source = self.written.texts.get(MANIFEST);
        for (key, text) in &strings {
            let theme = known.get(key.as_str());
            if theme.is_some_and(|theme| theme.placeholders() == text.placeholders()) {
                continue;
            }
            let code = match theme {
                None => Code::UnknownKey,
                Some(_) => Code::BadValue,
            };
            // Builds a message only for a problem that the report lists: a file may have any number of them.
            self.report.add(Severity::Error, code, &name, || {
                let (message, hint) = match theme {
                    None => (
                        format!("the theme has no UI string `{key}`"),
                        hint_for(key, known.keys().copied()),
                    ),
                    Some(theme) => (
                        format!("the placeholders of `{key}` do not match the theme's text"),
                        format!(
                            "use the placeholders of the theme's text: {}",
                            theme.written()
                        ),
                    ),
                };
                let diagnostic = Diagnostic::error(code, &name, message).hint(hint);
                let position = positions
                    .get(key.as_str())
                    .copied()
                    .unwrap_or(node.position);
                match source {
                    Some(source) => diagnostic.at(position, source),
                    None => diagnostic,
                }
            });
        }
        strings
    }

    fn section(&mut self, file: &str, node: &Node) -> Option<SectionData> {
        let kind = match self.kind(node) {
            Ok(kind) => kind?,
            Err(problem) => {
                self.report_violations(file, Severity::Error, vec![problem]);
                return None;
            }
        };
        let shape = &self.theme.section_types.get(&kind)?.shape;
        match shape.check(node, &format!("a `{kind}` section")) {
            Ok((data, formatted)) => {
                self.report_violations(file, Severity::Warning, entities(node, &formatted));
                let all = self.formatted.entry(file.to_owned()).or_default();
                all.extend(formatted);
                Some(SectionData { kind, data })
            }
            Err(problems) => {
                self.report_violations(file, Severity::Error, problems);
                None
            }
        }
    }

    /// Returns the section type, if the theme has it.
    fn kind(&self, node: &Node) -> Result<Option<String>, Violation> {
        let names = || self.theme.section_types.keys().map(String::as_str);
        let violation = |code, position, message: &str, hint: String| Violation {
            code,
            position,
            message: message.to_owned(),
            hint: Some(hint),
        };
        let valid = || format!("valid here: {}", list(names()));
        let pairs = match &node.value {
            Value::Map(pairs) => pairs.as_slice(),
            // Reading the page has reported values that are not mappings.
            _ => return Ok(None),
        };
        let Some((_, kind)) = pairs.iter().find(|(key, _)| key.name == "kind") else {
            let message = "an item of `sections` needs the key `kind`";
            return Err(violation(Code::MissingKey, node.position, message, valid()));
        };
        match &kind.value {
            Value::Text(text) if self.theme.section_types.contains_key(text) => {
                Ok(Some(text.clone()))
            }
            Value::Text(text) => {
                let message = format!("`{text}` is not a valid section type");
                let hint = match nearest(text, names()) {
                    Some(near) => format!("did you mean `{near}`? Valid here: {}", list(names())),
                    None => valid(),
                };
                Err(violation(Code::BadValue, kind.position, &message, hint))
            }
            _ => {
                let message = "`kind` should be a text";
                Err(violation(Code::WrongType, kind.position, message, valid()))
            }
        }
    }

    fn name_of(&self, file: &str) -> String {
        format!("{}/{file}", self.written.label)
    }

    fn report_violations(&mut self, file: &str, severity: Severity, problems: Vec<Violation>) {
        let name = self.name_of(file);
        let text = self.written.texts.get(file);
        for problem in problems {
            let code = problem.code;
            self.report.add(severity, code, &name, || {
                let diagnostic = Diagnostic::error(code, &name, problem.message);
                Diagnostic {
                    severity,
                    hint: problem.hint,
                    ..match text {
                        Some(text) => diagnostic.at(problem.position, text),
                        None => diagnostic,
                    }
                }
            });
        }
    }
}

/// Returns the positions of all keys of a mapping and its nested mappings, by key path joined with dots.
fn positions_of(node: &Node) -> HashMap<String, TextPosition> {
    let mut positions = HashMap::new();
    let mut open = vec![(String::new(), node)];
    while let Some((prefix, node)) = open.pop() {
        let Value::Map(pairs) = &node.value else {
            continue;
        };
        for (key, value) in pairs {
            let name = format!("{prefix}{}", key.name);
            open.push((format!("{name}."), value));
            positions.entry(name).or_insert(key.position);
        }
    }
    positions
}
