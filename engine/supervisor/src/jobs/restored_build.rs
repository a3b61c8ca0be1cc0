//! Restores the pages of a tenant after a restart or an eviction. Pages are restored from the store if all inputs are unchanged; otherwise the tenant is rendered again.
//!
//! **Invariant:** restored pages equal rendered pages, byte for byte.

use std::sync::Arc;

use content::name::TenantId;
use content::report::Report;
use content::report::guard::guard;
use content::tenant::MANIFEST;
use release::store::Store;
use render::{CompiledTenant, PersistedTenant, release_key};

use crate::runner::catalog::tenant::BuildInputs;
use crate::state::tables::PersistedRelease;

/// An earlier rendering of a tenant.
#[derive(Debug)]
pub(crate) struct RestoredBuild {
    pub(crate) compiled: CompiledTenant,
    pub(crate) report: Report,
    /// A digest of all responses.
    pub(crate) response_key: [u8; 32],
}

impl BuildInputs {
    /// Returns a digest of all inputs of the pages, or `None` if the hash of the folder is not known.
    pub(crate) fn key(&self) -> Option<[u8; 32]> {
        let (site, addresses) = (&self.site, &self.addresses);
        let folder = self.folder.as_ref()?;
        Some(release_key(folder, site, addresses, &self.inputs))
    }

    /// Persists the digests and the facts of a release that was built from these inputs.
    pub(crate) fn persist_outcome(
        self,
        store: &Store,
        compiled: &Arc<CompiledTenant>,
        report: &Report,
        response_key: [u8; 32],
    ) {
        // Pages with the live-reload script (`--dev`) are not persisted.
        if self.folder.is_none() || self.inputs.islands.dev.is_some() {
            return;
        }
        let id = self.site.id.clone();
        let outcome = PersistedTenant::of(compiled, report, &self.inputs);
        let make = move || {
            Some(PersistedRelease {
                key: self.key()?,
                response_key,
                outcome: outcome.parts()?,
            })
        };
        PersistedRelease::write(store, &id, make);
    }

    /// Returns an earlier rendering from the same inputs: with its pages, or at open mounts unless `with_pages`.
    pub(crate) fn restore(&self, store: &Store, with_pages: bool) -> Option<RestoredBuild> {
        if self.inputs.islands.dev.is_some() {
            return None;
        }
        let site = &self.site;
        let find = || self.find(store, &site.id, with_pages);
        let found = guard("restore", site.id.as_str(), &site.name_of(MANIFEST), find);
        found.ok().flatten()
    }

    fn find(&self, store: &Store, id: &TenantId, with_pages: bool) -> Option<RestoredBuild> {
        let kept = PersistedRelease::read(store, id)?;
        if self.key()? != kept.key {
            return None;
        }
        let release = match with_pages {
            true => Some(store.load(id.as_str(), store.newest(id.as_str())?)?),
            false => None,
        };
        if release
            .as_ref()
            .is_some_and(|release| release.entry.key != kept.response_key)
        {
            return None;
        }
        let [known, materials] = &kept.outcome;
        let (compiled, report) = CompiledTenant::restore(
            [known, materials],
            &self.site,
            &self.addresses,
            &self.inputs,
            release.as_ref().map(|release| &release.addresses[..]),
        )?;
        Some(RestoredBuild {
            compiled,
            report,
            response_key: kept.response_key,
        })
    }
}
