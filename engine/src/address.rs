//! Which tenant answers where: hosts and path prefixes, given out by one rule.
//!
//! Who owns an address follows from the set of folders, not from the order in which they came:
//! 1. the root tenant's pages,
//! 2. the folders' names (`bluedoor.<domain>` and `/bluedoor`),
//! 3. `hosts` and `aliases`: first those that carry the tenant's own name (`/apps/bluedoor`, `bluedoor.example`), so that a copied folder takes nothing from the one it was copied from; ties by the tenants' names.
//!
//! **Invariant:** knows no content and no request; it only gives out names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thiserror::Error;
use url::Url;

use crate::name::TenantId;
use crate::report::{Code, Diagnostic};
use crate::tenant::Site;
use crate::tenant::manifest::CanonicalPlace;

/// Where the deployment lives: scheme, domain and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: String,
    domain: String,
    port: Option<u16>,
}

/// Why a text is no origin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OriginError {
    /// No URL at all.
    #[error("`{0}` is no URL: {1}")]
    NotAUrl(String, url::ParseError),
    /// A URL, but more or less than an origin (WHATWG HTML, origin).
    #[error("`{0}` is no origin: write `https://` and a host, with nothing behind")]
    NotAnOrigin(String),
}

impl std::str::FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let url = Url::parse(text).map_err(|error| OriginError::NotAUrl(text.to_owned(), error))?;
        let bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && matches!(url.scheme(), "http" | "https");
        match url.host_str() {
            Some(host) if bare => Ok(Self {
                scheme: url.scheme().to_owned(),
                domain: host.trim_end_matches('.').to_owned(),
                port: url.port(),
            }),
            _ => Err(OriginError::NotAnOrigin(text.to_owned())),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.at(&self.domain))
    }
}

impl Origin {
    /// The domain: the host of the root tenant, in lower case.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Whether visitors come over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    /// The origin of another host of this deployment: `http://bluedoor.localhost:8080`.
    #[must_use]
    pub fn at(&self, host: &str) -> String {
        match self.port {
            Some(port) => format!("{}://{host}:{port}", self.scheme),
            None => format!("{}://{host}", self.scheme),
        }
    }
}

/// One place at which a tenant answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The host, in lower case, without a port.
    pub host: String,
    /// The path prefix, empty at the root of the host.
    pub prefix: String,
    /// Whether search engines should keep this one.
    pub canonical: bool,
}

/// Who got what.
#[derive(Debug, Default)]
pub struct Assignment {
    /// The addresses of each tenant, the canonical one first.
    pub addresses: BTreeMap<TenantId, Vec<Address>>,
    /// What a tenant wanted and another one has.
    pub conflicts: BTreeMap<TenantId, Vec<Diagnostic>>,
    /// The tenant at the domain's root.
    pub root: Option<TenantId>,
}

/// Gives out hosts and prefixes.
#[must_use]
pub fn assign<'a>(origin: &Origin, sites: impl IntoIterator<Item = &'a Site>) -> Assignment {
    let sites: BTreeMap<&TenantId, &Site> =
        sites.into_iter().map(|site| (&site.id, site)).collect();
    let mut giver = Giver::new(origin);
    for site in sites.values().filter(|site| site.manifest.root) {
        giver.root(site);
    }
    let others = || {
        let root = giver.assignment.root.clone();
        sites
            .values()
            .filter(move |site| Some(&site.id) != root.as_ref())
    };
    let others: Vec<&&Site> = others().collect();
    for site in &others {
        giver.prefix(site, &format!("/{}", site.id));
        giver.host(site, &format!("{}.{}", site.id, origin.domain));
    }
    for named in [true, false] {
        for site in sites.values() {
            for host in &site.manifest.hosts {
                if carries(host.as_str(), '.', &site.id) == named {
                    giver.host(site, host.as_str());
                }
            }
        }
        for site in &others {
            for alias in &site.manifest.aliases {
                if carries(alias.as_str(), '/', &site.id) == named {
                    giver.prefix(site, alias.as_str());
                }
            }
        }
    }
    giver.finish(&sites)
}

/// Whether one part of an address is the tenant's name.
fn carries(address: &str, separator: char, id: &TenantId) -> bool {
    address.split(separator).any(|part| part == id.as_str())
}

struct Giver<'a> {
    origin: &'a Origin,
    hosts: BTreeMap<String, TenantId>,
    prefixes: BTreeMap<String, TenantId>,
    root_pages: BTreeSet<String>,
    assignment: Assignment,
}

impl<'a> Giver<'a> {
    fn new(origin: &'a Origin) -> Self {
        Self {
            origin,
            hosts: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            root_pages: BTreeSet::new(),
            assignment: Assignment::default(),
        }
    }

    fn root(&mut self, site: &Site) {
        if let Some(owner) = &self.assignment.root {
            let diagnostic = Diagnostic::mistake(
                Code::TwoRoots,
                site.name_of(crate::tenant::MANIFEST),
                format!("the domain's root belongs to the tenant `{owner}`"),
            )
            .hint("take `root: true` out of one of the two");
            return self.conflict(site, diagnostic);
        }
        self.assignment.root = Some(site.id.clone());
        self.hosts
            .insert(self.origin.domain.clone(), site.id.clone());
        self.root_pages = site
            .pages
            .values()
            .flat_map(crate::tenant::Page::paths)
            .map(ToOwned::to_owned)
            .collect();
        self.give(site, self.origin.domain.clone(), String::new());
    }

    fn host(&mut self, site: &Site, host: &str) {
        match self.hosts.get(host) {
            Some(owner) if *owner != site.id => {
                let owner = owner.clone();
                self.taken(site, "host", host, &owner, "hosts");
            }
            Some(_) => {}
            None => {
                self.hosts.insert(host.to_owned(), site.id.clone());
                self.give(site, host.to_owned(), String::new());
            }
        }
    }

    fn prefix(&mut self, site: &Site, prefix: &str) {
        let below = |page: &String| {
            page.strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let owner = if self.root_pages.iter().any(below) {
            self.assignment.root.clone()
        } else {
            self.prefixes.get(prefix).cloned()
        };
        match owner {
            Some(owner) if owner != site.id => self.taken(site, "path", prefix, &owner, "aliases"),
            Some(_) => {}
            None => {
                self.prefixes.insert(prefix.to_owned(), site.id.clone());
                self.give(site, self.origin.domain.clone(), prefix.to_owned());
            }
        }
    }

    fn give(&mut self, site: &Site, host: String, prefix: String) {
        self.assignment
            .addresses
            .entry(site.id.clone())
            .or_default()
            .push(Address {
                host,
                prefix,
                canonical: false,
            });
    }

    fn taken(&mut self, site: &Site, what: &str, address: &str, owner: &TenantId, key: &str) {
        let diagnostic = Diagnostic::mistake(
            Code::AddressTaken,
            site.name_of(crate::tenant::MANIFEST),
            format!("the {what} `{address}` belongs to the tenant `{owner}`"),
        );
        let stated = site.formatted.iter().find(|text| text.text == address);
        let diagnostic = match stated {
            Some(stated) => site
                .locate(diagnostic, crate::tenant::MANIFEST, stated.place)
                .hint(format!(
                    "take it out of `{key}` here or there; the other addresses stay"
                )),
            None => diagnostic.hint("rename this folder or that page; the other addresses stay"),
        };
        self.conflict(site, diagnostic);
    }

    fn conflict(&mut self, site: &Site, diagnostic: Diagnostic) {
        self.assignment
            .conflicts
            .entry(site.id.clone())
            .or_default()
            .push(diagnostic);
    }

    /// Marks each tenant's canonical address and puts it first.
    fn finish(mut self, sites: &BTreeMap<&TenantId, &Site>) -> Assignment {
        for (id, addresses) in &mut self.assignment.addresses {
            let wants_host = sites
                .get(id)
                .is_some_and(|site| site.manifest.canonical == CanonicalPlace::Host);
            let own = sites.get(id).and_then(|site| site.manifest.hosts.first());
            let best = addresses.iter().position(|address| {
                if wants_host {
                    own.is_none_or(|host| address.host == host.as_str())
                        && address.prefix.is_empty()
                } else {
                    address.host == self.origin.domain
                }
            });
            addresses.swap(0, best.unwrap_or(0));
            if let Some(first) = addresses.first_mut() {
                first.canonical = true;
            }
        }
        self.assignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin: Origin = "http://LocalHost:8080".parse().expect("valid");
        assert_eq!(origin.to_string(), "http://localhost:8080");
        assert_eq!(origin.at("a.localhost"), "http://a.localhost:8080");
        let origin: Origin = "https://studio.example:443/".parse().expect("valid");
        assert_eq!(origin.to_string(), "https://studio.example");
        for bad in [
            "studio.example",
            "https://a.example/x",
            "https://u@a.example",
            "ftp://a.example",
            "https://a.example?x",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
