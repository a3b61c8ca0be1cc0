//! Holds a tenant against its theme: its sections and settings against the theme's schemas, its own words against the theme's.
//!
//! A tenant's folder is read without its theme, which may change while the folder stays. So this is done whenever the tenant is rendered.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};

use super::manifest::DEFAULT_THEME;
use super::prose::entities;
use super::{MANIFEST, START};
use crate::formats::link::path_of;
use crate::report::{Code, Diagnostic, Place, Report, Severity, hint_for, list, nearest};
use crate::schema::{Formatted, Violation};
use crate::theme::Theme;
use crate::theme::shape::{Data, FRAGMENT};
use crate::theme::strings::{self, Strings};
use crate::yaml::{Node, Value};

/// What of a tenant's files its theme has to say something about, as it is written.
#[derive(Debug, Clone, Default)]
pub struct ThemedValues {
    /// How reports name the folder.
    label: String,
    /// The theme.
    pub theme: String,
    settings: Option<Node>,
    strings: Option<Node>,
    /// The sections of pages by file.
    sections: BTreeMap<String, Vec<Node>>,
    /// The texts of the manifest and the pages by file.
    pub texts: BTreeMap<String, String>,
    /// How many keys and values its files have.
    pub nodes: usize,
}

impl ThemedValues {
    /// The text of the manifest and nothing else: addresses are claimed there.
    pub(super) fn outline(manifest: Option<String>) -> Self {
        let text = manifest.map(|text| (MANIFEST.to_owned(), text));
        Self {
            texts: text.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Takes it out of the files that could be read.
    pub(super) fn new(
        label: String,
        mut nodes: BTreeMap<String, Node>,
        texts: BTreeMap<String, String>,
    ) -> Self {
        let count = nodes.values().map(Node::count).sum();
        let mut manifest = nodes.remove(MANIFEST);
        let mut take = |name: &str| take_from(manifest.as_mut()?, name);
        let theme = match take("theme").map(|node| node.value) {
            Some(Value::Text(theme)) => theme,
            _ => DEFAULT_THEME.to_owned(),
        };
        let (settings, strings) = (take("settings"), take("strings"));
        let sections = nodes.into_iter().filter_map(|(file, mut front)| {
            match take_from(&mut front, "sections")?.value {
                Value::List(sections) => Some((file, sections)),
                _ => None,
            }
        });
        Self {
            sections: sections.collect(),
            label,
            theme,
            settings,
            strings,
            texts,
            nodes: count,
        }
    }

    /// The settings: an empty mapping where there are none.
    fn settings(&self) -> Node {
        self.settings.clone().unwrap_or(Node {
            value: Value::Map(Vec::new()),
            place: START,
        })
    }
}

/// Takes out what stands under a key.
fn take_from(node: &mut Node, name: &str) -> Option<Node> {
    let Value::Map(pairs) = &mut node.value else {
        return None;
    };
    let at = pairs.iter().position(|(key, _)| key.name == name)?;
    Some(pairs.swap_remove(at).1)
}

/// What a tenant says in the shapes of its theme.
#[derive(Debug, Default)]
pub struct Conformed {
    /// Its settings, with the theme's defaults.
    pub settings: Data,
    /// The sections of its pages, by the page's path.
    pub sections: BTreeMap<String, Vec<SectionData>>,
    /// Every text of its sections and settings that has a format, by file, with its place.
    pub formatted: BTreeMap<String, Vec<Formatted>>,
    /// Its own words.
    pub strings: Strings,
}

impl Conformed {
    /// The fragments that the sections in a file have.
    pub fn fragments(&self, file: &str) -> impl Iterator<Item = &Formatted> {
        let texts = self.formatted.get(file).into_iter().flatten();
        texts.filter(|text| text.format == FRAGMENT)
    }
}

/// A section as its template gets it, but for what is resolved.
#[derive(Debug)]
pub struct SectionData {
    /// Its kind.
    pub kind: String,
    /// What its author wrote.
    pub data: Data,
}

/// Holds a tenant against its theme. It fits when the report holds no error.
#[must_use]
pub fn conform(written: &ThemedValues, theme: &Theme) -> (Conformed, Report) {
    let mut reader = Reader {
        written,
        theme,
        report: Report::default(),
        formatted: BTreeMap::new(),
    };
    let settings = reader.settings();
    let strings = reader.strings();
    let mut sections = BTreeMap::new();
    for (file, nodes) in &written.sections {
        let read = nodes.iter().filter_map(|node| reader.section(file, node));
        let read = read.collect();
        sections.extend(path_of(file).map(|path| (path, read)));
    }
    let conformed = Conformed {
        settings,
        sections,
        formatted: reader.formatted,
        strings,
    };
    (conformed, reader.report.sorted())
}

/// A tenant's settings in the shape of its theme; none where they do not fit.
#[must_use]
pub fn settings(written: &ThemedValues, theme: &Theme) -> Option<Data> {
    let fits = theme.settings.check(&written.settings(), "`settings`");
    fits.ok().map(|(data, _)| data)
}

struct Reader<'a> {
    written: &'a ThemedValues,
    theme: &'a Theme,
    report: Report,
    formatted: BTreeMap<String, Vec<Formatted>>,
}

impl Reader<'_> {
    fn settings(&mut self) -> Data {
        let written = self.written.settings();
        match self.theme.settings.check(&written, "`settings`") {
            Ok((data, formatted)) => {
                self.report_violations(MANIFEST, Severity::Warning, entities(&written, &formatted));
                self.formatted.insert(MANIFEST.to_owned(), formatted);
                data
            }
            Err(problems) => {
                self.report_violations(MANIFEST, Severity::Error, problems);
                Data::default()
            }
        }
    }

    fn strings(&mut self) -> Strings {
        let Some(node) = &self.written.strings else {
            return Strings::new();
        };
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
        let places = LazyCell::new(|| places_of(node));
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
            // Only what the report lists is put into words: a file may have any number of these.
            self.report.add(Severity::Error, code, &name, || {
                let (message, hint) = match theme {
                    None => (
                        format!("the theme has no word `{key}`"),
                        hint_for(key, known.keys().copied()),
                    ),
                    Some(theme) => (
                        format!("`{key}` has other placeholders than the theme's"),
                        format!("the theme says: {}", theme.written()),
                    ),
                };
                let diagnostic = Diagnostic::error(code, &name, message).hint(hint);
                let place = places.get(key.as_str()).copied().unwrap_or(node.place);
                match source {
                    Some(source) => diagnostic.at(place, source),
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
        let shape = &self.theme.kinds.get(&kind)?.shape;
        match shape.check(node, &format!("a section of kind `{kind}`")) {
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

    /// The kind of a section, if the theme has it.
    fn kind(&self, node: &Node) -> Result<Option<String>, Violation> {
        let names = || self.theme.kinds.keys().map(String::as_str);
        let violation = |code, place, message: &str, hint: String| Violation {
            code,
            place,
            message: message.to_owned(),
            hint: Some(hint),
        };
        let valid = || format!("valid here: {}", list(names()));
        let pairs = match &node.value {
            Value::Map(pairs) => pairs.as_slice(),
            // What is no mapping was told when the page was read.
            _ => return Ok(None),
        };
        let Some((_, kind)) = pairs.iter().find(|(key, _)| key.name == "kind") else {
            let message = "an item of `sections` needs the key `kind`";
            return Err(violation(Code::MissingKey, node.place, message, valid()));
        };
        match &kind.value {
            Value::Text(text) if self.theme.kinds.contains_key(text) => Ok(Some(text.clone())),
            Value::Text(text) => {
                let message = format!("`kind` cannot be `{text}`");
                let hint = match nearest(text, names()) {
                    Some(near) => format!("did you mean `{near}`? Valid here: {}", list(names())),
                    None => valid(),
                };
                Err(violation(Code::BadValue, kind.place, &message, hint))
            }
            _ => {
                let message = "`kind` should be a text";
                Err(violation(Code::WrongType, kind.place, message, valid()))
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
                        Some(text) => diagnostic.at(problem.place, text),
                        None => diagnostic,
                    }
                }
            });
        }
    }
}

/// Returns the places of all keys of a mapping and of the mappings in it, by their names joined with dots.
fn places_of(node: &Node) -> HashMap<String, Place> {
    let mut places = HashMap::new();
    let mut open = vec![(String::new(), node)];
    while let Some((prefix, node)) = open.pop() {
        let Value::Map(pairs) = &node.value else {
            continue;
        };
        for (key, value) in pairs {
            let name = format!("{prefix}{}", key.name);
            open.push((format!("{name}."), value));
            places.entry(name).or_insert(key.place);
        }
    }
    places
}
