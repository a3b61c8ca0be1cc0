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
//! **Invariant:** knows Markdown and no HTML; nothing here serves or writes.

mod command_page;
mod key_pages;
mod list_pages;
mod markdown;
mod page;

use std::collections::BTreeMap;

pub use self::page::ManualError;
use self::page::{EXAMPLES, Written};

/// The files of the tenant, by their paths in its folder.
///
/// # Errors
/// When a part of the program that the reference is made from cannot be read.
pub fn files() -> Result<BTreeMap<String, Vec<u8>>, ManualError> {
    let written = Written::iter().filter(|path| !path.starts_with(EXAMPLES));
    let mut files: BTreeMap<String, Vec<u8>> = written
        .filter_map(|path| Some((path.to_string(), Written::get(&path)?.data.into_owned())))
        .collect();
    let mut pages = key_pages::all()?;
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
                for line in block.lines().filter(|line| line.starts_with("rowhouse ")) {
                    let parsed = Cli::try_parse_from(words(line));
                    assert!(parsed.is_ok(), "{path}: {line}: {parsed:?}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 10, "{tried}");
    }
}
