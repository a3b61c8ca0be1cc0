//! Generated files beside the pages, for search engines, feed readers, browsers and app stores.
//!
//! | module | files | served by |
//! |---|---|---|
//! | [`feed`] | Atom feeds of collections | a tenant, at every address |
//! | this module | texts listed in the manifest | a tenant, on its own hosts |
//! | [`association`] | the association of a host with an app | a tenant, on its own hosts |
//! | [`host`] | `/robots.txt`, `/sitemap.xml`, `/.well-known/security.txt` | a host |
//! | [`search`] | `/search.json`, `/de/search.json` | a tenant, at every address |
//! | [`sitemap`] | the tenant's entries in its host's sitemap | |
//! | [`webmanifest`] | `/site.webmanifest`, `/de/site.webmanifest` | a tenant, at every address |
//!
//! A tenant's files are made when it is compiled. The supervisor makes a host's files from its tenants' entries, and only when an entry changes.
//!
//! **Invariant:** knows no layout and no page's HTML.

mod association;
mod feed;
mod host;
mod search;
mod sitemap;
mod webmanifest;
pub(crate) mod xml;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;

use crate::images::icon::Icons;
use crate::images::{GeneratedImage, ImageSpec, social_image};
use crate::pages::links::resolver::below;
use crate::resources::asset::ASSETS;
use crate::resources::file_resource::plain_file;
use crate::theme::PageScope;
use content::address::Address;
use content::formats::values::TenantFile;
use content::name::reserved::{FAVICON, SEARCH, TOUCH_ICON, WEB_MANIFEST};
use content::report::{Diagnostic, Report};
use content::tenant::{MANIFEST, Site, assets};
use release::snapshot::{Resource, ResourceTable};

pub(super) use feed::Feed;
pub use host::{HostFacts, host_files};
use search::SearchIndex;
pub use sitemap::Listing;
pub(crate) use sitemap::listing;

/// A tenant's generated files, made once for all its addresses.
pub(super) struct SiteFiles {
    /// Its entries in its host's sitemap.
    pub(super) listing: Arc<Listing>,
    /// Its icon.
    pub(super) icons: Option<Icons>,
    /// The social images of its pages, by page path.
    pub(super) social: BTreeMap<String, Arc<ImageSpec>>,
    /// Social images whose template failed, each with the file of the page.
    pub(super) failures: Vec<(Diagnostic, String)>,
    /// Warnings about the social images.
    pub(super) warnings: Report,
    /// The error if drawing the icon takes too much work.
    pub(super) problem: Option<Diagnostic>,
    ground: Option<String>,
    /// The search index of each language.
    search: Vec<Option<SearchIndex>>,
    everywhere: Vec<(String, Arc<Resource>)>,
    at_hosts: Vec<(String, Arc<Resource>)>,
}

impl SiteFiles {
    /// Makes the files. `scopes` belong to the tenant's languages and its `canonical` address.
    pub(super) fn new(site: &Site, scopes: &[PageScope], canonical: &Address) -> Self {
        let scope = &scopes[0];
        let resolver = &scope.resolver;
        let is_secure = resolver.deployment.origin.is_secure();
        let templates = &scope.templates;
        let frame = templates.theme.manifest.theme_color.as_ref();
        let ground = frame.and_then(|role| {
            let (day, _) = scope.prepared.role(role, &templates.theme)?;
            Some(day.to_owned())
        });
        let (icons, problem) = match Icons::of(site, scope, ground.as_deref()) {
            Ok(icons) => (icons, None),
            Err(problem) => (None, Some(problem)),
        };
        let social = social_image::prepare(site, scopes, ground.as_deref());
        let feeds = site.pages.values().filter_map(|page| Feed::of(site, page));
        let associations = association::files(site)
            .into_iter()
            .map(|(path, media_type, text)| (path, plain_file(media_type, text, is_secure)));
        let texts = texts(site, is_secure);
        Self {
            listing: Arc::new(sitemap::listing(
                site,
                canonical,
                &resolver.deployment.origin,
            )),
            at_hosts: associations
                .chain(touch_icon(icons.as_ref()))
                .map(|(path, resource)| (path.to_owned(), resource))
                .chain(texts)
                .collect(),
            icons,
            social: social.specs,
            failures: social.failures,
            warnings: social.warnings,
            problem,
            ground,
            search: (scopes.iter())
                .map(|scope| SearchIndex::of(site, scope))
                .collect(),
            everywhere: feeds
                .map(|feed| {
                    let xml = feed.xml(site, resolver, canonical);
                    (feed.path(), plain_file(feed::MEDIA_TYPE, xml, is_secure))
                })
                .collect(),
        }
    }

    /// Adds the files to the resources of the address that `scopes` are for.
    pub(super) fn add_to(&self, site: &Site, scopes: &[PageScope], resources: &mut ResourceTable) {
        let scope = &scopes[0];
        let is_secure = scope.resolver.deployment.origin.is_secure();
        for (path, resource) in &self.everywhere {
            resources.insert(path.as_str().into(), Arc::clone(resource));
        }
        if scope.resolver.place.prefix.is_empty() {
            for (path, resource) in &self.at_hosts {
                resources.insert(path.as_str().into(), Arc::clone(resource));
            }
        }
        for (scope, search) in scopes.iter().zip(&self.search) {
            let path = |path| site.manifest.join(scope.language, path).into();
            let text = webmanifest::text(site, scope, self.icons.as_ref(), self.ground.as_deref());
            let manifest = plain_file(webmanifest::MEDIA_TYPE, text, is_secure);
            resources.insert(path(WEB_MANIFEST), manifest);
            if let Some(search) = search {
                let index = plain_file(search::MEDIA_TYPE, search.text(&scope.resolver), is_secure);
                resources.insert(path(SEARCH), index);
            }
        }
    }

    /// Returns the paths that authors may link to.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.everywhere.iter().map(|(path, _)| path.as_str())
    }

    /// Returns the images to draw. Social images are served at the canonical address only.
    ///
    /// Icons are served at every address, so that a request for an icon counts as a request for its tenant.
    pub(super) fn images(&self, addresses: &[Address]) -> Vec<GeneratedImage> {
        let canonical = addresses.first().into_iter().flat_map(|address| {
            self.social.values().map(|spec| {
                let name = spec.file_name("social");
                let path = below(&address.prefix, &format!("{ASSETS}{name}"));
                image(&address.host, path, spec)
            })
        });
        let icons = addresses.iter().flat_map(|address| {
            let files = self.icons.iter().flat_map(Icons::files);
            files.map(|(name, spec)| {
                let path = below(&address.prefix, &format!("{ASSETS}{name}"));
                image(&address.host, path, spec)
            })
        });
        let roots = addresses.iter().filter(|one| one.prefix.is_empty());
        let favicons = roots.flat_map(|address| {
            let icons = self.icons.iter();
            icons.map(|icons| image(&address.host, FAVICON.to_owned(), &icons.favicon))
        });
        canonical.chain(icons).chain(favicons).collect()
    }
}

/// Makes a redirect for the icon that phones request without a link to it.
fn touch_icon(icons: Option<&Icons>) -> Option<(&'static str, Arc<Resource>)> {
    let name = icons?.touch.file_name("touch-icon");
    let location = HeaderValue::from_str(&format!("{ASSETS}{name}")).ok()?;
    let moved = Arc::new(Resource::Redirect(location));
    Some((TOUCH_ICON, moved))
}

/// Returns the texts listed in the manifest. They are never served as HTML, so nothing in them can run.
fn texts(site: &Site, is_secure: bool) -> Vec<(String, Arc<Resource>)> {
    let named = |(path, file): (String, &TenantFile)| {
        let (_, bytes) = assets::named(&site.assets, file.as_str(), MANIFEST)?;
        let media_type = match path.ends_with(".json") {
            true => "application/json",
            false => "text/plain; charset=utf-8",
        };
        Some((path, plain_file(media_type, bytes.clone(), is_secure)))
    };
    site.manifest.files().filter_map(named).collect()
}

fn image(host: &str, path: String, spec: &Arc<ImageSpec>) -> GeneratedImage {
    GeneratedImage {
        host: host.to_owned(),
        path,
        spec: Arc::clone(spec),
    }
}
