//! The loaded themes, each with its last valid templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use content::report::guard::{guard, inject};
use content::report::{Code, Diagnostic, Report};
use content::source::{Folder, SourceError};
use content::theme::{self, Theme};
use release::store::Store;
use render::Templates;

use crate::runner::catalog::tenant::{failure, has_unreadable_file};
use crate::source::theme_folders::ThemeFolders;
use crate::state::tables::{ValidThemeFolder, load_themes};

/// All themes, by the names of their folders.
#[derive(Debug, Clone, Default)]
pub(crate) struct Themes {
    loaded: BTreeMap<String, LoadedTheme>,
    /// The folders of the themes, without the themes within the program, which are always valid.
    folders: BTreeMap<String, Folder>,
    directory: PathBuf,
    /// The valid themes that an earlier process persisted.
    pub(crate) last_valid: Arc<LastValidThemes>,
    /// The diagnostics of files that could not be read.
    folder_report: Report,
}

/// A theme with its last valid templates and its diagnostics.
#[derive(Debug, Clone)]
struct LoadedTheme {
    /// The hash of the folders that the theme was loaded from; `None` if loading panicked.
    fingerprint: Option<[u8; 32]>,
    templates: Option<Arc<Templates>>,
    report: Report,
}

/// The valid themes that an earlier process persisted. A theme is loaded when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct LastValidThemes {
    store: Option<Arc<Store>>,
    directory: PathBuf,
    /// The current folders, which replace folders that are not persisted.
    folders: BTreeMap<String, Folder>,
    found: Mutex<BTreeMap<String, Option<Arc<Templates>>>>,
}

impl LastValidThemes {
    fn found(&self) -> MutexGuard<'_, BTreeMap<String, Option<Arc<Templates>>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the templates of a persisted theme, if the theme is valid.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Templates>> {
        let store = self.store.as_ref()?;
        let mut found = self.found();
        let templates = found.entry(name.to_owned()).or_insert_with(|| {
            if self.folders.is_empty() {
                return None;
            }
            let mut folders = theme::with_embedded(self.folders.clone());
            folders.extend(load_themes(store, &self.directory));
            let load = || {
                let (theme, report) = theme::load(name, &folders);
                compile_templates(theme.as_ref(), report, None, None).templates
            };
            guard("persisted theme", name, name, load).ok().flatten()
        });
        templates.clone()
    }
}

impl Themes {
    /// Replaces the themes with the folders read from `directory`, or with the themes within the program. Unchanged themes are not parsed again.
    ///
    /// A theme that is not valid at startup is replaced by its persisted state.
    ///
    /// # Errors
    /// Returns an error if the folder of themes cannot be listed, unless persisted themes replace it at startup.
    pub(crate) fn reload(
        &mut self,
        directory: Option<&Path>,
        read: Option<ThemeFolders>,
        store: Option<&Arc<Store>>,
    ) -> Result<(), SourceError> {
        let folders = match directory.zip(read) {
            None => theme::embedded(),
            Some((directory, read)) => {
                directory.clone_into(&mut self.directory);
                self.folders = match self.accept_folders(read) {
                    Ok(folders) => folders,
                    Err(problem) => {
                        let store = store.filter(|_| self.loaded.is_empty());
                        let folders = store.map(|store| load_themes(store, directory));
                        let folders = folders.filter(|folders| !folders.is_empty());
                        self.folder_report
                            .push(unlisted_folder(directory, &problem));
                        folders.ok_or(problem)?
                    }
                };
                theme::with_embedded(self.folders.clone())
            }
        };
        self.loaded.retain(|name, _| folders.contains_key(name));
        if let Some(store) = store {
            let found = self.last_valid.found().clone();
            self.last_valid = Arc::new(LastValidThemes {
                store: Some(Arc::clone(store)),
                directory: self.directory.clone(),
                folders: self.folders.clone(),
                found: Mutex::new(found),
            });
        }
        for name in folders.keys() {
            let loaded = guard("theme", name, &folders[name].label, || {
                self.load_changed(name, &folders)
            });
            match loaded {
                Ok(None) => {}
                Ok(Some(loaded)) => drop(self.loaded.insert(name.clone(), loaded)),
                // Without a fingerprint the theme is loaded again at the next change, since the program may be at fault and not the theme.
                Err(diagnostic) => {
                    let before = self.loaded.remove(name);
                    let loaded = LoadedTheme {
                        fingerprint: None,
                        templates: before.and_then(|loaded| loaded.templates),
                        report: failure(diagnostic),
                    };
                    self.loaded.insert(name.clone(), loaded);
                }
            }
            if let Some(loaded) = self.loaded.get_mut(name)
                && loaded.templates.is_none()
            {
                loaded.templates = self.last_valid.get(name);
            }
        }
        Ok(())
    }

    /// Loads a theme from its current folders. Returns `None` if they have not changed.
    fn load_changed(&self, name: &str, folders: &BTreeMap<String, Folder>) -> Option<LoadedTheme> {
        let (theme, report) = theme::load(name, folders);
        // An invalid theme may lack any folder, so its fingerprint covers all folders.
        let fingerprint = theme.as_ref().map(|theme| theme.fingerprint);
        let fingerprint =
            Some(fingerprint.unwrap_or_else(|| theme::fingerprint(folders.keys(), folders)));
        let before = self.loaded.get(name);
        if before.is_some_and(|before| before.fingerprint == fingerprint) {
            return None;
        }
        let last_valid = before.and_then(|before| before.templates.clone());
        Some(compile_templates(
            theme.as_ref(),
            report,
            fingerprint,
            last_valid,
        ))
    }

    /// Returns whether a file could not be read. A later attempt may succeed.
    pub(crate) fn have_unreadable_file(&self) -> bool {
        has_unreadable_file(&self.folder_report)
    }

    /// Returns the folders that were read. A theme whose reading panicked keeps its previous folder.
    fn accept_folders(
        &mut self,
        read: ThemeFolders,
    ) -> Result<BTreeMap<String, Folder>, SourceError> {
        self.folder_report = read.folder_report;
        let mut folders = read.folders?;
        for name in read.failed {
            if let Some(before) = self.folders.remove(&name) {
                folders.insert(name, before);
            }
        }
        Ok(folders)
    }

    /// Returns the folders of the valid themes, to be persisted.
    pub(crate) fn valid_folders(&self) -> impl Iterator<Item = ValidThemeFolder<'_>> {
        self.folders.iter().filter_map(|(name, folder)| {
            let loaded = self.loaded.get(name)?;
            let is_valid = loaded.report.is_servable() && loaded.templates.is_some();
            Some(ValidThemeFolder {
                name,
                folder,
                fingerprint: loaded.fingerprint.filter(|_| is_valid)?,
            })
        })
    }

    /// Returns the templates of a theme, if the theme can render.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Templates>> {
        self.loaded.get(name)?.templates.as_ref()
    }

    /// Returns whether no theme is loaded yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.loaded.is_empty()
    }

    /// Returns whether a theme is known and has errors.
    pub(crate) fn has_errors(&self, name: &str) -> bool {
        let loaded = self.loaded.get(name);
        loaded.is_some_and(|loaded| !loaded.report.is_servable())
    }

    /// Returns the names of all themes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.loaded.keys().map(String::as_str)
    }

    /// Returns the templates of all themes that can render.
    pub(crate) fn all(&self) -> Vec<Arc<Templates>> {
        self.loaded
            .values()
            .filter_map(|loaded| loaded.templates.clone())
            .collect()
    }

    /// Returns the diagnostics of a theme, or of all themes if `name` is `None`.
    pub(crate) fn report_of(&self, name: Option<&str>) -> impl Iterator<Item = &Diagnostic> {
        let loaded = self.loaded.iter();
        let of_each = loaded
            .filter(move |(own, _)| name.is_none_or(|name| name == *own))
            .flat_map(|(_, loaded)| loaded.report.iter());
        self.folder_report.iter().chain(of_each)
    }

    /// Returns the diagnostics of all themes.
    pub(crate) fn report(&self) -> impl Iterator<Item = &Diagnostic> {
        self.report_of(None)
    }
}

fn unlisted_folder(directory: &Path, problem: &SourceError) -> Diagnostic {
    let file = directory.display().to_string();
    Diagnostic::error(Code::Unreadable, file, problem.to_string())
        .hint("restore the folder; until then the persisted themes are used")
}

/// Compiles the templates of a theme. If that fails, the result has the templates `last_valid`.
fn compile_templates(
    theme: Option<&Theme>,
    mut report: Report,
    fingerprint: Option<[u8; 32]>,
    last_valid: Option<Arc<Templates>>,
) -> LoadedTheme {
    let templates = theme.and_then(|theme| {
        inject("templates", &theme.name);
        let (templates, problems) = Templates::load(theme);
        report.extend(problems);
        templates
    });
    LoadedTheme {
        fingerprint,
        templates: templates.map(Arc::new).or(last_valid),
        report,
    }
}
