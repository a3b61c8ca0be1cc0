//! Hands new data of tenants, themes and addresses to the store on disk.

use std::collections::BTreeSet;

use content::name::TenantId;
use content::report::{Code, Severity};

use crate::model::tenant::TenantState as States;
use crate::runner::catalog::tenant::TenantData;
use crate::runner::registry::Registry;
use crate::state::releases::record;
use crate::state::tables::{PersistedState, write_reading};

/// Hands the new data of a tenant to the writer thread, and records its current output as a release.
pub(crate) fn persist_tenant(registry: &mut Registry, id: &TenantId) {
    persist_reading(registry, id);
    let Some(persisted) = &mut registry.persisted else {
        return;
    };
    let states = registry.world.tenant(id.as_str());
    let Some((tenant, states)) = registry.catalog.tenants.get_mut(id).zip(states) else {
        return;
    };
    if persisted.store().claim().is_err() {
        tenant.persisted.trim();
        return;
    }
    persist(tenant, id, persisted, states);
    if states.is_current() {
        let shared = registry.publisher.shared.served();
        record(tenant, id, persisted.store(), shared);
    }
}

/// Hands the new reading of a tenant's folder to the writer thread. A restart before the first rendering needs it, too.
pub(crate) fn persist_reading(registry: &mut Registry, id: &TenantId) {
    let Some(persisted) = &registry.persisted else {
        return;
    };
    let is_writable = persisted.store().claim().is_ok();
    if let Some(tenant) = registry.catalog.tenants.get_mut(id).filter(|_| is_writable)
        && let Some(reading) = tenant.packed_reading()
        && let Some(mark) = tenant.reading.mark.take()
    {
        write_reading(persisted.store(), id, mark, reading);
    }
}

/// Hands new themes, shared files and addresses to the writer thread.
pub(crate) fn persist_shared(registry: &mut Registry) {
    let Some(persisted) = &registry.persisted else {
        return;
    };
    if persisted.store().claim().is_err() {
        return;
    }
    let themes = &registry.catalog.themes;
    let is_new = themes
        .valid_folders()
        .any(|theme| !persisted.has_theme(&theme));
    let unproven = match is_new {
        true => unproven_themes(registry),
        false => BTreeSet::new(),
    };
    let catalog = &registry.catalog;
    let Some(persisted) = &mut registry.persisted else {
        return;
    };
    for theme in catalog.themes.valid_folders() {
        if !unproven.contains(theme.name) {
            persisted.persist_theme(&theme);
        }
    }
    let shared = &mut registry.publisher.shared;
    let new = std::mem::take(&mut shared.is_new);
    let new = new.then_some((&shared.replaced, &*shared.files));
    persisted.persist_shared(&mut shared.cache, new);
    let (assignment, deployment) = catalog.addresses.persistable();
    persisted.persist_addresses(assignment, deployment);
    persisted.persist_access(catalog.addresses.persistable_access());
}

/// Persists the new data of a tenant. A tenant without pages in memory persists its replaced files only.
fn persist(data: &mut TenantData, id: &TenantId, persisted: &mut PersistedState, states: &States) {
    if data.replaced.reset_changed() {
        persisted.persist_replaced(id, &data.replaced);
    }
    let is_there = data
        .rendered()
        .is_some_and(|compiled| !compiled.is_open() || compiled.is_uncompressed());
    if !is_there {
        return;
    }
    let has_grown = data.persisted.cache.has_grown();
    let is_valid = !states.errors.are_of_content();
    let good = data.content.pending.take_if(|_| is_valid);
    let good = good.map(|content| (content, data.content.folder));
    persisted.persist_tenant(id, &mut data.persisted, has_grown, good);
}

/// Returns the themes with which a page failed to render or is still being rendered.
fn unproven_themes(registry: &Registry) -> BTreeSet<String> {
    let has_failed = |tenant: &TenantData| {
        tenant.reports.result.iter().any(|diagnostic| {
            diagnostic.severity == Severity::Error && diagnostic.code == Code::TemplateFailed
        })
    };
    let is_building = |id: &TenantId| {
        let states = registry.world.tenant(id.as_str());
        states.is_some_and(States::is_building)
    };
    let tenants = registry.catalog.tenants.iter();
    let unproven: BTreeSet<&String> = tenants
        .filter(|(id, tenant)| is_building(id) || has_failed(tenant))
        .filter_map(|(_, tenant)| Some(&tenant.content.site.as_ref()?.manifest.theme))
        .collect();
    unproven.into_iter().cloned().collect()
}
