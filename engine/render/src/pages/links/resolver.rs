//! Resolves an author's link for the address that a page is rendered for.
//!
//! | link | example |
//! |---|---|
//! | from the tenant's root | `/terms` |
//! | to a file beside the author's | `terms.md` |
//! | to another tenant | `shop:/contact` |
//! | to a fact of the company | `company:email` |

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use url::{Position, Url};

use crate::compile::site_card::SiteCard;
use crate::pages::links::link_base::LinkBase;
use crate::resources::asset::{ASSETS, Asset};
use crate::resources::header_fields::CachePolicy;
use content::address::{Address, Origin};
use content::formats::link::rooted;
pub(crate) use content::formats::link::{LinkTarget, parse_link};
use content::name::{TenantId, nfc};
use content::tenant::assets::linked;
use content::tenant::manifest::{Company, Hsts};
use content::tenant::{MANIFEST, Site};

/// A link that stays on the page: the fragment is empty.
const SAME_PAGE: &str = "#";

/// The facts that all tenants of a deployment share. A change here affects every page.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentFacts {
    /// The origin of the deployment.
    pub origin: Origin,
    /// The tenant at the domain's root.
    pub root: Option<TenantId>,
    /// The company profile, from the root tenant, in its default language. Without a profile, pages state nothing about a company.
    pub company: Option<Company>,
    /// The company profile in the other languages of the root tenant, by language tag.
    pub translated: BTreeMap<String, TranslatedCompany>,
    /// The languages of the root tenant's pages that the profile links to, by path.
    pub linked_pages: BTreeMap<String, String>,
    /// The absolute URL of the root tenant's social image, the default for pages and tenants without one.
    pub image: Option<String>,
    /// The cards of the company's sites that pages show.
    pub sites: Vec<SiteCard>,
    /// The year of the copyright line.
    pub year: i16,
    /// The HSTS policy of the domain, which the root tenant decides.
    pub hsts: Hsts,
    /// How long shared caches may keep pages.
    pub caching: CachePolicy,
    /// Whether section examples are pages that other pages of the origin show in frames. True in the manual only.
    pub shows_section_examples: bool,
}

/// The company profile in another language than the default of the root tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct TranslatedCompany {
    /// The profile, with its texts in the language.
    pub company: Company,
    /// The paths of the linked pages that are translated, by the path of the original.
    pub pages: BTreeMap<String, String>,
}

impl DeploymentFacts {
    /// Returns the company profile in a language: `de` for `de-AT`, too. For other languages, returns the profile in the default language.
    #[must_use]
    pub fn company_in(&self, tag: &str) -> Option<&Company> {
        let translated = self.translated_company(tag);
        let translated = translated.map(|translated| &translated.company);
        translated.or(self.company.as_ref())
    }

    /// Returns the name that titles end with in one of the site's languages: the company's, else the site's.
    #[must_use]
    pub(crate) fn brand<'a>(&'a self, site: &'a Site, language: usize) -> &'a str {
        let company = self.company_in(site.manifest.languages()[language].as_str());
        company.map_or(&site.manifest_in(language).name, |company| &company.name)
    }

    /// Returns whether the landing page of a tenant is the home page of its visitors: that of the root tenant, or of every tenant if the domain has no root tenant.
    #[must_use]
    pub(crate) fn has_home_at(&self, tenant: &TenantId) -> bool {
        self.root.as_ref().is_none_or(|root| root == tenant)
    }

    fn translated_company(&self, tag: &str) -> Option<&TranslatedCompany> {
        let primary = tag.split('-').next().unwrap_or(tag);
        let exact = self.translated.get(tag);
        exact.or_else(|| self.translated.get(primary))
    }
}

/// Returns the company profile of the root tenant in all its languages but the default, and the languages of the pages that the profile links to.
#[must_use]
pub fn translated_companies(
    root: &Site,
) -> (
    BTreeMap<String, TranslatedCompany>,
    BTreeMap<String, String>,
) {
    let languages = root.manifest.languages();
    let companies = (0..languages.len()).filter_map(|index| {
        let company = root.manifest_in(index).company.as_deref()?;
        Some((index, company.clone()))
    });
    let companies: Vec<(usize, Company)> = companies.collect();
    let links = companies.iter().flat_map(|(_, company)| company.links());
    let paths = links.filter_map(
        |link| match parse_link(&rooted(link.link.as_str(), MANIFEST)) {
            Ok(LinkTarget::SameTenant(path, _)) if !path.is_empty() => Some(path),
            _ => None,
        },
    );
    let mut paths: BTreeSet<String> = paths.collect();
    paths.insert("/".to_owned());
    let mut linked = BTreeMap::new();
    let mut translated = BTreeMap::new();
    for (index, company) in companies {
        let tag = languages[index].as_str();
        let mut pages = BTreeMap::new();
        for path in &paths {
            let Some(page) = root.page_at(path) else {
                continue;
            };
            let language = root.manifest.language_of(&page.path);
            linked.insert(path.clone(), languages[language].as_str().to_owned());
            if let Some(translation) = root.translation(&page.path, index) {
                linked.insert(translation.path.clone(), tag.to_owned());
                pages.insert(path.clone(), translation.path.clone());
            }
        }
        if index > 0 {
            translated.insert(tag.to_owned(), TranslatedCompany { company, pages });
        }
    }
    (translated, linked)
}

/// Resolves the links of one tenant for one address, or for all of them.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// The facts that all tenants share.
    pub deployment: Arc<DeploymentFacts>,
    /// The tenant that the links belong to.
    pub tenant: TenantId,
    /// The address that links are resolved for.
    pub(crate) place: LinkBase,
    /// The tenant's files by key.
    pub(crate) assets: Arc<BTreeMap<String, Asset>>,
    /// The file that contains the links.
    pub(crate) file: Arc<str>,
    /// The tag of the page's language.
    pub(crate) language: Arc<str>,
    /// The paths of the translations in the page's language, by the path of the original. Empty in the default language.
    pub(crate) translations: Arc<BTreeMap<String, String>>,
}

impl Resolver {
    /// Creates the resolver of a tenant's manifest. It knows no files yet.
    #[must_use]
    pub(crate) fn new(site: &Site, place: LinkBase, deployment: &Arc<DeploymentFacts>) -> Self {
        Self {
            deployment: Arc::clone(deployment),
            tenant: site.id.clone(),
            place,
            assets: Arc::default(),
            file: MANIFEST.into(),
            language: site.manifest.languages()[0].as_str().into(),
            translations: Arc::default(),
        }
    }

    /// Creates the resolver for one of the tenant's addresses.
    #[must_use]
    pub(crate) fn at(site: &Site, address: &Address, deployment: &Arc<DeploymentFacts>) -> Self {
        Self::new(site, LinkBase::at(address, &deployment.origin), deployment)
    }

    /// Returns the resolver with the tenant's files.
    #[must_use]
    pub(crate) fn with_assets(self, assets: &Arc<BTreeMap<String, Asset>>) -> Self {
        Self {
            assets: Arc::clone(assets),
            ..self
        }
    }

    /// Returns the resolver for links in another file of the tenant.
    #[must_use]
    pub(crate) fn in_file(self, file: &str) -> Self {
        Self {
            file: file.into(),
            ..self
        }
    }

    /// Returns the resolver for links of pages in a language: links go to the translation, if there is one.
    #[must_use]
    pub(crate) fn in_language(self, site: &Site, language: usize) -> Self {
        if language == 0 {
            return self;
        }
        let mut paths = BTreeMap::new();
        for page in site.pages.values() {
            let Some(translation) = site.translation(&page.path, language) else {
                continue;
            };
            // An alias of the original leads to the translation, too.
            let translated = page.paths().filter(|_| page.path != translation.path);
            paths.extend(translated.map(|path| (path.to_owned(), translation.path.clone())));
        }
        Self {
            language: site.manifest.languages()[language].as_str().into(),
            translations: Arc::new(paths),
            ..self
        }
    }

    /// Returns the company profile in the page's language.
    #[must_use]
    pub(crate) fn company(&self) -> Option<&Company> {
        self.deployment.company_in(&self.language)
    }

    /// Returns the path of one of the tenant's files, and marks the file as used.
    #[must_use]
    pub(crate) fn asset(&self, asset: &Asset) -> String {
        let path = format!("{ASSETS}{}", asset.mark_used().hashed_name);
        self.own(&path)
    }

    /// Returns a path of the tenant, below its prefix.
    #[must_use]
    pub(crate) fn own(&self, path: &str) -> String {
        below(&self.place.prefix, path)
    }

    /// Returns the `href` of a link. An invalid link stays on the page; a diagnostic has named it.
    #[must_use]
    pub fn href(&self, link: &str) -> String {
        let link = &*rooted(link, &self.file);
        if let Some((_, asset, tail)) = linked(&self.assets, link) {
            return self.asset(asset) + tail;
        }
        let place = match parse_link(link) {
            Ok(LinkTarget::SameTenant(path, _)) if path.is_empty() => String::new(),
            Ok(LinkTarget::SameTenant(path, _)) => self.own(self.translated(&path)),
            Ok(LinkTarget::OtherTenant(tenant, path, _)) if tenant == self.tenant.as_str() => {
                self.own(self.translated(&path))
            }
            Ok(LinkTarget::OtherTenant(tenant, path, _)) => {
                self.on_the_domain(&self.cross_tenant_path(&tenant, &path))
            }
            Ok(LinkTarget::Company(fact)) => {
                return self
                    .company_fact(&fact)
                    .unwrap_or_else(|| SAME_PAGE.to_owned());
            }
            Ok(LinkTarget::External) => return link.to_owned(),
            Ok(LinkTarget::Relative) | Err(_) => return SAME_PAGE.to_owned(),
        };
        let tail = link.find(['?', '#']).unwrap_or(link.len());
        format!("{place}{}", composed(&link[tail..]))
    }

    /// Returns the path of the translation of a page, or the path itself if there is none.
    pub(crate) fn translated<'p>(&'p self, path: &'p str) -> &'p str {
        self.translations.get(path).map_or(path, String::as_str)
    }

    /// Returns the `Location` of a link: its `href`, percent-encoded as browsers do (WHATWG URL, section 4.4).
    #[must_use]
    pub fn location(&self, link: &str) -> String {
        let href = self.href(link);
        let base = format!("{}{}", self.deployment.origin, self.own("/"));
        match Url::parse(&base).and_then(|base| base.join(&href)) {
            Ok(url) if href.starts_with(['/', '#']) => url[Position::BeforePath..].to_owned(),
            Ok(url) => url.into(),
            Err(_) => SAME_PAGE.to_owned(),
        }
    }

    /// Returns the `href` of a link in the company profile, whose paths are the root tenant's.
    #[must_use]
    pub fn company_href(&self, link: &str) -> String {
        let link = rooted(link, MANIFEST);
        // The root tenant may have a host of its own, which its visitors should not leave.
        if self.is_root() {
            return self.href(&link);
        }
        match parse_link(&link) {
            Ok(LinkTarget::SameTenant(path, _)) if !path.is_empty() => {
                let page = self.company_path(&path);
                self.on_the_domain(&format!("{page}{}", &link[path.len()..]))
            }
            _ => self.href(&link),
        }
    }

    /// Returns the path of one of the root tenant's pages that the company profile links to, in the page's language.
    pub(crate) fn company_path<'p>(&'p self, path: &'p str) -> &'p str {
        let translated = self.deployment.translated_company(&self.language);
        let page = translated.and_then(|translated| translated.pages.get(path));
        page.map_or(path, String::as_str)
    }

    /// Returns the absolute URL of one of the tenant's pages at an address.
    #[must_use]
    pub fn url_at(&self, address: &Address, path: &str) -> String {
        url_at(&self.deployment.origin, address, path)
    }

    /// Returns the link to the home page in the page's language: the landing page of the root tenant, or of this tenant if the domain has no root tenant.
    #[must_use]
    pub(crate) fn home(&self) -> String {
        match self.deployment.has_home_at(&self.tenant) {
            true => self.href("/"),
            false => self.company_href("/"),
        }
    }

    /// Returns whether a link names a company fact that is not known.
    #[must_use]
    pub(crate) fn lacks_fact(&self, link: &str) -> bool {
        match parse_link(link) {
            Ok(LinkTarget::Company(fact)) => self.company_fact(&fact).is_none(),
            _ => false,
        }
    }

    /// Returns the link to a company fact, or `None` if the fact is not known.
    fn company_fact(&self, fact: &str) -> Option<String> {
        if fact == "home" {
            return Some(self.home());
        }
        let company = self.company()?;
        let url = match fact {
            "email" => return Some(format!("mailto:{}", company.email.as_str())),
            "scheduling" => &company.scheduling,
            "network" => &company.network,
            _ => return None,
        };
        Some(url.as_ref()?.as_str().to_owned())
    }

    /// Whether the tenant is at the domain's root, independent of its manifest.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.deployment.root.as_ref() == Some(&self.tenant)
    }

    fn cross_tenant_path(&self, tenant: &str, path: &str) -> String {
        if self
            .deployment
            .root
            .as_ref()
            .is_some_and(|root| root.as_str() == tenant)
        {
            path.to_owned()
        } else {
            below(&format!("/{tenant}"), path)
        }
    }

    /// Returns a path of the deployment's domain; absolute if the page is on another host.
    fn on_the_domain(&self, path: &str) -> String {
        format!("{}{path}", self.place.domain)
    }
}

fn is_strange(sign: char) -> bool {
    sign.is_whitespace() || sign.is_control()
}

/// Returns the query and fragment of a link with the fragment in NFC. Ids are in NFC, and browsers compare bytes.
fn composed(tail: &str) -> Cow<'_, str> {
    let Some((query, fragment)) = tail.split_once('#') else {
        return Cow::Borrowed(tail);
    };
    let decoded = percent_decode_str(fragment).decode_utf8_lossy();
    match nfc(&decoded) {
        // Fragments that are percent-encoded for another reason stay unchanged.
        composed if composed != decoded && !composed.contains(is_strange) => {
            Cow::Owned(format!("{query}#{composed}"))
        }
        _ => Cow::Borrowed(tail),
    }
}

/// Returns the absolute URL of a tenant's page at an address.
#[must_use]
pub(crate) fn url_at(origin: &Origin, address: &Address, path: &str) -> String {
    format!(
        "{}{}",
        origin.at(&address.host),
        below(&address.prefix, path)
    )
}

/// Joins a prefix and a path: `/` below `/corner` is `/corner`.
#[must_use]
pub fn below(prefix: &str, path: &str) -> String {
    match (prefix, path) {
        ("", path) => path.to_owned(),
        (prefix, "/") => prefix.to_owned(),
        (prefix, path) => format!("{prefix}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(host: &str, prefix: &str) -> Address {
        Address {
            host: host.to_owned(),
            prefix: prefix.to_owned(),
            canonical: true,
        }
    }

    fn resolver(host: &str, prefix: &str) -> Resolver {
        let company = serde_json::json!({"name": "C", "legal_name": "C", "description": "C", "email": "a@b.example", "scheduling": "https://cal.example/x"});
        Resolver {
            deployment: Arc::new(DeploymentFacts {
                origin: "https://studio.example".parse().expect("an origin"),
                root: None,
                company: serde_json::from_value(company).expect("a company"),
                translated: BTreeMap::new(),
                linked_pages: BTreeMap::new(),
                image: None,
                sites: Vec::new(),
                year: 2026,
                hsts: Hsts::default(),
                caching: CachePolicy::default(),
                shows_section_examples: false,
            }),
            tenant: TenantId::new("corner").expect("an id"),
            place: LinkBase::at(
                &address(host, prefix),
                &"https://studio.example".parse().expect("an origin"),
            ),
            assets: Arc::default(),
            file: MANIFEST.into(),
            language: "en".into(),
            translations: Arc::default(),
        }
    }

    proptest! {
        #[test]
        fn no_link_makes_an_href_of_another_scheme(
            link in "[ \t\n]?(javascript|JavaScript|vbscript|data|file|foo|company|https?|HTTPS|mailto|MAILTO|tel|sms|geo|studio|/|#)?[:/\\\\ \t\n?#]{0,4}(%0a)?(alert\\(1\\)|[a-z@.]{0,6})",
            any in "\\PC{0,20}",
        ) {
            for (host, prefix) in [("studio.example", "/corner"), ("corner.studio.example", "")] {
                let resolver = resolver(host, prefix);
                let page = Url::parse(&resolver.url_at(&address(host, prefix), "/terms")).expect("a URL");
                for link in [&link, &any] {
                    for written in [resolver.href(link), resolver.company_href(link), resolver.location(link)] {
                        let url = page.join(&written);
                        let scheme = url.as_ref().map(Url::scheme);
                        prop_assert!(matches!(scheme, Ok("http" | "https" | "mailto" | "tel" | "sms" | "geo")), "{link:?}: {written:?}");
                        prop_assert!(parse_link(link).is_ok() || written == SAME_PAGE || written.starts_with('/'), "{link:?}: {written:?}");
                    }
                    prop_assert!(resolver.location(link).bytes().all(|byte| byte.is_ascii_graphic()), "{link:?}");
                }
            }
        }
    }
}
