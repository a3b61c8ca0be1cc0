//! The interface to tenants whose content is downloaded when a request needs it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use server::snapshot_store::RequestedAddress;

/// Finds and wakes dormant tenants. Requests make these calls, so no call waits.
pub(crate) trait DormantTenants: Debug + Send + Sync {
    /// Returns the dormant tenant at an address.
    fn find(&self, address: RequestedAddress<'_>) -> Option<Arc<str>>;

    /// Notes that a request waits for a tenant. Waiting requests repeat the call.
    fn request(&self, tenant: &str);

    /// Notes that a request of an awake tenant was answered.
    fn note_answered(&self, tenant: &str);

    /// Sets the tenants that wake and do not go to sleep, because the pages of others show them.
    fn set_needed(&self, tenants: BTreeSet<String>);
}
