//! The path of a page's Markdown form in the head of the page.

use content::tenant::{Page, Site};
use release::snapshot::markdown_path;

/// Returns the path of the Markdown form that the head of a page names. Pages that search engines must not index name none, and neither do pages whose author has something else at the path.
pub(crate) fn named_form(site: &Site, page: &Page) -> Option<String> {
    let path = markdown_path(&page.path);
    let manifest = &site.manifest;
    let is_redirected = manifest.redirects.iter().any(|redirect| {
        let old = redirect.old_path();
        !old.is_wildcard && old.path == path && redirect.query.is_empty()
    });
    let is_taken = is_redirected
        || site.pages.contains_key(&path)
        || manifest.files().any(|(file, _)| file == path)
        || manifest.downloads().any(|(download, _)| download == path);
    (!page.front.noindex && !page.front.draft && !is_taken).then_some(path)
}
