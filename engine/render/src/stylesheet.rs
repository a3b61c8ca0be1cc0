//! Stylesheets: a theme's styles in their order, with those of the kinds of section that a tenant uses, with hashed names and minified.

mod minify;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use minify::minified;

use super::asset::Asset;
use super::card::Card;
use super::compress;
use content::report::{Code, Diagnostic, Report};
use content::theme::kind::SectionKind;
use content::theme::{MANIFEST, Role, Theme};

/// A stylesheet as a tenant's pages name it.
#[derive(Debug)]
pub struct Sheet {
    /// The file.
    pub asset: Asset,
    /// How much it weighs on the way to a visitor, in bytes.
    pub(crate) weight: usize,
    is_served: AtomicBool,
}

impl Sheet {
    /// Whether visitors get it by now.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.is_served.load(Relaxed)
    }

    /// Says that a snapshot with it is served. What was served once stays for as long as pages may name it.
    pub fn set_served(&self) {
        self.is_served.store(true, Relaxed);
    }
}

/// The styles of a theme, minified: those of every page, and those of each kind of section.
#[derive(Debug, Default)]
pub(super) struct Styles {
    name: String,
    everywhere: String,
    kinds: BTreeMap<String, String>,
    site_colours: Vec<String>,
    sheets: Mutex<BTreeMap<String, Arc<Sheet>>>,
}

impl Styles {
    /// Reads the styles that the theme's manifest names, the colours of its roles, and the style of each kind.
    pub(super) fn new(theme: &Theme, files: &BTreeMap<String, Asset>, report: &mut Report) -> Self {
        let mut everywhere = String::new();
        for style in &theme.manifest.styles {
            match style_of(theme, style, files, report) {
                Some(style) => everywhere.push_str(&style),
                None => report.push(Diagnostic::error(
                    Code::MissingAsset,
                    format!("{}/{MANIFEST}", theme.label),
                    format!("the theme has no stylesheet `{style}`"),
                )),
            }
            everywhere.push('\n');
        }
        everywhere.push_str(&role_styles(&theme.manifest.roles));
        let kinds = theme.kinds.keys().filter_map(|kind| {
            let path = SectionKind::file(kind, "section.css");
            let style = style_of(theme, &path, files, report)?;
            Some((kind.clone(), style + "\n"))
        });
        Self {
            name: format!("{}.css", theme.name),
            kinds: kinds.collect(),
            everywhere,
            site_colours: theme.manifest.site_colours.clone(),
            sheets: Mutex::default(),
        }
    }

    /// The stylesheet for pages with sections of these kinds. The order of styles is the same everywhere: those of every page, then those of kinds by their names.
    pub(super) fn sheet(&self, used: &BTreeSet<&str>, sites: &[Card]) -> Arc<Sheet> {
        let mut css = self.everywhere.clone();
        let used = self
            .kinds
            .iter()
            .filter(|(kind, _)| used.contains(kind.as_str()));
        css.extend(used.map(|(_, style)| style.as_str()));
        if !self.site_colours.is_empty() && !sites.is_empty() {
            css.push_str(&self.colours_of(sites));
        }
        // Many tenants have the same.
        let mut sheets = self.sheets.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sheets.get(&css);
        if let Some(sheet) = known {
            return Arc::clone(sheet);
        }
        let sheet = Arc::new(Sheet {
            weight: compress::weight(css.as_bytes()),
            asset: Asset::new(&self.name, css.clone().into()),
            is_served: AtomicBool::new(false),
        });
        sheets.retain(|_, sheet| Arc::strong_count(sheet) > 1);
        sheets.insert(css, Arc::clone(&sheet));
        sheet
    }

    /// The colours of the company's sites, each on a class of its own, and a name that is its own, too.
    fn colours_of(&self, sites: &[Card]) -> String {
        let rules: String = sites
            .iter()
            .map(|site| {
                let id = &site.tenant;
                let own = self.site_colours.iter().filter_map(|name| {
                    let (day, night) = site.colours(name)?;
                    Some(property(name, day, night))
                });
                format!(
                    ".tenant-{id}{{--tenant:tenant-{id};{}}}",
                    own.collect::<String>()
                )
            })
            .collect();
        format!("@layer roles{{{rules}}}\n")
    }
}

/// A style of the theme, minified; `None` where there is none.
fn style_of(
    theme: &Theme,
    path: &str,
    files: &BTreeMap<String, Asset>,
    report: &mut Report,
) -> Option<String> {
    let label = format!("{}/{path}", theme.label);
    let Ok(text) = std::str::from_utf8(theme.files.get(path)?) else {
        report.push(Diagnostic::error(
            Code::NotUtf8,
            label,
            "the stylesheet is not UTF-8",
        ));
        return Some(String::new());
    };
    match minified(text, |target| hashed(target, path, files)) {
        Ok(style) => Some(style),
        Err(error) => {
            report.push(error.diagnostic(label, text));
            Some(String::new())
        }
    }
}

/// `:root` with one custom property a role: `light-dark(day, night)` (CSS Color 5).
fn role_styles(roles: &BTreeMap<String, Role>) -> String {
    let properties: String = roles
        .iter()
        .map(|(name, role)| property(name, role.day.as_str(), role.night.as_str()))
        .collect();
    format!("@layer roles{{:root{{{properties}}}}}\n")
}

/// One custom property of a role.
#[must_use]
pub(super) fn property(name: &str, day: &str, night: &str) -> String {
    format!("--{}:light-dark({day},{night});", name.replace('_', "-"))
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
