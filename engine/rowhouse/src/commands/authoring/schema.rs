//! `rowhouse schema`: JSON Schemas of the files that authors write, from the types and themes that check these files.
//!
//! The schemas of the program apply to every tenant. In addition, each tenant gets schemas with the `settings`, `strings` and `sections` of its theme.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Map, Value as Json, json};

use crate::cli::SchemaArguments;
use crate::commands::output::{print, print_message};
use crate::commands::setup::themes_folder;
use content::address::deployment::Claims;
use content::formats::schema_of;
use content::name::TenantId;
use content::source::{self, Folder, FolderLimits};
use content::tenant::local_values::{allow_languages, manifest_schema};
use content::tenant::manifest::DEFAULT_THEME;
use content::tenant::{FrontMatter, MANIFEST};
use content::theme::strings::{Strings, Text};
use content::theme::{self, Theme, ThemeManifest};
use content::yaml::{self, Value};

/// Writes the schemas into a folder, or prints them as one object.
pub(crate) fn run(arguments: &SchemaArguments) -> anyhow::Result<ExitCode> {
    let mut schemas = Map::new();
    for (name, title, schema) in [
        ("tenant", "A tenant's manifest", manifest_schema()),
        ("page", "A page's front matter", schema_of::<FrontMatter>()),
        (
            "deployment",
            "Addresses that tenants may claim",
            schema_of::<Claims>(),
        ),
        ("theme", "A theme's manifest", schema_of::<ThemeManifest>()),
    ] {
        schemas.insert(name.to_owned(), titled(schema, title));
    }
    for (tenant, theme) in themes_of_tenants(arguments)? {
        schemas.insert(format!("{tenant}/tenant"), manifest(&theme));
        schemas.insert(format!("{tenant}/page"), front_matter(&theme));
    }
    let Some(directory) = &arguments.directory else {
        print(&serde_json::to_string_pretty(&schemas)?);
        return Ok(ExitCode::SUCCESS);
    };
    for (name, schema) in schemas {
        let path = directory.join(format!("{name}.schema.json"));
        let folder = path.parent().unwrap_or(directory);
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
        let text = serde_json::to_string_pretty(&schema)?;
        fs::write(&path, text + "\n")
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        print_message(&format!("wrote {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn titled(mut schema: Json, title: &str) -> Json {
    schema["title"] = title.into();
    schema
}

/// Returns the theme of every tenant; none without a folder of tenants.
///
/// Only the key `theme` of a manifest is read: an author whose manifest has errors needs the schema most.
fn themes_of_tenants(arguments: &SchemaArguments) -> anyhow::Result<BTreeMap<String, Theme>> {
    let mut found = BTreeMap::new();
    if !arguments.tenants.is_dir() {
        return Ok(found);
    }
    let folders = theme_folders(themes_folder(arguments.themes.as_deref()).as_deref())?;
    let mut themes: BTreeMap<String, Option<Theme>> = BTreeMap::new();
    for (name, path) in source::list(&arguments.tenants)? {
        if TenantId::new(&name).is_err() {
            continue;
        }
        let wanted = theme_of(&path).unwrap_or_else(|| DEFAULT_THEME.to_owned());
        let theme = themes
            .entry(wanted.clone())
            .or_insert_with(|| theme::load(&wanted, &folders).0);
        match theme {
            Some(theme) => drop(found.insert(name, theme.clone())),
            None => print_message(&format!(
                "no schemas for `{name}`: its theme `{wanted}` has errors, which `rowhouse check` lists"
            )),
        }
    }
    Ok(found)
}

fn theme_of(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(MANIFEST)).ok()?;
    let Value::Map(pairs) = yaml::parse(&text, 1).ok()?.value else {
        return None;
    };
    let (_, theme) = pairs.into_iter().find(|(key, _)| key.name == "theme")?;
    match theme.value {
        Value::Text(theme) => Some(theme),
        _ => None,
    }
}

fn theme_folders(directory: Option<&Path>) -> anyhow::Result<BTreeMap<String, Folder>> {
    let Some(directory) = directory else {
        return Ok(theme::embedded());
    };
    let folders = source::list(directory)?.into_iter().map(|(name, path)| {
        let label = path.display().to_string();
        let (folder, _) = source::read(&path, &label, FolderLimits::default(), None);
        (name, folder)
    });
    Ok(theme::with_embedded(folders.collect()))
}

/// Returns the schema of a manifest with the `settings` and `strings` of a theme.
fn manifest(theme: &Theme) -> Json {
    let mut schema = titled(manifest_schema(), "A tenant's manifest");
    let mut settings = theme.settings.json().clone();
    allow_languages(&mut settings);
    embed(&mut schema, "theme-settings", &settings);
    schema["properties"]["settings"] = json!({"$ref": "#/$defs/theme-settings"});
    let languages = theme.languages();
    if let Some((_, strings)) = languages.first() {
        schema["properties"]["strings"] = strings_schema(strings);
    }
    schema
}

/// Returns the schema of front matter with the section types of a theme.
fn front_matter(theme: &Theme) -> Json {
    let mut schema = titled(schema_of::<FrontMatter>(), "A page's front matter");
    let mut kinds = Vec::new();
    for (name, kind) in &theme.section_types {
        let definition = format!("section-{name}");
        embed(&mut schema, &definition, kind.shape.json());
        // Without its kind, a section would match every section type that has no required key.
        if let Some(required) = schema["$defs"][&definition]["required"].as_array_mut() {
            required.push("kind".into());
        }
        kinds.push(json!({"$ref": format!("#/$defs/{definition}")}));
    }
    schema["properties"]["sections"]["items"] = json!({"oneOf": kinds});
    schema
}

/// Adds a schema to the definitions of another schema, and adjusts its references.
fn embed(schema: &mut Json, name: &str, inner: &Json) {
    let mut inner = inner.clone();
    move_references(&mut inner, &format!("#/$defs/{name}/"));
    schema["$defs"][name] = inner;
}

fn move_references(schema: &mut Json, to: &str) {
    match schema {
        Json::Object(pairs) => {
            if let Some(Json::String(reference)) = pairs.get_mut("$ref")
                && let Some(inner) = reference.strip_prefix("#/")
            {
                *reference = format!("{to}{inner}");
            }
            pairs
                .values_mut()
                .for_each(|value| move_references(value, to));
        }
        Json::Array(items) => items.iter_mut().for_each(|item| move_references(item, to)),
        _ => {}
    }
}

/// Returns the schema of the UI strings that a tenant may replace, nested like the keys of the theme.
fn strings_schema(strings: &Strings) -> Json {
    let mut root = group();
    for (key, text) in strings {
        let mut at = &mut root;
        let mut parts = key.split('.').peekable();
        while let Some(part) = parts.next() {
            let properties = &mut at["properties"];
            if parts.peek().is_none() {
                properties[part] = word(text);
                break;
            }
            if properties.get(part).is_none() {
                properties[part] = group();
            }
            at = &mut properties[part];
        }
    }
    root
}

fn group() -> Json {
    json!({"type": "object", "additionalProperties": false, "properties": {}})
}

fn word(text: &Text) -> Json {
    match text {
        Text::One(pattern) => json!({
            "type": ["string", "object"],
            "description": format!("Text of the theme: {}", pattern.written),
        }),
        Text::Plural(_) => json!({
            "type": ["string", "object"],
            "description": format!("Text of the theme: {}", text.written()),
        }),
    }
}
