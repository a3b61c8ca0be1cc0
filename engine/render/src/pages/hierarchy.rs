//! The hierarchy of a site's pages: breadcrumbs, collections and their entries.

use content::tenant::page::PageSchema;
use content::tenant::{Page, Site};

/// Returns the name of a page in breadcrumbs and lists.
#[must_use]
pub(crate) fn name_of(page: &Page) -> &str {
    page.front
        .breadcrumb
        .as_deref()
        .unwrap_or(&page.front.title)
}

/// Returns the names and paths of the pages from the tenant's landing page to `page`.
#[must_use]
pub(crate) fn trail<'a>(site: &'a Site, page: &'a Page) -> Vec<(&'a str, &'a str)> {
    let mut trail = vec![(name_of(page), page.path.as_str())];
    let (language, original) = site.manifest.split(&page.path);
    let home = site.translation("/", language);
    let home = home.map_or("/", |home| home.path.as_str());
    let mut parent = page.parent();
    while let Some(path) = parent.filter(|_| original != "/") {
        // The home page of the language, or of the default language, ends the trail.
        let path = match site.manifest.split(path).1 {
            "/" => home,
            _ => path,
        };
        if let Some(above) = site.pages.get(path) {
            let name = if path == home {
                site.manifest_in(language).name.as_str()
            } else {
                name_of(above)
            };
            trail.push((name, path));
        }
        parent = match path.rsplit_once('/') {
            _ if path == home => None,
            Some((_, "")) | None => None,
            Some(("", _)) => Some("/"),
            Some((above, _)) => Some(above),
        };
    }
    trail.reverse();
    if original == "/" {
        trail[0].0 = &site.manifest_in(language).name;
    }
    trail
}

/// Returns the pages of a collection without its index, newest first.
#[must_use]
pub(crate) fn entries<'a>(site: &'a Site, collection: &str) -> Vec<&'a Page> {
    let mut entries: Vec<&Page> = site
        .pages
        .values()
        .map(AsRef::as_ref)
        .filter(|page: &&Page| {
            page.parent() == Some(collection) && is_same_language(site, page, collection)
        })
        .collect();
    entries.sort_by(|one, other| {
        other
            .front
            .date
            .cmp(&one.front.date)
            .then(one.path.cmp(&other.path))
    });
    entries
}

/// Returns the index page of the collection that `page` is an entry of.
#[must_use]
pub(crate) fn collection_of<'a>(site: &'a Site, page: &Page) -> Option<&'a Page> {
    site.pages
        .get(page.parent()?)
        .map(AsRef::as_ref)
        .filter(|parent: &&Page| {
            parent.front.collection.is_some() && is_same_language(site, page, &parent.path)
        })
}

fn is_same_language(site: &Site, page: &Page, path: &str) -> bool {
    site.manifest.language_of(&page.path) == site.manifest.language_of(path)
}

/// Returns the layout that a page is rendered with: its own, its collection's, or `page`.
#[must_use]
pub(crate) fn layout_of<'a>(site: &'a Site, page: &'a Page) -> &'a str {
    let by_collection = || {
        collection_of(site, page)?
            .front
            .collection
            .as_ref()?
            .layout
            .as_deref()
    };
    page.front
        .layout
        .as_deref()
        .or_else(by_collection)
        .unwrap_or("page")
}

/// Returns the schema type of a page for structured data.
#[must_use]
pub(crate) fn schema_of(site: &Site, page: &Page) -> Option<PageSchema> {
    let by_collection = || collection_of(site, page)?.front.collection.as_ref()?.schema;
    let as_index = || {
        page.front
            .collection
            .as_ref()
            .map(|_| PageSchema::Collection)
    };
    page.front.schema.or_else(as_index).or_else(by_collection)
}
