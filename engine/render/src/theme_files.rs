//! A theme's own files and its stylesheet.

use std::collections::BTreeMap;

use super::asset::Asset;
use super::stylesheet::stylesheet;
use content::report::Report;
use content::theme::Theme;

/// The theme's files by their path, the stylesheet among them as `theme.css`.
#[derive(Debug, Default)]
pub struct ThemeAssets {
    /// Fonts, icons, drawings: everything that is no template and no CSS source.
    pub files: BTreeMap<String, Asset>,
    /// All styles in their order.
    pub stylesheet: Option<Asset>,
}

/// Names the theme's files and writes its stylesheet.
#[must_use]
pub(super) fn theme_assets(theme: &Theme, report: &mut Report) -> ThemeAssets {
    let files: BTreeMap<String, Asset> = theme
        .files
        .iter()
        .filter(|(path, _)| is_public(path))
        .map(|(path, bytes)| (path.clone(), Asset::new(path, bytes.clone())))
        .collect();
    let stylesheet = stylesheet(theme, &files, report);
    ThemeAssets {
        files,
        stylesheet: Some(stylesheet),
    }
}

/// Whether a theme's file may be asked for by name: no templates, sources, manifests, licences.
fn is_public(path: &str) -> bool {
    ["fonts/", "icons/", "houses/", "images/"]
        .iter()
        .any(|folder| path.starts_with(folder))
        && !path.ends_with(".txt")
}
