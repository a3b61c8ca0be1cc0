//! Loads templates from a theme's folder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tera::Tera;

use super::checks;
use super::error::located;
use super::escaping;
use super::functions::register;
use super::render::{SOCIAL, Templates};
use super::section::{EXAMPLE, EXAMPLE_SOURCE, SECTIONS, any_section, component};
use crate::images::svg::fonts::Fonts;
use crate::markdown::element_ids::ThemeIds;
use crate::theme::language::Language;
use crate::theme::theme_files::theme_assets;
use content::report::{Code, Diagnostic, Report};
use content::theme::Theme;

/// Returns the languages of the theme. Reports missing plural forms and unknown languages.
fn languages(theme: &Theme, report: &mut Report) -> BTreeMap<String, Arc<Language>> {
    let mut languages = BTreeMap::new();
    for (tag, strings) in theme.languages() {
        match Language::new(tag, strings.clone()) {
            Ok(language) => {
                for (key, form) in language.missing_forms() {
                    let file = format!("{}/strings/{tag}.yaml", theme.label);
                    let message = format!("`{key}` has no plural form `{form}`");
                    let diagnostic = Diagnostic::error(Code::MissingWord, file, message);
                    report.push(diagnostic.hint(format!("add `{form}:` beside `other:`")));
                }
                languages.insert(tag.to_owned(), Arc::new(language));
            }
            Err(message) => report.push(Diagnostic::error(
                Code::UnknownLanguage,
                format!("{}/strings/{tag}.yaml", theme.label),
                message,
            )),
        }
    }
    languages
}

impl Templates {
    /// Parses every template of a theme, and gives its files hashed names.
    #[must_use]
    pub fn load(theme: &Theme) -> (Option<Self>, Report) {
        let mut report = Report::default();
        let assets = theme_assets(theme, &mut report);
        let mut tera = Tera::default();
        tera.autoescape_on([".html", ".svg"]);
        register(&mut tera);
        escaping::register(&mut tera);
        let mut ids = ThemeIds::default();
        let mut sources = vec![
            (SECTIONS, any_section(theme)),
            (EXAMPLE, EXAMPLE_SOURCE.to_owned()),
        ];
        for (path, bytes) in &theme.files {
            if !path.ends_with(".html") && path != SOCIAL {
                continue;
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => {
                    ids.read(text);
                    sources.push((path.as_str(), component(path, text)));
                }
                Err(_) => report.push(Diagnostic::error(
                    Code::NotUtf8,
                    theme.name_of(path),
                    "the template is not UTF-8",
                )),
            }
        }
        if report.is_servable()
            && let Err(error) = tera.add_raw_templates(sources)
        {
            report.extend(located(&error, Code::TemplateFailed, theme));
        }
        report.extend(checks::check(theme));
        let languages = languages(theme, &mut report);
        let templates = report.is_servable().then(|| Self {
            languages,
            fonts: Arc::new(Fonts::of(theme)),
            theme: theme.clone(),
            assets,
            ids: Arc::new(ids),
            tera,
            served: AtomicBool::new(false),
        });
        (templates, report)
    }
}
