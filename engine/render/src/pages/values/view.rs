//! The values that templates see. Each value is resolved: a template need not look up links, images or UI strings.

use serde::Serialize;
use tera::Value;

use crate::markdown::Heading;
use content::tenant::app::App;

/// The complete context of a layout.
#[derive(Debug)]
pub struct TemplateView<'a> {
    /// The content of `<head>`.
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
    /// A one-line description.
    pub tagline: Option<&'a str>,
    /// Its default description.
    pub description: Option<&'a str>,
    /// Whether it is the root tenant.
    pub root: bool,
    /// Its language.
    pub language: &'a str,
    /// The direction of its language: `ltr` or `rtl`.
    pub dir: &'static str,
    /// The link to its landing page.
    pub home: String,
    /// Its settings, resolved.
    #[serde(skip)]
    pub settings: Value,
    /// The path of its search index, if its manifest enables one.
    pub search: Option<String>,
    /// Its app.
    pub app: Option<&'a App>,
    /// The links of the header.
    pub navigation: Vec<NavigationView>,
    /// Links to its own legal and support pages.
    pub legal: Vec<LinkView>,
}

/// A resolved link.
#[derive(Debug, Clone, Serialize)]
pub struct LinkView {
    /// The link text.
    pub label: String,
    /// The URL; `None` for the page itself.
    pub href: Option<String>,
    /// Whether the link goes to the page that contains it, or to a page above.
    pub current: bool,
    /// Whether the link opens in a new tab.
    pub new_tab: bool,
}

/// A link to another page of the tenant.
#[derive(Debug, Clone, Serialize)]
pub struct PageLink {
    /// The link text: the heading of the page.
    pub label: String,
    /// The URL.
    pub href: String,
}

/// A link of the header, in the shape that its island expects.
#[derive(Debug, Clone, Serialize)]
pub struct NavigationView {
    /// The link text.
    pub label: String,
    /// The URL.
    pub href: String,
    /// Whether the link goes to the page that contains it, or to a page above.
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

/// The company as templates see it. Without a company profile, only `year`, `home` and `sites` have values.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CompanyView<'a> {
    /// Its name in titles.
    pub name: Option<&'a str>,
    /// Its legal name.
    pub legal_name: Option<&'a str>,
    /// A description of its business.
    pub description: Option<&'a str>,
    /// The text in the footer.
    pub blurb: Option<&'a str>,
    /// Its e-mail address.
    pub email: Option<&'a str>,
    /// Its phone number.
    pub phone: Option<&'a str>,
    /// The hours in which the phone is answered.
    pub phone_hours: Option<&'a str>,
    /// The URL for booking a call.
    pub scheduling: Option<&'a str>,
    /// The URL of its page in a professional network.
    pub network: Option<&'a str>,
    /// Its locations.
    pub locations: &'a [String],
    /// The year of the copyright line.
    pub year: i16,
    /// The link to the domain's home page, or to the tenant's landing page without a company profile.
    pub home: String,
    /// The columns of the footer.
    pub columns: Vec<ColumnView<'a>>,
    /// The legal links of the footer.
    pub legal: Vec<LinkView>,
    /// Its time zone (IANA).
    pub time_zone: Option<&'a str>,
    /// The country of its business (ISO 3166-1 alpha-2).
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
    /// Its title.
    pub title: &'a str,
    /// Its heading.
    pub heading: &'a str,
    /// Its description.
    pub description: Option<&'a str>,
    /// Its canonical URL.
    pub canonical: Option<String>,
    /// Its layout.
    pub layout: &'a str,
    /// The date of an entry: `2025-07-21`.
    pub date: Option<String>,
    /// The date in words.
    pub date_text: Option<String>,
    /// The date of the last change.
    pub updated: Option<String>,
    /// The date of the last change in words.
    pub updated_text: Option<String>,
    /// Whether the text takes effect on the date of the last change.
    pub effective: bool,
    /// The text that lists show.
    pub excerpt: Option<&'a str>,
    /// Its tags.
    pub tags: &'a [String],
    /// The body, as HTML.
    #[serde(skip)]
    pub body: String,
    /// The headings of the body.
    pub contents: Vec<Heading>,
    /// The breadcrumbs; the page itself is last and has no link.
    pub breadcrumbs: Vec<LinkView>,
    /// The link back to the page above.
    pub back: Option<LinkView>,
    /// The sections above the body, as template values.
    #[serde(skip)]
    pub sections: Vec<Value>,
    /// The entries of a collection, newest first.
    pub entries: Vec<EntryView<'a>>,
    /// The collection of an entry.
    pub collection: Option<PageLink>,
    /// The next newer entry.
    pub newer: Option<PageLink>,
    /// The next older entry.
    pub older: Option<PageLink>,
    /// The languages of the tenant, for a language switcher. Empty for a tenant with one language.
    pub translations: Vec<TranslationView<'a>>,
    /// The status of an error page.
    pub status: Option<StatusView<'a>>,
}

/// A language in a language switcher.
#[derive(Debug, Clone, Serialize)]
pub struct TranslationView<'a> {
    /// Its tag (BCP 47).
    pub language: &'a str,
    /// Its own name: `Deutsch`.
    pub name: String,
    /// Its direction: `ltr` or `rtl`.
    pub dir: &'static str,
    /// The URL of the translation, or of the language's home page.
    pub url: String,
    /// Whether the page is in this language.
    pub is_current: bool,
}

/// The status of an error page.
#[derive(Debug, Clone, Serialize)]
pub struct StatusView<'a> {
    /// The status code (RFC 9110, section 15).
    pub code: u16,
    /// The reason phrase.
    pub reason: &'a str,
    /// Details, with `--dev` only.
    pub detail: Option<&'a str>,
}

/// An entry of a collection.
#[derive(Debug, Clone, Serialize)]
pub struct EntryView<'a> {
    /// Its title.
    pub title: &'a str,
    /// Its URL.
    pub href: String,
    /// Its excerpt.
    pub excerpt: Option<&'a str>,
    /// Its date.
    pub date: Option<String>,
    /// Its date in words.
    pub date_text: Option<String>,
    /// Its tags.
    pub tags: &'a [String],
}
