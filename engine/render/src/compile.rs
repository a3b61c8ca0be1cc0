//! Renders a tenant for each of its addresses.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use http::{HeaderValue, StatusCode};

use super::asset::{ASSETS, Asset};
use super::compiled::{Compiled, PlacedMount};
use super::files::{elsewhere, stand_ins};
use super::gallery;
use super::inputs::Inputs;
use super::link::{Resolver, below};
use super::lints;
use super::page::{Renderer, Special, Written};
use super::parallel::side_by_side;
use super::picture::variant::Variant;
use super::picture::{Picture, keep_drawn};
use super::prepare::prepare;
use super::site_files::SiteFiles;
use content::address::Address;
use content::report::{Code, Diagnostic, Report};
use content::tenant::assets::{file_of, named};
use content::tenant::{MANIFEST, Page, Site};
use release::snapshot::{Mount, Pages, Resource, ResourceTable, Slot};

/// The most bytes of HTML that the pages of one tenant may come to, over all its addresses: with what is compressed of it, and beside what it replaces, it fits into the memory of a small machine.
const MOST_HTML: usize = 96 << 20;

/// Compiles a tenant. The result is there when the report holds no error.
///
/// Its pages are rendered side by side where the caller runs on the threads of a pool.
#[must_use]
pub fn compile(site: &Site, addresses: &[Address], inputs: &Inputs) -> (Option<Compiled>, Report) {
    let mut report = Report::default();
    let prepared = prepare(site, &inputs.templates, &mut report);
    let Some(prepared) = prepared.map(Arc::new) else {
        return (None, report.sorted());
    };
    let assets = &prepared.assets;
    let Some(canonical) = addresses.first() else {
        // Somebody else has everything that it asked for, and the report says who.
        return (None, report);
    };
    let at_home = Resolver::new(site, canonical, &inputs.deployment);
    let site_files = SiteFiles::new(site, &inputs.scope(site, at_home, &prepared));
    report.extend(site_files.problem.clone());
    let mut mounts = Vec::with_capacity(addresses.len());
    let html = AtomicUsize::new(0);
    for address in addresses {
        let renderer = Renderer::new(site, addresses, address, &prepared, inputs, &site_files);
        let (mount, problems) = mount(&renderer, assets, &site_files, &html);
        if html.load(Relaxed) > MOST_HTML {
            // Which pages were rendered hangs on the threads, and so does all that could be said of them.
            return (None, too_much_html(site, addresses.len()));
        }
        let is_endless = problems.iter().any(is_endless);
        // Templates fail in the same way at every address: once is enough.
        if address.canonical {
            report.extend(problems);
        }
        mounts.push(PlacedMount {
            address: address.clone(),
            mount: Arc::new(mount),
            uncoded: None,
        });
        if is_endless {
            // Most of its pages were never rendered, so that nothing can be said of their links.
            return (None, report.sorted());
        }
    }
    let Some(at_canonical) = mounts.first() else {
        return (None, report);
    };
    let downloads = site.manifest.downloads().map(|(path, _)| path);
    let findings = lints::check(
        site,
        &prepared,
        inputs,
        site_files.paths().map(ToOwned::to_owned).chain(downloads),
        at_canonical,
        report,
    );
    let report = findings.report;
    let pictures: Vec<Picture> = site_files
        .pictures(addresses)
        .into_iter()
        .chain(variants(site, assets, addresses))
        .collect();
    keep_drawn(&pictures, &inputs.cache);
    let compiled = report.is_servable().then(|| Compiled {
        pages: site.pages.len(),
        mounts,
        is_rendered: true,
        neighbour_links: findings.neighbour_links,
        orphans: findings.orphans,
        paths: findings.paths.into(),
        pictures,
        cache: Arc::clone(&inputs.cache),
        listing: site_files.listing,
    });
    (compiled, report)
}

/// The sizes of the pictures that pages show, at every address.
fn variants(site: &Site, assets: &BTreeMap<String, Asset>, addresses: &[Address]) -> Vec<Picture> {
    let shown = assets.iter().filter(|(_, asset)| is_in_sizes(asset));
    let sizes = shown.flat_map(|(key, asset)| {
        let file = site.name_of(&file_of(key));
        Variant::all(asset)
            .map(move |size| (size.file_name(), Arc::new(size.drawing(file.clone()))))
    });
    let sizes: Vec<_> = sizes.collect();
    let at = |address: &Address| {
        let (host, prefix) = (address.host.clone(), address.prefix.clone());
        let sizes = sizes.iter();
        sizes.map(move |(name, drawing)| Picture {
            host: host.clone(),
            path: below(&prefix, &format!("{ASSETS}{name}")),
            drawing: Arc::clone(drawing),
        })
    };
    addresses.iter().flat_map(at).collect()
}

fn is_in_sizes(asset: &Asset) -> bool {
    asset
        .raster
        .as_ref()
        .is_some_and(|raster| raster.is_shown())
}

fn too_much_html(site: &Site, addresses: usize) -> Report {
    let message = format!(
        "the pages come to more than {} MiB of HTML at {addresses} addresses",
        MOST_HTML >> 20
    );
    let diagnostic = Diagnostic::error(Code::TooLarge, site.name_of(MANIFEST), message)
        .hint("make several tenants of it, or take out `aliases` and `hosts`: every address has its own pages");
    let mut report = Report::default();
    report.push(diagnostic);
    report
}

/// Renders everything for one address, and adds the bytes of its pages to `html`. Where these are too many, it ends early.
fn mount(
    renderer: &Renderer<'_>,
    assets: &BTreeMap<String, Asset>,
    site_files: &SiteFiles,
    html: &AtomicUsize,
) -> (Mount, Report) {
    let mut failures = Failures::default();
    for (diagnostic, file) in &site_files.failures {
        failures.add(diagnostic.clone(), renderer.site.name_of(file));
    }
    let mut resources = ResourceTable::new();
    site_files.put(renderer.site, &renderer.scope(), &mut resources);
    // The first page that used up all that it was allowed, in the order of pages: what is said must not hang on which thread was quicker.
    let exhausted = AtomicUsize::new(usize::MAX);
    let pages = side_by_side(renderer.site.pages.values().enumerate(), |(index, page)| {
        if index > exhausted.load(Relaxed) {
            return None;
        }
        let rendered = renderer.page(page);
        let length = rendered.as_ref().map_or(0, |page| page.html.len());
        let is_too_much = html.fetch_add(length, Relaxed) + length > MOST_HTML;
        if rendered.as_ref().is_err_and(is_endless) || is_too_much {
            exhausted.fetch_min(index, Relaxed);
        }
        Some((page, rendered))
    });
    let until = match html.load(Relaxed) > MOST_HTML {
        // Nothing of it is used.
        true => 0,
        false => exhausted.into_inner().saturating_add(1),
    };
    let mut written: Vec<(&Page, Written)> = Vec::new();
    for (page, rendered) in pages.into_iter().take(until).flatten() {
        match rendered {
            Ok(html) => written.push((page, html)),
            Err(diagnostic) => failures.add(diagnostic, renderer.site.name_of(&page.file)),
        }
    }
    let mut special = |special: Special<'_>| {
        let status = special.status();
        let html = renderer.special(&special);
        let html = html.map_err(|diagnostic| {
            failures.add(diagnostic, format!("the page for status {status}"));
        });
        (status, html.unwrap_or_default())
    };
    let mut not_found: Vec<(Box<str>, (StatusCode, Written))> = Vec::new();
    for page in renderer.site.pages.values().rev() {
        let words = page
            .front
            .collection
            .as_ref()
            .and_then(|collection| collection.not_found.as_ref());
        if let Some(words) = words {
            not_found.push((
                page.path.as_str().into(),
                special(Special::Entry(page, words)),
            ));
        }
    }
    not_found.push(("".into(), special(Special::NotFound)));
    let refused = special(Special::MethodNotAllowed);

    let specials = not_found.iter().map(|(_, (_, html))| html);
    let all = written.iter().map(|(_, html)| html).chain(specials);
    let all = all.chain([&refused.1]);
    let drawings = all.clone().filter_map(|page| page.drawings.as_ref());
    resources.extend(drawings.map(|file| renderer.at_its_name(file)));
    let styles = all.map(|html| html.style.clone());
    let fields = renderer.fields(&styles.filter(|style| !style.is_empty()).collect());
    for (page, Written { html, .. }) in written {
        let body = Arc::new(renderer.body(html, StatusCode::OK, &fields, Some(page)));
        for path in page.paths() {
            resources.insert(path.into(), Arc::clone(&body));
        }
    }
    let special = |(status, Written { html, .. }): (StatusCode, Written)| {
        Arc::new(renderer.body(html, status, &fields, None))
    };
    if renderer.is_dev() {
        gallery::put(renderer, &mut resources);
    }
    for asset in assets.values() {
        resources.extend([renderer.at_its_name(asset)]);
        resources.extend(stand_ins(asset).filter(|_| is_in_sizes(asset)));
    }
    redirects(renderer, assets, &mut resources);
    let mount = Mount {
        tenant: renderer.site.id.shared(),
        prefix: renderer.resolver.address.prefix.as_str().into(),
        pages: Slot::from(Pages {
            resources,
            not_found: not_found
                .into_iter()
                .map(|(area, page)| (area, special(page)))
                .collect(),
            method_not_allowed: special(refused),
        }),
        traffic: OnceLock::new(),
    };
    (mount, failures.report())
}

/// What leads elsewhere: downloads to the newest file, redirects to their targets.
fn redirects(
    renderer: &Renderer<'_>,
    assets: &BTreeMap<String, Asset>,
    resources: &mut ResourceTable,
) {
    for (path, file) in renderer.site.manifest.downloads() {
        let named = named(assets, file.as_str(), MANIFEST);
        let location = named.map(|(_, asset)| renderer.resolver.asset(asset));
        if let Some(Ok(location)) = location.map(|location| HeaderValue::from_str(&location)) {
            resources.insert(path.into(), Arc::new(elsewhere(location)));
        }
    }
    for redirect in &renderer.site.manifest.redirects {
        let target = renderer.resolver.location(redirect.to.as_str());
        if let Ok(location) = HeaderValue::from_str(&target) {
            resources.insert(
                redirect.from.as_str().into(),
                Arc::new(Resource::Redirect(location)),
            );
        }
    }
}

/// Whether something used up all that it was allowed. It would do so on every page, which takes long and tells nothing more.
fn is_endless(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code, Code::TooLarge | Code::IslandFailed)
}

/// Templates that failed. One error in a theme often fails on every page: it is said once, with the first page.
#[derive(Default)]
struct Failures(BTreeMap<Diagnostic, Vec<String>>);

impl Failures {
    fn add(&mut self, diagnostic: Diagnostic, page: String) {
        self.0.entry(diagnostic).or_default().push(page);
    }

    fn report(self) -> Report {
        let mut report = Report::default();
        report.extend(self.0.into_iter().map(|(diagnostic, pages)| {
            let first = pages.first().map_or("", String::as_str);
            let others = match pages.len() {
                0 | 1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            Diagnostic {
                message: format!("{} (rendering `{first}`{others})", diagnostic.message),
                ..diagnostic
            }
        }));
        report
    }
}
