//! A theme's public files and its styles.

use std::collections::BTreeMap;

use crate::resources::asset::Asset;
use crate::styles::Styles;
use content::report::Report;
use content::theme::Theme;

/// The theme's public files by path, and its styles.
#[derive(Debug, Default)]
pub struct ThemeAssets {
    /// Fonts, icons, images and SVGs.
    pub files: BTreeMap<String, Asset>,
    /// The parsed style sheets.
    pub(crate) styles: Styles,
}

/// Gives the theme's public files hashed names, and parses its styles.
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

/// Whether a theme's file is public. Templates, sources, manifests, licences and notes are not.
fn is_public(path: &str) -> bool {
    ["drawings/", "fonts/", "icons/", "images/"]
        .iter()
        .any(|folder| path.starts_with(folder))
        && ![".md", ".txt"].iter().any(|end| path.ends_with(end))
}
