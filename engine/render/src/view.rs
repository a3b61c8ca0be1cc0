//! What a template sees: plain values, resolved, with nothing left to look up.

use serde::Serialize;
use tera::{Map, Value};

use super::card::Card;
use super::link::Resolver;
use super::markdown::Heading;
use super::resolve::resolve;
use super::template::Scope;
use content::tenant::app::App;
use content::tenant::manifest::NamedLink;
use content::tenant::page::PageSchema;
use content::tenant::{Page, Site};

/// The whole context of a layout.
#[derive(Debug)]
pub struct View<'a> {
    /// The ready inside of `<head>`.
    pub head: String,
    /// The tenant.
    pub site: SiteView<'a>,
    /// The company.
    pub company: CompanyView<'a>,
    /// The page.
    pub page: PageView<'a>,
}

/// The tenant as templates see it.
#[derive(Debug, Clone, Serialize)]
pub struct SiteView<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it is in one line.
    pub tagline: Option<&'a str>,
    /// Its default description.
    pub description: Option<&'a str>,
    /// Whether it is at the domain's root.
    pub root: bool,
    /// Its language.
    pub language: &'a str,
    /// Its landing page.
    pub home: String,
    /// Its settings, resolved.
    #[serde(skip)]
    pub settings: Value,
    /// Its app.
    pub app: Option<&'a App>,
    /// The header's links.
    pub navigation: Vec<NavigationView>,
    /// Its own legal and support pages.
    pub legal: Vec<LinkView>,
}

/// A link that is ready to be written.
#[derive(Debug, Clone, Serialize)]
pub struct LinkView {
    /// Its words.
    pub label: String,
    /// Where it leads; none for the page itself.
    pub href: Option<String>,
    /// Whether it leads to the page that it stands on, or above it.
    pub current: bool,
    /// Whether it opens beside the page.
    pub new_tab: bool,
}

/// A link to another page of the tenant.
#[derive(Debug, Clone, Serialize)]
pub struct PageLink {
    /// Its words: the page's heading.
    pub label: String,
    /// Where it is.
    pub href: String,
}

/// A link of the header, as its island takes it.
#[derive(Debug, Clone, Serialize)]
pub struct NavigationView {
    /// Its words.
    pub label: String,
    /// Where it leads.
    pub href: String,
    /// Whether it leads to the page that it stands on, or above it.
    pub current: bool,
}

/// A column of the footer.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnView<'a> {
    /// Its heading.
    pub title: &'a str,
    /// Its links.
    pub links: Vec<LinkView>,
}

/// The company as templates see it.
#[derive(Debug, Clone, Serialize)]
pub struct CompanyView<'a> {
    /// The name in titles.
    pub name: &'a str,
    /// The name in contracts.
    pub legal_name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// The words in the footer.
    pub blurb: Option<&'a str>,
    /// Its e-mail address.
    pub email: &'a str,
    /// Its phone number.
    pub phone: Option<&'a str>,
    /// When it is answered.
    pub phone_hours: Option<&'a str>,
    /// Where a call is booked.
    pub scheduling: Option<&'a str>,
    /// Its page in the professional network.
    pub network: Option<&'a str>,
    /// Its towns.
    pub locations: &'a [String],
    /// The year of the copyright line.
    pub year: i16,
    /// The domain's home page.
    pub home: String,
    /// The footer's columns.
    pub columns: Vec<ColumnView<'a>>,
    /// The footer's legal links.
    pub legal: Vec<LinkView>,
    /// Where it is, as a time zone (IANA).
    pub time_zone: &'a str,
    /// The country that it works in (ISO 3166-1 alpha-2).
    pub country: Option<&'a str>,
    /// Its sites: `id`, `name`, `href`, `here`, `root` and `settings`.
    #[serde(skip)]
    pub sites: Vec<Value>,
}

/// The page as templates see it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PageView<'a> {
    /// Its path within the tenant.
    pub path: &'a str,
    /// Its name.
    pub title: &'a str,
    /// Its heading.
    pub heading: &'a str,
    /// Its description.
    pub description: Option<&'a str>,
    /// Its canonical URL.
    pub canonical: Option<String>,
    /// Its layout.
    pub layout: &'a str,
    /// The day of an entry, as `2025-07-21`.
    pub date: Option<String>,
    /// The same in words.
    pub date_text: Option<String>,
    /// The day of the last change.
    pub updated: Option<String>,
    /// The same in words.
    pub updated_text: Option<String>,
    /// Whether the text holds from that day on.
    pub effective: bool,
    /// What lists show of it.
    pub excerpt: Option<&'a str>,
    /// What it is about.
    pub tags: &'a [String],
    /// The body, as HTML.
    #[serde(skip)]
    pub body: String,
    /// The headings of the body.
    pub contents: Vec<Heading>,
    /// The way to the page, the page itself last and without a link.
    pub breadcrumbs: Vec<LinkView>,
    /// The link back.
    pub back: Option<LinkView>,
    /// The parts above the body, resolved.
    #[serde(skip)]
    pub sections: Vec<Value>,
    /// The entries of a collection, newest first.
    pub entries: Vec<EntryView<'a>>,
    /// The collection that an entry belongs to.
    pub collection: Option<PageLink>,
    /// The next newer entry.
    pub newer: Option<PageLink>,
    /// The next older entry.
    pub older: Option<PageLink>,
    /// What an error page is about.
    pub status: Option<StatusView<'a>>,
}

/// An error page's reason.
#[derive(Debug, Clone, Serialize)]
pub struct StatusView<'a> {
    /// The status code (RFC 9110, section 15).
    pub code: u16,
    /// Its reason phrase.
    pub reason: &'a str,
    /// More words, in development.
    pub detail: Option<&'a str>,
}

/// An entry as lists show it.
#[derive(Debug, Clone, Serialize)]
pub struct EntryView<'a> {
    /// Its name.
    pub title: &'a str,
    /// Where it is.
    pub href: String,
    /// A few words.
    pub excerpt: Option<&'a str>,
    /// Its day.
    pub date: Option<String>,
    /// The same in words.
    pub date_text: Option<String>,
    /// What it is about.
    pub tags: &'a [String],
}

/// The tenant for a page at `path`.
#[must_use]
pub(super) fn site<'a>(site: &'a Site, scope: &'a Scope, path: &str) -> SiteView<'a> {
    let manifest = &site.manifest;
    let resolver = &scope.resolver;
    let legal = if resolver.is_root() {
        Vec::new()
    } else {
        site.pages
            .values()
            .filter(|page| page.front.layout.as_deref() == Some("legal") || page.path == "/support")
            .map(|page| LinkView {
                label: name_of(page).to_owned(),
                href: Some(resolver.href(&page.path)),
                current: page.path == path,
                new_tab: false,
            })
            .collect()
    };
    SiteView {
        id: site.id.as_str(),
        name: &manifest.name,
        tagline: manifest.tagline.as_deref(),
        description: manifest.description.as_deref(),
        root: resolver.is_root(),
        language: &manifest.language,
        home: resolver.href("/"),
        settings: resolve(&scope.prepared.content.settings, site, scope),
        app: manifest.app.as_ref(),
        navigation: company_links(
            &resolver.deployment.company.navigation,
            resolver,
            path,
            resolver.is_root(),
        )
        .into_iter()
        .map(|link| NavigationView {
            label: link.label,
            href: link.href.unwrap_or_default(),
            current: link.current,
        })
        .collect(),
        legal,
    }
}

/// The company for a page at `path`.
#[must_use]
pub(super) fn company<'a>(resolver: &'a Resolver, path: &str) -> CompanyView<'a> {
    let company = &resolver.deployment.company;
    let links = |links: &[NamedLink]| company_links(links, resolver, path, resolver.is_root());
    CompanyView {
        name: &company.name,
        legal_name: &company.legal_name,
        description: &company.description,
        blurb: company.blurb.as_deref(),
        email: company.email.as_str(),
        phone: company.phone.as_deref(),
        phone_hours: company.phone_hours.as_deref(),
        scheduling: company.scheduling.as_ref().map(|url| url.as_str()),
        network: company.network.as_ref().map(|url| url.as_str()),
        locations: &company.locations,
        year: resolver.deployment.year,
        home: resolver.company_href("/"),
        columns: company
            .columns
            .iter()
            .map(|column| ColumnView {
                title: &column.title,
                links: links(&column.links),
            })
            .collect(),
        legal: links(&company.legal),
        time_zone: company.time_zone.as_str(),
        country: company.country.as_deref(),
        sites: resolver
            .deployment
            .sites
            .iter()
            .map(|card| card_view(card, resolver))
            .collect(),
    }
}

fn card_view(card: &Card, resolver: &Resolver) -> Value {
    let id = card.tenant.as_str();
    let root = resolver.deployment.root.as_ref();
    let mut view = Map::default();
    view.insert("id".into(), id.into());
    view.insert("name".into(), card.name.as_str().into());
    view.insert("href".into(), resolver.href(&format!("{id}:/")).into());
    view.insert("here".into(), (id == resolver.tenant.as_str()).into());
    view.insert(
        "root".into(),
        root.is_some_and(|root| root.as_str() == id).into(),
    );
    view.insert("settings".into(), card.settings());
    view.into()
}

fn company_links(
    links: &[NamedLink],
    resolver: &Resolver,
    path: &str,
    on_root: bool,
) -> Vec<LinkView> {
    links
        .iter()
        .map(|link| {
            let target = link.link.as_str();
            LinkView {
                label: link.label.clone(),
                href: Some(resolver.company_href(target)),
                current: on_root && (path == target || path.starts_with(&format!("{target}/"))),
                new_tab: link.new_tab,
            }
        })
        .collect()
}

/// The name of a page in breadcrumbs and lists.
#[must_use]
pub(super) fn name_of(page: &Page) -> &str {
    page.front
        .breadcrumb
        .as_deref()
        .unwrap_or(&page.front.title)
}

/// The way to a page: names and paths within the tenant. The tenant's own landing page comes first.
#[must_use]
pub(super) fn trail<'a>(site: &'a Site, page: &'a Page) -> Vec<(&'a str, &'a str)> {
    let mut trail = vec![(name_of(page), page.path.as_str())];
    let mut parent = page.parent();
    while let Some(path) = parent {
        if let Some(above) = site.pages.get(path) {
            let name = if path == "/" {
                site.manifest.name.as_str()
            } else {
                name_of(above)
            };
            trail.push((name, path));
        }
        parent = match path.rsplit_once('/') {
            Some((_, "")) | None => None,
            Some(("", _)) => Some("/"),
            Some((above, _)) => Some(above),
        };
    }
    trail.reverse();
    if page.path == "/" {
        trail[0].0 = &site.manifest.name;
    }
    trail
}

/// The pages beside a collection's index, newest first.
#[must_use]
pub(super) fn entries<'a>(site: &'a Site, collection: &str) -> Vec<&'a Page> {
    let mut entries: Vec<&Page> = site
        .pages
        .values()
        .filter(|page| page.parent() == Some(collection))
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

/// An entry for a list.
#[must_use]
pub(super) fn entry<'a>(page: &'a Page, scope: &Scope) -> EntryView<'a> {
    EntryView {
        title: page.front.heading.as_deref().unwrap_or(&page.front.title),
        href: scope.resolver.href(&page.path),
        excerpt: page.front.excerpt.as_deref(),
        date: page.front.date.map(|date| date.day().to_string()),
        date_text: page
            .front
            .date
            .map(|date| scope.prepared.language.date(date)),
        tags: &page.front.tags,
    }
}

/// The sections of a page as their templates see them.
#[must_use]
pub(super) fn sections(site: &Site, page: &Page, scope: &Scope) -> Vec<Value> {
    let sections = scope.prepared.content.sections.get(&page.path);
    let sections = sections.into_iter().flatten();
    sections
        .map(|section| resolve(&section.data, site, scope))
        .collect()
}

/// The collection that a page is an entry of.
#[must_use]
pub(super) fn collection_of<'a>(site: &'a Site, page: &Page) -> Option<&'a Page> {
    site.pages
        .get(page.parent()?)
        .filter(|parent| parent.front.collection.is_some())
}

/// The layout that a page is rendered with.
#[must_use]
pub(super) fn layout_of<'a>(site: &'a Site, page: &'a Page) -> &'a str {
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

/// What a page is, for structured data.
#[must_use]
pub(super) fn schema_of(site: &Site, page: &Page) -> Option<PageSchema> {
    let by_collection = || collection_of(site, page)?.front.collection.as_ref()?.schema;
    let as_index = || {
        page.front
            .collection
            .as_ref()
            .map(|_| PageSchema::Collection)
    };
    page.front.schema.or_else(as_index).or_else(by_collection)
}
