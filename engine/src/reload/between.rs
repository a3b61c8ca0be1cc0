//! What can only be said of all tenants together: links between them, and pages that none of them leads to.

use std::collections::BTreeSet;

use super::Estate;
use crate::name::TenantId;
use crate::report::{Code, Diagnostic, hint_for};

impl Estate {
    /// Pages that nothing leads to, neither their own tenant nor another.
    pub(super) fn orphans(&self) -> Vec<Diagnostic> {
        let compiled = || {
            self.tenants
                .iter()
                .filter_map(|(id, tenant)| Some((id, tenant.compiled.as_ref()?)))
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
    pub(super) fn neighbour_links(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for compiled in self
            .tenants
            .values()
            .filter_map(|tenant| tenant.compiled.as_ref())
        {
            for link in &compiled.neighbour_links {
                let tenant = self.tenants.get(link.tenant.as_str());
                let neighbour = tenant.map(|tenant| tenant.compiled.as_ref());
                let (code, message, hint) = match neighbour {
                    None => (
                        Code::UnknownTenant,
                        format!("there is no tenant `{}`", link.tenant),
                        hint_for(&link.tenant, self.tenants.keys().map(TenantId::as_str)),
                    ),
                    Some(Some(neighbour)) if !neighbour.fragments.contains_key(&link.path) => (
                        Code::BrokenNeighbourLink,
                        format!("the tenant `{}` has no page `{}`", link.tenant, link.path),
                        hint_for(&link.path, neighbour.fragments.keys().map(String::as_str)),
                    ),
                    // A neighbour that is not served now has its own mistakes in the report.
                    Some(_) => continue,
                };
                found.push(Diagnostic {
                    code,
                    message,
                    hint: Some(hint),
                    ..link.diagnostic.clone()
                });
            }
        }
        found
    }
}
