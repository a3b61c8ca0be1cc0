//! The checks of a command that is confirmed: its effect is on disk, and visitors get it.

use crate::model::removal::removed_tenants::RemovedTenant;
use crate::model::tenant::{PinState, TenantState};
use crate::simulation::state::{ServedPage, SimulatedData};

/// Returns what is wrong when a rollback or a resume is confirmed. `shown`: what visitors get, once there is a snapshot.
pub(super) fn problem_of_pin(
    tenant: Option<&TenantState>,
    on_disk: Option<u64>,
    shown: Option<Option<ServedPage>>,
) -> Option<String> {
    let pin = tenant?.pin;
    let is_consistent = match pin {
        PinState::Pinned(number) | PinState::OnDisk(number) | PinState::Loading(number) => {
            on_disk == Some(number)
        }
        PinState::None => on_disk.is_none(),
        // The next command is in flight.
        PinState::Writing(before) => on_disk == before,
        _ => false,
    };
    if !is_consistent {
        return Some(format!("{pin:?}, and on disk {on_disk:?}"));
    }
    let shown = shown?;
    let is_seen = match pin {
        PinState::Pinned(number) | PinState::Writing(Some(number)) => {
            shown == Some(ServedPage::Release(number))
        }
        PinState::None | PinState::Writing(None) => !matches!(shown, Some(ServedPage::Release(_))),
        _ => true,
    };
    (!is_seen).then(|| format!("{pin:?}, and the reply comes while visitors get {shown:?}"))
}

/// Returns what is wrong when the restore of a removed tenant is confirmed. `removed`: its line on disk, or `None` if its folder is back since.
pub(super) fn problem_of_restore(
    tenant: Option<&TenantState>,
    removed: Option<RemovedTenant>,
    data: Option<&SimulatedData>,
    shown: Option<Option<ServedPage>>,
) -> Option<String> {
    let is_persisted = removed.is_none_or(|removed| removed.is_restored);
    let Some(tenant) = tenant.filter(|_| is_persisted) else {
        return Some(format!("the tenant is not restored: {removed:?}"));
    };
    let has_no_theme = tenant.has_inputs() && tenant.built_from().is_none();
    let has_failed = data.is_some_and(|data| !data.failed.is_empty());
    let is_seen = shown?.is_some() || has_failed || has_no_theme;
    (!is_seen).then(|| "the tenant is restored, and visitors do not get it".to_owned())
}
