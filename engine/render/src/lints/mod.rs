//! Lints: diagnostics about finished pages. Links and names without a target are errors; lapses of quality are warnings.
//!
//! | module | checks |
//! |---|---|
//! | [`links`] | everything that an author names exists: pages, fragments, files, SVGs, layouts |
//! | [`logo`] | visitors can read the logo of the header |
//! | [`contrast`] | text has enough contrast |
//! | [`app_store`] | the requirements of app stores |
//! | [`pages`] | titles, descriptions, headings, alt texts, pages that no page links to |
//! | [`page_weight`] | the bytes that a visitor loads |
//! | [`redirects`] | redirects end, after one step where the target is known |
//!
//! [`page_facts`] collects the facts from the HTML, and [`at_key`] places a warning in the front matter.
//!
//! **Invariant:** changes no byte of a page, and knows no template. The lints see the bytes that visitors get at the canonical address.

mod app_store;
pub(crate) mod at_key;
mod contrast;
pub(crate) mod links;
mod logo;
mod page_facts;
mod page_weight;
pub(crate) mod pages;
mod redirects;

use std::collections::{BTreeMap, BTreeSet};

use self::links::{Checker, CrossTenantLink, Fragments};
use self::page_facts::PageFacts;
use self::pages::OrphanPage;
use crate::compile::compiled_tenant::AddressMount;
use crate::compile::inputs::CompileInputs;
use crate::compile::prepared_tenant::PreparedTenant;
use content::report::{Code, Diagnostic, Report};
use content::tenant::Site;
use content::tenant::assets::file_of;
use content::tenant::manifest::Redirect;
use release::snapshot::{Body, Resource};

/// The results of the lints.
pub(crate) struct PageFindings {
    /// The diagnostics of the compilation and of the lints.
    pub(crate) report: Report,
    /// Links that only the supervisor can check.
    pub(crate) cross_tenant_links: Vec<CrossTenantLink>,
    /// Pages that no page of the tenant links to.
    pub(crate) orphans: Vec<OrphanPage>,
    /// The paths that other tenants may link to, sorted.
    pub(crate) paths: Box<[Box<str>]>,
}

/// Checks a tenant's pages at its canonical address. `files` are paths of other resources that authors may link to.
pub(crate) fn check(
    site: &Site,
    prepared: &PreparedTenant,
    inputs: &CompileInputs,
    files: impl Iterator<Item = String>,
    canonical: &AddressMount,
    report: Report,
) -> PageFindings {
    let mount = &canonical.mount;
    let pages = site.pages.values();
    // Nothing is known about a page that failed to render.
    let seen: BTreeMap<String, PageFacts> = pages
        .filter_map(|page| {
            let resource = mount.resource(&page.path)?;
            Some((page.path.clone(), facts_of(resource)))
        })
        .collect();
    let mut fragments = Fragments::new();
    for page in site.pages.values() {
        let ids = seen.get(&page.path).map(|seen| seen.ids.clone());
        fragments.extend(page.paths().map(|path| (path.to_owned(), ids.clone())));
    }
    fragments.extend(files.map(|path| (path, Some(BTreeSet::new()))));
    let redirects = site.manifest.redirects.iter();
    let moved = redirects.filter_map(Redirect::own_path).collect();
    let mut checker = Checker {
        site,
        content: &prepared.content,
        assets: &prepared.assets,
        company: inputs.deployment.company.as_ref(),
        is_shown: (inputs.deployment.sites.iter()).any(|card| card.tenant == site.id.as_str()),
        templates: &inputs.templates,
        fragments: &fragments,
        repeated: (seen.iter())
            .map(|(path, seen)| (path.as_str(), &seen.repeated))
            .collect(),
        moved: &moved,
        known_missing: (site.manifest.known_missing.iter().rev())
            .map(|known| (known.link.as_str(), known.reason.as_str()))
            .collect(),
        report,
        cross_tenant_links: Vec::new(),
        reported: BTreeSet::new(),
    };
    checker.check();
    let (mut report, cross_tenant_links) = (checker.report, checker.cross_tenant_links);
    redirects::check(site, mount, &mut report);
    report.extend(contrast::check(site, prepared, &inputs.templates.theme));
    let has_company = inputs.deployment.company.is_some();
    report.extend(app_store::check(site, prepared, &seen, has_company));
    let mut orphans = Vec::new();
    // Warnings about quality come only once the errors are fixed.
    if report.is_servable() {
        let (found, alone) = pages::check(site, mount, &seen, inputs);
        report.extend(found);
        report.extend(unused(site, prepared));
        orphans = alone;
    }
    PageFindings {
        report: report.sorted(),
        cross_tenant_links,
        orphans,
        paths: fragments.into_keys().map(String::into_boxed_str).collect(),
    }
}

/// Returns a warning for each file that nothing refers to.
fn unused(site: &Site, prepared: &PreparedTenant) -> Vec<Diagnostic> {
    let unused = prepared.assets.iter().filter(|(_, asset)| !asset.is_used());
    let warnings = unused.map(|(key, _)| {
        let message = "the file is not used";
        let hint = "remove the file, use it in a page, or list it under `downloads:` or `files:`";
        Diagnostic::warning(Code::UnusedAsset, site.name_of(&file_of(key)), message).hint(hint)
    });
    warnings.collect()
}

/// Collects the facts of a page from its uncompressed body.
fn facts_of(resource: &Resource) -> PageFacts {
    let plain = match resource {
        Resource::Body(Body { variants, .. }) => variants.identity(),
        Resource::Redirect(_) => None,
    };
    let html = plain.and_then(|plain| std::str::from_utf8(plain.bytes.in_memory()?).ok());
    html.map_or_else(PageFacts::default, page_facts::collect)
}
