//! The themes as their owner keeps them: ready to render, with the last good state of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::compile::template::Templates;
use crate::report::{Code, Diagnostic, Report};
use crate::source::{self, Folder, Limits, SourceError};
use crate::theme::{self, Theme};

use super::kept::Kept;

/// All themes, by the names of their folders.
#[derive(Debug, Default)]
pub(super) struct Themes {
    loaded: BTreeMap<String, Loaded>,
    /// The folders as they were read; none for the themes within the program, which never break.
    folders: BTreeMap<String, Folder>,
    directory: PathBuf,
    /// What was good before the process began, once somebody asked.
    good: Mutex<BTreeMap<String, Option<Arc<Templates>>>>,
    /// What could not be read.
    notes: Report,
}

#[derive(Debug)]
struct Loaded {
    fingerprint: [u8; 32],
    templates: Option<Arc<Templates>>,
    report: Report,
}

impl Themes {
    /// Reads the themes of a folder, or those within the program. What did not change is not parsed again.
    ///
    /// A theme that cannot be used at the start is taken from what was kept.
    pub(super) fn reload(
        &mut self,
        directory: Option<&Path>,
        kept: Option<&Kept>,
    ) -> Result<(), SourceError> {
        self.notes = Report::default();
        let folders = match directory {
            None => theme::embedded(),
            Some(directory) => {
                directory.clone_into(&mut self.directory);
                self.folders = match self.read(directory) {
                    Ok(folders) => folders,
                    Err(problem) => {
                        let kept = kept.filter(|_| self.loaded.is_empty());
                        let folders = kept.map(|kept| kept.theme_folders(directory));
                        let folders = folders.filter(|folders| !folders.is_empty());
                        self.notes.push(gone(directory, &problem));
                        folders.ok_or(problem)?
                    }
                };
                self.folders.clone()
            }
        };
        let digests: BTreeMap<&str, [u8; 32]> = folders
            .iter()
            .map(|(name, folder)| (name.as_str(), folder.fingerprint()))
            .collect();
        self.loaded.retain(|name, _| folders.contains_key(name));
        for name in folders.keys() {
            let (theme, report) = theme::load(name, &folders);
            // A theme may show any of its parents' files. One that cannot be put together may miss any folder.
            let line = theme.as_ref().map(|theme| theme.line.as_slice());
            let fingerprint = fingerprint(&digests, line);
            let same = |loaded: &Loaded| loaded.fingerprint == fingerprint;
            if !self.loaded.get(name).is_some_and(same) {
                let last_good = self.loaded.remove(name).and_then(|loaded| loaded.templates);
                let mut loaded = ready(theme.as_ref(), report, fingerprint, last_good);
                if let (None, Some(kept)) = (&loaded.templates, kept) {
                    loaded.templates = self.good(name, kept);
                }
                self.loaded.insert(name.clone(), loaded);
            }
        }
        Ok(())
    }

    fn read(&mut self, directory: &Path) -> Result<BTreeMap<String, Folder>, SourceError> {
        let mut folders = BTreeMap::new();
        for (name, path) in source::list(directory)? {
            let label = path.display().to_string();
            let (folder, problems) = source::read(&path, &label, Limits::default());
            self.notes.extend(problems);
            folders.insert(name, folder);
        }
        Ok(folders)
    }

    /// A theme as it was when it was last good, before the process began.
    pub(super) fn good(&self, name: &str, kept: &Kept) -> Option<Arc<Templates>> {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let templates = good.entry(name.to_owned()).or_insert_with(|| {
            if self.folders.is_empty() {
                return None;
            }
            let mut folders = self.folders.clone();
            folders.extend(kept.theme_folders(&self.directory));
            let (theme, report) = theme::load(name, &folders);
            ready(theme.as_ref(), report, [0; 32], None).templates
        });
        templates.clone()
    }

    /// The folders of the themes that could be loaded as they are.
    pub(super) fn good_folders(&self) -> impl Iterator<Item = (&str, &Folder)> {
        let is_good = |name: &str| {
            let loaded = self.loaded.get(name);
            loaded.is_some_and(|loaded| loaded.report.is_servable() && loaded.templates.is_some())
        };
        let folders = self.folders.iter();
        folders
            .filter(move |(name, _)| is_good(name))
            .map(|(name, folder)| (name.as_str(), folder))
    }

    /// A theme that can render, if there is one of that name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Templates>> {
        self.loaded.get(name)?.templates.clone()
    }

    /// The names that there are.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.loaded.keys().map(String::as_str)
    }

    /// Every theme that can render.
    pub(super) fn all(&self) -> Vec<Arc<Templates>> {
        self.loaded
            .values()
            .filter_map(|loaded| loaded.templates.clone())
            .collect()
    }

    /// What is wrong with one of them, or with all when it is not known which.
    pub(super) fn report_of(&self, name: Option<&str>) -> impl Iterator<Item = &Diagnostic> {
        let loaded = self.loaded.iter();
        let of_each = loaded
            .filter(move |(own, _)| name.is_none_or(|name| name == *own))
            .flat_map(|(_, loaded)| loaded.report.iter());
        self.notes.iter().chain(of_each)
    }

    /// What is wrong with them.
    pub(super) fn report(&self) -> impl Iterator<Item = &Diagnostic> {
        self.report_of(None)
    }
}

fn gone(directory: &Path, problem: &SourceError) -> Diagnostic {
    let file = directory.display().to_string();
    Diagnostic::mistake(Code::Unreadable, file, problem.to_string())
        .hint("what was kept of the themes is used until the folder is back")
}

/// A theme that was put together, ready to render, or as it was when it was last good.
fn ready(
    theme: Option<&Theme>,
    mut report: Report,
    fingerprint: [u8; 32],
    last_good: Option<Arc<Templates>>,
) -> Loaded {
    let templates = theme.and_then(|theme| {
        let (templates, problems) = Templates::load(theme);
        report.extend(problems);
        templates
    });
    Loaded {
        fingerprint,
        templates: templates.map(Arc::new).or(last_good),
        report,
    }
}

/// A digest of the folders named in `line`, or of all.
fn fingerprint(digests: &BTreeMap<&str, [u8; 32]>, line: Option<&[String]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (name, digest) in digests {
        if line.is_none_or(|line| line.iter().any(|folder| folder == name)) {
            hash.update(name);
            hash.update(digest);
        }
    }
    hash.finalize().into()
}
