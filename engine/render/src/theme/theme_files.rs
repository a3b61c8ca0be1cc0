//! A theme's own files and its styles.

use std::collections::BTreeMap;

use crate::resources::asset::Asset;
use crate::styles::Styles;
use content::report::Report;
use content::theme::Theme;

/// The theme's files by their path, and its styles.
#[derive(Debug, Default)]
pub struct ThemeAssets {
    /// Fonts, icons, drawings: everything that is no template and no CSS source.
    pub files: BTreeMap<String, Asset>,
    /// What stylesheets are made of.
    pub(crate) styles: Styles,
}

/// Names the theme's files and reads its styles.
#[must_use]
pub(crate) fn theme_assets(theme: &Theme, report: &mut Report) -> ThemeAssets {
    let files: BTreeMap<String, Asset> = theme
        .files
        .iter()
        .filter(|(path, _)| is_public(path))
        .map(|(path, bytes)| (path.clone(), Asset::new(path, bytes.clone())))
        .collect();
    ThemeAssets {
        styles: Styles::new(theme, &files, report),
        files,
    }
}

/// Whether a theme's file may be requested by name: no templates, sources, manifests, licences, notes.
fn is_public(path: &str) -> bool {
    ["drawings/", "fonts/", "icons/", "images/"]
        .iter()
        .any(|folder| path.starts_with(folder))
        && ![".md", ".txt"].iter().any(|end| path.ends_with(end))
}
