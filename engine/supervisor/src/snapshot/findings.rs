//! Diagnostics of selected tenants for the console, which requests only the tenants on the open page.

use std::collections::BTreeMap;
use std::path::Path;

use crate::runner::catalog::tenant::TenantData;
use crate::runner::registry::Registry;
use crate::snapshot::cross_tenant::cross_tenant;
use content::report::{Diagnostic, Report};

/// The number of tenants up to which findings include diagnostics between tenants.
const MAX_TENANTS_WITH_LINK_CHECKS: usize = 500;

/// The diagnostics of selected tenants.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Diagnostics of files outside the tenants' folders: themes, `deployment.yaml`, the folder of tenants.
    pub elsewhere: Vec<Diagnostic>,
    /// The findings of each selected tenant, by id.
    pub tenants: BTreeMap<String, TenantFindings>,
    /// Whether diagnostics of links between tenants are included. With more than 500 tenants, only `rowhouse check` reports them.
    pub has_cross_tenant_findings: bool,
}

/// The findings of one tenant.
#[derive(Debug, Clone, Default)]
pub struct TenantFindings {
    /// The diagnostics: errors first, then by file and line.
    pub diagnostics: Vec<Diagnostic>,
    /// The canonical address, without scheme.
    pub canonical: Option<String>,
}

/// Returns the diagnostics of these tenants, and of files outside the tenants' folders.
pub(crate) fn findings(registry: &Registry, ids: &[String]) -> Findings {
    let catalog = &registry.catalog;
    let has_cross_tenant_findings = catalog.tenants.len() <= MAX_TENANTS_WITH_LINK_CHECKS;
    let root = &registry.settings.config.tenants;
    let mut tenants: BTreeMap<String, Report> = BTreeMap::new();
    let mut elsewhere = Report::default();
    for id in ids {
        let mut report = Report::default();
        if let Some(tenant) = catalog.tenants.get(id.as_str()) {
            report.extend(tenant.reports.content.clone());
            report.extend(tenant.scheduled_pages(catalog.now));
            report.extend(tenant.reports.result.clone());
            report.extend(tenant.reports.conflicts.clone());
        }
        tenants.insert(id.clone(), report);
    }
    let mut general = catalog.folder_report.clone();
    let names = catalog.tenants.keys().map(|id| id.as_str());
    general.extend(catalog.addresses.report(names, catalog.now));
    general.extend(catalog.themes.report().cloned());
    general.extend(registry.publisher.report());
    if has_cross_tenant_findings {
        general.extend(cross_tenant(catalog, &registry.settings));
    }
    for diagnostic in general {
        match owner(&diagnostic.file, root) {
            Some(id) if catalog.tenants.contains_key(&*id) => {
                if let Some(report) = tenants.get_mut(&id) {
                    report.push(diagnostic);
                }
            }
            _ => elsewhere.push(diagnostic),
        }
    }
    let found = |(id, report): (String, Report)| {
        let canonical = catalog
            .tenants
            .get(id.as_str())
            .and_then(|tenant| canonical(tenant));
        let diagnostics = worst_first(report);
        let found = TenantFindings {
            diagnostics,
            canonical,
        };
        (id, found)
    };
    Findings {
        elsewhere: worst_first(elsewhere),
        tenants: tenants.into_iter().map(found).collect(),
        has_cross_tenant_findings,
    }
}

/// Returns the name of the tenant's folder that contains a file.
fn owner(file: &str, tenants: &Path) -> Option<String> {
    let within = Path::new(file).strip_prefix(tenants).ok()?;
    let folder = within.components().next()?;
    Some(folder.as_os_str().to_string_lossy().into_owned())
}

fn worst_first(report: Report) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> = report.sorted().into_iter().collect();
    all.sort_by_key(|diagnostic| diagnostic.severity);
    all
}

fn canonical(tenant: &TenantData) -> Option<String> {
    let mut mounts = tenant.compiled()?.mounts.iter();
    let address = &mounts.find(|mount| mount.address.canonical)?.address;
    Some(address.key())
}
