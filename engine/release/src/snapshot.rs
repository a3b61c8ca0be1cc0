//! The immutable result of rendering: the response for each host and path.
//!
//! The owner builds a [`Snapshot`] once and swaps it in. Afterwards it is only read.
//! A snapshot holds one [`Mount`] per tenant and address behind an `Arc`. A new snapshot therefore shares all unchanged mounts with the previous one.
//!
//! Five parts change while a snapshot is served: a mount's counters grow; its pages, its images, the Markdown form of a page and the best encoding of a body are each set once.
//!
//! **Invariant:** knows no YAML, Markdown, Tera, React or sockets. Every response is prepared in advance; a request only looks it up.

pub mod access;
mod content_encoding;
pub mod fields;
pub mod preview;
pub mod redirects;
pub mod resources;
mod slot;
pub mod traffic;

use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use imbl::shared_ptr::DefaultSharedPtr;

use self::access::AccessTable;
pub use self::content_encoding::{ContentEncoding, Variant, Variants};
use self::redirects::RedirectTable;
pub use self::resources::{
    Body, FILES_BELOW, LookupMap, MarkdownSlot, Resource, ResourceTable, Resources, markdown_path,
};
pub use self::slot::Slot;
use self::traffic::Traffic;

/// All responses of the program at one point in time.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Host entries by host name: lower case, no port, no trailing dot.
    pub hosts: VersionedTable<HostEntry>,
    /// Files of themes and islands that every known host serves, by path (`/assets/...`).
    pub shared: Arc<ResourceTable>,
    /// The response to an unknown host: status 421, without any tenant's page or name.
    pub unknown_host: Option<Arc<Resource>>,
    /// Whether any mount had no pages yet when the snapshot was built. A request may then have to wait.
    pub is_partial: bool,
    /// Traffic counters of each tenant, by tenant id.
    pub traffic: TrafficTable,
    /// The rules of access. `None` if every tenant is open, which costs a request nothing.
    pub access: Option<Arc<AccessTable>>,
}

/// A map from text to values for tables that grow with the number of tenants.
///
/// A copy shares its entries with the original until either changes (a hash array mapped trie). The next snapshot therefore costs only what is new in it.
pub type VersionedTable<V> =
    imbl::GenericHashMap<Arc<str>, V, hashbrown::DefaultHashBuilder, DefaultSharedPtr>;

/// Traffic counters of each tenant, by tenant id.
pub type TrafficTable = imbl::OrdMap<Arc<str>, Arc<Traffic>>;

/// The meaning of one host name: a site or a permanent redirect.
#[derive(Debug, Clone)]
pub enum HostEntry {
    /// The host serves tenants.
    Site(Arc<HostRoutes>),
    /// Every path redirects to the same path of another origin, with status 308.
    Redirect(HostRedirect),
}

/// The redirect target of a host that has moved.
#[derive(Debug, Clone)]
pub struct HostRedirect {
    /// The new origin, for example `https://company.example`.
    pub origin: HeaderValue,
    /// `Strict-Transport-Security` (RFC 6797), if visitors connect with TLS. Each host sends its own.
    pub hsts: Option<HeaderValue>,
    /// `Cache-Tag` of the tenant at the new origin.
    pub cache_tag: Option<HeaderValue>,
}

/// The tenants of one host, by mount prefix. A copy shares mounts, resources and slots.
#[derive(Debug, Clone, Default)]
pub struct HostRoutes {
    /// Whose host it is.
    pub kind: HostKind,
    /// The tenant at the root of the host. It answers every path that no prefix matches.
    pub root: Option<Arc<Mount>>,
    /// Tenants by prefix, for example `/corner` or `/apps/corner`. A prefix matches complete segments.
    pub prefixes: VersionedTable<Arc<Mount>>,
    /// The number of segments in the longest prefix that this host ever had. A look-up reads no further into the path.
    pub longest_prefix: usize,
    /// Responses of the host itself by complete path, for example `/robots.txt` and `/sitemap.xml`. A tenant's own resource takes precedence.
    pub files: ResourceTable,
    /// Replaced files that pages still open in a browser may request, by mount prefix.
    ///
    /// Each table holds paths below [`FILES_BELOW`] and is shared by all addresses of its tenant.
    pub replaced: VersionedTable<Arc<ResourceTable>>,
    /// Images by complete path. Each slot is filled when its image is rendered.
    pub images: VersionedTable<Arc<Slot<Resource>>>,
}

/// The kind of a host that serves tenants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostKind {
    /// The host of tenants.
    #[default]
    Tenants,
    /// The host of a preview. Search engines index none of its responses.
    Preview,
    /// The host of a preview that is too old. Every request gets 410.
    ExpiredPreview,
}

impl HostRoutes {
    /// Looks up a replaced file by its complete path. Returns its prefix, its path below the prefix, and the resource.
    #[must_use]
    pub fn replaced_file(&self, path: &str) -> Option<(&str, &str, &Resource)> {
        let (prefix, below) = path.split_at(path.rfind(FILES_BELOW)?);
        let (prefix, table) = self.replaced.get_key_value(prefix)?;
        let (below, resource) = table.get_key_value(below)?;
        Some((prefix, below, resource))
    }

    /// Returns whether `path`, which is below `prefix`, belongs to a tenant with a longer prefix.
    #[must_use]
    pub fn is_owned_below(&self, prefix: &str, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| end);
        let mut longer = ends.chain([path.len()]).filter(|end| *end > prefix.len());
        longer.any(|end| self.prefixes.contains_key(&path[..end]))
    }
}

/// One tenant at one address. Every link in its pages is resolved for that address.
#[derive(Debug)]
pub struct Mount {
    /// The tenant's id, its only name in logs and metrics.
    pub tenant: Arc<str>,
    /// The mount prefix, for example `/corner`; empty at the root of a host.
    pub prefix: Box<str>,
    /// The tenant's responses, filled when the tenant is rendered.
    pub pages: Slot<MountPages>,
    /// The tenant's counters. [`Mount::count_in`] sets them before the mount is served.
    pub traffic: OnceLock<Arc<Traffic>>,
}

impl Mount {
    /// Joins the counters of the tenant's other mounts in `table`, and returns them.
    pub fn count_in<'t>(&self, table: &'t mut TrafficTable) -> &'t Arc<Traffic> {
        let tenant = Arc::clone(&self.tenant);
        // A mount that is served again keeps its earlier counters.
        let own = || self.traffic.get().cloned().unwrap_or_default();
        let traffic = table.entry(tenant).or_insert_with(own);
        self.traffic.get_or_init(|| Arc::clone(traffic));
        traffic
    }

    /// Returns the resource at a path below the mount's prefix, if the mount is rendered.
    #[must_use]
    pub fn resource(&self, path: &str) -> Option<&Arc<Resource>> {
        self.pages.get()?.resources.get(path)
    }
}

/// All responses of a tenant at one address. A copy shares the resources.
#[derive(Debug, Clone)]
pub struct MountPages {
    /// Resources by path below the prefix (`/terms`; `/` for the mount itself).
    pub resources: Resources,
    /// The redirects that the author wrote. A resource takes precedence, except over a redirect with conditions on the query.
    pub redirects: Arc<RedirectTable>,
    /// The 404 pages, each with the path prefix that it covers, for example `/blog` ("Post not found"). Most specific first.
    /// The last entry has the empty path: the tenant's own 404 page.
    pub not_found: Vec<(Box<str>, Arc<Resource>)>,
    /// The pages for status 405, sent when a page is requested with a method other than GET or HEAD: one for each language, by path prefix as in `not_found`.
    pub method_not_allowed: Vec<(Box<str>, Arc<Resource>)>,
}

impl MountPages {
    /// Returns the Markdown form of a page by its path, as the table stores the path. A redirect of exactly this path takes precedence.
    #[must_use]
    pub fn markdown(&self, path: &str) -> Option<(&str, &Arc<MarkdownSlot>)> {
        let (path, slot) = self.resources.markdown().get_key_value(path)?;
        let redirect = self.redirects.decide(path, None, false);
        let is_redirected = redirect.is_some_and(|redirect| !redirect.rule.is_wildcard);
        (!is_redirected).then_some((path, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(prefix: &str) -> Arc<Mount> {
        Arc::new(Mount {
            tenant: "tenant".into(),
            prefix: prefix.into(),
            pages: Slot::default(),
            traffic: OnceLock::new(),
        })
    }

    #[test]
    fn mounts_of_a_tenant_share_counters_across_snapshots() {
        let mut table = TrafficTable::default();
        let (first, second) = (mount("/da"), mount("/da/x"));
        let counters = Arc::clone(first.count_in(&mut table));
        assert!(Arc::ptr_eq(second.count_in(&mut table), &counters));
        // The tenant was absent from one snapshot.
        let mut later = TrafficTable::default();
        assert!(Arc::ptr_eq(first.count_in(&mut later), &counters));
        assert_eq!(later.len(), 1);
    }

    #[test]
    fn longer_prefix_matches_complete_segments() {
        let prefixes = ["/da", "/da/x"].map(|prefix| (prefix.into(), mount(prefix)));
        let routes = HostRoutes {
            prefixes: prefixes.into_iter().collect(),
            ..HostRoutes::default()
        };
        for (prefix, path, is_taken) in [
            ("", "/da", true),
            ("", "/da/y", true),
            ("", "/datenschutz", false),
            ("/da", "/da", false),
            ("/da", "/da/y", false),
            ("/da", "/da/x/y", true),
            ("/da/x", "/da/x/y", false),
        ] {
            assert_eq!(routes.is_owned_below(prefix, path), is_taken, "{path}");
        }
    }
}
