//! The manifest of a tenant, `tenant.yaml`: everything about the tenant except its pages.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};

use super::app::App;
use crate::formats::old_path::{ParsedOldPath, parse_old_path};
use crate::formats::values::{
    Asset, Email, HostName, Language, Link, OldPath, Prefix, RedirectTarget, TenantFile, TimeZone,
    WebUrl,
};

/// The largest number of `aliases` of a tenant. The tenant is rendered once for each.
pub const MAX_ALIASES: usize = 64;

/// The largest number of `hosts` of a tenant. The tenant is rendered once for each.
pub const MAX_HOSTS: usize = 16;

/// The largest number of `languages` of a tenant.
pub const MAX_LANGUAGES: usize = 32;

/// The largest number of `redirects` of a tenant.
pub const MAX_REDIRECTS: usize = 10_000;

/// The manifest of a tenant. Only `name` is required.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The site's name as visitors read it.
    pub name: String,
    /// A one-line description of the site.
    #[serde(default)]
    pub tagline: Option<String>,
    /// The description of all pages without their own, 50 to 160 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether this tenant owns the domain's root. Only one can.
    #[serde(default)]
    pub root: bool,
    /// The name of the theme's folder.
    #[serde(default = "default_theme")]
    pub theme: String,
    /// The language of the pages (BCP 47).
    #[serde(default)]
    pub language: Language,
    /// The languages of a site in several languages, instead of `language`. The first is the default. `pages/terms.de.md` is the translation of `pages/terms.md` in `de`, at `/de/terms`.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_LANGUAGES), extend("uniqueItems" = true))]
    pub languages: Vec<Language>,
    /// The theme's settings for this site. The theme defines which keys there are.
    #[serde(default)]
    pub settings: Map<String, Json>,
    /// UI strings that replace the theme's, by key.
    #[serde(default)]
    pub strings: Map<String, Json>,
    /// More path prefixes on the deployment's domain, at most 64.
    #[serde(default)]
    #[schemars(length(max = MAX_ALIASES))]
    pub aliases: Vec<Prefix>,
    /// The tenant's own domains, at most 16.
    #[serde(default)]
    #[schemars(length(max = MAX_HOSTS))]
    pub hosts: Vec<HostName>,
    /// The address that search engines should list.
    #[serde(default)]
    pub canonical: CanonicalPlace,
    /// The hosts for which browsers use only HTTPS.
    ///
    /// Applies to the hosts that belong to the tenant alone: its `hosts`, `<id>.<domain>`, and the domain for the tenant with `root: true`. A tenant below a prefix of the domain does not decide for the domain. `hsts: preload` and `hsts: {subdomains: true, preload: true}` mean the same.
    #[serde(default, deserialize_with = "hsts")]
    #[schemars(with = "WrittenHsts")]
    pub hsts: Hsts,
    /// The social image of all pages without their own.
    #[serde(default)]
    pub image: Option<Asset>,
    /// Whether there is a search index of the pages, `/search.json`, for themes with a search.
    #[serde(default)]
    pub search: bool,
    /// The app that this site is for.
    #[serde(default)]
    pub app: Option<Box<App>>,
    /// Links without a target that are intended, with the reason.
    #[serde(default)]
    pub known_missing: Vec<KnownMissing>,
    /// Files with a permanent path, at most 100. `press-kit: assets/press-kit.zip` redirects `/press-kit` to the current file.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub downloads: BTreeMap<String, TenantFile>,
    /// Text files served unchanged at the root of the tenant's own hosts, at most 100. `google1a2b.html: assets/google1a2b.html` is served at `/google1a2b.html`, by which a search engine verifies the host.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub files: BTreeMap<String, TenantFile>,
    /// Addresses that have moved or were removed, at most 10,000.
    #[serde(default)]
    #[schemars(length(max = MAX_REDIRECTS))]
    pub redirects: Vec<Redirect>,
    /// The company behind all tenants. Only the root tenant defines it.
    #[serde(default)]
    pub company: Option<Box<Company>>,
}

impl Manifest {
    /// Returns the manifest of a preview: without the addresses that only the live tenant has.
    #[must_use]
    pub(super) fn of_preview(self) -> Self {
        Self {
            root: false,
            aliases: Vec::new(),
            hosts: Vec::new(),
            canonical: CanonicalPlace::Host,
            ..self
        }
    }

    /// Returns the paths of the downloads, with their files as the manifest names them.
    pub fn downloads(&self) -> impl Iterator<Item = (String, &TenantFile)> {
        let downloads = self.downloads.iter();
        downloads.map(|(name, file)| (format!("/{name}"), file))
    }

    /// Returns the paths of the text files, with their files as the manifest names them.
    pub fn files(&self) -> impl Iterator<Item = (String, &TenantFile)> {
        let files = self.files.iter();
        files.map(|(name, file)| (format!("/{name}"), file))
    }
}

/// The theme of a tenant whose manifest names none.
pub const DEFAULT_THEME: &str = "base";

fn default_theme() -> String {
    DEFAULT_THEME.to_owned()
}

/// The canonical address of a tenant, which search engines list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CanonicalPlace {
    /// The prefix under the deployment's domain.
    #[default]
    Domain,
    /// The tenant's own host.
    Host,
}

/// The hosts for which browsers use only HTTPS for two years (RFC 6797).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hsts {
    /// The host itself.
    #[default]
    Host,
    /// The host and all hosts below it, including those of other servers.
    Subdomains,
    /// As `subdomains`, and the host may be added to the list that is built into browsers (hstspreload.org). Removal from that list is slow.
    Preload,
    /// No enforcement. Browsers discard an earlier policy.
    Off,
}

impl Hsts {
    /// Returns the value of `Strict-Transport-Security` (RFC 6797, section 6.1).
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Host => "max-age=63072000",
            Self::Subdomains => "max-age=63072000; includeSubDomains",
            Self::Preload => "max-age=63072000; includeSubDomains; preload",
            Self::Off => "max-age=0",
        }
    }
}

/// The value of `hsts` as manifests write it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenHsts {
    Parts(HstsParts),
    Word(Hsts),
}

/// `preload` needs `subdomains`: the list that is built into browsers accepts a host only with all hosts below it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {
    "properties": {"subdomains": {"const": false}, "preload": {"const": true}},
    "required": ["preload"],
}))]
struct HstsParts {
    /// Whether all hosts below the host are included, as with `subdomains`.
    #[serde(default)]
    subdomains: bool,
    /// Whether the host may be added to the list that is built into browsers, as with `preload`.
    #[serde(default)]
    preload: bool,
}

fn hsts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hsts, D::Error> {
    Ok(match WrittenHsts::deserialize(deserializer)? {
        WrittenHsts::Word(word) => word,
        WrittenHsts::Parts(parts) => match (parts.subdomains, parts.preload) {
            (true, true) => Hsts::Preload,
            (true, false) => Hsts::Subdomains,
            (false, _) => Hsts::Host,
        },
    })
}

/// A link without a target that is intended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownMissing {
    /// The link as the pages write it.
    pub link: Link,
    /// The reason why the target is missing.
    pub reason: String,
}

/// An address that has moved or was removed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The old path, as visitors read it. `/old/*` is `/old` and every path below it.
    pub from: OldPath,
    /// Parameters that the query of the request must have, at most 8. `{p: 12}` applies to `?p=12`. With parameters, a redirect also applies to the path of a page.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 8))]
    pub query: BTreeMap<String, QueryValue>,
    /// The target. In `/new/:splat`, `:splat` is the part of the path that `*` stands for. A redirect with `status: 410` has no target.
    #[serde(default)]
    pub to: Option<RedirectTarget>,
    /// The status: 308 or 301 for a permanent redirect, 307 or 302 for a temporary one, 410 for a page that was removed.
    #[serde(default)]
    pub status: RedirectStatus,
}

impl Redirect {
    /// Returns the old path, decoded.
    #[must_use]
    pub fn old_path(&self) -> ParsedOldPath {
        // The schema has checked the path.
        parse_old_path(self.from.as_str()).unwrap_or_else(|_| ParsedOldPath {
            path: self.from.as_str().to_owned(),
            is_wildcard: false,
        })
    }

    /// Returns the path that the redirect takes from every other use: an exact path without conditions on the query.
    #[must_use]
    pub fn own_path(&self) -> Option<String> {
        let old = self.old_path();
        (!old.is_wildcard && self.query.is_empty()).then_some(old.path)
    }
}

/// The status of a redirect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub enum RedirectStatus {
    /// 301: moved permanently.
    MovedPermanently,
    /// 302: found, for a while.
    Found,
    /// 307: a temporary redirect.
    Temporary,
    /// 308: a permanent redirect.
    #[default]
    Permanent,
    /// 410: the page was removed.
    Gone,
}

impl RedirectStatus {
    /// All statuses.
    pub const ALL: [Self; 5] = [
        Self::MovedPermanently,
        Self::Found,
        Self::Temporary,
        Self::Permanent,
        Self::Gone,
    ];

    /// Returns the status code.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::MovedPermanently => 301,
            Self::Found => 302,
            Self::Temporary => 307,
            Self::Permanent => 308,
            Self::Gone => 410,
        }
    }
}

impl TryFrom<u16> for RedirectStatus {
    type Error = String;

    fn try_from(code: u16) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|status| status.code() == code)
            .ok_or_else(|| format!("{code} is not the status of a redirect"))
    }
}

impl From<RedirectStatus> for u16 {
    fn from(status: RedirectStatus) -> Self {
        status.code()
    }
}

impl JsonSchema for RedirectStatus {
    fn schema_name() -> Cow<'static, str> {
        "RedirectStatus".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": Self::ALL.map(Self::code)})
    }
}

/// The value of a parameter: a text, or a whole number that YAML reads as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "WrittenQueryValue", into = "String")]
pub struct QueryValue(String);

impl QueryValue {
    /// Returns the value, decoded.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WrittenQueryValue {
    Text(String),
    Number(serde_json::Number),
}

impl From<WrittenQueryValue> for QueryValue {
    fn from(written: WrittenQueryValue) -> Self {
        Self(match written {
            WrittenQueryValue::Text(text) => text,
            WrittenQueryValue::Number(number) => number.to_string(),
        })
    }
}

impl From<QueryValue> for String {
    fn from(value: QueryValue) -> Self {
        value.0
    }
}

impl JsonSchema for QueryValue {
    fn schema_name() -> Cow<'static, str> {
        "QueryValue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"], "description": "the value of a parameter"})
    }
}

/// The company profile. All company facts are defined here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Company {
    /// The name used in page titles.
    pub name: String,
    /// The legal name, for contracts.
    pub legal_name: String,
    /// A description of the company, for structured data.
    pub description: String,
    /// A short text for the footer.
    #[serde(default)]
    pub blurb: Option<String>,
    /// The e-mail address for enquiries.
    pub email: Email,
    /// The phone number, written for readers.
    #[serde(default)]
    pub phone: Option<String>,
    /// The hours in which the phone is answered.
    #[serde(default)]
    pub phone_hours: Option<String>,
    /// The web page on which visitors book a call.
    #[serde(default)]
    pub scheduling: Option<WebUrl>,
    /// The company's page in a professional network.
    #[serde(default)]
    pub network: Option<WebUrl>,
    /// The towns in which the company works.
    #[serde(default)]
    pub locations: Vec<String>,
    /// The links of the header.
    #[serde(default)]
    pub navigation: Vec<NamedLink>,
    /// The columns of the footer.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// The legal links of the footer.
    #[serde(default)]
    pub legal: Vec<NamedLink>,
    /// The time zone of the company (IANA), by default UTC. It decides the year in the copyright line.
    #[serde(default)]
    pub time_zone: TimeZone,
    /// The country in which the company works (ISO 3166-1 alpha-2), for structured data.
    #[serde(default)]
    pub country: Option<String>,
    /// The purpose of the contact, for structured data (<https://schema.org/contactType>), for example `sales`.
    #[serde(default)]
    pub contact_type: Option<String>,
    /// The languages in which the company answers enquiries, for structured data.
    #[serde(default)]
    pub contact_languages: Vec<String>,
    /// The company's sites that are listed together, in order.
    #[serde(default)]
    pub sites: Vec<CompanySite>,
}

impl Company {
    /// Returns the links of the header and the footer.
    pub fn links(&self) -> impl Iterator<Item = &NamedLink> {
        let columns = self.columns.iter().flat_map(|column| &column.links);
        self.navigation.iter().chain(columns).chain(&self.legal)
    }
}

/// A link with its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedLink {
    /// The text of the link.
    pub label: String,
    /// The target of the link.
    pub link: Link,
    /// Whether the link opens in a new tab.
    #[serde(default)]
    pub new_tab: bool,
}

/// A column of links in the footer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The heading of the column.
    pub title: String,
    /// The links in the column.
    pub links: Vec<NamedLink>,
}

/// A site of the company, as listed on the pages of all its sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompanySite {
    /// The id of the tenant.
    pub tenant: String,
    /// The name of the site.
    pub name: String,
}
