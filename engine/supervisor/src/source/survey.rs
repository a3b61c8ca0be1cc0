//! Reads what concerns all tenants: the list of their folders, `deployment.yaml` and the themes.
//!
//! **Invariant:** decides nothing and changes nothing, so that it can run on any thread.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use content::address::deployment::FILE;
use content::report::guard::guard;
use content::report::{Diagnostic, Report};
use content::source::{self, Folder, Limits, SourceError};

use crate::places::Places;

/// The limit on the size of `deployment.yaml`, in bytes.
const MAX_DEPLOYMENT_BYTES: u64 = 1 << 20;

/// The folders and files to read.
#[derive(Debug, Clone)]
pub(crate) struct SurveyRequest {
    tenants: PathBuf,
    deployment: PathBuf,
    themes: Option<PathBuf>,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The tenants' folders by name.
    pub(crate) tenants: Result<BTreeMap<String, PathBuf>, SourceError>,
    /// The text of `deployment.yaml`; `None` where there is no such file.
    pub(crate) deployment: Result<Option<String>, Diagnostic>,
    /// The themes, where they were to be read from a folder.
    pub(crate) themes: Option<ThemeFolders>,
}

/// The folders of all themes.
#[derive(Debug)]
pub(crate) struct ThemeFolders {
    /// The folders by name.
    pub(crate) folders: Result<BTreeMap<String, Folder>, SourceError>,
    /// The themes for which the program failed.
    pub(crate) failed: BTreeSet<String>,
    /// What could not be read.
    pub(crate) notes: Report,
}

impl SurveyRequest {
    /// A request for these places. `with_themes`: the themes as well, where they are in a folder.
    pub(crate) fn new(places: &Places, with_themes: bool) -> Self {
        Self {
            tenants: places.tenants.clone(),
            deployment: deployment_file(places),
            themes: places.themes.clone().filter(|_| with_themes),
        }
    }

    /// Reads everything. A call to a file system that does not respond does not return.
    pub(crate) fn run(&self) -> Survey {
        Survey {
            tenants: source::list(&self.tenants),
            deployment: source::text(&self.deployment, MAX_DEPLOYMENT_BYTES),
            themes: self.themes.as_deref().map(ThemeFolders::read),
        }
    }
}

/// Returns where `deployment.yaml` is.
pub(crate) fn deployment_file(places: &Places) -> PathBuf {
    let within = || places.tenants.join(FILE);
    places.deployment.clone().unwrap_or_else(within)
}

impl ThemeFolders {
    fn read(directory: &Path) -> Self {
        let mut themes = Self {
            folders: Ok(BTreeMap::new()),
            failed: BTreeSet::new(),
            notes: Report::default(),
        };
        let listed = source::list(directory);
        themes.folders = listed.map(|listed| {
            let read = listed.into_iter().filter_map(|(name, path)| {
                let folder = themes_folder(&name, &path);
                match folder {
                    Ok((folder, problems)) => {
                        themes.notes.extend(problems);
                        Some((name, folder))
                    }
                    Err(diagnostic) => {
                        themes.notes.push(diagnostic);
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
    let read = || source::read(path, &label, Limits::default(), None);
    guard("read theme", name, &label, read)
}
