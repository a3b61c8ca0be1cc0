//! Sitemaps (<https://www.sitemaps.org/protocol.html>): the pages that search engines should index.
//!
//! Each tenant's entries are written when it is compiled. A host's sitemap only concatenates them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::pages::hierarchy;
use crate::pages::languages::translations::translations;
use crate::pages::links::resolver::url_at;
use crate::site_files::xml::Xml;
use content::address::{Address, Origin};
use content::name::reserved::{SITEMAP, sitemap_part};
use content::tenant::{Page, Site};

const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// The namespace of links to translations (<https://developers.google.com/search/docs/specialty/international/localized-versions>).
const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// The limits of the protocol: 50,000 URLs and 50 MiB.
const LIMITS: SitemapLimits = SitemapLimits {
    urls: 50_000,
    bytes: 50 * 1024 * 1024,
};

/// Limits on one sitemap file.
#[derive(Clone, Copy)]
struct SitemapLimits {
    urls: usize,
    bytes: usize,
}

/// The sitemap entries of one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The host of its canonical URLs.
    pub host: String,
    /// A `<url>` element for each canonical, indexable page.
    urls: Vec<String>,
}

impl Listing {
    /// Returns a listing of the same host without pages.
    pub(crate) fn without_pages(&self) -> Self {
        Self {
            host: self.host.clone(),
            urls: Vec::new(),
        }
    }
}

/// Writes the sitemap entries of a tenant at its canonical address. Pages with `noindex` are left out, and a preview has no entries.
#[must_use]
pub(crate) fn listing(site: &Site, canonical: &Address, origin: &Origin) -> Listing {
    let pages = site.pages.values();
    let pages = pages.filter(|page| !page.front.noindex && !site.id.is_preview());
    Listing {
        host: canonical.host.clone(),
        urls: pages
            .map(|page| {
                let mut xml = Xml::fragment();
                xml.element("url", &[], |xml| {
                    let url = url_at(origin, canonical, &page.path);
                    xml.text("loc", &[], &url);
                    for (language, path) in translations(site, page) {
                        let href = url_at(origin, canonical, path);
                        let link = [
                            ("rel", "alternate"),
                            ("hreflang", language),
                            ("href", href.as_str()),
                        ];
                        xml.empty("xhtml:link", &link);
                    }
                    if let Some(day) = last_change(site, page) {
                        xml.text("lastmod", &[], &day.to_string());
                    }
                });
                xml.into_string()
            })
            .collect(),
    }
}

/// Returns the date of a page's last change. A collection changes with its entries.
fn last_change(site: &Site, page: &Page) -> Option<jiff::civil::Date> {
    let own = page.front.last_change();
    let entries = page
        .front
        .collection
        .iter()
        .flat_map(|_| hierarchy::entries(site, &page.path));
    let newest = entries.filter_map(|entry| entry.front.last_change());
    own.into_iter().chain(newest).max().map(|date| date.day())
}

/// Returns the sitemap files of a host: paths and texts. There is none without entries. Entries that exceed one file become an index and its parts.
#[must_use]
pub(super) fn files(origin: &str, listings: &[Arc<Listing>]) -> Vec<(String, String)> {
    files_within(origin, listings, LIMITS)
}

fn files_within(
    origin: &str,
    listings: &[Arc<Listing>],
    limits: SitemapLimits,
) -> Vec<(String, String)> {
    let urls: Vec<&str> = listings
        .iter()
        .flat_map(|listing| listing.urls.iter().map(String::as_str))
        .collect();
    let parts = parts(&urls, limits);
    match parts.as_slice() {
        [] => Vec::new(),
        [only] => vec![(SITEMAP.to_owned(), document("urlset", only))],
        parts => {
            let path = |index: usize| sitemap_part(index + 1);
            let entries: Vec<String> = (0..parts.len())
                .map(|index| {
                    let mut xml = Xml::fragment();
                    xml.element("sitemap", &[], |xml| {
                        xml.text("loc", &[], &format!("{origin}{}", path(index)));
                    });
                    xml.into_string()
                })
                .collect();
            let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
            let index = (SITEMAP.to_owned(), document("sitemapindex", &entries));
            let texts = parts.iter().map(|part| document("urlset", part));
            std::iter::once(index)
                .chain(texts.enumerate().map(|(number, text)| (path(number), text)))
                .collect()
        }
    }
}

/// Splits the entries into files within the limits.
fn parts<'a, 'u>(urls: &'a [&'u str], limits: SitemapLimits) -> Vec<&'a [&'u str]> {
    let around = document("urlset", &[]).len();
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, around);
    for (index, url) in urls.iter().enumerate() {
        if index - start == limits.urls || (bytes + url.len() > limits.bytes && index > start) {
            parts.push(&urls[start..index]);
            (start, bytes) = (index, around);
        }
        bytes += url.len();
    }
    if start < urls.len() {
        parts.push(&urls[start..]);
    }
    parts
}

fn document(root: &str, entries: &[&str]) -> String {
    let mut xml = Xml::document();
    let mut namespaces = vec![("xmlns", NAMESPACE)];
    if entries.iter().any(|entry| entry.contains("<xhtml:link")) {
        namespaces.push(("xmlns:xhtml", XHTML));
    }
    xml.element(root, &namespaces, |xml| {
        for entry in entries {
            xml.raw(entry);
        }
    });
    xml.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listings(count: usize) -> Vec<Arc<Listing>> {
        let urls = (0..count).map(|number| format!("<url><loc>{number}</loc></url>\n"));
        vec![Arc::new(Listing {
            host: "a.example".to_owned(),
            urls: urls.collect(),
        })]
    }

    fn paths(count: usize, limits: SitemapLimits) -> Vec<(String, usize)> {
        files_within("https://a.example", &listings(count), limits)
            .into_iter()
            .map(|(path, text)| (path, text.matches("<loc>").count()))
            .collect()
    }

    #[test]
    fn sitemap_is_split_at_the_limits() {
        let limits = SitemapLimits {
            urls: 3,
            bytes: 10_000,
        };
        let named = |path: &str, count| (path.to_owned(), count);
        assert_eq!(paths(0, limits), []);
        assert_eq!(paths(3, limits), [named(SITEMAP, 3)]);
        let four = [
            named(SITEMAP, 2),
            named("/sitemap-1.xml", 3),
            named("/sitemap-2.xml", 1),
        ];
        assert_eq!(paths(4, limits), four);
        let narrow = SitemapLimits {
            urls: 100,
            bytes: document("urlset", &[]).len() + 3 * "<url><loc>0</loc></url>\n".len(),
        };
        assert_eq!(paths(4, narrow), four);
    }

    #[test]
    fn index_has_absolute_urls_of_its_parts() {
        let limits = SitemapLimits {
            urls: 1,
            bytes: 10_000,
        };
        let files = files_within("https://a.example", &listings(2), limits);
        assert!(
            files[0]
                .1
                .contains("<loc>https://a.example/sitemap-2.xml</loc>"),
            "{files:?}"
        );
    }
}
