//! Diagnostics that need all tenants: broken links between tenants, pages that no tenant links to, and a missing company profile.

use std::collections::BTreeSet;

use crate::runner::catalog::Catalog;
use crate::runner::catalog::tenant::{TenantData, failure};
use crate::runner::settings::Settings;
use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report, hint_for};
use content::tenant::MANIFEST;

/// Returns the diagnostics of links between tenants, of pages that no tenant links to, and of a missing company profile.
pub(crate) fn cross_tenant(catalog: &Catalog, settings: &Settings) -> Report {
    let mut report = Report::default();
    let label = settings.config.tenants.display().to_string();
    let links = || check_links(catalog);
    report.extend(guard("neighbour links", "all", &label, links).unwrap_or_else(failure));
    let orphans = || orphans(catalog);
    report.extend(
        guard("orphans", "all", &label, orphans).unwrap_or_else(|diagnostic| vec![diagnostic]),
    );
    report.extend(missing_company(catalog, label));
    report
}

/// Returns the tenants without the previews.
fn live_tenants(catalog: &Catalog) -> impl Iterator<Item = &TenantData> {
    let tenants = catalog.tenants.iter();
    let tenants = tenants.filter(|(id, _)| !id.is_preview());
    tenants.map(|(_, tenant)| tenant.as_ref())
}

/// Returns a warning if no tenant has a company profile. A tenant that could not be read may have the profile, and a tenant whose `root: true` is refused has an error already.
fn missing_company(catalog: &Catalog, label: String) -> Option<Diagnostic> {
    let deployment = catalog.deployment.as_ref()?;
    let is_known = live_tenants(catalog).all(|tenant| tenant.content.site.is_some());
    let mut sites = live_tenants(catalog).filter_map(|tenant| tenant.content.site.as_ref());
    let is_refused = sites.any(|site| site.manifest.root && site.manifest.company.is_some());
    if deployment.company.is_some() || catalog.tenants.is_empty() || !is_known || is_refused {
        return None;
    }
    let root = deployment.root.as_ref();
    let root = root.and_then(|root| catalog.tenants.get(root)?.content.site.as_ref());
    let (file, message, hint) = match root {
        Some(root) => (
            root.name_of(MANIFEST),
            "the root tenant has no company profile, so pages name no company and no contact",
            "add `company:` with `name`, `legal_name`, `description` and `email`",
        ),
        None => (
            label,
            "no tenant has a company profile, so pages name no company and no contact",
            "add `root: true` and `company:` with `name`, `legal_name`, `description` and `email` to the manifest of the main site",
        ),
    };
    Some(Diagnostic::warning(Code::MissingCompany, file, message).hint(hint))
}

/// Returns a diagnostic for each page that neither its own tenant nor another tenant links to. Nothing is known while a tenant has no pages: it may link to any page.
fn orphans(catalog: &Catalog) -> Vec<Diagnostic> {
    if !live_tenants(catalog).all(|tenant| tenant.compiled().is_some()) {
        return Vec::new();
    }
    let compiled = || {
        let tenants = catalog.tenants.iter();
        tenants.filter_map(|(id, tenant)| Some((id, tenant.compiled()?)))
    };
    let links = compiled()
        .flat_map(|(id, from)| from.cross_tenant_links.iter().map(move |link| (id, link)));
    let linked: BTreeSet<(&str, &str)> = links
        .filter_map(|(id, link)| Some((linked_tenant(id, &link.tenant)?, link.path.as_str())))
        .collect();
    compiled()
        .flat_map(|(id, compiled)| compiled.orphans.iter().map(move |orphan| (id, orphan)))
        .filter(|(id, orphan)| {
            let mut paths = orphan.paths.iter();
            let is_linked = |id, path| linked.contains(&(id, path));
            !paths.any(|path| is_linked(id.as_str(), path) || is_linked(id.live_id(), path))
        })
        .map(|(_, orphan)| orphan.diagnostic.clone())
        .collect()
}

/// Returns the tenant for whose pages a link counts. No finding about a tenant depends on its previews: a link of a preview to its tenant counts for the preview.
fn linked_tenant<'l>(from: &'l TenantId, to: &'l str) -> Option<&'l str> {
    match from.is_preview() {
        false => Some(to),
        true => (to == from.live_id()).then(|| from.as_str()),
    }
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
