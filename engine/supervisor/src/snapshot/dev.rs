//! Messages and pages for authors (`--dev`): errors for open pages, and a placeholder page for tenants without valid pages.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::runner::catalog::Catalog;
use crate::runner::catalog::tenant::TenantData;
use crate::runner::settings::Settings;
use content::address::Address;
use content::report::{Diagnostic, Report, Severity};
use render::AddressMount;
use render::dev;

/// The message to open pages after each change, which the script in `ui/runtime/dev` shows.
#[derive(Debug, Serialize)]
struct DevState<'a> {
    everyone: Vec<DevProblem<'a>>,
    tenants: BTreeMap<&'a str, Vec<Diagnostic>>,
}

/// The reason that the folders cannot be read.
#[derive(Debug, Serialize)]
struct DevProblem<'a> {
    file: String,
    message: &'a str,
}

/// Returns all errors as JSON. `problem`: the reason that the folders cannot be read.
pub(crate) fn diagnostics(catalog: &Catalog, settings: &Settings, problem: Option<&str>) -> String {
    let folder = settings.config.tenants.display().to_string();
    let state = DevState {
        everyone: problem
            .map(|message| DevProblem {
                file: folder,
                message,
            })
            .into_iter()
            .collect(),
        tenants: catalog
            .tenants
            .iter()
            .map(|(id, tenant)| (id.as_str(), errors_of(catalog, tenant)))
            .filter(|(_, errors)| !errors.is_empty())
            .collect(),
    };
    // Serialisation of strings and numbers does not fail.
    serde_json::to_string(&state).unwrap_or_default()
}

/// Returns mounts with a placeholder page for tenants that were never valid: at the addresses of their names, and at the domain's root. A preview has only its host.
pub(crate) fn absent(catalog: &Catalog, settings: &Settings) -> Vec<AddressMount> {
    if !settings.is_dev() {
        return Vec::new();
    }
    let origin = &settings.config.origin;
    let domain = origin.domain();
    let mut mounts = Vec::new();
    for (id, tenant) in &catalog.tenants {
        if tenant.compiled().is_some() {
            continue;
        }
        let errors = errors_of(catalog, tenant);
        let own = (format!("{}.{domain}", id.host_label()), String::new());
        let places = match id.is_preview() {
            true => vec![own],
            false => vec![
                own,
                (domain.to_owned(), format!("/{id}")),
                (domain.to_owned(), String::new()),
            ],
        };
        for (host, prefix) in places {
            let address = Address {
                host,
                prefix,
                canonical: false,
            };
            let (islands, is_secure) = (&settings.islands, origin.is_secure());
            mounts.push(dev::unavailable(id, address, &errors, islands, is_secure));
        }
    }
    mounts
}

/// Returns the errors of a tenant and its theme, or of all themes if the tenant's theme is not known.
fn errors_of(catalog: &Catalog, tenant: &TenantData) -> Vec<Diagnostic> {
    let theme = tenant
        .content
        .site
        .as_ref()
        .map(|site| site.manifest.theme.as_str());
    let mut report = Report::default();
    report.extend(tenant.errors().cloned());
    report.extend(catalog.themes.report_of(theme).cloned());
    report
        .sorted()
        .into_iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .collect()
}
