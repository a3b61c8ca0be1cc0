//! A theme's folder as data: its files over those of its parent, its roles and what stands on what.
//!
//! A theme that names a `parent` holds only what differs: a file of the same path wins over the parent's.
//!
//! **Invariant:** knows no tenant and no page, and renders nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use rust_embed::RustEmbed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::{Code, Diagnostic, Report, hint_for};
use crate::schema::Schema;
use crate::source::Folder;
use crate::tenant::checked_by;
use crate::tenant::values::Colour;
use crate::yaml;

/// The theme's manifest file.
pub const MANIFEST: &str = "theme.yaml";

/// `theme.yaml`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThemeManifest {
    /// The theme's name.
    pub name: String,
    /// The theme that has what this one has not.
    #[serde(default)]
    pub parent: Option<String>,
    /// The stylesheets in their order; they are joined to one file.
    #[serde(default)]
    pub styles: Vec<String>,
    /// Files that every page needs at once: fonts.
    #[serde(default)]
    pub preload: Vec<String>,
    /// The colour of the browser's own frame, as the name of a role.
    #[serde(default)]
    pub theme_color: Option<String>,
    /// The roles that colours play, with their values by day and by night.
    #[serde(default)]
    pub roles: BTreeMap<String, Role>,
    /// Pairs of text and ground that have to be told apart.
    #[serde(default)]
    pub contrast: Vec<[String; 2]>,
}

/// A role's colour by day and by night.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// On paper.
    pub day: Colour,
    /// In the dark.
    pub night: Colour,
}

/// A theme with its parents' files below its own.
#[derive(Debug, Clone)]
pub struct Theme {
    /// The folder's name.
    pub name: String,
    /// How reports name the folder.
    pub label: String,
    /// The folders that it is put together from: its own, its parent's, and so on.
    pub line: Vec<String>,
    /// Styles, preloads, roles and pairs of the whole line of parents.
    pub manifest: ThemeManifest,
    /// The files by path.
    pub files: BTreeMap<String, Bytes>,
}

/// The themes that are built into the program.
#[derive(RustEmbed)]
#[folder = "../../themes"]
struct Embedded;

/// The theme folders within the program, by name.
#[must_use]
pub fn embedded() -> BTreeMap<String, Folder> {
    let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
    for path in Embedded::iter() {
        let (Some((name, inner)), Some(file)) = (path.split_once('/'), Embedded::get(&path)) else {
            continue;
        };
        let folder = folders.entry(name.to_owned()).or_insert_with(|| Folder {
            label: format!("themes/{name}"),
            files: BTreeMap::new(),
        });
        folder
            .files
            .insert(inner.to_owned(), Bytes::from(file.data.into_owned()));
    }
    folders
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(checked_by::<ThemeManifest>);

/// Puts a theme together from the folders that there are.
#[must_use]
pub fn load(name: &str, folders: &BTreeMap<String, Folder>) -> (Option<Theme>, Report) {
    let mut report = Report::default();
    let mut line = Vec::new();
    let theme = layered(name, folders, &mut line, &mut report);
    let theme = theme.map(|theme| Theme { line, ..theme });
    (theme.filter(|_| report.is_servable()), report)
}

fn layered(
    name: &str,
    folders: &BTreeMap<String, Folder>,
    children: &mut Vec<String>,
    report: &mut Report,
) -> Option<Theme> {
    let Some(folder) = folders.get(name) else {
        report.push(
            Diagnostic::error(
                Code::UnknownTheme,
                "themes",
                format!("there is no theme `{name}`"),
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
    let parent = match &manifest.parent {
        Some(parent) => Some(layered(parent, folders, children, report)?),
        None => None,
    };
    Some(Theme {
        name: name.to_owned(),
        label: folder.label.clone(),
        ..over(manifest, folder, parent)
    })
}

/// The theme's own files and roles over its parent's.
fn over(own: ThemeManifest, folder: &Folder, parent: Option<Theme>) -> Theme {
    let Some(parent) = parent else {
        return Theme {
            name: String::new(),
            label: String::new(),
            line: Vec::new(),
            manifest: own,
            files: folder.files.clone(),
        };
    };
    let mut theme = parent;
    theme.files.extend(
        folder
            .files
            .iter()
            .map(|(path, bytes)| (path.clone(), bytes.clone())),
    );
    let base = &mut theme.manifest;
    base.name = own.name;
    base.parent = own.parent;
    base.theme_color = own.theme_color.or(base.theme_color.take());
    base.styles.extend(own.styles);
    base.preload.extend(own.preload);
    base.roles.extend(own.roles);
    base.contrast.extend(own.contrast);
    theme
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
    let text = match folder.text(MANIFEST, bytes) {
        Ok(text) => text,
        Err(diagnostic) => {
            report.push(diagnostic);
            return None;
        }
    };
    let node = match yaml::parse(text, 1) {
        Ok(node) => node,
        Err(error) => {
            let diagnostic = Diagnostic::error(error.code, file, error.message);
            report.push(match error.place {
                Some(place) => diagnostic.at(place, text),
                None => diagnostic,
            });
            return None;
        }
    };
    let (problems, _) = SCHEMA.check(&node);
    for problem in &problems {
        let diagnostic = Diagnostic::error(problem.code, file.clone(), problem.message.clone())
            .at(problem.place, text);
        report.push(Diagnostic {
            hint: problem.hint.clone(),
            ..diagnostic
        });
    }
    if !problems.is_empty() {
        return None;
    }
    serde_json::from_value(node.to_json())
        .map_err(|error| report.push(Diagnostic::error(Code::WrongType, file, error.to_string())))
        .ok()
}
