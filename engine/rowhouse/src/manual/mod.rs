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
