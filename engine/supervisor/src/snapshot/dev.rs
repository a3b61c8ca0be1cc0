//! What authors see with `--dev`: what is wrong, told to the pages that it concerns, and a page for a tenant that has none.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::runner::catalog::Catalog;
use crate::runner::catalog::tenant::TenantData;
use crate::runner::settings::Settings;
use content::address::Address;
use content::report::{Diagnostic, Report, Severity};
use render::PlacedMount;
use render::dev;

/// What an open page is told after each change. What it makes of it is the script's business (`ui/runtime/dev`).
#[derive(Debug, Serialize)]
struct DevState<'a> {
    everyone: Vec<DevProblem<'a>>,
    tenants: BTreeMap<&'a str, Vec<Diagnostic>>,
}

/// Why nothing at all was taken.
#[derive(Debug, Serialize)]
struct DevProblem<'a> {
    file: String,
    message: &'a str,
}

/// Returns all errors as JSON. `problem`: why the folders cannot be read.
pub(crate) fn diagnostics(catalog: &Catalog, settings: &Settings, problem: Option<&str>) -> String {
    let folder = settings.places.tenants.display().to_string();
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
    // Texts and numbers always become JSON.
    serde_json::to_string(&state).unwrap_or_default()
}

/// Returns mounts for tenants that were never valid: at the addresses that their names give them and, where no tenant has it, at the domain's root.
pub(crate) fn absent(catalog: &Catalog, settings: &Settings) -> Vec<PlacedMount> {
    if !settings.is_dev() {
        return Vec::new();
    }
    let origin = &settings.places.origin;
    let domain = origin.domain();
    let mut mounts = Vec::new();
    for (id, tenant) in &catalog.tenants {
        if tenant.compiled().is_some() {
            continue;
        }
        let errors = errors_of(catalog, tenant);
        for (host, prefix) in [
            (format!("{id}.{domain}"), String::new()),
            (domain.to_owned(), format!("/{id}")),
            (domain.to_owned(), String::new()),
        ] {
            let address = Address {
                host,
                prefix,
                canonical: false,
            };
            let (islands, secure) = (&settings.islands, origin.is_secure());
            mounts.push(dev::nothing_yet(id, address, &errors, islands, secure));
        }
    }
    mounts
}

/// Returns the errors of a tenant and its theme; of all themes while its own is not known.
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
