//! Renders a tenant, and puts it at each of its addresses.

pub(crate) mod cache;
pub(crate) mod compiled_tenant;
pub(crate) mod inputs;
pub(crate) mod parallel;
pub(crate) mod pending_tenant;
pub(crate) mod persisted_tenant;
pub(crate) mod prepare;
pub(crate) mod prepared_tenant;
pub(crate) mod site_card;
pub(crate) mod watchdog;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use http::{HeaderValue, StatusCode};

use super::lints;
use super::site_files::SiteFiles;
use crate::compile::compiled_tenant::{AddressMount, CompiledTenant};
use crate::compile::inputs::CompileInputs;
use crate::compile::prepare::prepare;
use crate::images::image_variant::ImageVariant;
use crate::images::{GeneratedImage, reuse_cached};
use crate::pages::gallery;
use crate::pages::links::resolver::{Resolver, below};
use crate::pages::page::{RenderedPage, Renderer};
use crate::pages::rendered_pages::{RenderError, RenderedPages};
use crate::resources::asset::{ASSETS, Asset};
use crate::resources::file_resource::{fallback_resources, temporary_redirect};
use content::address::Address;
use content::report::{Code, Diagnostic, Report, Severity};
use content::tenant::assets::{file_of, named};
use content::tenant::manifest::QueryValue;
use content::tenant::{MANIFEST, Site};
use release::snapshot::redirects::{
    QueryCondition, RedirectAction, RedirectRule, RedirectTable, RedirectTarget,
};
use release::snapshot::{Mount, MountPages, ResourceTable, Resources, Slot};

/// Limit on the HTML of one tenant's pages over all its addresses, in bytes.
///
/// Together with the compressed copies and the previous release it fits into the memory of a small machine.
const MAX_HTML_BYTES: usize = 96 << 20;

/// Compiles a tenant. Returns the result if the report holds no error.
///
/// Pages are rendered in parallel if the caller runs on a thread of a pool.
#[must_use]
pub fn compile(
    site: &Site,
    addresses: &[Address],
    inputs: &CompileInputs,
) -> (Option<CompiledTenant>, Report) {
    let mut report = Report::default();
    let prepared = prepare(site, &inputs.templates, &mut report);
    let Some(prepared) = prepared.map(Arc::new) else {
        return (None, report.sorted());
    };
    let assets = &prepared.assets;
    let Some(canonical) = addresses.first() else {
        // Other tenants hold every address that this tenant claims; the report already names them.
        return (None, report);
    };
    let at_home = Resolver::at(site, canonical, &inputs.deployment);
    let scopes = inputs.scopes(site, &at_home.with_assets(assets), &prepared);
    let site_files = SiteFiles::new(site, &scopes, canonical);
    report.extend(site_files.problem.clone());
    report.extend(site_files.warnings.clone());
    let renderer = Renderer::new(site, canonical, &prepared, inputs, &site_files);
    let rendered = match RenderedPages::render(&renderer, MAX_HTML_BYTES / addresses.len()) {
        Ok((rendered, failures)) => {
            report.extend(failures);
            rendered
        }
        Err(RenderError::TooMuch) => return (None, too_much_html(site, addresses.len())),
        Err(RenderError::Endless(failures)) => {
            report.extend(failures);
            return (None, report.sorted());
        }
    };
    let styles = rendered.styles();
    let files = Arc::new(files(&renderer, &rendered));
    let mounts: Vec<AddressMount> = addresses
        .iter()
        .map(|address| AddressMount {
            address: address.clone(),
            mount: Arc::new(mount(&renderer, &rendered, &styles, &files, address)),
            uncompressed: None,
        })
        .collect();
    drop(rendered);
    let Some(at_canonical) = mounts.first() else {
        return (None, report);
    };
    let downloads = site.manifest.downloads().map(|(path, _)| path);
    let examples = gallery::example_paths(&inputs.templates.theme, &inputs.deployment);
    let findings = lints::check(
        site,
        &prepared,
        inputs,
        site_files
            .paths()
            .map(ToOwned::to_owned)
            .chain(downloads)
            .chain(examples),
        at_canonical,
        report,
    );
    let mut report = findings.report;
    let is_missing =
        |found: &Diagnostic| (found.severity, found.code) == (Severity::Error, Code::MissingAsset);
    if report.iter().any(is_missing) {
        // A template that gets no file fails, too. The author can only add the file.
        report.retain(|found| found.code != Code::TemplateFailed);
    }
    let images: Vec<GeneratedImage> = site_files
        .images(addresses)
        .into_iter()
        .chain(variants(site, assets, addresses))
        .collect();
    reuse_cached(&images, &inputs.cache);
    let compiled = report.is_servable().then(|| CompiledTenant {
        pages: site.pages.len(),
        mounts,
        is_rendered: true,
        cross_tenant_links: findings.cross_tenant_links,
        orphans: findings.orphans,
        paths: findings.paths.into(),
        images,
        cache: Arc::clone(&inputs.cache),
        listing: site_files.listing,
    });
    (compiled, report)
}

/// Returns the variants of the images that pages show, in all sizes and at every address.
fn variants(
    site: &Site,
    assets: &BTreeMap<String, Asset>,
    addresses: &[Address],
) -> Vec<GeneratedImage> {
    let shown = assets.iter().filter(|(_, asset)| has_shown_variants(asset));
    let sizes = shown.flat_map(|(key, asset)| {
        let file = site.name_of(&file_of(key));
        ImageVariant::all(asset)
            .map(move |size| (size.file_name(), Arc::new(size.spec(file.clone()))))
    });
    let sizes: Vec<_> = sizes.collect();
    let at = |address: &Address| {
        let (host, prefix) = (address.host.clone(), address.prefix.clone());
        let sizes = sizes.iter();
        sizes.map(move |(name, spec)| GeneratedImage {
            host: host.clone(),
            path: below(&prefix, &format!("{ASSETS}{name}")),
            spec: Arc::clone(spec),
        })
    };
    addresses.iter().flat_map(at).collect()
}

fn has_shown_variants(asset: &Asset) -> bool {
    asset
        .raster
        .as_ref()
        .is_some_and(|raster| raster.is_shown())
}

fn too_much_html(site: &Site, addresses: usize) -> Report {
    let message = format!(
        "the tenant has more than {} MiB of HTML at {addresses} addresses",
        MAX_HTML_BYTES >> 20
    );
    let diagnostic = Diagnostic::error(Code::TooLarge, site.name_of(MANIFEST), message)
        .hint("split the tenant, or remove `aliases` and `hosts`; each address has its own copy of the pages");
    let mut report = Report::default();
    report.push(diagnostic);
    report
}

/// Returns the tenant's files, which are the same at all its addresses.
fn files(renderer: &Renderer<'_>, rendered: &RenderedPages<'_>) -> ResourceTable {
    let mut files = ResourceTable::new();
    files.extend(
        rendered
            .svg_files()
            .map(|file| renderer.file_with_path(file)),
    );
    for asset in renderer.resolver.assets.values() {
        files.extend([renderer.file_with_path(asset)]);
        files.extend(fallback_resources(asset).filter(|_| has_shown_variants(asset)));
    }
    files
}

/// Builds the mount with everything that the tenant serves at one of its addresses.
fn mount(
    renderer: &Renderer<'_>,
    rendered: &RenderedPages<'_>,
    styles: &BTreeSet<String>,
    files: &Arc<ResourceTable>,
    address: &Address,
) -> Mount {
    let scopes = renderer.scopes_at(address);
    let resolver = &scopes[0].resolver;
    let mut resources = ResourceTable::new();
    renderer
        .site_files
        .add_to(renderer.site, &scopes, &mut resources);
    let fields = renderer.fields(styles, address);
    let body = |status, html: &str, page| {
        let html = resolver.place.replace_marks(html);
        Arc::new(renderer.body(html, status, &fields, page))
    };
    for (page, RenderedPage { html, .. }) in &rendered.pages {
        let body = body(StatusCode::OK, html, Some(*page));
        for path in page.paths() {
            resources.insert(path.into(), Arc::clone(&body));
        }
    }
    for (path, RenderedPage { html, style, .. }) in &rendered.gallery {
        // A page of the tenant at the same path takes precedence.
        let shown = || gallery::body(resolver.place.replace_marks(html), style, renderer);
        let entry = resources.entry(path.as_str().into());
        entry.or_insert_with(|| Arc::new(shown()));
    }
    downloads(renderer.site, resolver, &mut resources);
    let errors = |pages: &[(Box<str>, StatusCode, RenderedPage)]| {
        let body = |(area, status, page): &(Box<str>, StatusCode, RenderedPage)| {
            (area.clone(), body(*status, &page.html, None))
        };
        pages.iter().map(body).collect()
    };
    Mount {
        tenant: renderer.site.id.shared(),
        prefix: address.prefix.as_str().into(),
        pages: Slot::from(MountPages {
            resources: Resources::new(resources, Arc::clone(files)),
            redirects: Arc::new(redirects(renderer.site, resolver)),
            not_found: errors(&rendered.not_found),
            method_not_allowed: errors(&rendered.refused),
        }),
        traffic: OnceLock::new(),
    }
}

/// Adds the redirects from downloads to their newest file.
fn downloads(site: &Site, resolver: &Resolver, resources: &mut ResourceTable) {
    for (path, file) in site.manifest.downloads() {
        let named = named(&resolver.assets, file.as_str(), MANIFEST);
        let location = named.map(|(_, asset)| resolver.asset(asset));
        if let Some(Ok(location)) = location.map(|location| HeaderValue::from_str(&location)) {
            resources.insert(path.into(), Arc::new(temporary_redirect(location)));
        }
    }
}

/// Returns the redirects of the manifest, with their targets at one address.
fn redirects(site: &Site, resolver: &Resolver) -> RedirectTable {
    let rules = site.manifest.redirects.iter().filter_map(|redirect| {
        let old = redirect.old_path();
        let status = StatusCode::from_u16(redirect.status.code()).ok()?;
        let action = match &redirect.to {
            Some(to) => RedirectAction::Redirect {
                status,
                target: RedirectTarget::new(&resolver.location(to.as_str()), old.is_wildcard)?,
            },
            None => RedirectAction::Gone,
        };
        let condition = |(name, value): (&String, &QueryValue)| QueryCondition {
            name: name.as_str().into(),
            value: value.as_str().into(),
        };
        Some(RedirectRule {
            path: old.path.into(),
            is_wildcard: old.is_wildcard,
            conditions: redirect.query.iter().map(condition).collect(),
            action,
        })
    });
    RedirectTable::new(rules.collect())
}
