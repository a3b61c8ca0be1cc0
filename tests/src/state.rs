//! The content of a state (`--state`), read as a new process reads it.

use std::fs;
use std::path::{Path, PathBuf};

use release::store::{Store, rows_in_memory};

/// Returns the folders of the deployments in a state.
#[must_use]
pub fn deployments(state: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(state).into_iter().flatten().flatten();
    let folders = folders.map(|folder| folder.path());
    folders.filter(|path| path.join("used").exists()).collect()
}

/// Returns the files with the tables of a state.
#[must_use]
pub fn records(state: &Path) -> Vec<PathBuf> {
    let folders = deployments(state).into_iter();
    folders.map(|path| path.join("tables/records")).collect()
}

/// Returns the names of the tables of a state, sorted.
#[must_use]
pub fn tables(state: &Path) -> Vec<String> {
    let folders = deployments(state).into_iter();
    let mut names: Vec<String> = folders
        .flat_map(|folder| Store::reader(folder).tables(""))
        .collect();
    names.sort();
    names
}

/// Returns the concatenated values of a table.
#[must_use]
pub fn table(state: &Path, name: &str) -> Option<Vec<u8>> {
    let mut folders = deployments(state).into_iter();
    folders.find_map(|folder| {
        let rows = rows_in_memory(Store::reader(folder).table(name)?)?;
        Some(rows.iter().flat_map(|(_, value)| value.to_vec()).collect())
    })
}

/// Whether a table exists and has these words in a key or a value.
#[must_use]
pub fn has_words(state: &Path, name: &str, words: &str) -> bool {
    deployments(state).into_iter().any(|folder| {
        let rows = Store::reader(folder).table(name).and_then(rows_in_memory);
        let mut parts = rows.into_iter().flatten().flat_map(|row| [row.0, row.1]);
        parts.any(|part| String::from_utf8_lossy(&part).contains(words))
    })
}

/// Returns how often a table was written since its file was written in full.
#[must_use]
pub fn versions(state: &Path, name: &str) -> usize {
    let count = |path: PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        let windows = bytes.windows(name.len());
        windows.filter(|window| *window == name.as_bytes()).count()
    };
    records(state).into_iter().map(count).sum()
}
