//! The release record of a tenant: its last recorded release, the changes since then, and its pinned release.
//!
//! **Invariant:** plain values; knows neither the disk nor other tenants.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use release::snapshot::ResourceTable;
use release::store::ReleaseInfo;
use render::DeploymentFacts;
use render::Templates;
use render::{CompileInputs, CompiledTenant, GeneratedImage};

/// The last recorded release of a tenant, the changes since then, and its pinned release.
#[derive(Debug, Default)]
pub(crate) struct ReleaseRecord {
    /// The theme, the deployment and the key of the release that was recorded last.
    pub(crate) last: Option<(Arc<Templates>, Arc<DeploymentFacts>, [u8; 32])>,
    /// The files that changed since that release.
    pub(crate) changed: BTreeSet<String>,
    /// Whether output was rendered since that release.
    pub(crate) is_due: bool,
    /// The pinned release, which is served in place of the folder's pages.
    pub(crate) pinned: Option<PinnedRelease>,
    /// The release that is served once its pin is written to disk.
    pub(crate) prepared_rollback: Option<PinnedRelease>,
}

/// The current release of a tenant, if it is known without a read from the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CurrentRelease {
    /// The number of the pinned release.
    pinned: Option<u64>,
    /// The key of the release that was recorded last.
    key: Option<[u8; 32]>,
    /// Whether output was rendered that is not recorded.
    is_due: bool,
}

impl CurrentRelease {
    /// Returns the number of the newest of `entries` (newest first) that is earlier than the current release.
    ///
    /// Output that is not recorded yet is later than all of them. Output that this process has not rendered is the newest.
    pub(crate) fn earlier(&self, entries: &[ReleaseInfo]) -> Option<u64> {
        let mut numbers = entries.iter().map(|entry| entry.number);
        if let Some(pinned) = self.pinned {
            return numbers.find(|number| *number < pinned);
        }
        match self.key {
            _ if self.is_due => numbers.next(),
            Some(current) => {
                let mut other = entries.iter().filter(|entry| entry.key != current);
                other.next().map(|entry| entry.number)
            }
            None => numbers.nth(1),
        }
    }
}

impl ReleaseRecord {
    /// Returns the current release.
    pub(crate) fn current(&self) -> CurrentRelease {
        CurrentRelease {
            pinned: self.pinned.as_ref().map(|pinned| pinned.number),
            key: self.last.as_ref().map(|(_, _, key)| *key),
            is_due: self.is_due,
        }
    }

    /// Sets the inputs and the key of the release that was recorded last.
    pub(crate) fn set_last(&mut self, inputs: &CompileInputs, response_key: [u8; 32]) {
        let parts = (&inputs.templates, &inputs.deployment);
        self.last = Some((Arc::clone(parts.0), Arc::clone(parts.1), response_key));
    }
}

/// A release that an operator has pinned in place of the folder's pages.
#[derive(Debug)]
pub(crate) struct PinnedRelease {
    pub(crate) number: u64,
    pub(crate) compiled: Arc<CompiledTenant>,
    /// The files that all tenants shared at the time.
    pub(crate) shared: Arc<ResourceTable>,
}

impl PinnedRelease {
    /// Adds the images of newer pages of the folder, since a stored release has no images.
    ///
    /// Newer images replace equal ones, which have no source if the tenant was evicted since.
    pub(crate) fn add_images(&mut self, newer: &CompiledTenant) {
        let place = |image: &GeneratedImage| (image.host.clone(), image.path.clone());
        let replaced: HashSet<_> = newer.images.iter().map(place).collect();
        let before = self.compiled.images.iter();
        let others = before.filter(|image| !replaced.contains(&place(image)));
        let images = newer.images.iter().chain(others).cloned().collect();
        self.compiled = Arc::new(CompiledTenant {
            images,
            ..CompiledTenant::clone(&self.compiled)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn entries(numbers: &[u64]) -> Vec<ReleaseInfo> {
        let entry = |number: &u64| ReleaseInfo {
            number: *number,
            at: SystemTime::UNIX_EPOCH,
            cause: Vec::new(),
            pages: 1,
            key: [u8::try_from(*number).expect("a small number"); 32],
        };
        numbers.iter().map(entry).collect()
    }

    #[test]
    fn rollback_before_the_newest_output_is_recorded_goes_back_one_release() {
        let due = CurrentRelease {
            is_due: true,
            ..CurrentRelease::default()
        };
        assert_eq!(due.earlier(&entries(&[2, 1])), Some(2));
    }

    #[test]
    fn rollback_of_a_tenant_that_was_not_rendered_yet_skips_the_newest_release() {
        assert_eq!(
            CurrentRelease::default().earlier(&entries(&[2, 1])),
            Some(1)
        );
        assert_eq!(CurrentRelease::default().earlier(&entries(&[2])), None);
    }
}
