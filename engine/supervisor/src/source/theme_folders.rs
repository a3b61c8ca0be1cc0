//! Reads the folders of all themes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use content::report::guard::guard;
use content::report::{Diagnostic, Report};
use content::source::{self, Folder, FolderLimits, SourceError};

/// The folders of all themes.
#[derive(Debug)]
pub(crate) struct ThemeFolders {
    /// The folders by name.
    pub(crate) folders: Result<BTreeMap<String, Folder>, SourceError>,
    /// The themes whose reading panicked.
    pub(crate) failed: BTreeSet<String>,
    /// The diagnostics of files that could not be read.
    pub(crate) folder_report: Report,
}

impl ThemeFolders {
    /// Reads the folders of all themes in `directory`.
    pub(crate) fn read(directory: &Path) -> Self {
        let mut themes = Self {
            folders: Ok(BTreeMap::new()),
            failed: BTreeSet::new(),
            folder_report: Report::default(),
        };
        let listed = source::list(directory);
        themes.folders = listed.map(|listed| {
            let read = listed.into_iter().filter_map(|(name, path)| {
                let folder = themes_folder(&name, &path);
                match folder {
                    Ok((folder, problems)) => {
                        themes.folder_report.extend(problems);
                        Some((name, folder))
                    }
                    Err(diagnostic) => {
                        themes.folder_report.push(diagnostic);
                        themes.failed.insert(name);
                        None
                    }
                }
            });
            read.collect()
        });
        themes
    }
}

fn themes_folder(name: &str, path: &Path) -> Result<(Folder, Report), Diagnostic> {
    let label = path.display().to_string();
    let read = || source::read(path, &label, FolderLimits::default(), None);
    guard("read theme", name, &label, read)
}
