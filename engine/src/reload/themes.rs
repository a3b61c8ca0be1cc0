//! The themes as their owner keeps them: ready to render, with the last good state of each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::compile::template::Templates;
use crate::report::{Diagnostic, Report};
use crate::source::{self, Folder, Limits, SourceError};
use crate::theme;

/// All themes, by the names of their folders.
#[derive(Debug, Default)]
pub(super) struct Themes {
    loaded: BTreeMap<String, Loaded>,
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
    pub(super) fn reload(&mut self, directory: Option<&Path>) -> Result<(), SourceError> {
        self.notes = Report::default();
        let folders = match directory {
            None => theme::embedded(),
            Some(directory) => self.read(directory)?,
        };
        // A theme may show any of its parents' files, so that all of them count for each.
        let fingerprint = fingerprint(&folders);
        self.loaded.retain(|name, _| folders.contains_key(name));
        for name in folders.keys() {
            let same = |loaded: &Loaded| loaded.fingerprint == fingerprint;
            if !self.loaded.get(name).is_some_and(same) {
                let last_good = self.loaded.remove(name).and_then(|loaded| loaded.templates);
                let loaded = load(name, &folders, fingerprint, last_good);
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

fn load(
    name: &str,
    folders: &BTreeMap<String, Folder>,
    fingerprint: [u8; 32],
    last_good: Option<Arc<Templates>>,
) -> Loaded {
    let (theme, mut report) = theme::load(name, folders);
    let templates = theme.and_then(|theme| {
        let (templates, problems) = Templates::load(&theme);
        report.extend(problems);
        templates
    });
    Loaded {
        fingerprint,
        templates: templates.map(Arc::new).or(last_good),
        report,
    }
}

fn fingerprint(folders: &BTreeMap<String, Folder>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (name, folder) in folders {
        hash.update(name);
        hash.update(folder.fingerprint());
    }
    hash.finalize().into()
}
