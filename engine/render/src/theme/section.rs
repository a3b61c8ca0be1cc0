//! Turns the templates of section types into components, and writes the component that selects one.

use content::theme::Theme;

/// The template of a page with a single section, for the gallery.
pub(crate) const EXAMPLE: &str = "example.html";

/// The source of [`EXAMPLE`].
pub(super) const EXAMPLE_SOURCE: &str = "<!doctype html>\n<html lang=\"{{ site.language }}\">\n<head>{{ head }}</head>\n<body>\n<main>\n\
{% for section in page.sections -%}\n{{<Section section={section} index={loop.index} />}}\n{% endfor -%}\n</main>\n</body>\n</html>\n";

/// The template that contains the component `Section`.
pub(super) const SECTIONS: &str = "sections.html";

/// Writes the component `Section`, which passes a section to the component of its type.
pub(super) fn any_section(theme: &Theme) -> String {
    let mut source = "{% component Section(section: map, index: integer) -%}\n".to_owned();
    for (number, kind) in theme.section_types.keys().enumerate() {
        let word = if number == 0 { "if" } else { "elif" };
        source.push_str(&format!(
            "{{%- {word} section.kind == \"{kind}\" -%}}{{{{<Section_{kind} section={{section}} index={{index}} />}}}}\n"
        ));
    }
    if !theme.section_types.is_empty() {
        source.push_str("{%- endif -%}\n");
    }
    source + "{%- endcomponent Section %}\n"
}

/// Returns the opening that is put before the first line of a section type's template. It adds no line, so line numbers stay the same.
pub(super) fn opening(path: &str) -> Option<String> {
    let kind = path
        .strip_prefix("sections/")?
        .strip_suffix("/section.html")?;
    Some(format!(
        "{{% component Section_{kind}(section: map, index: integer, @page, @site, @company) -%}}"
    ))
}

/// Returns the template of a section type as a component. Other templates are unchanged.
pub(super) fn component(path: &str, text: &str) -> String {
    match (opening(path), path.split('/').nth(1)) {
        (Some(opening), Some(kind)) => {
            let text = text.strip_suffix('\n').unwrap_or(text);
            format!("{opening}{text}{{%- endcomponent Section_{kind} %}}")
        }
        _ => text.to_owned(),
    }
}
