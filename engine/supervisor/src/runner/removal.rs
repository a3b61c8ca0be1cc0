//! The data of tenants whose folders were removed: reports, restored tenants, and the end of their history.
//!
//! **Invariant:** [`crate::model::removal`] decides which tenants are restored and forgotten.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tracing::{info, warn};

use content::name::TenantId;
use content::report::{Code, Diagnostic};

use crate::model::event::Event;
use crate::runner::catalog::tenant::TenantData;
use crate::runner::registry::Registry;
use crate::source::survey::RestoredTenant;
use crate::state::tables::PersistedState;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Tells the model which tenants a list leaves out because their content is not on this machine. Returns the listed tenants together with these.
pub(super) fn note_sleep(
    registry: &mut Registry,
    listed: &BTreeSet<TenantId>,
    now: Timestamp,
) -> BTreeSet<TenantId> {
    let source = &registry.settings.source;
    let persisted = registry.persisted.iter().flat_map(PersistedState::tenants);
    let known = registry.catalog.tenants.keys().chain(persisted);
    let known = known.chain(registry.world.removed().keys());
    let is_asleep = |id: &&TenantId| !listed.contains(*id) && source.is_dormant(id);
    let asleep: BTreeSet<TenantId> = known.filter(is_asleep).cloned().collect();
    let existing = listed.union(&asleep).cloned().collect();
    registry.handle(Event::Asleep(asleep), now);
    existing
}

/// Logs that the folder of a tenant was removed, and removes the results of work for the tenant.
pub(crate) fn report(registry: &Registry, id: &TenantId) {
    let persisted = registry.persisted.as_ref();
    if let Some(persisted) = persisted {
        persisted.remove_results(id);
    }
    match persisted.filter(|persisted| persisted.has_tenant(id)) {
        Some(_) => {
            let kept_days = registry.world.removed_retention().as_secs() / SECONDS_PER_DAY;
            warn!(
                tenant = %id,
                kept_days,
                "folder removed; the tenant is not served; `rowhouse restore` serves its last valid folder again"
            );
        }
        None => warn!(tenant = %id, "folder removed; the tenant is not served"),
    }
}

/// Logs that the folder of a removed tenant is back.
pub(crate) fn report_return(id: &TenantId) {
    info!(tenant = %id, "folder of a removed tenant is back");
}

/// Adds a removed tenant that an operator has restored.
pub(crate) fn restore(
    registry: &mut Registry,
    id: TenantId,
    restored: RestoredTenant,
    now: Timestamp,
) {
    info!(tenant = %id, "restored; serving the last valid folder until the folder is back");
    add(registry, id, restored, now);
}

/// Adds a tenant whose persisted content is served in place of its folder.
pub(crate) fn add(registry: &mut Registry, id: TenantId, restored: RestoredTenant, now: Timestamp) {
    let RestoredTenant {
        site,
        cache,
        replaced,
    } = restored;
    let label = site.label.clone();
    let mut tenant = Box::new(TenantData::new(cache, replaced));
    tenant.set_content(site, now, registry.settings.is_dev());
    let message = "the folder is gone; serving its last valid copy";
    let hint = format!(
        "put the folder back, or write its last valid copy with `rowhouse restore {id} --to DIR`"
    );
    let problem = Diagnostic::error(Code::Unreadable, label, message).hint(hint);
    tenant.reports.content.push(problem);
    registry.catalog.tenants.insert(id, tenant);
}

/// Deletes the history of a removed tenant.
pub(crate) fn forget(registry: &mut Registry, id: &TenantId) {
    info!(tenant = %id, "history of a removed tenant deleted, because the time of `--keep-removed` is over");
    if let Some(persisted) = &mut registry.persisted {
        persisted.forget(id);
    }
    persist(registry);
}

/// Hands the removed tenants to the store.
pub(crate) fn persist(registry: &Registry) {
    if let Some(persisted) = &registry.persisted {
        persisted.persist_removed(registry.world.removed());
    }
}
