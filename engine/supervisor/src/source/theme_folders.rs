//! Reads the folders of all themes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use content::report::guard::guard;
use content::report::{Diagnostic, Report};
use content::source::{self, Folder, FolderLimits, SourceError};

/// The folder of all themes.
#[derive(Debug)]
pub(crate) struct ThemesLocation {
    /// The name of the folder in reports, and in the state.
    pub(crate) label: PathBuf,
    /// The folder on the disk, or the reason that it is not known.
    pub(crate) folder: Result<PathBuf, SourceError>,
}

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
    /// Reads the folders of all themes.
    pub(crate) fn read(location: ThemesLocation) -> Self {
        let mut themes = Self {
            folders: Ok(BTreeMap::new()),
            failed: BTreeSet::new(),
            folder_report: Report::default(),
        };
        let listed = location.folder.and_then(|folder| source::list(&folder));
        themes.folders = listed.map(|listed| {
            let read = listed.into_iter().filter_map(|(name, path)| {
                let label = location.label.join(&name).display().to_string();
                let folder = theme_folder(&name, &path, &label);
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

fn theme_folder(name: &str, path: &Path, label: &str) -> Result<(Folder, Report), Diagnostic> {
    let read = || source::read(path, label, FolderLimits::default(), None);
    guard("read theme", name, label, read)
}
