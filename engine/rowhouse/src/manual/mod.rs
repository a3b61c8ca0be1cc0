//! The manual as a tenant: the pages that people wrote (`engine/rowhouse/manual/`), and the reference, which the program writes of itself.
//!
//! | module | what it writes | from |
//! |---|---|---|
//! | [`key_pages`] | every key of manifests, front matter, `deployment.yaml`, `theme.yaml` and sections | their JSON Schemas |
//! | [`command_page`] | every command, flag and variable | the command line |
//! | [`list_pages`] | metrics, errors and warnings, addresses, limits | the lists of the crates that have them |
//!
//! No page of the reference is kept as a file, so that none can be out of date.
//!
//! What a section type looks like is shown by its example in a frame, which is a page of a tenant with that theme: what is seen is what a tenant gets, by day and by night and at any width, and nobody has to draw it anew. The theme of the manual (`manual/theme`) makes a frame of a link to such a page.
//!
//! **Invariant:** knows Markdown and no HTML; nothing here serves or writes.

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

/// Files by their paths.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The manual as a deployment of its own.
#[derive(Debug)]
pub struct ManualDeployment {
    /// The folder of tenants: the manual at the root, and a tenant for each theme whose section types it shows.
    pub tenants: Files,
    /// The folder of themes.
    pub themes: Files,
}

/// The files of the tenant, by their paths in its folder, to be served among others: with a theme that everybody has, and without pictures, which need pages of other themes.
///
/// # Errors
/// When a part of the program that the reference is made from cannot be read.
pub fn files() -> Result<Files, ManualError> {
    tenant(false)
}

/// The manual with the pictures of all section types.
///
/// # Errors
/// When a part of the program that the reference is made from cannot be read.
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

fn tenant(pictures: bool) -> Result<Files, ManualError> {
    let is_beside = |path: &str| {
        [EXAMPLES, SAMPLE, THEME]
            .iter()
            .any(|it| path.starts_with(it))
    };
    let mut files: Files = AuthoredFiles::below("")
        .filter(|(path, _)| !is_beside(path))
        .collect();
    if pictures && let Some(manifest) = files.get_mut(MANIFEST) {
        let text =
            String::from_utf8_lossy(manifest).replace("theme: plain\n", &format!("theme: {ID}\n"));
        *manifest = text.into_bytes();
    }
    let mut pages = key_pages::all(pictures)?;
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

    /// The words of a command as a shell has them, up to what belongs to the shell.
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
    fn every_command_of_the_manual_is_one() {
        let mut tried = 0;
        for (path, bytes) in files().unwrap() {
            let text = String::from_utf8(bytes).unwrap();
            for block in text.split("```sh\n").skip(1) {
                let block = block.split("```").next().unwrap_or_default();
                let block = block.replace("\\\n", "");
                let lines = block.lines().map(str::trim_start);
                for line in lines.filter(|line| line.starts_with("rowhouse ")) {
                    let parsed = Cli::try_parse_from(words(line));
                    // The parser hands the version and the help over as errors that go to stdout.
                    let wrong = parsed.err().filter(clap::Error::use_stderr);
                    assert!(wrong.is_none(), "{path}: {line}: {wrong:?}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 10, "{tried}");
    }
}
