//! The log lines of previews that end soon, have ended, or are served again.
//!
//! **Invariant:** [`crate::model::previews`] decides when a preview ends.

use jiff::Timestamp;
use tracing::{info, warn};

use content::name::TenantId;

use crate::model::previews::PreviewPhase;
use crate::runner::registry::Registry;

/// Logs the new phase of a preview.
pub(crate) fn report(registry: &Registry, id: &TenantId, phase: PreviewPhase) {
    let end = registry.world.previews().end(id);
    let end = end.and_then(|end| Timestamp::try_from(end).ok());
    let end = end.map(|end| end.to_string()).unwrap_or_default();
    match phase {
        PreviewPhase::Current => info!(preview = %id, "preview changed; serving it"),
        PreviewPhase::Ending => warn!(
            preview = %id,
            end,
            "preview ends soon; change a file of its folder or publish it again to keep it, or withdraw it"
        ),
        PreviewPhase::Expired => warn!(
            preview = %id,
            end,
            "preview is older than --preview-max-age; responding with 410 until its folder changes or it is published again"
        ),
    }
}
