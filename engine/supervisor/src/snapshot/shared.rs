//! The files that all tenants share: the themes' and the islands', with those of before that older pages may still ask for.

use std::sync::Arc;

use jiff::Timestamp;

use content::report::Diagnostic;
use content::report::guard::guard;
use release::snapshot::ResourceTable;
use render::Islands;
use render::Templates;

use crate::snapshot::replaced::{ReplacedFiles, Retention};
use crate::state::tables::PersistedCache;

/// The shared files as their owner keeps them.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles {
    /// Those of now, and the themes that they were made from.
    pub(crate) files: Arc<ResourceTable>,
    themes: Vec<Arc<Templates>>,
    /// Those that were replaced.
    pub(crate) replaced: ReplacedFiles,
    /// Both, as they are served.
    served: Arc<ResourceTable>,
    /// Whether they changed since they were last persisted.
    pub(crate) is_new: bool,
    /// What was worked out for them.
    pub(crate) cache: PersistedCache,
    /// Why they could not be made anew.
    pub(crate) failed: Option<Diagnostic>,
}

impl SharedFiles {
    /// The files as they are served.
    pub(crate) const fn served(&self) -> &Arc<ResourceTable> {
        &self.served
    }

    /// Says that they are served.
    pub(crate) fn set_served(&self) {
        self.themes.iter().for_each(|theme| theme.set_served());
    }

    /// Makes them anew when a theme changed, and lets go what nobody may ask for any longer. An error is the program's own; it is tried again with the next change.
    pub(crate) fn renew(
        &mut self,
        themes: Vec<Arc<Templates>>,
        islands: &Islands,
        secure: bool,
        (now, retention): (Timestamp, Retention),
    ) {
        self.failed = None;
        let same = themes.len() == self.themes.len()
            && themes
                .iter()
                .zip(&self.themes)
                .all(|(one, other)| Arc::ptr_eq(one, other));
        let is_new = !same || self.files.is_empty();
        if is_new {
            let cache = &self.cache.cache;
            cache.begin();
            let make = || render::shared(&themes, islands, secure, cache);
            match guard("shared files", "all", "themes", make) {
                Ok(files) => {
                    let before = (!self.files.is_empty()).then_some(&*self.files);
                    self.replaced.turn(before, &files, now);
                    self.files = Arc::new(files);
                    self.themes = themes;
                }
                Err(diagnostic) => self.failed = Some(diagnostic),
            }
        }
        self.replaced.prune(now, retention);
        if self.replaced.is_new() || is_new {
            let mut served = ResourceTable::clone(&self.files);
            for (path, resource) in &**self.replaced.table() {
                served.insert(path.clone(), Arc::clone(resource));
            }
            self.served = Arc::new(served);
            self.is_new = true;
        }
    }
}
