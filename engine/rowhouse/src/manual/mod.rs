//! The manual as a tenant: written pages (`engine/rowhouse/manual/`) and a generated reference.
//!
//! | module | what it generates | from |
//! |---|---|---|
//! | [`key_pages`] | every key of manifests, front matter, `deployment.yaml`, `theme.yaml` and sections | their JSON Schemas |
//! | [`command_page`] | every command, flag and variable | the definition of the command line |
//! | [`list_pages`] | metrics, errors and warnings, addresses, limits | the lists of their crates |
//!
//! Generated pages are not in the repository, so they cannot be out of date.
//!
//! The reference shows each section type in a frame. The frame has a page of a tenant with that theme, so readers see the section as visitors do, in light and dark mode and at any width. The theme of the manual (`manual/theme`) turns a link to such a page into a frame.
//!
//! **Invariant:** knows Markdown and no HTML; does not serve, and writes no file.

mod command_page;
mod key_pages;
mod list_pages;
mod markdown;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use self::key_pages::THEMES;
pub use self::page::ManualError;
use self::page::{AuthoredFiles, EXAMPLES, SAMPLE, THEME};
use content::tenant::MANIFEST;
use content::theme;

/// The tenant's id.
pub(crate) const ID: &str = "manual";

/// The bytes of files by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The manual with everything that is needed to serve it.
#[derive(Debug)]
pub struct ManualDeployment {
    /// The folder of tenants: the manual as the root tenant, and a tenant for each theme whose section types the manual shows.
    pub tenants: Files,
    /// The folder of themes.
    pub themes: Files,
}

/// Returns the files of the manual as a tenant beside other tenants, by their paths in the tenant's folder.
///
/// The tenant has the theme `plain` and no frames, which need tenants with other themes.
///
/// # Errors
/// Fails if a source of the reference cannot be read, which is a bug of the program.
pub fn files() -> Result<Files, ManualError> {
    tenant(false)
}

/// Returns the manual as a deployment of its own, with a frame for each section type.
///
/// # Errors
/// Fails if a source of the reference cannot be read, which is a bug of the program.
pub fn deployment() -> Result<ManualDeployment, ManualError> {
    let mut tenants = Files::from([("deployment.yaml".to_owned(), format!("root: {ID}\n").into())]);
    add(&mut tenants, ID, tenant(true)?);
    for theme in THEMES {
        let manifest = format!("name: Sections of {theme}\ntheme: {theme}\n");
        tenants.insert(format!("{theme}/tenant.yaml"), manifest.into());
        add(&mut tenants, theme, AuthoredFiles::below(SAMPLE));
    }
    let mut themes = Files::new();
    for (name, folder) in theme::embedded() {
        let files = folder.files.into_iter();
        let files = files.map(|(path, bytes)| (path, bytes.to_vec()));
        add(&mut themes, &name, files);
    }
    add(&mut themes, ID, AuthoredFiles::below(THEME));
    Ok(ManualDeployment { tenants, themes })
}

/// Writes files below a folder, which is made if it does not exist.
///
/// # Errors
/// If a folder or file cannot be written; the error names it.
pub(crate) fn write(folder: &Path, files: &Files) -> anyhow::Result<()> {
    for (path, bytes) in files {
        let target = folder.join(path);
        let parent = target.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create the folder `{}`", parent.display()))?;
        fs::write(&target, bytes)
            .with_context(|| format!("cannot write `{}`", target.display()))?;
    }
    Ok(())
}

fn add(files: &mut Files, folder: &str, more: impl IntoIterator<Item = (String, Vec<u8>)>) {
    let more = more.into_iter();
    files.extend(more.map(|(path, bytes)| (format!("{folder}/{path}"), bytes)));
}

/// Returns the files of the manual. `frames` says whether section types are shown in frames.
fn tenant(frames: bool) -> Result<Files, ManualError> {
    let is_no_page = |path: &str| {
        [EXAMPLES, SAMPLE, THEME]
            .iter()
            .any(|it| path.starts_with(it))
    };
    let mut files: Files = AuthoredFiles::below("")
        .filter(|(path, _)| !is_no_page(path))
        .collect();
    if frames && let Some(manifest) = files.get_mut(MANIFEST) {
        let text =
            String::from_utf8_lossy(manifest).replace("theme: plain\n", &format!("theme: {ID}\n"));
        *manifest = text.into_bytes();
    }
    let mut pages = key_pages::all(frames)?;
    pages.push(command_page::page());
    pages.extend(list_pages::all()?);
    for page in pages {
        files.insert(format!("pages/reference/{}.md", page.name), page.text());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    /// Splits a command into words as a shell does, up to the first operator of the shell.
    fn words(line: &str) -> Vec<String> {
        let line = line.split([';', '|', '>']).next().unwrap_or_default();
        let mut words = Vec::new();
        for (index, piece) in line.split(['"', '\'']).enumerate() {
            match index % 2 {
                0 => words.extend(piece.split_whitespace().map(ToOwned::to_owned)),
                _ => words.push(piece.to_owned()),
            }
        }
        words
    }

    #[test]
    #[cfg_attr(
        not(feature = "bucket"),
        ignore = "the manual has commands of the feature `bucket`"
    )]
    fn commands_in_the_manual_are_valid() {
        let mut tried = 0;
        for (path, bytes) in files().unwrap() {
            let text = String::from_utf8(bytes).unwrap();
            for block in text.split("```sh\n").skip(1) {
                let block = block.split("```").next().unwrap_or_default();
                let block = block.replace("\\\n", "");
                let lines = block.lines().map(str::trim_start);
                for line in lines.filter(|line| line.starts_with("rowhouse ")) {
                    let parsed = Cli::try_parse_from(words(line));
                    // Clap returns the version and the help as errors, which go to stdout.
                    let wrong = parsed.err().filter(clap::Error::use_stderr);
                    assert!(wrong.is_none(), "{path}: {line}: {wrong:?}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 10, "{tried}");
    }
}
