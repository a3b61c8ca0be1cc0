//! Makes an author's link right for the place that a page is rendered for.
//!
//! Authors write from their own root (`/terms`), to a neighbour by name (`studio:/contact`) or to a fact of the company (`company:email`).

use std::sync::Arc;

use super::policy::Caching;
use crate::address::{Address, Origin};
use crate::name::TenantId;
use crate::tenant::manifest::Company;

/// What all tenants of a deployment share: a change here touches every page.
#[derive(Debug, Clone, PartialEq)]
pub struct Street {
    /// Where the deployment lives.
    pub origin: Origin,
    /// The tenant at the domain's root.
    pub root: Option<TenantId>,
    /// The company profile, from the root tenant.
    pub company: Company,
    /// The social image of pages that have none of their own nor of their tenant: the root tenant's, as an absolute URL.
    pub image: Option<String>,
    /// The year of the copyright line.
    pub year: i16,
    /// How long shared caches may keep pages.
    pub caching: Caching,
}

/// Resolves the links of one tenant at one address.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// What is shared.
    pub street: Arc<Street>,
    /// The tenant whose links they are.
    pub tenant: TenantId,
    /// The address that is rendered for.
    pub address: Address,
}

/// Where a link leads, as far as it can be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A page of this tenant: path and fragment. The path is empty for a fragment of the same page.
    Own(String, Option<String>),
    /// A page of another tenant.
    Neighbour(String, String, Option<String>),
    /// Somewhere else.
    Outside,
}

impl Resolver {
    /// The `href` for a link.
    #[must_use]
    pub fn href(&self, link: &str) -> String {
        if let Some(fact) = link.strip_prefix("company:") {
            return self.company_fact(fact);
        }
        let place = match target(link) {
            Target::Own(path, _) if path.is_empty() => String::new(),
            Target::Own(path, _) => below(&self.address.prefix, &path),
            Target::Neighbour(tenant, path, _) if tenant == self.tenant.as_str() => {
                below(&self.address.prefix, &path)
            }
            Target::Neighbour(tenant, path, _) => {
                self.on_the_domain(&self.neighbour_path(&tenant, &path))
            }
            Target::Outside => return link.to_owned(),
        };
        // The query and the fragment stay as they are written.
        let tail = link.find(['?', '#']).unwrap_or(link.len());
        format!("{place}{}", &link[tail..])
    }

    /// The `href` for a link of the company profile, whose paths are the root tenant's.
    #[must_use]
    pub fn company_href(&self, link: &str) -> String {
        if link.starts_with('/') {
            self.on_the_domain(link)
        } else {
            self.href(link)
        }
    }

    /// The absolute URL of one of this tenant's pages at an address.
    #[must_use]
    pub fn url_at(&self, address: &Address, path: &str) -> String {
        format!(
            "{}{}",
            self.street.origin.at(&address.host),
            below(&address.prefix, path)
        )
    }

    /// Whether a link, as written, leads out of the deployment.
    #[must_use]
    pub fn leaves(&self, link: &str) -> bool {
        let href = self.href(link);
        (href.starts_with("https:") || href.starts_with("http:"))
            && matches!(target(link), Target::Outside)
    }

    fn company_fact(&self, fact: &str) -> String {
        let company = &self.street.company;
        match fact {
            "email" => Some(format!("mailto:{}", company.email.as_str())),
            "scheduling" => company
                .scheduling
                .as_ref()
                .map(|url| url.as_str().to_owned()),
            "network" => company.network.as_ref().map(|url| url.as_str().to_owned()),
            _ => None,
        }
        .unwrap_or_else(|| self.on_the_domain("/"))
    }

    fn neighbour_path(&self, tenant: &str, path: &str) -> String {
        if self
            .street
            .root
            .as_ref()
            .is_some_and(|root| root.as_str() == tenant)
        {
            path.to_owned()
        } else {
            below(&format!("/{tenant}"), path)
        }
    }

    /// A path of the studio's domain, absolute where the page itself is on another host.
    fn on_the_domain(&self, path: &str) -> String {
        if self.address.host == self.street.origin.domain() {
            path.to_owned()
        } else {
            format!("{}{path}", self.street.origin)
        }
    }
}

/// Reads a link as authors write it.
#[must_use]
pub fn target(link: &str) -> Target {
    let (place, fragment) = match link.split_once('#') {
        Some((place, fragment)) => (place, Some(fragment.to_owned())),
        None => (link, None),
    };
    let path = place.split('?').next().unwrap_or_default();
    if path.is_empty() || path.starts_with('/') {
        return Target::Own(path.to_owned(), fragment);
    }
    match path.split_once(':') {
        Some((tenant, path)) if path.starts_with('/') && !path.starts_with("//") => {
            Target::Neighbour(tenant.to_owned(), path.to_owned(), fragment)
        }
        _ => Target::Outside,
    }
}

/// A path below a prefix: `/` below `/bluedoor` is `/bluedoor`.
#[must_use]
pub fn below(prefix: &str, path: &str) -> String {
    match (prefix, path) {
        ("", path) => path.to_owned(),
        (prefix, "/") => prefix.to_owned(),
        (prefix, path) => format!("{prefix}{path}"),
    }
}
