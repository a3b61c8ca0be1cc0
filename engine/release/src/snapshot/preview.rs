//! The ids of previews: `corner@spring` is a preview of the tenant `corner`.

/// Returns the id of the tenant that a preview shows, or `None` for the id of another tenant.
#[must_use]
pub fn tenant_of_preview(id: &str) -> Option<&str> {
    id.split_once('@').map(|(tenant, _)| tenant)
}
