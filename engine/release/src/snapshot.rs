//! The frozen result of compiling: which host answers which path with which bytes.
//!
//! A [`Snapshot`] is built once, by the owner that swaps it, and only read after that.
//! It is made of one [`Mount`] a tenant and place, behind an `Arc`, so that a new snapshot shares everything that did not change with the one before it.
//!
//! Four things in it are set once while it is served, and never changed after that: a mount's counters, its pages as it is rendered, pictures as they are drawn, and the best encoding of a body.
//!
//! **Invariant:** knows no YAML, Markdown, Tera or React, and no sockets. Everything a response needs is ready here: looking up is all that is left to do.

mod coding;
pub mod fields;
pub mod resources;
pub mod traffic;

use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use imbl::shared_ptr::DefaultSharedPtr;
use tokio::sync::Notify;

pub use self::coding::{Coding, Variant, Variants};
pub use self::resources::{Body, FILES_BELOW, Resource, ResourceTable, Resources, Table};
use self::traffic::Traffic;

/// Everything that the program answers, at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Hosts by name: lower case, no port, no trailing dot.
    pub hosts: VersionedTable<HostEntry>,
    /// Files that every known host serves: the theme's and the islands', by their path (`/assets/...`).
    pub shared: Arc<ResourceTable>,
    /// What an unknown host gets: status 421, no tenant's page, no name of any.
    pub unknown_host: Option<Arc<Resource>>,
    /// Whether some mount was open when this was built: a request may have to wait.
    pub is_partial: bool,
    /// The counters of each tenant, by id.
    pub traffic: TrafficTable,
}

/// Values by text in a table that grows with the number of tenants. A copy shares all entries with the original until one of the two changes (a hash array mapped trie), so that the next snapshot costs no more than what is new in it.
pub type VersionedTable<V> =
    imbl::GenericHashMap<Arc<str>, V, hashbrown::DefaultHashBuilder, DefaultSharedPtr>;

/// The counters of each tenant, by id.
pub type TrafficTable = imbl::OrdMap<Arc<str>, Arc<Traffic>>;

/// What one host name stands for.
#[derive(Debug, Clone)]
pub enum HostEntry {
    /// The host serves tenants.
    Site(Arc<HostRoutes>),
    /// Every path moves to the same path of another origin, status 308.
    Moved(Moved),
}

/// Where a host has moved.
#[derive(Debug, Clone)]
pub struct Moved {
    /// `https://company.example`.
    pub origin: HeaderValue,
    /// `Strict-Transport-Security` (RFC 6797), where visitors come over TLS: each host speaks for itself.
    pub hsts: Option<HeaderValue>,
    /// `Cache-Tag`: the tenant that is there now.
    pub cache_tag: Option<HeaderValue>,
}

/// The tenants of one host, by the prefix they are mounted at. A copy shares mounts, resources and slots.
#[derive(Debug, Clone, Default)]
pub struct HostRoutes {
    /// The tenant at the host's root: it answers what no prefix takes.
    pub root: Option<Arc<Mount>>,
    /// Tenants by prefix: `/corner`, `/apps/corner`. Prefixes match whole segments.
    pub prefixes: VersionedTable<Arc<Mount>>,
    /// The number of segments of the longest prefix that there was: no more of a path is looked at.
    pub longest_prefix: usize,
    /// What the host answers beside its tenants, by whole path: `/robots.txt`, `/sitemap.xml`. A tenant's own resource comes first.
    pub files: ResourceTable,
    /// Files of before that pages which are still open may request, by the prefix that they are below: each table has paths below [`FILES_BELOW`], and is shared by all addresses of its tenant.
    pub replaced: VersionedTable<Arc<ResourceTable>>,
    /// Pictures by whole path. Each answers from the moment at which it is drawn.
    pub pictures: VersionedTable<Arc<Slot<Resource>>>,
}

impl HostRoutes {
    /// Returns a replaced file by its whole path, with its prefix and its path below the prefix.
    #[must_use]
    pub fn replaced_file(&self, path: &str) -> Option<(&str, &str, &Resource)> {
        let (prefix, below) = path.split_at(path.rfind(FILES_BELOW)?);
        let (prefix, table) = self.replaced.get_key_value(prefix)?;
        let (below, resource) = table.get_key_value(below)?;
        Some((prefix, below, resource))
    }

    /// Whether a path below `prefix` is that of a tenant with a longer prefix.
    #[must_use]
    pub fn is_taken_below(&self, prefix: &str, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| end);
        let mut longer = ends.chain([path.len()]).filter(|end| *end > prefix.len());
        longer.any(|end| self.prefixes.contains_key(&path[..end]))
    }
}

/// A place for what takes so long to make that no snapshot waits for it: open when the snapshot is built, filled once.
#[derive(Debug)]
pub struct Slot<T> {
    made: OnceLock<Option<T>>,
    filled: Notify,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            made: OnceLock::new(),
            filled: Notify::new(),
        }
    }
}

impl<T> From<T> for Slot<T> {
    fn from(made: T) -> Self {
        Self {
            made: OnceLock::from(Some(made)),
            filled: Notify::new(),
        }
    }
}

impl<T> Slot<T> {
    /// Fills it for good; `None` when there will never be anything. What comes second is dropped.
    pub fn fill(&self, made: Option<T>) {
        let _ = self.made.set(made);
        self.filled.notify_waiters();
    }

    /// Whether it is still to be filled.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.made.get().is_none()
    }

    /// What is in it by now.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.made.get()?.as_ref()
    }

    /// What is in it, taken out.
    #[must_use]
    pub fn into_inner(self) -> Option<T> {
        self.made.into_inner()?
    }

    /// Waits until it is filled.
    pub async fn filled(&self) {
        let filled = self.filled.notified();
        if self.is_open() {
            filled.await;
        }
    }
}

/// One tenant at one place, with every link in its bodies right for that place.
#[derive(Debug)]
pub struct Mount {
    /// The tenant's id: the only name of it that logs and metrics use.
    pub tenant: Arc<str>,
    /// `/corner`, or empty at the root of a host.
    pub prefix: Box<str>,
    /// What it answers, from the moment at which the tenant is rendered.
    pub pages: Slot<Pages>,
    /// The tenant's counters: empty when built, set by [`Mount::count_in`] before the mount is served.
    pub traffic: OnceLock<Arc<Traffic>>,
}

impl Mount {
    /// Counts its requests with those of the tenant's other mounts. Returns the tenant's counters.
    pub fn count_in<'t>(&self, table: &'t mut TrafficTable) -> &'t Arc<Traffic> {
        let tenant = Arc::clone(&self.tenant);
        // A mount that is served again has counted before.
        let own = || self.traffic.get().cloned().unwrap_or_default();
        let traffic = table.entry(tenant).or_insert_with(own);
        self.traffic.get_or_init(|| Arc::clone(traffic));
        traffic
    }

    /// What it answers at a path below its prefix, where it is rendered.
    #[must_use]
    pub fn resource(&self, path: &str) -> Option<&Arc<Resource>> {
        self.pages.get()?.resources.get(path)
    }
}

/// What a tenant answers at one place. A copy shares the resources.
#[derive(Debug, Clone)]
pub struct Pages {
    /// By the path below the prefix (`/terms`; `/` for the mount itself).
    pub resources: Resources,
    /// The 404 pages by the part of the site that they speak for: (`/blog`, 'Post not found'), most specific first.
    /// The last one is the tenant's own 404 page, for the empty path.
    pub not_found: Vec<(Box<str>, Arc<Resource>)>,
    /// The page for 405, when a page is requested with another method than GET and HEAD.
    pub method_not_allowed: Arc<Resource>,
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
    fn mounts_of_a_tenant_count_together_and_keep_their_counters() {
        let mut table = TrafficTable::default();
        let (first, second) = (mount("/da"), mount("/da/x"));
        let counters = Arc::clone(first.count_in(&mut table));
        assert!(Arc::ptr_eq(second.count_in(&mut table), &counters));
        // The tenant was away for a while.
        let mut later = TrafficTable::default();
        assert!(Arc::ptr_eq(first.count_in(&mut later), &counters));
        assert_eq!(later.len(), 1);
    }

    #[test]
    fn a_longer_prefix_takes_whole_segments() {
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
            assert_eq!(routes.is_taken_below(prefix, path), is_taken, "{path}");
        }
    }
}
