//! The reference of every key that authors can write, from the JSON Schemas that check their files.
//!
//! **Invariant:** has no list of keys of its own.

use content::address::deployment::Claims;
use content::formats::schema_of;
use content::tenant::FrontMatter;
use content::tenant::local_values::manifest_schema;
use content::theme::section_type::SectionType;
use content::theme::{self, Theme, ThemeManifest};
use serde_json::{Map, Value as Json};

use super::markdown::{block, definition, open, prose};
use super::page::{ManualError, ReferencePage, example};

/// The built-in themes whose section types are listed.
pub(super) const THEMES: [&str; 2] = ["plain", "base"];

/// A kind of file that authors write.
struct FileKind {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    intro: &'static str,
    schema: Json,
}

/// Returns the pages of all schemas. `frames` says whether section types are shown in frames.
pub(super) fn all(frames: bool) -> Result<Vec<ReferencePage>, ManualError> {
    let mut pages = Vec::new();
    for file in files() {
        pages.push(page_of(&file, &example(&format!("{}.yaml", file.name))?));
    }
    let folders = theme::embedded();
    for name in THEMES {
        let theme = theme::load(name, &folders).0;
        pages.push(theme_page(&theme.ok_or(ManualError::Theme(name))?, frames));
    }
    Ok(pages)
}

fn files() -> [FileKind; 4] {
    [
        FileKind {
            name: "manifest",
            title: "tenant.yaml",
            description: "Every key of a tenant's manifest, tenant.yaml, with its type, its default, its meaning and an example.",
            intro: "`tenant.yaml` describes a site, apart from its pages. Only `name` is required. A key that this page does not list is the error [`unknown-key`](/reference/errors#unknown-key).",
            schema: manifest_schema(),
        },
        FileKind {
            name: "front-matter",
            title: "Front matter",
            description: "Every key of front matter, between the two lines --- at the top of a page, with its type, its default and an example.",
            intro: "Front matter is the YAML between the two lines `---` at the top of a page. Only `title` is required. The theme defines the section types: [plain](/reference/sections-plain), [base](/reference/sections-base).",
            schema: schema_of::<FrontMatter>(),
        },
        FileKind {
            name: "deployment",
            title: "deployment.yaml",
            description: "Every key of deployment.yaml, which names the root tenant, the addresses that tenants may claim, and the tenants that need a password.",
            intro: "`deployment.yaml` is in the folder of tenants, or at the path of `--deployment`. Without this file, each manifest may claim any free address, and a tenant keeps its present addresses. [Set up domains](/guides/domains) and [Protect a site with a password](/guides/protect) have the steps.",
            schema: schema_of::<Claims>(),
        },
        FileKind {
            name: "theme",
            title: "theme.yaml",
            description: "Every key of a theme's manifest, theme.yaml, with its type, its default, its meaning and an example.",
            intro: "A folder with `theme.yaml` is a theme. Only `name` is required. [Make a theme](/guides/theme) has the steps.",
            schema: schema_of::<ThemeManifest>(),
        },
    ]
}

fn page_of(file: &FileKind, example: &str) -> ReferencePage {
    let schema = &file.schema;
    let mut body = format!("{}\n\n", file.intro);
    for (key, value) in properties(schema) {
        let facts = facts(schema, value, is_required(schema, key));
        let meaning = prose(value["description"].as_str().unwrap_or_default());
        body += &format!("## `{key}` {{#{key}}}\n\n{facts}\n\n{meaning}\n\n");
        let mut inner = Vec::new();
        nested(schema, value, key, &mut inner);
        body.extend(inner);
        let lines = lines_of(example, key);
        if !lines.is_empty() {
            body += &block("yaml", &lines);
        }
    }
    body += &format!(
        "## Complete example\n\nA file with every key:\n\n{}",
        block("yaml", example)
    );
    ReferencePage {
        name: file.name.to_owned(),
        title: file.title.to_owned(),
        description: file.description.to_owned(),
        body,
    }
}

/// Returns the page of a theme: its settings and its section types.
fn theme_page(theme: &Theme, frames: bool) -> ReferencePage {
    let name = &theme.name;
    let shown = match frames {
        true => "Each section type is shown with its example",
        false => "`rowhouse serve --dev` shows each section type with its example at `/_gallery`",
    };
    let mut body = format!(
        "A tenant with `theme: {name}` can write these keys under `settings` of its manifest, and under `sections` of a page. {shown}.\n\n## Settings\n\n"
    );
    let settings = theme.settings.json();
    body += &keys_of(settings, "");
    for (kind_name, kind) in &theme.section_types {
        let description = prose(&kind.description);
        body += &format!("## `{kind_name}` {{#{kind_name}}}\n\n{description}\n\n");
        if frames && kind.example.is_some() {
            // The theme of the manual turns this paragraph into a frame.
            body += &format!("[See `{kind_name}` by itself]({name}:/_gallery/{kind_name})\n\n");
        }
        body += &keys_of(kind.shape.json(), "");
        let file = SectionType::file(kind_name, "example.yaml");
        let example = theme
            .files
            .get(&file)
            .map(|file| String::from_utf8_lossy(file));
        let lines = example.iter().flat_map(|example| example.lines());
        let indented: String = lines.map(|line| format!("    {line}\n")).collect();
        body += &block(
            "yaml",
            &format!("sections:\n  - kind: {kind_name}\n{indented}"),
        );
    }
    ReferencePage {
        name: format!("sections-{name}"),
        title: format!("Sections of {name}"),
        description: format!(
            "Every section type and every setting of the theme {name}, with keys, types, defaults and an example."
        ),
        body,
    }
}

/// Returns the keys of an object with their inner keys.
fn keys_of(schema: &Json, path: &str) -> String {
    let mut all = Vec::new();
    let object = properties(schema).filter(|(key, _)| *key != "kind");
    for (key, value) in object {
        one(
            schema,
            value,
            &format!("{path}{key}"),
            is_required(schema, key),
            &mut all,
        );
    }
    all.concat()
}

fn one(root: &Json, value: &Json, path: &str, required: bool, all: &mut Vec<String>) {
    let facts = facts(root, value, required);
    let meaning = prose(value["description"].as_str().unwrap_or_default());
    all.push(definition(
        &format!("`{path}`"),
        &format!("{} {facts}", meaning.trim()),
    ));
    nested(root, value, path, all);
}

/// Adds the keys within a value: of an object, of the items of a list, or of the values of a map.
fn nested(root: &Json, value: &Json, path: &str, all: &mut Vec<String>) {
    let value = followed(root, value);
    for one in shapes(value).filter(|shape| !is_by_language(shape)) {
        nested(root, one, path, all);
    }
    let items = &value["items"];
    let map_values = &value["additionalProperties"];
    let (inner, path) = if items.is_object() {
        (followed(root, items), format!("{path}[]"))
    } else if map_values.is_object() {
        (followed(root, map_values), format!("{path}.*"))
    } else {
        (value, path.to_owned())
    };
    if !std::ptr::eq(inner, value) && inner["items"].is_object() {
        return nested(root, inner, &path, all);
    }
    for (key, value) in properties(inner) {
        one(
            root,
            value,
            &format!("{path}.{key}"),
            is_required(inner, key),
            all,
        );
    }
}

/// Returns the alternatives of a value (`anyOf`), without `null`.
fn shapes(schema: &Json) -> impl Iterator<Item = &Json> {
    let shapes = schema["anyOf"].as_array().into_iter().flatten();
    shapes.filter(|shape| shape["type"] != "null")
}

/// Whether a shape is a value by language, whose keys are those of the plain value.
fn is_by_language(shape: &Json) -> bool {
    shape["propertyNames"].is_object()
}

fn properties(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let properties = schema["properties"].as_object();
    properties.into_iter().flat_map(Map::iter)
}

fn is_required(schema: &Json, key: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|required| required.iter().any(|name| name == key))
}

/// Follows a reference (`$ref`), and the non-null alternative of an optional value.
fn followed<'s>(root: &'s Json, schema: &'s Json) -> &'s Json {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return root.pointer(pointer).unwrap_or(schema);
    }
    match schema["anyOf"].as_array().map(Vec::as_slice) {
        Some([one, Json::Object(null)]) if null.get("type").is_some_and(|it| it == "null") => {
            followed(root, one)
        }
        _ => schema,
    }
}

/// Returns the type and the default of a value as sentences.
fn facts(root: &Json, value: &Json, required: bool) -> String {
    let kind = type_of(root, value);
    let default = match &value["default"] {
        _ if required => "Required.".to_owned(),
        Json::Null => "No default.".to_owned(),
        default => format!("Default: `{default}`."),
    };
    format!("*{}. {default}*", sentence(&kind))
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn type_of(root: &Json, value: &Json) -> String {
    let followed = followed(root, value);
    let shapes: Vec<String> = shapes(followed).map(|one| type_of(root, one)).collect();
    if !shapes.is_empty() {
        return shapes.join(", or ");
    }
    let choices = followed["oneOf"].as_array().into_iter().flatten();
    let choices = choices.map(|choice| &choice["const"]);
    let listed = followed["enum"].as_array().into_iter().flatten();
    let choices: Vec<String> = choices
        .chain(listed)
        .filter_map(|choice| match choice {
            Json::String(text) => Some(format!("`{text}`")),
            Json::Number(number) => Some(format!("`{number}`")),
            _ => None,
        })
        .collect();
    if !choices.is_empty() {
        return format!("one of {}", choices.join(", "));
    }
    let named = match &followed["type"] {
        Json::Array(types) => types
            .iter()
            .filter_map(Json::as_str)
            .find(|it| *it != "null"),
        other => other.as_str(),
    };
    match (named, followed["format"].as_str()) {
        (Some("array"), _) => {
            let most = followed["maxItems"].as_u64();
            let most = most.map_or_else(String::new, |most| format!(", at most {most}"));
            format!("list of {}{most}", many(root, &followed["items"]))
        }
        (Some("object"), _) if is_by_language(followed) => {
            let plain = type_of(root, &followed["additionalProperties"]);
            format!("{plain} by language")
        }
        (Some("object"), _) if followed["additionalProperties"].is_object() => {
            format!(
                "names, each with {}",
                type_of(root, &followed["additionalProperties"])
            )
        }
        (Some("object"), _) => "an object".to_owned(),
        (Some("boolean"), _) => "`true` or `false`".to_owned(),
        (Some("integer"), _) => "a whole number".to_owned(),
        (Some("number"), _) => "a number".to_owned(),
        (Some("string"), Some(format)) => format_name(format, followed),
        (Some(other), _) => if other == "string" { "text" } else { other }.to_owned(),
        (None, _) => "any value".to_owned(),
    }
}

/// Returns the type of the items of a list, in the plural.
fn many(root: &Json, items: &Json) -> String {
    match type_of(root, items).as_str() {
        "an object" => "objects".to_owned(),
        "text" => "texts".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the name of a format of text, or else the description of its schema.
fn format_name(format: &str, schema: &Json) -> String {
    let known = match format {
        "asset" => "the path of an image in `assets/`",
        "collection" => "the path of a collection",
        "colour" => "a colour, `#rrggbb`",
        "date" => "a date, such as `2026-03-01`",
        "drawing" => "the path of an SVG file",
        "email" => "an email address",
        "file" => "the path of a file",
        "hostname" => "a host name",
        "icon" => "the name of an icon",
        "image" => "the path of an image in `assets/`",
        "inline-markdown" => "a line of Markdown",
        "language" => "a language tag, such as `en` or `de`",
        "link" => "[a link](/reference/links)",
        "logo" => "the path of an SVG or an image in `assets/`",
        "markdown" => "Markdown",
        "moment" | "date-time" => "a date and time, such as `2026-12-01T09:00:00-06:00`",
        "old-path" => "a path such as `/old` or `/old/*`",
        "prefix" => "a path such as `/apps/corner`",
        "redirect-target" => "[a link](/reference/links), at most with `:splat`",
        "route" => "the path of a page",
        "time-zone" => "a time zone, such as `Europe/Berlin`",
        "web-url" => "a URL",
        _ => "",
    };
    match (known, schema["description"].as_str()) {
        ("", Some(own)) if own.starts_with("a ") => open(own).to_owned(),
        ("", _) => format!("text (`{format}`)"),
        (known, _) => known.to_owned(),
    }
}

/// Returns the lines of a top-level key of a YAML file.
fn lines_of(example: &str, key: &str) -> String {
    let begins = |line: &str| line.split_once(':').is_some_and(|(name, _)| name == key);
    let mut lines = example.lines().skip_while(|line| !begins(line));
    let first = lines.next().into_iter();
    let rest = lines.take_while(|line| line.starts_with(' '));
    first.chain(rest).map(|line| format!("{line}\n")).collect()
}
