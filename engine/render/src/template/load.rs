//! A theme's folder becomes templates.

use std::sync::Arc;

use tera::Tera;

use super::error::located;
use super::functions::register;
use super::render::{SOCIAL, Templates};
use crate::compress;
use crate::picture::fonts::Fonts;
use crate::theme_files::theme_assets;
use content::report::{Code, Diagnostic, Report};
use content::theme::Theme;

impl Templates {
    /// Reads every template of a theme, and names its files.
    #[must_use]
    pub fn load(theme: &Theme) -> (Option<Self>, Report) {
        let mut report = Report::default();
        let assets = theme_assets(theme, &mut report);
        let mut tera = Tera::default();
        tera.autoescape_on([".html", ".svg"]);
        register(&mut tera);
        let mut sources = Vec::new();
        for (path, bytes) in &theme.files {
            if !path.ends_with(".html") && path != SOCIAL {
                continue;
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => sources.push((path.as_str(), text)),
                Err(_) => report.push(Diagnostic::error(
                    Code::NotUtf8,
                    format!("{}/{path}", theme.label),
                    "the template is not UTF-8",
                )),
            }
        }
        if report.is_servable()
            && let Err(error) = tera.add_raw_templates(sources)
        {
            report.extend(located(&error, Code::TemplateFailed, theme));
        }
        let templates = report.is_servable().then(|| Self {
            stylesheet_weight: assets
                .stylesheet
                .as_ref()
                .map_or(0, |sheet| compress::weight(&sheet.bytes)),
            fonts: Arc::new(Fonts::of(theme)),
            theme: theme.clone(),
            assets,
            tera,
        });
        (templates, report)
    }
}
