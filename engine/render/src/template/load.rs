//! A theme's folder becomes templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use tera::Tera;

use super::error::located;
use super::functions::register;
use super::render::{SOCIAL, Templates};
use crate::language::Language;
use crate::picture::fonts::Fonts;
use crate::theme_files::theme_assets;
use content::report::{Code, Diagnostic, Report};
use content::theme::Theme;

/// The template of a section with nothing around it, for the gallery.
pub(crate) const EXAMPLE: &str = "example.html";

const EXAMPLE_SOURCE: &str = "<!doctype html>\n<html lang=\"{{ site.language }}\">\n<head>{{ head }}</head>\n<body>\n<main>\n\
{% for section in page.sections -%}\n{{<Section section={section} index={loop.index} />}}\n{% endfor -%}\n</main>\n</body>\n</html>\n";

/// The template with the component that shows any section.
const SECTIONS: &str = "sections.html";

/// The component `Section`: hands a section to the template of its kind.
fn any_section(theme: &Theme) -> String {
    let mut source = "{% component Section(section: map, index: integer) -%}\n".to_owned();
    for (number, kind) in theme.kinds.keys().enumerate() {
        let word = if number == 0 { "if" } else { "elif" };
        source.push_str(&format!(
            "{{%- {word} section.kind == \"{kind}\" -%}}{{{{<Section_{kind} section={{section}} index={{index}} />}}}}\n"
        ));
    }
    if !theme.kinds.is_empty() {
        source.push_str("{%- endif -%}\n");
    }
    source + "{%- endcomponent Section %}\n"
}

/// What the first line of a kind's template begins with, so that its own lines keep their numbers.
pub(super) fn opening(path: &str) -> Option<String> {
    let kind = path
        .strip_prefix("sections/")?
        .strip_suffix("/section.html")?;
    Some(format!(
        "{{% component Section_{kind}(section: map, index: integer, @page, @site, @company) -%}}"
    ))
}

/// The template of a kind of section as a component, and any other as it is.
fn component(path: &str, text: &str) -> String {
    match (opening(path), path.split('/').nth(1)) {
        (Some(opening), Some(kind)) => {
            let text = text.strip_suffix('\n').unwrap_or(text);
            format!("{opening}{text}{{%- endcomponent Section_{kind} %}}")
        }
        _ => text.to_owned(),
    }
}

/// The languages that the theme speaks.
fn languages(theme: &Theme, report: &mut Report) -> BTreeMap<String, Arc<Language>> {
    let mut languages = BTreeMap::new();
    for (tag, strings) in theme.languages() {
        match Language::new(tag, strings.clone()) {
            Ok(language) => drop(languages.insert(tag.to_owned(), Arc::new(language))),
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
    /// Reads every template of a theme, and names its files.
    #[must_use]
    pub fn load(theme: &Theme) -> (Option<Self>, Report) {
        let mut report = Report::default();
        let assets = theme_assets(theme, &mut report);
        let mut tera = Tera::default();
        tera.autoescape_on([".html", ".svg"]);
        register(&mut tera);
        let mut sources = vec![
            (SECTIONS, any_section(theme)),
            (EXAMPLE, EXAMPLE_SOURCE.to_owned()),
        ];
        for (path, bytes) in &theme.files {
            if !path.ends_with(".html") && path != SOCIAL {
                continue;
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => sources.push((path.as_str(), component(path, text))),
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
        let languages = languages(theme, &mut report);
        let templates = report.is_servable().then(|| Self {
            languages,
            fonts: Arc::new(Fonts::of(theme)),
            theme: theme.clone(),
            assets,
            tera,
        });
        (templates, report)
    }
}
