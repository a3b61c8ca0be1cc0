//! The responses of a tenant at one address, by path.
//!
//! Pages differ between addresses, because their links differ. Files are the same everywhere, so all addresses of a tenant share one table of files. A tenant with many files and addresses thus stores each file path once.
//!
//! **Invariant:** the table of files contains exactly the paths below [`FILES_BELOW`], so a look-up reads one table.

use std::collections::HashSet;
use std::ops::Index;
use std::sync::Arc;

use http::{HeaderValue, StatusCode};

use super::content_encoding::Variants;
use super::fields::Fields;

/// A map from text to values with a hasher that is fast for short keys. Every request looks up its host, prefix and path.
pub type LookupMap<V> = hashbrown::HashMap<Box<str>, V>;

/// Resources by path: percent-decoded, without a trailing slash (`/` for the root).
pub type ResourceTable = LookupMap<Arc<Resource>>;

/// The response at one path.
#[derive(Debug)]
pub enum Resource {
    /// A body in one or more encodings.
    Body(Body),
    /// A redirect with status 308 to this `Location`.
    Redirect(HeaderValue),
}

/// A body with its encodings and header fields, for example a page or a stylesheet.
#[derive(Debug)]
pub struct Body {
    /// 200 for a page; 404 or 405 for an error page.
    pub status: StatusCode,
    /// The prebuilt header fields, shared by all bodies of one class across tenants.
    pub fields: Arc<Fields>,
    /// The `Cache-Tag` of this body. Only pages have one.
    pub cache_tag: Option<HeaderValue>,
    /// The available encodings.
    pub variants: Variants,
}

/// The start of every file path, relative to the mount prefix. The rest of a file path contains no slash.
pub const FILES_BELOW: &str = "/assets/";

/// Resources by path below the mount prefix (`/terms`; `/` for the mount itself). A copy shares the resources and the files.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    pages: ResourceTable,
    files: Arc<ResourceTable>,
}

impl Resources {
    /// Joins the pages of one address and the files of all addresses. Drops pages below [`FILES_BELOW`].
    #[must_use]
    pub fn new(mut pages: ResourceTable, files: Arc<ResourceTable>) -> Self {
        pages.retain(|path, _| !path.starts_with(FILES_BELOW));
        Self { pages, files }
    }

    /// Returns the pages, whose links depend on the address.
    #[must_use]
    pub const fn pages(&self) -> &ResourceTable {
        &self.pages
    }

    /// Returns the files: one table for all addresses of a tenant.
    #[must_use]
    pub const fn files(&self) -> &Arc<ResourceTable> {
        &self.files
    }

    /// Returns the only table that can contain `path`.
    fn table(&self, path: &str) -> &ResourceTable {
        match path.starts_with(FILES_BELOW) {
            true => &self.files,
            false => &self.pages,
        }
    }

    /// Looks up a path. Returns the path as the table stores it, and its resource.
    #[must_use]
    pub fn get_key_value(&self, path: &str) -> Option<(&str, &Arc<Resource>)> {
        let (path, resource) = self.table(path).get_key_value(path)?;
        Some((path, resource))
    }

    /// Returns the resource at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Arc<Resource>> {
        self.table(path).get(path)
    }

    /// Returns whether there is a resource at a path.
    #[must_use]
    pub fn contains_key(&self, path: &str) -> bool {
        self.table(path).contains_key(path)
    }

    /// Returns all paths with their resources, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Resource>)> {
        let all = self.pages.iter().chain(&*self.files);
        all.map(|(path, resource)| (&**path, resource))
    }

    /// Returns all paths, in arbitrary order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(path, _)| path)
    }

    /// Returns all resources, in arbitrary order.
    pub fn values(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.pages.values().chain(self.files.values())
    }
}

impl FromIterator<(Box<str>, Arc<Resource>)> for Resources {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Arc<Resource>)>>(resources: I) -> Self {
        let (files, pages): (ResourceTable, ResourceTable) = resources
            .into_iter()
            .partition(|(path, _)| path.starts_with(FILES_BELOW));
        Self {
            pages,
            files: Arc::new(files),
        }
    }
}

impl<const N: usize> From<[(Box<str>, Arc<Resource>); N]> for Resources {
    fn from(resources: [(Box<str>, Arc<Resource>); N]) -> Self {
        resources.into_iter().collect()
    }
}

impl Index<&str> for Resources {
    type Output = Arc<Resource>;

    fn index(&self, path: &str) -> &Self::Output {
        &self.table(path)[path]
    }
}

/// Visits the resources of several addresses of a tenant. Visits files that addresses share only once.
#[derive(Debug, Default)]
pub struct ResourceWalk {
    /// The file tables already visited, by memory address.
    files: HashSet<*const ResourceTable>,
}

impl ResourceWalk {
    /// Returns the resources at the next address with their paths. Omits files that an earlier address had.
    pub fn visit<'a>(
        &mut self,
        resources: &'a Resources,
    ) -> impl Iterator<Item = (&'a str, &'a Arc<Resource>)> + use<'a> {
        let is_new = self.files.insert(Arc::as_ptr(&resources.files));
        let files = is_new.then_some(&*resources.files);
        let all = resources.pages.iter().chain(files.into_iter().flatten());
        all.map(|(path, resource)| (&**path, resource))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn table(paths: &[&'static str]) -> ResourceTable {
        let entry = |path: &&'static str| {
            let resource = Resource::Redirect(HeaderValue::from_static(path));
            ((*path).into(), Arc::new(resource))
        };
        paths.iter().map(entry).collect()
    }

    fn paths<'a>(all: impl Iterator<Item = (&'a str, &'a Arc<Resource>)>) -> Vec<&'a str> {
        let mut paths: Vec<&str> = all.map(|(path, _)| path).collect();
        paths.sort_unstable();
        paths
    }

    #[test]
    fn addresses_share_files_and_have_own_pages() {
        let files = Arc::new(table(&["/assets/a.css"]));
        let one = Resources::new(table(&["/", "/assets/none"]), Arc::clone(&files));
        let other = Resources::new(table(&["/", "/more"]), Arc::clone(&files));
        assert!(std::ptr::eq(&one["/assets/a.css"], &other["/assets/a.css"]));
        assert!(one.contains_key("/") && !one.contains_key("/more"));
        assert!(one.get("/assets/none").is_none());
        assert_eq!(paths(one.iter()), ["/", "/assets/a.css"]);
        let mut walk = ResourceWalk::default();
        let all = [&one, &other]
            .into_iter()
            .flat_map(|place| walk.visit(place));
        assert_eq!(paths(all), ["/", "/", "/assets/a.css", "/more"]);
    }

    #[test]
    fn collected_resources_are_found_in_either_table() {
        let resources: Resources = table(&["/", "/assets/a.css", "/assets"])
            .into_iter()
            .collect();
        assert_eq!(resources.files().len(), 1);
        for path in ["/", "/assets/a.css", "/assets"] {
            assert_eq!(
                resources.get_key_value(path).map(|(key, _)| key),
                Some(path)
            );
        }
    }
}
