//! What authors see with `--dev`: what is wrong, told to the pages that it concerns, and a page for a tenant that has none.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::runner::registry::Registry;
use crate::runner::tenant::Tenant;
use content::address::Address;
use content::report::{Diagnostic, Report, Severity};
use render::PlacedMount;
use render::dev;

/// What an open page is told after each change. What it makes of it is the script's business (`ui/runtime/dev`).
#[derive(Debug, Serialize)]
struct State<'a> {
    everyone: Vec<Problem<'a>>,
    tenants: BTreeMap<&'a str, Vec<Diagnostic>>,
}

/// Why nothing at all was taken.
#[derive(Debug, Serialize)]
struct Problem<'a> {
    file: String,
    message: &'a str,
}

impl Registry {
    /// Everything that is wrong, as JSON. `problem` is what kept the folders from being read.
    #[must_use]
    pub fn diagnostics(&self, problem: Option<&str>) -> String {
        let folder = self.places.tenants.display().to_string();
        let state = State {
            everyone: problem
                .map(|message| Problem {
                    file: folder,
                    message,
                })
                .into_iter()
                .collect(),
            tenants: self
                .tenants
                .iter()
                .map(|(id, tenant)| (id.as_str(), self.errors_of(tenant)))
                .filter(|(_, errors)| !errors.is_empty())
                .collect(),
        };
        // Texts and numbers always become JSON.
        serde_json::to_string(&state).unwrap_or_default()
    }

    /// Mounts for tenants that never had a good state: at the places that their names give them and, where nobody has it, at the domain's root.
    pub(crate) fn absent(&self) -> Vec<PlacedMount> {
        if !self.is_dev() {
            return Vec::new();
        }
        let origin = &self.places.origin;
        let domain = origin.domain();
        let mut mounts = Vec::new();
        for (id, tenant) in &self.tenants {
            if tenant.compiled().is_some() {
                continue;
            }
            let errors = self.errors_of(tenant);
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
                let (islands, secure) = (&self.islands, origin.is_secure());
                mounts.push(dev::nothing_yet(id, address, &errors, islands, secure));
            }
        }
        mounts
    }

    /// What is wrong with a tenant and with its theme; with all themes while it is unknown which is its own.
    fn errors_of(&self, tenant: &Tenant) -> Vec<Diagnostic> {
        let theme = tenant
            .site
            .as_ref()
            .map(|site| site.manifest.theme.as_str());
        let mut report = Report::default();
        report.extend(tenant.errors().cloned());
        report.extend(self.themes.report_of(theme).cloned());
        report
            .sorted()
            .into_iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .collect()
    }
}
