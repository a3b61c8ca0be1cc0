//! What a tenant answers at one place, by path.
//!
//! Pages differ from address to address, by their links. Files are the same at every address, so that all places of a tenant share one table of them: a tenant with many files at many addresses has each path once.
//!
//! **Invariant:** a path is below [`FILES_BELOW`] exactly if it is in the table of files, so that a look-up reads one table.

use std::collections::HashSet;
use std::ops::Index;
use std::sync::Arc;

use http::{HeaderValue, StatusCode};

use super::coding::Variants;
use super::fields::Fields;

/// Values by text, as in the standard library, with a hasher that is quicker for short ones: a request looks up its host, its prefix and its path.
pub type Table<V> = hashbrown::HashMap<Box<str>, V>;

/// Resources by path, percent-decoded, without a trailing slash (`/` for the root).
pub type ResourceTable = Table<Arc<Resource>>;

/// What one path answers.
#[derive(Debug)]
pub enum Resource {
    /// Bytes, in one or more encodings.
    Body(Body),
    /// Another place: 308 with its `Location`.
    Redirect(HeaderValue),
}

/// A body with its encodings and headers, for example a page or a stylesheet.
#[derive(Debug)]
pub struct Body {
    /// 200 for a page, 404 or 405 for an error page.
    pub status: StatusCode,
    /// The header fields, in every form in which they go out. Shared by all the bodies of one kind, of all tenants.
    pub fields: Arc<Fields>,
    /// `Cache-Tag` of this body: pages have one.
    pub cache_tag: Option<HeaderValue>,
    /// The encodings to choose from.
    pub variants: Variants,
}

/// The beginning of the paths of files, below the prefix of their place. The rest of such a path has no slash.
pub const FILES_BELOW: &str = "/assets/";

/// Resources by the path below the prefix (`/terms`; `/` for the place itself). A copy shares the resources and the files.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    pages: ResourceTable,
    files: Arc<ResourceTable>,
}

impl Resources {
    /// Joins the pages of one place and the files of all places. Drops pages below [`FILES_BELOW`].
    #[must_use]
    pub fn new(mut pages: ResourceTable, files: Arc<ResourceTable>) -> Self {
        pages.retain(|path, _| !path.starts_with(FILES_BELOW));
        Self { pages, files }
    }

    /// Returns the pages, whose links differ from address to address.
    #[must_use]
    pub const fn pages(&self) -> &ResourceTable {
        &self.pages
    }

    /// Returns the files: one table for all places of a tenant.
    #[must_use]
    pub const fn files(&self) -> &Arc<ResourceTable> {
        &self.files
    }

    /// Returns the only table that can have a path.
    fn table(&self, path: &str) -> &ResourceTable {
        match path.starts_with(FILES_BELOW) {
            true => &self.files,
            false => &self.pages,
        }
    }

    /// Returns a path as the table has it, with its resource.
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

    /// Returns whether something answers at a path.
    #[must_use]
    pub fn contains_key(&self, path: &str) -> bool {
        self.table(path).contains_key(path)
    }

    /// Returns all paths with their resources, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Resource>)> {
        let all = self.pages.iter().chain(&*self.files);
        all.map(|(path, resource)| (&**path, resource))
    }

    /// Returns all paths, in no order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(path, _)| path)
    }

    /// Returns all resources, in no order.
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

/// Visits the resources of several places of a tenant, and files that places share once.
#[derive(Debug, Default)]
pub struct ResourceWalk {
    /// The tables of files that were visited, by where they are in memory.
    files: HashSet<*const ResourceTable>,
}

impl ResourceWalk {
    /// Returns the resources of one more place with their paths, without files that an earlier place had.
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
    fn places_share_their_files_and_have_their_own_pages() {
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
