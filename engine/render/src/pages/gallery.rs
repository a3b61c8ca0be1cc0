//! The gallery of a theme, which `--dev` serves at `/_gallery`. The gallery shows the example of every section type in light and dark mode at three widths, with a table of the schema.
//!
//! Each example is a page below `/_gallery/<section type>/`, which the gallery shows in frames. So each example has the width of a screen, and a colour scheme of its own. The script of `--dev` adds a warning to the caption of a frame whose page is wider.
//!
//! The manual has each example once, in the colour scheme of the reader's system, and no gallery page.
//!
//! **Invariant:** without `--dev`, and outside of the manual, no byte of this module is in any page. The gallery is for authors and in English.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::Value as Json;

use crate::markdown::escape;
use crate::pages::links::resolver::DeploymentFacts;
use crate::pages::page::{RenderedPage, Renderer};
use crate::resources::asset::policy_hash;
use crate::resources::encodings::compress::{self, CompressionLevel};
use crate::resources::header_fields::{self, BodyKind};
use content::schema::referred;
use content::theme::Theme;
use content::theme::section_type::SectionType;
use release::snapshot::{Body, Resource};

/// The path of the gallery within a tenant.
const PATH: &str = "/_gallery";

/// The widths of the frames, in CSS pixels.
const WIDTHS: [u16; 3] = [360, 768, 1280];

/// The times of day, each with the style that forces its colour scheme.
const TIMES: [(&str, &str); 2] = [
    ("day", ":root{color-scheme:light!important}"),
    ("night", ":root{color-scheme:dark!important}"),
];

/// The style of an example in the manual: centres a section that is lower than the frame.
const CENTRED_STYLE: &str = "body{display:flex;flex-direction:column;min-block-size:100vh}main{flex:none;inline-size:100%;margin-block:auto;padding-block:3rem}";

/// The gallery's own style.
const GALLERY_STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
body{margin:0 auto;max-inline-size:90rem;padding:1rem}\
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;padding:0}\
section{border-block-start:1px solid GrayText;margin-block-start:3rem}\
.table{overflow-x:auto}\
table{border-collapse:collapse}\
th,td{border-block-end:1px solid GrayText;padding:.25rem 1rem .25rem 0;text-align:start;vertical-align:top}\
.frames{display:flex;gap:1rem;overflow-x:auto;padding-block:1rem}\
figure{margin:0}\
figcaption strong{color:light-dark(#a11226,#ff9f9a)}\
iframe{background:Canvas;block-size:45rem;border:1px solid GrayText;zoom:.5}";

/// Returns the gallery's pages by path: all pages with `--dev`, only the examples in the manual, and otherwise none.
pub(crate) fn pages(renderer: &Renderer<'_>) -> Vec<(String, RenderedPage)> {
    let mut pages = Vec::new();
    let theme = &renderer.templates().theme;
    if renderer.is_dev() {
        let kinds = theme.section_types.values().map(AsRef::as_ref);
        pages.push((PATH.to_owned(), index(renderer, kinds)));
        for kind in theme.section_types.values() {
            for (time, style) in TIMES {
                if let Some(page) = example(renderer, kind, style) {
                    pages.push((format!("{PATH}/{}/{time}", kind.name), page));
                }
            }
        }
    }
    if renderer.shows_section_examples() {
        for kind in theme.section_types.values() {
            if let Some(page) = example(renderer, kind, CENTRED_STYLE) {
                pages.push((example_path(kind), page));
            }
        }
    }
    pages
}

/// Returns the paths of the examples that the manual shows in frames.
pub(crate) fn example_paths(
    theme: &Theme,
    deployment: &DeploymentFacts,
) -> impl Iterator<Item = String> {
    let kinds = theme
        .section_types
        .values()
        .filter(|_| deployment.shows_section_examples);
    let kinds = kinds.filter(|kind| kind.example.is_some());
    kinds.map(|kind| example_path(kind))
}

fn example_path(kind: &SectionType) -> String {
    format!("{PATH}/{}", kind.name)
}

/// Renders a page with only the example of a section type. Returns `None` if there is no example.
fn example(renderer: &Renderer<'_>, kind: &SectionType, style: &str) -> Option<RenderedPage> {
    let style = format!("{}{style}", renderer.own_style());
    let html = renderer.example(&kind.name, kind.example.as_ref()?, &style);
    Some(html.unwrap_or_else(|diagnostic| {
        let said = escape(&diagnostic.message);
        let said = format!("<p>The example cannot be shown: {said}</p>");
        document(&kind.name, &said, &style, "")
    }))
}

/// Makes the resource of a gallery page. The links in `html` are already adapted to the address.
pub(crate) fn body(html: String, style: &str, renderer: &Renderer<'_>) -> Resource {
    let kind = BodyKind::Page {
        styles: BTreeSet::from([style.to_owned()]),
        script: Some(renderer.loader_hash().to_owned()),
        noindex: true,
        framed: true,
        caching: header_fields::CachePolicy::default(),
        hsts: content::tenant::manifest::Hsts::default(),
    };
    Resource::Body(Body {
        status: StatusCode::OK,
        fields: header_fields::fields(&kind, "text/html; charset=utf-8", renderer.is_secure()),
        cache_tag: None,
        variants: compress::variants(html.into(), true, CompressionLevel::Page),
    })
}

/// Writes a page of the engine's own. `more` is added to its head.
fn document(title: &str, main: &str, style: &str, more: &str) -> RenderedPage {
    let title = escape(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{style}</style>\n{more}</head>\n<body>\n{main}\n</body>\n</html>\n"
    );
    RenderedPage {
        html,
        style: policy_hash(style),
        drawings: None,
    }
}

fn index<'k>(
    renderer: &Renderer<'_>,
    kinds: impl Iterator<Item = &'k SectionType> + Clone,
) -> RenderedPage {
    let theme = &renderer.templates().theme.name;
    let links: String = kinds
        .clone()
        .map(|kind| format!("<li><a href=\"#{0}\">{0}</a></li>", kind.name))
        .collect();
    let sections: String = kinds.map(|kind| section(renderer, kind)).collect();
    let main = format!(
        "<main>\n<h1>Section types of the theme {}</h1>\n\
         <p>Each section type shows its <code>example.yaml</code> by day and by night, at 360, 768 and 1280 pixels.</p>\n\
         <nav aria-label=\"Section types\"><ul>{links}</ul></nav>\n{sections}</main>",
        escape(theme)
    );
    // Without an icon, browsers request `/favicon.ico` of the host, which may belong to another tenant.
    let icon = renderer.icon().map_or_else(String::new, |icon| {
        format!(
            "<link rel=\"icon\" href=\"{}\" type=\"image/svg+xml\">\n",
            escape(&icon)
        )
    });
    let more = icon + &renderer.dev_script(&main);
    document(&format!("Gallery of {theme}"), &main, GALLERY_STYLE, &more)
}

fn section(renderer: &Renderer<'_>, kind: &SectionType) -> String {
    let name = &kind.name;
    let frames: String = match kind.example {
        None => "<p>This section type has no <code>example.yaml</code>.</p>".to_owned(),
        Some(_) => TIMES
            .iter()
            .map(|(time, _)| frames(renderer, name, time))
            .collect(),
    };
    format!(
        "<section id=\"{name}\" aria-labelledby=\"title-{name}\">\n<h2 id=\"title-{name}\">{name}</h2>\n<p>{}</p>\n{}{frames}</section>\n",
        words(&kind.description),
        table(name, kind.shape.json()),
    )
}

fn frames(renderer: &Renderer<'_>, kind: &str, time: &str) -> String {
    let href = escape(&renderer.resolver.href(&format!("{PATH}/{kind}/{time}")));
    let frames: String = WIDTHS
        .iter()
        .map(|width| {
            format!(
                "<figure><figcaption>By {time}, {width} pixels</figcaption>\
                 <iframe src=\"{href}\" width=\"{width}\" loading=\"lazy\" data-example title=\"{kind} by {time} at {width} pixels\"></iframe></figure>"
            )
        })
        .collect();
    format!(
        "<div class=\"frames\" role=\"region\" aria-label=\"{kind} by {time}\" tabindex=\"0\">{frames}</div>\n"
    )
}

/// Writes the keys of a schema as a table.
fn table(kind: &str, schema: &Json) -> String {
    let mut rows = String::new();
    keys(schema, schema, "", 0, &mut rows);
    format!(
        "<div class=\"table\" role=\"region\" aria-label=\"Keys of {kind}\" tabindex=\"0\"><table>\n\
         <thead><tr><th scope=\"col\">Key</th><th scope=\"col\">Type</th><th scope=\"col\">Default</th><th scope=\"col\">Description</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Limit on the nesting of schema keys in the table. Schemas may refer to themselves.
const MAX_SCHEMA_DEPTH: usize = 4;

fn keys(root: &Json, schema: &Json, prefix: &str, depth: usize, rows: &mut String) {
    if depth > MAX_SCHEMA_DEPTH {
        return;
    }
    let schema = referred(root, schema);
    if let Some(items) = schema.get("items") {
        return keys(root, items, &format!("{prefix}[]"), depth + 1, rows);
    }
    let Some(Json::Object(properties)) = schema.get("properties") else {
        return;
    };
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, property) in properties {
        // A constant, such as the name of the section type, is not a choice of the author.
        if property.get("const").is_some() {
            continue;
        }
        let path = match prefix {
            "" => name.clone(),
            prefix => format!("{prefix}.{name}"),
        };
        let target = referred(root, property);
        let default = property.get("default").or_else(|| target.get("default"));
        let default = match default {
            Some(default) => format!("<code>{}</code>", escape(&default.to_string())),
            None if required.contains(&Json::from(name.as_str())) => "needed".to_owned(),
            None => String::new(),
        };
        let about = property
            .get("description")
            .or_else(|| target.get("description"));
        rows.push_str(&format!(
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{default}</td><td>{}</td></tr>\n",
            escape(&path),
            escape(&type_of(target)),
            words(about.and_then(Json::as_str).unwrap_or_default()),
        ));
        keys(root, target, &path, depth + 1, rows);
    }
}

/// Escapes a description and writes the parts between backticks as code.
fn words(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(index, part)| match index % 2 {
            0 => escape(part),
            _ => format!("<code>{}</code>", escape(part)),
        })
        .collect()
}

/// Describes the type of a value: its format, its choices or its JSON type.
fn type_of(schema: &Json) -> String {
    if let Some(format) = schema["format"].as_str() {
        return format.to_owned();
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<String> = choices
            .iter()
            .map(|choice| {
                choice
                    .as_str()
                    .map_or_else(|| choice.to_string(), ToOwned::to_owned)
            })
            .collect();
        return choices.join(", ");
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    match schema["type"].as_str() {
        Some("string") => "text".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => "list".to_owned(),
        Some("object") => "mapping".to_owned(),
        Some(other) => other.to_owned(),
        None => String::new(),
    }
}
