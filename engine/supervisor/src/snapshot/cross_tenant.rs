//! Diagnostics that need all tenants: broken links between tenants, and pages that no tenant links to.

use std::collections::BTreeSet;

use crate::runner::catalog::Catalog;
use crate::runner::catalog::tenant::failure;
use crate::runner::settings::Settings;
use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report, hint_for};

/// Returns the diagnostics of links between tenants and of pages that no tenant links to.
pub(crate) fn cross_tenant(catalog: &Catalog, settings: &Settings) -> Report {
    let mut report = Report::default();
    let label = settings.config.tenants.display().to_string();
    let links = || check_links(catalog);
    report.extend(guard("neighbour links", "all", &label, links).unwrap_or_else(failure));
    let orphans = || orphans(catalog);
    report.extend(
        guard("orphans", "all", &label, orphans).unwrap_or_else(|diagnostic| vec![diagnostic]),
    );
    report
}

/// Returns a diagnostic for each page that neither its own tenant nor another tenant links to. Nothing is known while a tenant has no pages: it may link to any page.
fn orphans(catalog: &Catalog) -> Vec<Diagnostic> {
    let tenants = catalog.tenants.iter();
    let compiled: Option<Vec<_>> = tenants
        .map(|(id, tenant)| Some((id, tenant.compiled()?)))
        .collect();
    let compiled = compiled.unwrap_or_default();
    let compiled = || compiled.iter().copied();
    let linked: BTreeSet<(&str, &str)> = compiled()
        .flat_map(|(_, compiled)| &compiled.cross_tenant_links)
        .map(|link| (link.tenant.as_str(), link.path.as_str()))
        .collect();
    compiled()
        .flat_map(|(id, compiled)| compiled.orphans.iter().map(move |orphan| (id, orphan)))
        .filter(|(id, orphan)| {
            let mut paths = orphan.paths.iter();
            !paths.any(|path| linked.contains(&(id.as_str(), path.as_str())))
        })
        .map(|(_, orphan)| orphan.diagnostic.clone())
        .collect()
}

/// Checks the links between tenants against the current pages of their targets.
fn check_links(catalog: &Catalog) -> Report {
    let mut all = Report::default();
    for compiled in catalog
        .tenants
        .values()
        .filter_map(|tenant| tenant.compiled())
    {
        let mut found = Report::default();
        for link in &compiled.cross_tenant_links {
            let tenant = catalog.tenants.get(link.tenant.as_str());
            let target = tenant.map(|tenant| tenant.compiled());
            let code = match target {
                None => Code::UnknownTenant,
                Some(Some(target)) if !target.has(&link.path) => Code::BrokenNeighbourLink,
                // A target tenant without pages has its own errors in the report.
                Some(_) => continue,
            };
            let diagnostic = &link.diagnostic;
            found.add(diagnostic.severity, code, &diagnostic.file, || {
                let (message, hint) = match target.flatten() {
                    None => (
                        format!("unknown tenant `{}`", link.tenant),
                        hint_for(&link.tenant, catalog.tenants.keys().map(TenantId::as_str)),
                    ),
                    Some(target) => (
                        format!("the tenant `{}` has no page `{}`", link.tenant, link.path),
                        hint_for(&link.path, target.paths.iter().map(AsRef::as_ref)),
                    ),
                };
                Diagnostic {
                    code,
                    message,
                    hint: Some(hint),
                    ..diagnostic.clone()
                }
            });
        }
        all.extend(found);
    }
    all
}
