//! The files that all tenants share: files of themes and islands, and replaced files that older pages may still request.

use std::sync::Arc;

use jiff::Timestamp;

use content::report::Diagnostic;
use content::report::guard::guard;
use release::snapshot::ResourceTable;
use render::Islands;
use render::Templates;

use crate::snapshot::replaced::{ReplacedFiles, Retention};
use crate::state::tables::PersistedCache;

/// The shared files, current and replaced.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles {
    /// The current files, which `themes` provide.
    pub(crate) files: Arc<ResourceTable>,
    themes: Vec<Arc<Templates>>,
    /// The replaced files.
    pub(crate) replaced: ReplacedFiles,
    /// The current and the replaced files in one table, as snapshots contain them.
    served: Arc<ResourceTable>,
    /// Whether the files have changed since they were last persisted.
    pub(crate) is_new: bool,
    /// The persisted cache of costly results.
    pub(crate) cache: PersistedCache,
    /// The diagnostic of the last rendering, if it panicked.
    pub(crate) failed: Option<Diagnostic>,
}

impl SharedFiles {
    /// Returns the current and the replaced files in one table.
    pub(crate) const fn served(&self) -> &Arc<ResourceTable> {
        &self.served
    }

    /// Records that the files are served, so that pages may reference them.
    pub(crate) fn set_served(&self) {
        self.themes.iter().for_each(|theme| theme.set_served());
    }

    /// Renders the files again if the themes have changed, and prunes replaced files. After a panic, the next change tries again.
    pub(crate) fn update(
        &mut self,
        themes: Vec<Arc<Templates>>,
        islands: &Islands,
        is_secure: bool,
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
            let make = || render::shared(&themes, islands, is_secure, cache);
            match guard("shared files", "all", "themes", make) {
                Ok(files) => {
                    let before = (!self.files.is_empty()).then_some(&*self.files);
                    self.replaced.replace(before, &files, now);
                    self.files = Arc::new(files);
                    self.themes = themes;
                }
                Err(diagnostic) => self.failed = Some(diagnostic),
            }
        }
        self.replaced.prune(now, retention);
        if self.replaced.reset_changed() || is_new {
            let mut served = ResourceTable::clone(&self.files);
            for (path, resource) in &**self.replaced.table() {
                served.insert(path.clone(), Arc::clone(resource));
            }
            self.served = Arc::new(served);
            self.is_new = true;
        }
    }
}
