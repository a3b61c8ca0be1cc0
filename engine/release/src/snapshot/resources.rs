//! The responses of a tenant at one address, by path.
//!
//! Pages differ between addresses, because their links differ. Files are the same everywhere, so all addresses of a tenant share one table of files. A tenant with many files and addresses thus stores each file path once.
//!
//! Each page has a second form in Markdown, which is made when it is first requested. Its slot is empty until then.
//!
//! **Invariant:** the table of files contains exactly the paths below [`FILES_BELOW`], so a look-up reads one table.

use std::collections::{HashMap, HashSet};
use std::ops::Index;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use super::content_encoding::Variants;
use super::fields::Fields;
use super::slot::Slot;

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
    markdown: LookupMap<Arc<MarkdownSlot>>,
}

/// The Markdown form of a page: empty until it is requested. All addresses of a tenant share the body.
pub type MarkdownSlot = Slot<Arc<Resource>>;

/// Returns the path of the Markdown form of a page: `/terms.md` for `/terms`, `/index.md` for `/`.
#[must_use]
pub fn markdown_path(page: &str) -> String {
    match page {
        "/" => "/index.md".to_owned(),
        page => format!("{page}.md"),
    }
}

/// Returns the open slots for the Markdown forms of pages, by path. The paths of a page share a slot.
fn markdown_slots(pages: &ResourceTable) -> LookupMap<Arc<MarkdownSlot>> {
    let mut by_page: HashMap<*const Resource, Arc<MarkdownSlot>> = HashMap::new();
    let is_page = |resource: &Resource| match resource {
        Resource::Body(body) => body.status == StatusCode::OK && body.is_html(),
        Resource::Redirect(_) => false,
    };
    let mut slots = LookupMap::default();
    for (path, resource) in pages.iter().filter(|(_, resource)| is_page(resource)) {
        let markdown = markdown_path(path);
        // The page at the root takes precedence over a page `/index`.
        if pages.contains_key(&*markdown) || (&**path == "/index" && pages.contains_key("/")) {
            continue;
        }
        let slot = by_page.entry(Arc::as_ptr(resource)).or_default();
        slots.insert(markdown.into(), Arc::clone(slot));
    }
    slots
}

impl Body {
    /// Returns whether the body is HTML.
    #[must_use]
    pub fn is_html(&self) -> bool {
        let media_type = self.fields.parts().0.get(CONTENT_TYPE);
        media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/html"))
    }
}

impl Resources {
    /// Joins the pages of one address and the files of all addresses. Drops pages below [`FILES_BELOW`].
    #[must_use]
    pub fn new(mut pages: ResourceTable, files: Arc<ResourceTable>) -> Self {
        pages.retain(|path, _| !path.starts_with(FILES_BELOW));
        Self {
            markdown: markdown_slots(&pages),
            pages,
            files,
        }
    }

    /// Returns the Markdown forms of the pages, by path. A path with a resource has none.
    #[must_use]
    pub const fn markdown(&self) -> &LookupMap<Arc<MarkdownSlot>> {
        &self.markdown
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
        Self::new(pages, Arc::new(files))
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
    use http::HeaderMap;

    use super::*;
    use crate::snapshot::fields::Fields;

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
    fn pages_have_slots_for_markdown_unless_the_path_is_taken() {
        let body = |status, media_type| {
            let mut fields = HeaderMap::new();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            Arc::new(Resource::Body(Body {
                status,
                fields: Arc::new(Fields::new(fields, true, false)),
                cache_tag: None,
                variants: Variants::from([]),
            }))
        };
        let page = || body(StatusCode::OK, "text/html; charset=utf-8");
        let terms = page();
        let resources = Resources::from([
            ("/".into(), page()),
            ("/index".into(), page()),
            ("/terms".into(), Arc::clone(&terms)),
            ("/agreement".into(), terms),
            ("/own".into(), page()),
            ("/own.md".into(), body(StatusCode::OK, "text/markdown")),
            (
                "/feed.xml".into(),
                body(StatusCode::OK, "application/atom+xml"),
            ),
            ("/error".into(), body(StatusCode::IM_A_TEAPOT, "text/html")),
        ]);
        let mut paths: Vec<&str> = resources.markdown().keys().map(|path| &**path).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["/agreement.md", "/index.md", "/terms.md"]);
        let slot = |path: &str| &resources.markdown()[path];
        assert!(Arc::ptr_eq(slot("/terms.md"), slot("/agreement.md")));
        assert!(!Arc::ptr_eq(slot("/terms.md"), slot("/index.md")));
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
