//! `rowhouse schema`: the JSON Schemas of what authors write, from the same types that check it.

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::Value as Json;

use super::output::{print, say};
use crate::cli::SchemaArguments;
use content::address::deployment::Claims;
use content::tenant::{FrontMatter, Manifest, schema_of};
use content::theme::ThemeManifest;

/// Writes the schemas into a folder, or prints them as one object.
pub(super) fn run(arguments: &SchemaArguments) -> anyhow::Result<ExitCode> {
    let schemas = [
        ("tenant", "A tenant's manifest", schema_of::<Manifest>()),
        ("page", "A page's front matter", schema_of::<FrontMatter>()),
        (
            "deployment",
            "What tenants may claim",
            schema_of::<Claims>(),
        ),
        ("theme", "A theme's manifest", schema_of::<ThemeManifest>()),
    ];
    let Some(directory) = &arguments.directory else {
        let all: serde_json::Map<String, Json> = schemas
            .into_iter()
            .map(|(name, title, schema)| (name.to_owned(), titled(schema, title)))
            .collect();
        print(&serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the folder `{}`", directory.display()))?;
    for (name, title, schema) in schemas {
        let path = directory.join(format!("{name}.schema.json"));
        let text = serde_json::to_string_pretty(&titled(schema, title))?;
        fs::write(&path, text + "\n")
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn titled(mut schema: Json, title: &str) -> Json {
    schema["title"] = title.into();
    schema
}
