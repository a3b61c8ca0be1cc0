//! `rowhouse new NAME`: a tenant to begin with, which passes `check`.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rust_embed::RustEmbed;

use super::output::{print, say};
use crate::cli::NewArguments;
use content::name::TenantId;

/// The files of a new tenant, with `{{id}}`, `{{name}}` and `{{today}}` to fill in.
#[derive(RustEmbed)]
#[folder = "src/commands/new"]
struct Starter;

/// Makes the folder. What is there already is never touched.
pub(super) fn run(arguments: &NewArguments) -> anyhow::Result<ExitCode> {
    let id = TenantId::new(&arguments.name)?;
    let folder = arguments.tenants.join(id.as_str());
    if folder.exists() {
        bail!(
            "`{}` is there already: choose another name, or remove it first",
            folder.display()
        );
    }
    let name = title_case(id.as_str());
    let today = jiff::Zoned::now().date().to_string();
    for path in Starter::iter() {
        let Some(file) = Starter::get(&path) else {
            continue;
        };
        let text = String::from_utf8_lossy(&file.data)
            .replace("{{id}}", id.as_str())
            .replace("{{name}}", &name)
            .replace("{{today}}", &today);
        let target = folder.join(path.as_ref());
        let parent = target.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot make the folder `{}`", parent.display()))?;
        fs::write(&target, text).with_context(|| format!("cannot write `{}`", target.display()))?;
        print(&target.display().to_string());
    }
    say(&format!(
        "\nNext:\n  1. Look at it: http://{id}.localhost:8080/ and http://localhost:8080/{id}, while `rowhouse serve` runs.\n  \
         2. Write what only you know; `rowhouse check {id}` lists what is left, line by line.\n  \
         3. For an editor that completes and checks the YAML, run `rowhouse schema .rowhouse` beside the tenants' folder.\n  \
         4. Give it an icon of its own, `assets/icon.svg`, and what its theme has under `settings`: a drawing, colours."
    ));
    Ok(ExitCode::SUCCESS)
}

/// `corner-shop` as `Corner Shop`.
fn title_case(id: &str) -> String {
    id.split('-')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_uppercase().chain(letters).collect()
            })
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_becomes_a_name() {
        assert_eq!(title_case("corner-shop"), "Corner Shop");
        assert_eq!(title_case("a1"), "A1");
    }
}
