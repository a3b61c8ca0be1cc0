//! Assembles a snapshot from the rendered tenants, and reports diagnostics that concern several tenants.

pub(crate) mod assembly;
pub mod compare;
pub(crate) mod cross_tenant;
pub(crate) mod dev;
pub(crate) mod findings;
pub(crate) mod hosts;
pub mod replaced;
pub(crate) mod shared;
pub(crate) mod template_failures;
