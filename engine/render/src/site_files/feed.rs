//! Atom feeds (RFC 4287) of collections with `feed: true`, at `feed.xml` below the collection: `/blog/feed.xml`.
//!
//! A feed is the same at every address of its tenant. All its links are absolute and canonical, so that feed readers recognise an entry whichever address they use.

use crate::pages::hierarchy;
use crate::pages::links::resolver::{Resolver, below};
use crate::site_files::xml::Xml;
use content::address::Address;
use content::formats::values::Date;
use content::name::reserved::FEED;
use content::tenant::{Page, Site};

const ATOM: &str = "http://www.w3.org/2005/Atom";

/// The media type of a feed (RFC 4287, section 7).
pub(crate) const MEDIA_TYPE: &str = "application/atom+xml; charset=utf-8";

/// Limit on the entries of a feed, which has the newest entries. The collection's page lists all entries.
const MAX_ENTRIES: usize = 50;

/// The feed of a collection.
pub(crate) struct Feed<'a> {
    collection: &'a Page,
    entries: Vec<(&'a Page, Date)>,
}

impl<'a> Feed<'a> {
    /// Returns the feed of a collection with `feed: true`. A feed needs an update time, so there is none without a dated entry.
    pub(crate) fn of(site: &'a Site, page: &'a Page) -> Option<Self> {
        let wanted = page.front.collection.as_ref()?.feed && !page.front.noindex;
        let entries: Vec<(&Page, Date)> = hierarchy::entries(site, &page.path)
            .into_iter()
            .filter(|entry| !entry.front.noindex)
            .filter_map(|entry| Some((entry, entry.front.date?)))
            .take(MAX_ENTRIES)
            .collect();
        (wanted && !entries.is_empty()).then_some(Self {
            collection: page,
            entries,
        })
    }

    /// Returns the feed that the head of a page links to: the feed of the page, or the feed of its collection.
    pub(crate) fn for_page(site: &'a Site, page: &'a Page) -> Option<Self> {
        Self::of(site, page).or_else(|| Self::of(site, hierarchy::collection_of(site, page)?))
    }

    /// Returns its path within the tenant.
    pub(crate) fn path(&self) -> String {
        match self.collection.path.as_str() {
            "/" => FEED.to_owned(),
            path => below(path, FEED),
        }
    }

    /// Returns its title: the collection's title and the name of the company or the site.
    pub(crate) fn title(&self, brand: &str) -> String {
        format!("{} | {brand}", self.collection.front.title)
    }

    /// Writes the feed for the canonical address.
    pub(super) fn xml(&self, site: &Site, resolver: &Resolver, canonical: &Address) -> String {
        let manifest = &site.manifest;
        let index = manifest.language_of(&self.collection.path);
        let language = manifest.languages()[index].as_str();
        let brand = resolver.deployment.brand(site, index);
        let url = |path: &str| resolver.url_at(canonical, path);
        let updated = self
            .entries
            .iter()
            .filter_map(|(page, _)| page.front.last_change());
        let mut xml = Xml::document();
        xml.element("feed", &[("xmlns", ATOM), ("xml:lang", language)], |xml| {
            let home = url(&self.collection.path);
            xml.text("id", &[], &home);
            xml.text("title", &[], &self.title(brand));
            if let Some(description) = &self.collection.front.description {
                xml.text("subtitle", &[], description);
            }
            if let Some(updated) = updated.max() {
                xml.text("updated", &[], &moment(updated));
            }
            let own = url(&self.path());
            let atom = [
                ("rel", "self"),
                ("type", "application/atom+xml"),
                ("href", &own),
            ];
            xml.empty("link", &atom);
            alternate(xml, &home);
            xml.element("author", &[], |xml| {
                xml.text("name", &[], brand);
                let home = match resolver.deployment.has_home_at(&site.id) {
                    true => url("/"),
                    false => format!("{}/", resolver.deployment.origin),
                };
                xml.text("uri", &[], &home);
            });
            for (page, date) in &self.entries {
                xml.element("entry", &[], |xml| {
                    entry(xml, page, *date, &url(&page.path))
                });
            }
        });
        xml.into_string()
    }
}

fn entry(xml: &mut Xml, page: &Page, date: Date, url: &str) {
    let front = &page.front;
    xml.text("id", &[], url);
    xml.text(
        "title",
        &[],
        front.heading.as_deref().unwrap_or(&front.title),
    );
    xml.text("published", &[], &moment(date));
    xml.text(
        "updated",
        &[],
        &moment(page.front.last_change().unwrap_or(date)),
    );
    alternate(xml, url);
    for tag in &front.tags {
        xml.empty("category", &[("term", tag)]);
    }
    if let Some(summary) = front.excerpt.as_ref().or(front.description.as_ref()) {
        xml.text("summary", &[], summary);
    }
}

fn alternate(xml: &mut Xml, url: &str) {
    xml.empty(
        "link",
        &[("rel", "alternate"), ("type", "text/html"), ("href", url)],
    );
}

/// Returns the start of a day as a date-time (RFC 3339), because pages have no time of day.
fn moment(date: Date) -> String {
    format!("{}T00:00:00Z", date.day())
}
