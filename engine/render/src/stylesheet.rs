//! The theme's one stylesheet: its styles in their order, with hashed names and minified.

use std::collections::BTreeMap;

mod minify;

use minify::minified;

use super::asset::Asset;
use content::report::{Code, Diagnostic, Report};
use content::tenant::values::Colour;
use content::theme::{MANIFEST, Role, Theme};

/// Joins the styles that the theme's manifest names, and the colours of its roles.
pub(super) fn stylesheet(
    theme: &Theme,
    files: &BTreeMap<String, Asset>,
    report: &mut Report,
) -> Asset {
    let mut css = String::new();
    for style in &theme.manifest.styles {
        let label = format!("{}/{style}", theme.label);
        match theme
            .files
            .get(style)
            .map(|bytes| std::str::from_utf8(bytes))
        {
            Some(Ok(text)) => match minified(text, |target| hashed(target, style, files)) {
                Ok(style) => css.push_str(&style),
                Err(flaw) => report.push(flaw.diagnostic(label, text)),
            },
            Some(Err(_)) => report.push(Diagnostic::error(
                Code::NotUtf8,
                label,
                "the stylesheet is not UTF-8",
            )),
            None => report.push(Diagnostic::error(
                Code::MissingAsset,
                format!("{}/{MANIFEST}", theme.label),
                format!("the theme has no stylesheet `{style}`"),
            )),
        }
        css.push('\n');
    }
    css.push_str(&role_styles(&theme.manifest.roles));
    Asset::new(&format!("{}.css", theme.name), css.into())
}

/// `:root` with one custom property a role: `light-dark(day, night)` (CSS Color 5).
fn role_styles(roles: &BTreeMap<String, Role>) -> String {
    let properties: String = roles
        .iter()
        .map(|(name, role)| property(name, &role.day, &role.night))
        .collect();
    format!("@layer roles{{:root{{{properties}}}}}\n")
}

/// One custom property of a role.
#[must_use]
pub(super) fn property(name: &str, day: &Colour, night: &Colour) -> String {
    format!(
        "--{}:light-dark({},{});",
        name.replace('_', "-"),
        day.as_str(),
        night.as_str()
    )
}

/// The hashed name of a theme's file as a style refers to it. The stylesheet lies beside it in `/assets/`.
fn hashed(target: &str, style: &str, files: &BTreeMap<String, Asset>) -> Option<String> {
    if target.starts_with('#') {
        return Some(target.to_owned());
    }
    let folder = style.rsplit_once('/').map_or("", |(folder, _)| folder);
    files
        .get(&joined(folder, target))
        .map(|asset| asset.hashed_name.clone())
}

/// `../fonts/a.woff2` seen from `css`.
fn joined(folder: &str, target: &str) -> String {
    let mut segments: Vec<&str> = folder
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_its_stylesheet() {
        assert_eq!(joined("css", "../fonts/a.woff2"), "fonts/a.woff2");
        assert_eq!(joined("css/parts", "./b.svg"), "css/parts/b.svg");
    }
}
