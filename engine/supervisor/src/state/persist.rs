//! Hands what is new to the store on disk, and takes up at the start what is there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::runner::addresses::Addresses;
use crate::runner::registry::Registry;
use crate::runner::tenant::Tenant;
use crate::state::persisted::Persisted;
use crate::state::releases::QUEUED;
use content::name::TenantId;
use content::report::{Code, Severity};
use release::store::Store;

/// The pause between two looks at a full queue at shutdown.
const FLUSH_PAUSE: Duration = Duration::from_millis(10);

impl Tenant {
    /// Hands what is new of it to the thread that writes it, where anything can be written.
    fn keep(&mut self, id: &TenantId, persisted: Option<&mut Persisted>, is_writable: bool) {
        if is_writable
            && let Some(persisted) = &persisted
            && self.replaced.is_new()
        {
            persisted.keep_replaced(id, &self.replaced);
        }
        let is_there = self
            .rendered()
            .is_some_and(|compiled| !compiled.is_open() || compiled.is_uncoded());
        if self.lifecycle.is_rendering() || !is_there {
            return;
        }
        let has_grown = self.persisted.cache.has_grown();
        if !std::mem::take(&mut self.is_new) && !has_grown {
            return;
        }
        let is_kept = persisted.is_some();
        let Some(persisted) = persisted.filter(|_| is_writable) else {
            self.persisted.put_off();
            self.is_new = is_kept;
            return;
        };
        let is_good = !self.has_content_errors();
        let good = self.pending.take_if(|_| is_good);
        let good = good.map(|content| (content, self.content_folder));
        persisted.keep_tenant(id, &mut self.persisted, has_grown, good);
        if let (Some(mark), Some(reading)) = (self.unkept, self.reading())
            && persisted.keep_reading(id, mark, reading)
        {
            self.unkept = None;
        }
    }
}

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
            tenant.keep(id, self.persisted.as_mut(), is_writable);
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

    /// Hands everything that is not persisted yet to the thread that writes it, waiting for its queue until `deadline`.
    pub(crate) fn flush(&mut self, deadline: Instant) {
        self.keep();
        while self.is_behind && self.is_writable() && Instant::now() < deadline {
            thread::sleep(FLUSH_PAUSE);
            self.keep();
        }
    }

    /// Hands over what is new of one tenant, and what it serves to be recorded as a release.
    pub(crate) fn keep_one(&mut self, id: &TenantId, is_writable: bool) {
        let shared = Arc::clone(self.shared.served());
        if let Some(tenant) = self.tenants.get_mut(id) {
            tenant.keep(id, self.persisted.as_mut(), is_writable);
            let store = self.persisted.as_ref().map(Persisted::store);
            if let Some(store) = store.filter(|_| is_writable) {
                tenant.record(id, store, &shared, QUEUED);
            }
        }
    }

    /// Whether what is new can be kept: no other process does that, and the disk can be written.
    pub(crate) fn is_writable(&self) -> bool {
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
