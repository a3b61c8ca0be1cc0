//! `tenant.yaml`: what a tenant is, apart from its pages.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};

use super::app::App;
use crate::formats::values::{
    Asset, Email, File, HostName, Language, Link, Prefix, RoutePath, TimeZone, WebUrl,
};

/// The most `aliases` of a tenant: it is rendered anew for each.
pub const MAX_ALIASES: usize = 64;

/// The most `hosts` of a tenant: it is rendered anew for each.
pub const MAX_HOSTS: usize = 16;

/// A tenant's manifest. Only `name` is needed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The site's name as visitors read it.
    pub name: String,
    /// One line that says what it is.
    #[serde(default)]
    pub tagline: Option<String>,
    /// The description of every page that has none of its own, 50 to 160 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether this tenant owns the domain's root. Only one can.
    #[serde(default)]
    pub root: bool,
    /// The theme's folder.
    #[serde(default = "default_theme")]
    pub theme: String,
    /// The language of the pages (BCP 47).
    #[serde(default)]
    pub language: Language,
    /// What sets it apart from its siblings, as far as the theme has settings for it.
    #[serde(default)]
    pub settings: Map<String, Json>,
    /// Words that stand in the place of the theme's, by their keys.
    #[serde(default)]
    pub strings: Map<String, Json>,
    /// More path prefixes on the deployment's domain, at most 64.
    #[serde(default)]
    #[schemars(length(max = MAX_ALIASES))]
    pub aliases: Vec<Prefix>,
    /// Domains of its own, at most 16.
    #[serde(default)]
    #[schemars(length(max = MAX_HOSTS))]
    pub hosts: Vec<HostName>,
    /// Which of its places search engines should keep.
    #[serde(default)]
    pub canonical: CanonicalPlace,
    /// For how much of its hosts browsers remember to come over TLS only.
    ///
    /// It holds for the hosts that the tenant has for itself: its `hosts`, `<id>.<domain>`, and the domain for the tenant with `root: true`. A tenant below a prefix of the domain does not decide for the domain. `hsts: preload` and `hsts: {subdomains: true, preload: true}` say the same.
    #[serde(default, deserialize_with = "hsts")]
    #[schemars(with = "WrittenHsts")]
    pub hsts: Hsts,
    /// The social image of every page that has none of its own.
    #[serde(default)]
    pub image: Option<Asset>,
    /// Whether there is an index of its pages, `/search.json`, for themes that have a search.
    #[serde(default)]
    pub search: bool,
    /// The app that this site is for.
    #[serde(default)]
    pub app: Option<Box<App>>,
    /// Links that are known to lead nowhere, and why.
    #[serde(default)]
    pub known_missing: Vec<KnownMissing>,
    /// Files with an address that stays, at most 100: `press-kit: assets/press-kit.zip` is `/press-kit`, which leads to the newest.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub downloads: BTreeMap<String, File>,
    /// Texts that answer as they are at the root of the tenant's own hosts, at most 100: `google1a2b.html: assets/google1a2b.html` is `/google1a2b.html`, by which a search engine verifies a host.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub files: BTreeMap<String, File>,
    /// Paths that have moved, at most 1,000.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    pub redirects: Vec<Redirect>,
    /// The company behind all tenants; the root tenant says it.
    #[serde(default)]
    pub company: Option<Box<Company>>,
}

impl Manifest {
    /// The paths of its downloads, with their files as it names them.
    pub fn downloads(&self) -> impl Iterator<Item = (String, &File)> {
        let downloads = self.downloads.iter();
        downloads.map(|(name, file)| (format!("/{name}"), file))
    }

    /// Returns the paths of the texts that answer as they are, with their files as the manifest names them.
    pub fn files(&self) -> impl Iterator<Item = (String, &File)> {
        let files = self.files.iter();
        files.map(|(name, file)| (format!("/{name}"), file))
    }
}

/// The theme of a tenant that names none.
pub const DEFAULT_THEME: &str = "base";

fn default_theme() -> String {
    DEFAULT_THEME.to_owned()
}

/// Which place of a tenant is the one that search engines keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CanonicalPlace {
    /// The prefix under the deployment's domain.
    #[default]
    Domain,
    /// The tenant's own host.
    Host,
}

/// For how much of a host browsers remember, for two years, to come over TLS only (RFC 6797).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hsts {
    /// The host itself.
    #[default]
    Host,
    /// The host and every host below it, those of other servers, too.
    Subdomains,
    /// The same, and the host may be put on the list that browsers bring along (hstspreload.org), which is hard to leave.
    Preload,
    /// Nothing, and browsers forget what they were told before.
    Off,
}

impl Hsts {
    /// The value of `Strict-Transport-Security` (RFC 6797, section 6.1).
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

/// `hsts` as manifests write it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenHsts {
    Parts(HstsParts),
    Word(Hsts),
}

/// `preload` needs `subdomains`: the list that browsers bring along takes no host without those below it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {
    "properties": {"subdomains": {"const": false}, "preload": {"const": true}},
    "required": ["preload"],
}))]
struct HstsParts {
    /// Whether every host below it is bound, too, as `subdomains` says.
    #[serde(default)]
    subdomains: bool,
    /// Whether it may be put on the list that browsers bring along, as `preload` says.
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

/// A link that leads nowhere on purpose.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownMissing {
    /// The link as pages write it.
    pub link: Link,
    /// Why that is right.
    pub reason: String,
}

/// A path that has moved for good.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The path that visitors may still have.
    pub from: RoutePath,
    /// Where it leads now.
    pub to: Link,
}

/// The company profile: every fact of it stands here and nowhere else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Company {
    /// The name in every title.
    pub name: String,
    /// The name in contracts.
    pub legal_name: String,
    /// What the company does, for structured data.
    pub description: String,
    /// The few lines in the footer.
    #[serde(default)]
    pub blurb: Option<String>,
    /// Where mail goes.
    pub email: Email,
    /// The phone number as people write it.
    #[serde(default)]
    pub phone: Option<String>,
    /// When somebody answers the phone.
    #[serde(default)]
    pub phone_hours: Option<String>,
    /// Where a call is booked.
    #[serde(default)]
    pub scheduling: Option<WebUrl>,
    /// The page in the professional network.
    #[serde(default)]
    pub network: Option<WebUrl>,
    /// The towns it works from.
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
    /// Where the company is, as a time zone (IANA), by default UTC: the copyright line says its year.
    #[serde(default)]
    pub time_zone: TimeZone,
    /// The country that it works in (ISO 3166-1 alpha-2), for structured data.
    #[serde(default)]
    pub country: Option<String>,
    /// What its address is for, for structured data (<https://schema.org/contactType>): `sales`.
    #[serde(default)]
    pub contact_type: Option<String>,
    /// The languages in which it answers, for structured data.
    #[serde(default)]
    pub contact_languages: Vec<String>,
    /// The sites that are shown together, in order.
    #[serde(default)]
    pub sites: Vec<CompanySite>,
}

/// A link with its words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedLink {
    /// The words.
    pub label: String,
    /// Where it leads.
    pub link: Link,
    /// Whether it opens beside the page.
    #[serde(default)]
    pub new_tab: bool,
}

/// A column of links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Its links.
    pub links: Vec<NamedLink>,
}

/// A site of the company, as pages of all its sites show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompanySite {
    /// The tenant.
    pub tenant: String,
    /// Its name.
    pub name: String,
}
