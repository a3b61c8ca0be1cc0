//! Loads a theme's folder: its files and those of its parent, colour roles and contrast pairs, section types, settings and UI strings.
//!
//! A theme that names a `parent` contains only the differences. A file replaces the parent's file at the same path, and a UI string replaces the parent's string with the same key.
//!
//! | module | content |
//! |---|---|
//! | [`data_schema`] | the theme's schemas for the content that authors write |
//! | `file` | the theme's YAML files |
//! | [`section_type`] | section types: schema and example |
//! | [`strings`] | the UI strings of a language |
//! | [`required_strings`] | the check that no UI string is missing |
//!
//! **Invariant:** knows no tenant and no page, and renders nothing.

pub mod data_schema;
mod file;
pub mod required_strings;
pub mod section_type;
pub mod strings;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use rust_embed::RustEmbed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use self::data_schema::DataSchema;
use self::file::{read_yaml, report_violations};
use self::section_type::SectionType;
use self::strings::Strings;
use crate::formats::checked_by;
use crate::formats::values::Colour;
use crate::report::{Code, Diagnostic, Report, hint_for};
use crate::schema::Schema;
use crate::source::Folder;

/// The file name of a theme's manifest.
pub const MANIFEST: &str = "theme.yaml";

/// The manifest of a theme, `theme.yaml`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThemeManifest {
    /// The name of the theme.
    pub name: String,
    /// The parent theme, which provides everything that this theme lacks.
    #[serde(default)]
    pub parent: Option<String>,
    /// The stylesheets, in the order in which they are joined into one file.
    #[serde(default)]
    pub styles: Vec<String>,
    /// Files that every page preloads, for example fonts.
    #[serde(default)]
    pub preload: Vec<String>,
    /// The role whose colour browsers use for their own user interface.
    #[serde(default)]
    pub theme_color: Option<String>,
    /// The icon of tenants without their own: a file of the theme.
    #[serde(default)]
    pub icon: Option<String>,
    /// The languages of the theme, by default all files in `strings/`.
    #[serde(default)]
    pub languages: Vec<String>,
    /// The JSON Schema of a tenant's `settings`.
    #[serde(default)]
    pub settings: Map<String, Json>,
    /// Colour settings of each site that are available on the pages of all sites of the company.
    #[serde(default)]
    pub site_colours: Vec<String>,
    /// The colour roles, each with a colour by day and one by night.
    #[serde(default)]
    pub roles: BTreeMap<String, Role>,
    /// Pairs of roles, text and background, whose contrast is checked.
    #[serde(default)]
    pub contrast: Vec<[String; 2]>,
}

/// The colours of a role by day and by night.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The colour in the light scheme.
    pub day: Colour,
    /// The colour in the dark scheme.
    pub night: Colour,
}

/// A theme, merged with its parents.
#[derive(Debug, Clone)]
pub struct Theme {
    /// The folder's name.
    pub name: String,
    /// The folder's name in reports.
    pub label: String,
    /// The names of the folders that make up the theme: its own, its parent's, and so on.
    pub line: Vec<String>,
    /// The manifest, with the styles, preloads, roles and contrast pairs of all parents.
    pub manifest: ThemeManifest,
    /// The files by path.
    pub files: BTreeMap<String, Bytes>,
    /// The folders of the files in reports, by path of the file.
    pub labels: BTreeMap<String, Arc<str>>,
    /// The section types by name.
    pub section_types: BTreeMap<String, Arc<SectionType>>,
    /// The schema of a tenant's settings.
    pub settings: Arc<DataSchema>,
    /// The UI strings by language (BCP 47).
    pub strings: BTreeMap<String, Strings>,
    /// A hash of all folders that make up the theme.
    pub fingerprint: [u8; 32],
}

/// The merged files of a theme and its parents.
#[derive(Default)]
struct ThemeLayers {
    manifest: Option<ThemeManifest>,
    files: BTreeMap<String, Bytes>,
    labels: BTreeMap<String, Arc<str>>,
    strings: BTreeMap<String, Strings>,
}

/// The themes built into the program.
#[derive(RustEmbed)]
#[folder = "../../themes"]
struct EmbeddedThemes;

/// Returns the folders of the built-in themes by name.
#[must_use]
pub fn embedded() -> BTreeMap<String, Folder> {
    let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
    for path in EmbeddedThemes::iter() {
        let (Some((name, inner)), Some(file)) = (path.split_once('/'), EmbeddedThemes::get(&path))
        else {
            continue;
        };
        let folder = folders.entry(name.to_owned()).or_insert_with(|| Folder {
            label: format!("themes/{name}"),
            ..Folder::default()
        });
        folder
            .files
            .insert(inner.to_owned(), Bytes::from(file.data.into_owned()));
    }
    folders
}

/// Adds the built-in themes that `folders` lacks, so that a theme needs no copy of its parent.
#[must_use]
pub fn with_embedded(folders: BTreeMap<String, Folder>) -> BTreeMap<String, Folder> {
    let mut all = embedded();
    all.extend(folders);
    all
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(checked_by::<ThemeManifest>);

/// The UI strings of the built-in theme `base`. It has every string that the program uses.
static BASE_STRINGS: LazyLock<BTreeMap<String, Strings>> = LazyLock::new(|| {
    let base = embedded().remove("base").unwrap_or_default();
    required_strings::built_in(&base.files)
});

impl Theme {
    /// Returns the name of a file in reports, in the folder that provides the file: the theme's or a parent's.
    #[must_use]
    pub fn name_of(&self, path: &str) -> String {
        let label = self.labels.get(path).map_or(&*self.label, |label| label);
        format!("{label}/{path}")
    }

    /// Returns the files of the theme's own folder as text, by path. The files of a parent are in the report of the parent.
    pub fn own_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_own = |path: &str| {
            let label = self.labels.get(path);
            label.is_none_or(|label| **label == *self.label)
        };
        let own = self.files.iter().filter(move |(path, _)| is_own(path));
        own.filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)))
    }

    /// Returns the languages of the theme with their UI strings.
    #[must_use]
    pub fn languages(&self) -> Vec<(&str, &Strings)> {
        static NONE: Strings = Strings::new();
        let chosen = &self.manifest.languages;
        if chosen.is_empty() {
            let all = self.strings.iter();
            return all
                .map(|(language, strings)| (language.as_str(), strings))
                .collect();
        }
        let chosen = chosen.iter();
        chosen
            .map(|language| {
                (
                    language.as_str(),
                    self.strings.get(language).unwrap_or(&NONE),
                )
            })
            .collect()
    }
}

/// Loads a theme from a set of folders. Returns `None` if the report has errors.
#[must_use]
pub fn load(name: &str, folders: &BTreeMap<String, Folder>) -> (Option<Theme>, Report) {
    let mut report = Report::default();
    let mut line = Vec::new();
    let layers = load_layers(name, folders, &mut line, &mut report);
    let theme = layers.and_then(|layers| build_theme(name, folders, line, layers, &mut report));
    (theme.filter(|_| report.is_servable()), report)
}

/// Builds a theme from its merged files, and checks that they fit together.
fn build_theme(
    name: &str,
    folders: &BTreeMap<String, Folder>,
    line: Vec<String>,
    layers: ThemeLayers,
    report: &mut Report,
) -> Option<Theme> {
    let label = folders.get(name)?.label.clone();
    let manifest = layers.manifest?;
    let section_types = section_type::read_all(&label, &layers.files, report);
    let settings = DataSchema::new(&Json::Object(manifest.settings.clone()), None, None);
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            let message = format!("`settings`: {error}");
            report.push(Diagnostic::error(
                Code::BadSchema,
                format!("{label}/{MANIFEST}"),
                message,
            ));
            return None;
        }
    };
    let fingerprint = fingerprint(&line, folders);
    let mut strings = layers.strings;
    required_strings::complete(&label, &mut strings, &BASE_STRINGS, report);
    let theme = Theme {
        name: name.to_owned(),
        label,
        line,
        manifest,
        files: layers.files,
        labels: layers.labels,
        section_types,
        settings: Arc::new(settings),
        strings,
        fingerprint,
    };
    required_strings::check(&theme.label, &theme.files, &theme.languages(), report);
    Some(theme)
}

/// Returns a hash of the named folders.
pub fn fingerprint<'a>(
    names: impl IntoIterator<Item = &'a String>,
    folders: &BTreeMap<String, Folder>,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    for name in names {
        let folder = folders.get(name).map(Folder::fingerprint);
        // The length separates the name from the following hash.
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(folder.unwrap_or_default());
    }
    hash.finalize().into()
}

fn load_layers(
    name: &str,
    folders: &BTreeMap<String, Folder>,
    children: &mut Vec<String>,
    report: &mut Report,
) -> Option<ThemeLayers> {
    let Some(folder) = folders.get(name) else {
        report.push(
            Diagnostic::error(
                Code::UnknownTheme,
                "themes",
                format!("unknown theme `{name}`"),
            )
            .hint(hint_for(name, folders.keys().map(String::as_str))),
        );
        return None;
    };
    if children.iter().any(|child| child == name) {
        report.push(Diagnostic::error(
            Code::UnknownTheme,
            folder.name_of(MANIFEST),
            format!(
                "the theme `{name}` is its own parent: {}",
                children.join(" > ")
            ),
        ));
        return None;
    }
    children.push(name.to_owned());
    let manifest = read_manifest(folder, report)?;
    let mut layers = match &manifest.parent {
        Some(parent) => load_layers(parent, folders, children, report)?,
        None => ThemeLayers::default(),
    };
    let label: Arc<str> = folder.label.as_str().into();
    let paths = folder.files.keys().cloned();
    layers
        .labels
        .extend(paths.map(|path| (path, Arc::clone(&label))));
    layers.files.extend(
        folder
            .files
            .iter()
            .map(|(path, bytes)| (path.clone(), bytes.clone())),
    );
    for (language, strings) in read_strings(folder, report) {
        layers.strings.entry(language).or_default().extend(strings);
    }
    layers.manifest = Some(match layers.manifest.take() {
        Some(parent) => merge_over(manifest, parent),
        None => manifest,
    });
    Some(layers)
}

/// Merges a theme's manifest into its parent's.
fn merge_over(own: ThemeManifest, parent: ThemeManifest) -> ThemeManifest {
    let mut all = parent;
    all.name = own.name;
    all.parent = own.parent;
    all.theme_color = own.theme_color.or(all.theme_color);
    all.icon = own.icon.or(all.icon);
    if !own.languages.is_empty() {
        all.languages = own.languages;
    }
    for (key, value) in own.settings {
        match (all.settings.get_mut(&key), value) {
            (Some(Json::Object(parent)), Json::Object(own)) => parent.extend(own),
            (_, value) => drop(all.settings.insert(key, value)),
        }
    }
    all.site_colours.extend(own.site_colours);
    all.styles.extend(own.styles);
    all.preload.extend(own.preload);
    all.roles.extend(own.roles);
    all.contrast.extend(own.contrast);
    all
}

/// Reads the UI strings of a folder by language.
fn read_strings(folder: &Folder, report: &mut Report) -> Vec<(String, Strings)> {
    let files = folder.files.iter().filter_map(|(path, bytes)| {
        let language = path.strip_prefix("strings/")?.strip_suffix(".yaml")?;
        Some((language.to_owned(), path, bytes))
    });
    let mut all = Vec::new();
    for (language, path, bytes) in files {
        let file = folder.name_of(path);
        if let Some((text, node)) = read_yaml(&file, bytes, report) {
            let (strings, problems) = strings::read(&node);
            report_violations(&problems, &file, &text, report);
            all.push((language, strings));
        }
    }
    all
}

fn read_manifest(folder: &Folder, report: &mut Report) -> Option<ThemeManifest> {
    let file = folder.name_of(MANIFEST);
    let Some(bytes) = folder.files.get(MANIFEST) else {
        report.push(Diagnostic::error(
            Code::UnknownTheme,
            folder.label.clone(),
            format!("the theme has no `{MANIFEST}`"),
        ));
        return None;
    };
    let (text, node) = read_yaml(&file, bytes, report)?;
    let (problems, _) = SCHEMA.check(&node);
    report_violations(&problems, &file, &text, report);
    if !problems.is_empty() {
        return None;
    }
    serde_json::from_value(node.to_json())
        .map_err(|error| report.push(Diagnostic::error(Code::WrongType, file, error.to_string())))
        .ok()
}
