//! Renders a valid tenant with its theme and the islands, once for each of its addresses.
//!
//! 1. The tenant's files get their hashed names.
//! 2. Every page is rendered for every address: links, head, structured data, islands, codings.
//! 3. What the authors named is checked against what there is, with the ids that the rendered pages have.
//! 4. Each address becomes a [`Mount`] that the owner puts into a snapshot.
//!
//! **Invariant:** does no I/O and knows no socket. The same folders, in the same year, give the same bytes on any machine.

pub mod asset;
mod audit;
pub mod cache;
mod compress;
mod contrast;
pub mod dev;
mod former;
mod head;
mod island;
pub mod link;
mod markdown;
mod page;
pub mod picture;
pub mod policy;
mod progress;
mod reference;
mod script;
pub mod site_files;
mod speculation;
mod store;
mod structured;
mod stylesheet;
mod svg;
pub mod template;
mod view;
mod xml;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use rayon::prelude::*;

use content::address::{Address, Origin};
use content::name::TenantId;
use content::report::{Code, Diagnostic, Report};
use content::tenant::{MANIFEST, Site};
use release::snapshot::{Body, Mount, Moved, Resource, ResourceTable};

use asset::{ASSETS, Asset, is_compressible, media_type, tenant_asset, tenant_assets};
use audit::Seen;
use cache::Cache;
use compress::Level;
use link::{Deployment, Resolver};
use page::{Renderer, Special};
use picture::Picture;
use policy::Kind;
use reference::{Checker, Fragments};
use site_files::{Listing, SiteFiles};
use template::{Scope, Templates};

pub use audit::Orphan;
pub use former::{Whose, former, former_files};
pub use island::Islands;
pub use progress::Progress;
pub use reference::NeighbourLink;

/// What a tenant is compiled with.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// What all tenants share.
    pub deployment: Arc<Deployment>,
    /// The tenant's theme.
    pub templates: Arc<Templates>,
    /// The islands.
    pub islands: Arc<Islands>,
    /// What was worked out before.
    pub cache: Arc<Cache>,
    /// What this attempt is busy with.
    pub progress: Arc<Progress>,
}

/// A compiled tenant.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// One for each address.
    pub mounts: Vec<PlacedMount>,
    /// Links that only the owner of all tenants can check.
    pub neighbour_links: Vec<NeighbourLink>,
    /// Pages that none of its own leads to.
    pub orphans: Vec<Orphan>,
    /// The paths of its pages, and the ids within them.
    pub fragments: Arc<Fragments>,
    /// Its entries in the sitemap of its canonical host.
    pub listing: Arc<Listing>,
    /// What the owner has to draw for it.
    pub pictures: Vec<Picture>,
    /// What was worked out for it.
    pub cache: Arc<Cache>,
    /// How many pages it has.
    pub pages: usize,
}

/// A mount and the host it belongs to.
#[derive(Debug, Clone)]
pub struct PlacedMount {
    /// Where.
    pub address: Address,
    /// What.
    pub mount: Arc<Mount>,
}

/// The most bytes of HTML that the pages of one tenant may come to, over all its addresses: with what is compressed of it, and beside what it replaces, it fits into the memory of a small machine.
const MOST_HTML: usize = 96 << 20;

/// Compiles a tenant. The result is there when the report holds no error.
///
/// Its pages are rendered side by side where the caller runs on the threads of a pool.
#[must_use]
pub fn compile(site: &Site, addresses: &[Address], inputs: &Inputs) -> (Option<Compiled>, Report) {
    let mut report = Report::default();
    let assets = Arc::new(tenant_assets(site, &mut report));
    let Some(canonical) = addresses.first() else {
        // Somebody else has everything that it asked for, and the report says who.
        return (None, report);
    };
    let at_home = resolver(site, canonical, &inputs.deployment);
    let around = SiteFiles::new(site, &Scope::new(&at_home, &assets, inputs));
    report.extend(around.problem.clone());
    let mut mounts = Vec::with_capacity(addresses.len());
    let mut seen = BTreeMap::new();
    let html = AtomicUsize::new(0);
    for address in addresses {
        let renderer = Renderer::new(site, addresses, address, &assets, inputs, &around);
        let (mount, found, problems) = mount(&renderer, &assets, &around, &html);
        if html.load(Relaxed) > MOST_HTML {
            // Which pages were rendered hangs on the threads, and so does all that could be said of them.
            return (None, too_much_html(site, addresses.len()));
        }
        let is_endless = problems.iter().any(is_endless);
        // Templates fail in the same way at every address: once is enough.
        if address.canonical {
            report.extend(problems);
            seen = found;
        }
        mounts.push(PlacedMount {
            address: address.clone(),
            mount: Arc::new(mount),
        });
        if is_endless {
            // Most of its pages were never rendered, so that nothing can be said of their links.
            return (None, report.sorted());
        }
    }
    let mut fragments: Fragments = seen
        .iter_mut()
        .map(|(path, seen): (&String, &mut Seen)| (path.clone(), std::mem::take(&mut seen.ids)))
        .collect();
    let aliases = site.pages.values().flat_map(|page| {
        let ids = fragments.get(&page.path).cloned().unwrap_or_default();
        page.paths().map(move |path| (path.to_owned(), ids.clone()))
    });
    let aliases: Vec<_> = aliases.collect();
    fragments.extend(aliases);
    let linkable = around
        .paths()
        .map(|path| (path.to_owned(), BTreeSet::new()));
    fragments.extend(linkable);
    let mut checker = Checker {
        site,
        assets: &assets,
        templates: &inputs.templates,
        fragments: &fragments,
        known_missing: (site.manifest.known_missing.iter().rev())
            .map(|known| (known.link.as_str(), known.reason.as_str()))
            .collect(),
        report,
        neighbours: Vec::new(),
    };
    checker.check();
    checker.report.extend(store::check(site));
    let mut orphans = Vec::new();
    if checker.report.is_servable()
        && let Some(placed) = mounts.first()
    {
        let weights = |path: &str| {
            placed
                .mount
                .resources
                .get(path)
                .map(|page| audit::weight(page))
        };
        let prefix = &placed.address.prefix;
        let (found, alone) = audit::check(site, prefix, &seen, weights, inputs);
        checker.report.extend(found);
        orphans = alone;
    }
    let (report, neighbour_links) = (checker.report.sorted(), checker.neighbours);
    let compiled = report.is_servable().then(|| Compiled {
        pages: site.pages.len(),
        mounts,
        neighbour_links,
        orphans,
        fragments: Arc::new(fragments),
        pictures: around.pictures(addresses),
        cache: Arc::clone(&inputs.cache),
        listing: around.listing,
    });
    (compiled, report)
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
    around: &SiteFiles,
    html: &AtomicUsize,
) -> (Mount, BTreeMap<String, Seen>, Report) {
    let mut failures = Failures::default();
    for (diagnostic, file) in &around.failures {
        failures.add(diagnostic.clone(), renderer.site.name_of(file));
    }
    let mut resources = ResourceTable::new();
    around.put(renderer.site, &renderer.scope(), &mut resources);
    let mut seen = BTreeMap::new();
    let is_canonical = renderer.resolver.address.canonical;
    // The first page that used up all that it was allowed, in the order of pages: what is said must not hang on which thread was quicker.
    let exhausted = AtomicUsize::new(usize::MAX);
    let pages = side_by_side(renderer.site.pages.values().enumerate(), |(index, page)| {
        if index > exhausted.load(Relaxed) {
            return None;
        }
        let rendered = renderer.page(page);
        let length = rendered.as_ref().map_or(0, String::len);
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
    let pages = pages.into_iter().take(until).flatten();
    for (page, rendered) in pages {
        match rendered {
            Ok(html) => {
                if is_canonical {
                    seen.insert(page.path.clone(), audit::look(&html));
                }
                let noindex = page.front.noindex;
                let body = Arc::new(renderer.body(html, StatusCode::OK, noindex, Some(page)));
                for path in page.paths() {
                    resources.insert(path.into(), Arc::clone(&body));
                }
            }
            Err(diagnostic) => {
                seen.insert(page.path.clone(), Seen::default());
                failures.add(diagnostic, renderer.site.name_of(&page.file));
            }
        }
    }
    for asset in assets.values() {
        let path = format!("{ASSETS}{}", asset.hashed_name);
        resources.insert(path.into(), Arc::new(renderer.file(asset)));
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
    let mut special = |special: Special<'_>| {
        let status = special.status();
        let html = renderer.special(&special).unwrap_or_else(|diagnostic| {
            failures.add(diagnostic, format!("the page for status {status}"));
            String::new()
        });
        Arc::new(renderer.body(html, status, true, None))
    };
    let mut not_found: Vec<(Box<str>, Arc<Resource>)> = Vec::new();
    for page in renderer.site.pages.values().rev() {
        let words = page
            .front
            .collection
            .as_ref()
            .and_then(|collection| collection.not_found.as_ref());
        if let Some(words) = words {
            not_found.push((page.path.as_str().into(), special(Special::Entry(words))));
        }
    }
    not_found.push(("".into(), special(Special::NotFound)));
    let mount = Mount {
        tenant: renderer.site.id.shared(),
        prefix: renderer.resolver.address.prefix.as_str().into(),
        resources,
        not_found,
        method_not_allowed: special(Special::MethodNotAllowed),
        traffic: OnceLock::new(),
    };
    (mount, seen, failures.report())
}

/// What `work` makes of each, in order: on all threads of the pool that the caller runs on, or on the caller's own.
fn side_by_side<T: Send, R: Send>(
    items: impl Iterator<Item = T>,
    work: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    if rayon::current_thread_index().is_none() {
        return items.map(work).collect();
    }
    let items: Vec<T> = items.collect();
    items.into_par_iter().map(work).collect()
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

/// A file as a resource.
fn file(
    asset: &Asset,
    (kind, media_type): (Kind, &str),
    secure: bool,
    level: Level,
    cache: &Cache,
) -> Resource {
    Resource::Body(Body {
        status: StatusCode::OK,
        fields: policy::fields(&kind, media_type, secure),
        cache_tag: None,
        variants: compress::kept_variants(
            asset.bytes.clone(),
            is_compressible(media_type),
            level,
            cache,
        ),
    })
}

/// The files that every host serves: the themes' and the islands'.
#[must_use]
pub fn shared(
    themes: &[Arc<Templates>],
    islands: &Islands,
    secure: bool,
    cache: &Cache,
) -> ResourceTable {
    let assets: Vec<Asset> = themes
        .iter()
        .flat_map(|templates| {
            let assets = &templates.assets;
            assets.files.values().chain(&assets.stylesheet)
        })
        .cloned()
        .collect();
    let mut table = shared_files(&assets, secure, cache);
    table.extend(shared_files(&[speculation::rules().clone()], secure, cache));
    table.extend(
        islands
            .files
            .iter()
            .map(|(path, resource)| (path.clone(), Arc::clone(resource))),
    );
    table
}

/// Files by path, compressed as small as they get.
fn shared_files(assets: &[Asset], secure: bool, cache: &Cache) -> ResourceTable {
    assets
        .par_iter()
        .map(|asset| {
            let path = format!("{ASSETS}{}", asset.hashed_name);
            let kind = (Kind::Immutable, media_type(&asset.hashed_name));
            let resource = file(asset, kind, secure, Level::Shared, cache);
            (path.into_boxed_str(), Arc::new(resource))
        })
        .collect()
}

/// What a host that nobody has answers: no tenant's page and no name of any.
#[must_use]
pub fn unknown_host(secure: bool) -> Arc<Resource> {
    let media_type = "text/plain; charset=utf-8";
    Arc::new(Resource::Body(Body {
        status: StatusCode::MISDIRECTED_REQUEST,
        fields: policy::fields(&Kind::Plain, media_type, secure),
        cache_tag: None,
        variants: compress::variants(
            Bytes::from_static(b"No site answers under this name.\n"),
            false,
            Level::Page,
        ),
    }))
}

/// The root tenant's social image, which stands in for those that others do not have.
#[must_use]
pub fn default_image(root: &Site, origin: &Origin) -> Option<String> {
    let path = root.manifest.image.as_ref()?.as_str();
    let (asset, _) = tenant_asset(path, root.assets.get(path)?, path);
    Some(format!("{origin}{ASSETS}{}", asset.hashed_name))
}

/// A permanent move to another origin, which is this tenant's.
#[must_use]
pub fn moved_to(origin: &Origin, tenant: Option<&TenantId>) -> Option<Moved> {
    let cache_tag = tenant.and_then(|tenant| HeaderValue::from_str(tenant.as_str()).ok());
    let origin = HeaderValue::from_str(&origin.to_string()).ok()?;
    Some(Moved { origin, cache_tag })
}

/// The resolver of a tenant at one of its addresses.
#[must_use]
pub fn resolver(site: &Site, address: &Address, deployment: &Arc<Deployment>) -> Resolver {
    Resolver {
        deployment: Arc::clone(deployment),
        tenant: site.id.clone(),
        address: address.clone(),
    }
}
