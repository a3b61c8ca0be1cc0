//! Hands what is new to the store on disk, and takes up at the start what is there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::addresses::Addresses;
use super::persisted::{HISTORY, Persisted};
use super::registry::Registry;
use super::tenant::Tenant;
use content::report::{Code, Severity};
use release::history::History;

impl Registry {
    /// Takes up what was kept, and keeps what is new from now on.
    #[must_use]
    pub fn with_kept(mut self, persisted: Persisted) -> Self {
        self.shared.cache = persisted.shared_cache();
        self.addresses = Addresses::kept(&persisted);
        let secure = self.places.origin.is_secure();
        self.shared.replaced = persisted.shared_replaced(secure);
        self.persisted = Some(persisted);
        self
    }

    /// The releases of this deployment, where there is a state: `keep` of each tenant, and `bytes` of bodies in all.
    #[must_use]
    pub fn open_history(&self, keep: usize, bytes: u64) -> Option<Arc<History>> {
        let state = self.persisted.as_ref()?.state();
        let folder = state.folder().join(HISTORY);
        Some(Arc::new(History::open(folder, keep, bytes)))
    }

    /// Hands what is new to the thread that writes it. To be called when nobody waits: after a change is served.
    pub fn keep(&mut self) {
        let unproven = match self.persisted {
            Some(_) => self.unproven_themes(),
            None => BTreeSet::new(),
        };
        for (id, tenant) in &mut self.tenants {
            if let Some(persisted) = &self.persisted
                && tenant.replaced.is_new()
            {
                persisted.keep_replaced(id, &tenant.replaced);
            }
            let is_there = tenant
                .rendered()
                .is_some_and(|compiled| !compiled.is_open());
            if tenant.lifecycle.is_rendering() || !is_there {
                continue;
            }
            let has_grown = tenant.persisted.cache.has_grown();
            if !std::mem::take(&mut tenant.is_new) && !has_grown {
                continue;
            }
            let is_good = tenant.errors().next().is_none();
            let Some(persisted) = &mut self.persisted else {
                tenant.persisted.cache.used();
                continue;
            };
            let good = tenant.pending.take_if(|_| is_good);
            persisted.keep_tenant(id, &mut tenant.persisted, has_grown, good);
        }
        if let Some(persisted) = &mut self.persisted {
            for (name, folder) in self.themes.good_folders() {
                if !unproven.contains(name) {
                    persisted.keep_theme(name, folder);
                }
            }
            let shared = &mut self.shared;
            let new = std::mem::take(&mut shared.is_new);
            let new = new.then_some((&shared.replaced, &*shared.files));
            persisted.keep_shared(&mut shared.cache, new);
            let (owners, deployment) = self.addresses.to_keep();
            persisted.keep_addresses(owners, deployment);
        }
        self.is_behind = self.record();
    }

    /// Waits until everything that was handed over is on the disk.
    pub fn finish_keeping(&self) {
        if let Some(persisted) = &self.persisted {
            persisted.state().finish();
        }
    }

    /// The themes with which a page could not be rendered, or is still to be.
    fn unproven_themes(&self) -> BTreeSet<String> {
        let has_failed = |tenant: &Tenant| {
            tenant.result.iter().any(|diagnostic| {
                diagnostic.severity == Severity::Error && diagnostic.code == Code::TemplateFailed
            })
        };
        let tenants = self.tenants.values();
        let unproven: BTreeSet<&String> = tenants
            .filter(|tenant| tenant.lifecycle.is_rendering() || has_failed(tenant))
            .filter_map(|tenant| Some(&tenant.site.as_ref()?.manifest.theme))
            .collect();
        unproven.into_iter().cloned().collect()
    }
}
