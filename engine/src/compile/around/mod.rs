//! The files around the pages: what search engines, feed readers, browsers and app stores ask for.
//!
//! | module | what | whose |
//! |---|---|---|
//! | [`feed`] | Atom feeds of collections | a tenant's |
//! | [`host`] | `/robots.txt`, `/sitemap.xml`, `/.well-known/security.txt` | a host's |
//! | [`sitemap`] | the entries that tenants hand out for it | |
//!
//! A tenant's own files are made when it is compiled. What a host says about all its tenants is put together by the owner from what they handed out, and only when that changed.
//!
//! **Invariant:** knows no layout and no page's HTML.

mod feed;
mod host;
mod sitemap;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::asset::is_compressible;
use super::encode::{self, Effort};
use super::link::Resolver;
use super::policy::{self, Kind};
use crate::snapshot::{Body, Resource, ResourceTable};
use crate::tenant::Site;

pub(super) use feed::Feed;
pub use host::{HostFacts, host_files};
pub use sitemap::Listing;

/// A file with a fixed name.
fn file(media_type: &str, content: impl Into<Bytes>, secure: bool) -> Arc<Resource> {
    Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields: policy::fields(&Kind::Plain, media_type, secure),
        last_modified: None,
        variants: encode::variants(content.into(), is_compressible(media_type), Effort::Page),
    }))
}

/// A tenant's own files, made once for all its addresses.
pub(super) struct Around {
    /// Its entries in its host's sitemap.
    pub(super) listing: Arc<Listing>,
    everywhere: Vec<(String, Arc<Resource>)>,
}

impl Around {
    /// Makes them.
    pub(super) fn new(site: &Site, resolver: &Resolver) -> Self {
        let secure = resolver.street.origin.is_secure();
        let feeds = site.pages.values().filter_map(|page| Feed::of(site, page));
        Self {
            listing: Arc::new(sitemap::listing(site, resolver)),
            everywhere: feeds
                .map(|feed| {
                    let xml = feed.xml(site, resolver);
                    (feed.path(), file(feed::MEDIA_TYPE, xml, secure))
                })
                .collect(),
        }
    }

    /// Puts those in that belong at an address.
    pub(super) fn put(&self, resources: &mut ResourceTable) {
        for (path, resource) in &self.everywhere {
            resources.insert(path.as_str().into(), Arc::clone(resource));
        }
    }

    /// The paths that authors can link to.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.everywhere.iter().map(|(path, _)| path.as_str())
    }
}
