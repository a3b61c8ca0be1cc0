//! The templates of section types as components, and what the engine writes to call them.

use content::theme::Theme;

/// The template of a section with nothing around it, for the gallery.
pub(crate) const EXAMPLE: &str = "example.html";

/// What it says.
pub(super) const EXAMPLE_SOURCE: &str = "<!doctype html>\n<html lang=\"{{ site.language }}\">\n<head>{{ head }}</head>\n<body>\n<main>\n\
{% for section in page.sections -%}\n{{<Section section={section} index={loop.index} />}}\n{% endfor -%}\n</main>\n</body>\n</html>\n";

/// The template with the component that shows any section.
pub(super) const SECTIONS: &str = "sections.html";

/// The component `Section`: hands a section to the template of its kind.
pub(super) fn any_section(theme: &Theme) -> String {
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

/// The template of a section type as a component, and any other as it is.
pub(super) fn component(path: &str, text: &str) -> String {
    match (opening(path), path.split('/').nth(1)) {
        (Some(opening), Some(kind)) => {
            let text = text.strip_suffix('\n').unwrap_or(text);
            format!("{opening}{text}{{%- endcomponent Section_{kind} %}}")
        }
        _ => text.to_owned(),
    }
}
