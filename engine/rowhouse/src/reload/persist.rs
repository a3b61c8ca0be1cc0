//! Hands what is new to the store on disk, and takes up at the start what is there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::addresses::Addresses;
use super::persisted::Persisted;
use super::registry::Registry;
use super::tenant::Tenant;
use content::report::{Code, Severity};
use release::store::Store;

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

    /// Hands what is new to the thread that writes it. To be called when nobody waits: after a change is served.
    pub fn keep(&mut self) {
        let unproven = match self.persisted {
            Some(_) => self.unproven_themes(),
            None => BTreeSet::new(),
        };
        let is_writable = self.is_writable();
        for (id, tenant) in &mut self.tenants {
            if is_writable
                && let Some(persisted) = &self.persisted
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
            let Some(persisted) = self.persisted.as_mut().filter(|_| is_writable) else {
                tenant.persisted.put_off();
                tenant.is_new = self.persisted.is_some();
                continue;
            };
            let good = tenant.pending.take_if(|_| is_good);
            persisted.keep_tenant(id, &mut tenant.persisted, has_grown, good);
        }
        if let Some(persisted) = self.persisted.as_mut().filter(|_| is_writable) {
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
        self.is_behind = match is_writable {
            true => self.record(),
            false => self.persisted.is_some(),
        };
    }

    /// Whether what is new can be kept: no other process does that, and the disk can be written.
    pub(super) fn is_writable(&self) -> bool {
        let store = self.store();
        store.is_some_and(|store| store.claim().is_ok())
    }

    /// Where things are kept, if anywhere.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.persisted.as_ref().map(Persisted::store)
    }

    /// Waits until everything that was handed over is on the disk.
    pub fn finish_keeping(&self) {
        if let Some(persisted) = &self.persisted {
            persisted.store().finish();
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
