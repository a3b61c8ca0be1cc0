//! What can only be said of all tenants together: links between them, and pages that none of them leads to.

use std::collections::BTreeSet;

use crate::runner::registry::Registry;
use crate::runner::tenant::failure;
use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report, hint_for};

impl Registry {
    /// Everything that can only be said of all together.
    pub(crate) fn cross_tenant(&self) -> Report {
        let mut report = Report::default();
        let label = self.places.tenants.display().to_string();
        let links = || self.neighbour_links();
        report.extend(guard("neighbour links", "all", &label, links).unwrap_or_else(failure));
        let orphans = || self.orphans();
        report.extend(
            guard("orphans", "all", &label, orphans).unwrap_or_else(|diagnostic| vec![diagnostic]),
        );
        report
    }

    /// Pages that nothing leads to, neither their own tenant nor another.
    fn orphans(&self) -> Vec<Diagnostic> {
        let compiled = || {
            self.tenants
                .iter()
                .filter_map(|(id, tenant)| Some((id, tenant.compiled()?)))
        };
        let linked: BTreeSet<(&str, &str)> = compiled()
            .flat_map(|(_, compiled)| &compiled.neighbour_links)
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

    /// Links between tenants, held against what each of them has now.
    fn neighbour_links(&self) -> Report {
        let mut all = Report::default();
        for compiled in self.tenants.values().filter_map(|tenant| tenant.compiled()) {
            let mut found = Report::default();
            for link in &compiled.neighbour_links {
                let tenant = self.tenants.get(link.tenant.as_str());
                let neighbour = tenant.map(|tenant| tenant.compiled());
                let code = match neighbour {
                    None => Code::UnknownTenant,
                    Some(Some(neighbour)) if !neighbour.has(&link.path) => {
                        Code::BrokenNeighbourLink
                    }
                    // A neighbour that is not served now has its own errors in the report.
                    Some(_) => continue,
                };
                let diagnostic = &link.diagnostic;
                found.add(diagnostic.severity, code, &diagnostic.file, || {
                    let (message, hint) = match neighbour.flatten() {
                        None => (
                            format!("there is no tenant `{}`", link.tenant),
                            hint_for(&link.tenant, self.tenants.keys().map(TenantId::as_str)),
                        ),
                        Some(neighbour) => (
                            format!("the tenant `{}` has no page `{}`", link.tenant, link.path),
                            hint_for(&link.path, neighbour.paths.iter().map(AsRef::as_ref)),
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
}
