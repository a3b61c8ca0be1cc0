//! `rowhouse new-theme NAME`: creates the folder of a theme that has a parent, and passes `check`.
//!
//! **Invariant:** never changes a folder that exists.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::cli::NewThemeArguments;
use crate::commands::output::{print, print_message};
use content::report::hint_for;
use content::theme::{self, MANIFEST, Theme};

/// The manifest. The placeholders are `{{name}}`, `{{parent}}` and `{{roles}}`.
const MANIFEST_STARTER: &str = include_str!("../../../starters/theme/theme.yaml");

/// The style sheet. The placeholder is `{{name}}`.
const STYLE_STARTER: &str = include_str!("../../../starters/theme/css/theme.css");

/// The file of the parent that the new theme replaces as an example. Every theme has this layout.
const REPLACED: &str = "layouts/not-found.html";

/// Creates the folder and prints its files. Fails if the folder exists.
pub(crate) fn run(arguments: &NewThemeArguments) -> anyhow::Result<ExitCode> {
    let (name, parent) = (&arguments.name, &arguments.parent);
    let folders = theme::embedded();
    if !folders.contains_key(parent) {
        let hint = hint_for(parent, folders.keys().map(String::as_str));
        bail!("the program has no theme `{parent}`: {hint}");
    }
    if folders.contains_key(name) {
        bail!("the program has a theme `{name}` already: choose another name");
    }
    let folder = arguments.themes.join(name);
    if folder.exists() {
        let folder = folder.display();
        bail!("`{folder}` already exists: choose another name, or remove the folder first");
    }
    let (Some(parent), _) = theme::load(parent, &folders) else {
        bail!("the theme `{parent}` of the program has errors");
    };
    for (path, text) in files(name, &parent) {
        write(&folder.join(path), &text)?;
    }
    print_message(&format!(
        "\nNext:\n  1. Name the theme in a site's `tenant.yaml`: `theme: {name}`.\n  \
         2. Run `rowhouse serve --dev`, and open the site and http://localhost:8080/_gallery, which shows every section type.\n  \
         3. Change colours in `{MANIFEST}`; each saved change is shown at once.\n  \
         4. See `rowhouse manual`: Make a theme."
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the files of a new theme with their paths.
fn files(name: &str, parent: &Theme) -> [(String, String); 3] {
    let manifest = MANIFEST_STARTER
        .replace("{{name}}", name)
        .replace("{{parent}}", &parent.name)
        .replace("{{roles}}", &roles(parent));
    let replaced = parent.files.get(REPLACED).map_or(&[][..], AsRef::as_ref);
    let replaced = String::from_utf8_lossy(replaced);
    let (first, rest) = replaced.split_once('\n').unwrap_or((&replaced, ""));
    let comment = format!(
        "{{# Replaces the 404 page of `{}`. Remove this file, and the parent's page is back. #}}",
        parent.name
    );
    [
        (MANIFEST.to_owned(), manifest),
        (
            format!("css/{name}.css"),
            STYLE_STARTER.replace("{{name}}", name),
        ),
        (REPLACED.to_owned(), format!("{first}\n{comment}\n{rest}")),
    ]
}

/// Returns the roles of the parent as lines of YAML. All lines but that of the page's background are comments.
fn roles(parent: &Theme) -> String {
    let manifest = &parent.manifest;
    let lines = manifest.roles.iter().map(|(role, colours)| {
        let (day, night) = (colours.day.as_str(), colours.night.as_str());
        let mark = match manifest.theme_color.as_ref() {
            Some(background) if background == role => "",
            _ => "# ",
        };
        format!("  {mark}{role}: {{day: \"{day}\", night: \"{night}\"}}")
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

fn write(target: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create the folder `{}`", parent.display()))?;
    }
    fs::write(target, text).with_context(|| format!("cannot write `{}`", target.display()))?;
    print(&target.display().to_string());
    Ok(())
}
