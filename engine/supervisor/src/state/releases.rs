//! What tenants served is recorded, and an older release is served again when an operator says so.
//!
//! A release has all that a tenant answers at its addresses, and the shared files that its pages name: themes go on without it.
//! While one is pinned, its tenant is read and rendered as always, and its errors are reported; visitors get the release.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use content::name::TenantId;
use http::HeaderValue;
use release::snapshot::{Mount, Pages, Resource, ResourceTable, Slot};
use release::store::{New, PlacedPages, Release, Store};
use render::asset::ASSETS;
use render::{Compiled, PlacedMount};
use server::control::ControlError;
use tracing::{info, warn};

use crate::runner::registry::Registry;
use crate::runner::tenant::{MadeFrom, Tenant};
use crate::state::recorded::Pinned;
use crate::state::release_key::key_of;

/// So many releases may wait to be written: each has its pages in memory.
pub(crate) const QUEUED: usize = 64;

impl Registry {
    /// Records what tenants serve since the last time, as far as the disk keeps up. Whether something is left.
    pub(crate) fn record(&mut self) -> bool {
        let Some(store) = self.store().cloned().filter(|_| self.is_writable()) else {
            return false;
        };
        let shared = Arc::clone(self.shared.served());
        for (id, tenant) in &mut self.tenants {
            if !tenant.record(id, &store, &shared, QUEUED) {
                return true;
            }
        }
        false
    }

    /// Serves the pinned releases of tenants whose pins were not looked up yet: those of the state at startup, and of tenants that were read or rendered later.
    pub(crate) fn restore_pins(&mut self) {
        let Some(store) = self.store().cloned() else {
            return;
        };
        for (id, tenant) in &mut self.tenants {
            if tenant.recorded.is_pin_known || tenant.lifecycle.served().is_none() {
                continue;
            }
            tenant.recorded.is_pin_known = true;
            let Some(number) = store.pinned(id.as_str()) else {
                continue;
            };
            let release = store.load(id.as_str(), number);
            tenant.recorded.pinned = release.and_then(|release| tenant.place(release));
            match &tenant.recorded.pinned {
                Some(_) => {
                    info!(tenant = %id, release = number, "serving the pinned release; changes of the folder are not published")
                }
                None => {
                    warn!(tenant = %id, release = number, "the pinned release cannot be read; serving the folder")
                }
            }
        }
    }

    /// Hands the tenant's current output to the store, whatever else waits to be written.
    pub(crate) fn record_tenant(&mut self, id: &str) -> Result<(), ControlError> {
        let store = self.store().cloned().ok_or(ControlError::NoState)?;
        let shared = Arc::clone(self.shared.served());
        let unknown = || ControlError::UnknownTenant(id.to_owned());
        let id = TenantId::new(id).map_err(|_| unknown())?;
        let tenant = self.tenants.get_mut(&id).ok_or_else(unknown)?;
        if store.claim().is_ok() {
            tenant.record(&id, &store, &shared, usize::MAX);
        }
        Ok(())
    }

    /// Serves a release of a tenant and pins it. Without a number, that is the newest release with another output than the current one. Returns the number.
    ///
    /// # Errors
    /// When the release does not exist, has no address that the tenant still has, or cannot be pinned. Nothing has changed then.
    pub(crate) fn roll_back(&mut self, id: &str, number: Option<u64>) -> Result<u64, ControlError> {
        let store = self.store().cloned().ok_or(ControlError::NoState)?;
        let unknown = || ControlError::UnknownTenant(id.to_owned());
        let tenant = self.tenants.get_mut(id).ok_or_else(unknown)?;
        let earlier = || tenant.recorded.earlier(&store.list(id));
        let number = number
            .or_else(earlier)
            .ok_or_else(|| ControlError::NoEarlierRelease(id.to_owned()))?;
        let no_release = || ControlError::UnknownRelease {
            tenant: id.to_owned(),
            number,
        };
        let release = store.load(id, number).ok_or_else(no_release)?;
        let pinned = tenant.place(release).ok_or_else(|| {
            ControlError::Failed(format!(
                "release {number} of `{id}` has none of the addresses that the tenant has now"
            ))
        })?;
        store
            .pin(id, number)
            .map_err(|error| ControlError::Failed(error.to_string()))?;
        tenant.recorded.pinned = Some(pinned);
        tenant.recorded.is_pin_known = true;
        info!(
            tenant = id,
            release = number,
            "rolled back; changes of the folder are not published"
        );
        Ok(number)
    }

    /// Follows the folder of a tenant again.
    pub(crate) fn resume(&mut self, id: &str) -> Result<(), ControlError> {
        let store = self.store().cloned().ok_or(ControlError::NoState)?;
        let unknown = || ControlError::UnknownTenant(id.to_owned());
        let tenant = self.tenants.get_mut(id).ok_or_else(unknown)?;
        store
            .unpin(id)
            .map_err(|error| ControlError::Failed(error.to_string()))?;
        tenant.recorded.is_pin_known = true;
        if tenant.recorded.pinned.take().is_some() {
            info!(
                tenant = id,
                "resumed; changes of the folder are published again"
            );
        }
        Ok(())
    }

    /// The shared files that pinned releases name.
    pub(crate) fn pinned_files(&self) -> impl Iterator<Item = (&str, &Arc<Resource>)> {
        let pinned = self.tenants.values();
        let pinned = pinned.filter_map(|tenant| tenant.recorded.pinned.as_ref());
        pinned.flat_map(|pinned| pinned.shared.iter().map(|(path, file)| (&**path, file)))
    }
}

impl Tenant {
    /// Records the current output, if that is due and fewer than `max_queued` releases wait to be written. Returns whether nothing is left to record.
    pub(crate) fn record(
        &mut self,
        id: &TenantId,
        store: &Store,
        shared: &ResourceTable,
        max_queued: usize,
    ) -> bool {
        if !self.recorded.is_due || !self.lifecycle.is_at_rest() {
            return true;
        }
        if store.queued() >= max_queued {
            return false;
        }
        self.recorded.is_due = false;
        let Some(served) = self.lifecycle.served() else {
            return true;
        };
        let (made_from, compiled) = (served.inputs.clone(), Arc::clone(&served.result));
        let Some(places) = places_of(&compiled) else {
            return true;
        };
        let key = key_of(&places);
        let pages = compiled.pages;
        if let Some(cause) = self.cause(&made_from, key) {
            let files = named(&places, shared);
            let shared = PlacedPages {
                host: String::new(),
                prefix: String::new(),
                pages: shared_pages(files),
            };
            let release = New {
                at: SystemTime::now(),
                cause,
                pages,
                key,
                places: places.into_iter().chain([shared]).collect(),
            };
            store.record(id.as_str(), release);
        }
        made_from.keep(store, &compiled, &self.result, key);
        true
    }

    /// Why it answers something else than what was recorded last; `None` where it does not.
    fn cause(&mut self, made_from: &MadeFrom, key: [u8; 32]) -> Option<Vec<String>> {
        let inputs = &made_from.inputs;
        let changed = std::mem::take(&mut self.recorded.changed);
        let last = self.recorded.last.take();
        self.recorded.set_last(inputs, key);
        Some(match &last {
            Some((_, _, last)) if *last == key => return None,
            _ if !changed.is_empty() => changed.into_iter().collect(),
            None => vec!["as the program found it at its start".to_owned()],
            Some((theme, _, _)) if !Arc::ptr_eq(theme, &inputs.templates) => {
                vec!["the theme".to_owned()]
            }
            Some((_, deployment, _)) if !Arc::ptr_eq(deployment, &inputs.deployment) => {
                vec!["the company profile, a site that it lists, or the year".to_owned()]
            }
            Some(_) => vec!["its addresses".to_owned()],
        })
    }

    /// Places a release at those of its addresses that the tenant still has. Returns `None` where the tenant has none of them.
    fn place(&self, release: Release) -> Option<Pinned> {
        let served = self.lifecycle.served()?;
        let cache = &served.result.cache;
        let mut shared = ResourceTable::new();
        let mut mounts = Vec::new();
        for place in release.places {
            if place.host.is_empty() {
                shared = render::coded(&place.pages, cache).resources;
                continue;
            }
            let mut addresses = served.inputs.addresses.iter();
            let address = addresses
                .find(|own| own.host == place.host && own.prefix == place.prefix)
                .cloned();
            mounts.extend(address.map(|address| PlacedMount {
                mount: Arc::new(Mount {
                    tenant: served.inputs.site.id.shared(),
                    prefix: address.prefix.as_str().into(),
                    pages: Slot::from(render::coded(&place.pages, cache)),
                    traffic: std::sync::OnceLock::new(),
                }),
                address,
                uncoded: None,
            }));
        }
        if mounts.is_empty() {
            return None;
        }
        let compiled = Arc::new(Compiled {
            mounts,
            pages: release.entry.pages,
            ..Compiled::clone(&served.result)
        });
        Some(Pinned {
            number: release.entry.number,
            compiled,
            shared,
        })
    }
}

/// What is answered at each address, as far as it is in memory.
fn places_of(compiled: &Compiled) -> Option<Vec<PlacedPages>> {
    let mounts = compiled.mounts.iter();
    let placed = |placed: &PlacedMount| {
        Some(PlacedPages {
            host: placed.address.host.clone(),
            prefix: placed.address.prefix.clone(),
            pages: placed.pages()?.clone(),
        })
    };
    mounts.map(placed).collect()
}

/// Shared files as a release has them: a place that is no host's.
fn shared_pages(resources: ResourceTable) -> Pages {
    let nowhere = Resource::Redirect(HeaderValue::from_static("/"));
    Pages {
        resources,
        not_found: Vec::new(),
        method_not_allowed: Arc::new(nowhere),
    }
}

/// The shared files that pages name, and those that these name in turn.
fn named(places: &[PlacedPages], shared: &ResourceTable) -> ResourceTable {
    let mut found = ResourceTable::new();
    let mut seen = HashSet::new();
    let mut open: Vec<Arc<Resource>> = places
        .iter()
        .flat_map(|place| place.pages.resources.values())
        .cloned()
        .collect();
    while let Some(resource) = open.pop() {
        let Resource::Body(body) = &*resource else {
            continue;
        };
        // Only text names files, and text is what is compressed.
        let (_, is_compressed, _) = body.fields.given();
        if !is_compressed {
            continue;
        }
        let identity = body.variants.identity();
        let Some(bytes) = identity.and_then(|identity| identity.bytes.in_memory()) else {
            continue;
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        for name in bytes.split(|byte| !is_name(byte)) {
            let Some(name) = std::str::from_utf8(name)
                .ok()
                .filter(|name| name.contains('.'))
            else {
                continue;
            };
            let path = format!("{ASSETS}{name}");
            if let Some((path, file)) = shared.get_key_value(path.as_str())
                && seen.insert(path.clone())
            {
                found.insert(path.clone(), Arc::clone(file));
                open.push(Arc::clone(file));
            }
        }
    }
    found
}
