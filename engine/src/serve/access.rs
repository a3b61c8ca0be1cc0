//! One line for each request, as an event of the target `access`.
//!
//! A line says which tenant and route answered, with what, and how long that took. Nothing in it was made up by a client: routes are the snapshot's own, and no address is kept.
//! Whoever subscribes decides how it looks and must not let a slow reader hold a response up.
//!
//! **Invariant:** decides no answer.

use std::time::Duration;

use tracing::info;

use super::respond::{Answer, Party};

/// The target that subscribers filter by.
pub const TARGET: &str = "access";

/// Says what was answered.
pub(super) fn log(answer: &Answer<'_>, bytes: u64, took: Duration) {
    let tenant = match answer.party {
        Party::Tenant(mount) => mount.tenant.as_ref(),
        Party::Host => "_shared",
        Party::Nobody => "_unknown",
    };
    let route = &answer.route;
    info!(
        target: TARGET,
        tenant,
        route = format_args!("{}{}{}", route.prefix, route.path, route.rest),
        status = answer.response.status().as_u16(),
        bytes,
        encoding = answer.coding.token(),
        duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    );
}
