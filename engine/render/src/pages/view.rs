//! What a template sees: plain values, resolved, with nothing left to look up.

use serde::Serialize;
use tera::Value;

use crate::markdown::Heading;
use content::tenant::app::App;

/// The whole context of a layout.
#[derive(Debug)]
pub struct TemplateView<'a> {
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
    /// The index of its pages, where its manifest asks for one.
    pub search: Option<String>,
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
