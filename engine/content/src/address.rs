//! Assigns hosts and path prefixes to tenants. The same rules decide every claim.
//!
//! 1. No tenant gets one of the engine's own paths ([`crate::name::reserved`]) or the domain's `www.` host. Only the root tenant gets the domain itself.
//! 2. If there is a `deployment.yaml`, tenants get only their own names and the addresses it lists. Without the file, manifests may claim any free address.
//! 3. A tenant keeps its addresses while its folder exists and claims them. Another claim of the same address is an error of the claiming tenant. The claim may be a page of the root tenant, a folder name, or an entry in `hosts` or `aliases`.
//! 4. Free addresses are assigned in this order, so that every fresh startup with the same folders gives the same result:
//!    1. the root tenant's pages and redirects
//!    2. folder names (`corner.<domain>` and `/corner`)
//!    3. `hosts` and `aliases` that contain the tenant's own name (`/apps/corner`, `corner.example`), so that a copied folder takes no addresses from the original
//!    4. other `hosts` and `aliases`
//!
//!    Ties are decided by tenant name.
//! 5. A preview (`corner@spring`) has one address, the host `spring--corner.<domain>`, and only while no other tenant claims that host.
//!
//! A prefix below another tenant's prefix takes paths away from that tenant. Only a `deployment.yaml` can list such a prefix.
//!
//! **Invariant:** knows no content and no requests, only names. An address has at most one owner.

mod assign;
mod claim;
pub mod deployment;

use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;
use thiserror::Error;
use url::Url;

use crate::name::TenantId;

pub use assign::{AddressRules, Assignment, assign, assign_changed, has_same_paths};

/// The public origin of the deployment: scheme, domain and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: String,
    domain: String,
    port: Option<u16>,
}

/// The reason why a text is not a valid origin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OriginError {
    /// The text is not a URL.
    #[error("`{0}` is not a valid URL: {1}")]
    NotAUrl(String, url::ParseError),
    /// The URL has more or fewer parts than an origin (WHATWG HTML, origin).
    #[error(
        "`{0}` is not a valid origin: write only scheme, host and port, as in `https://company.example`"
    )]
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
    /// Returns the domain in lower case: the host of the root tenant.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns whether the domain names the machine itself, so that no other machine can read requests.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let domain = self.domain.as_str();
        let address = domain.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |address: std::net::IpAddr| address.is_loopback();
        domain == "localhost"
            || domain.ends_with(".localhost")
            || address.parse().is_ok_and(is_loopback)
    }

    /// Returns whether visitors connect with TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    /// Returns the port in public URLs; `None` for the scheme's default port.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the origin of another host of this deployment, for example `http://corner.localhost:8080`.
    #[must_use]
    pub fn at(&self, host: &str) -> String {
        match self.port {
            Some(port) => format!("{}://{host}:{port}", self.scheme),
            None => format!("{}://{host}", self.scheme),
        }
    }
}

/// One host and path prefix at which a tenant is served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The host name: lower case, no port.
    pub host: String,
    /// The path prefix; empty at the root of the host.
    pub prefix: String,
    /// Whether this address is the canonical one for search engines.
    pub canonical: bool,
}

impl Address {
    /// Returns the key of the address in [`AddressOwners`].
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}{}", self.host, self.prefix)
    }
}

/// The owner of each address. An address is a host, or the domain followed by a prefix (`company.example/corner`).
///
/// A copy shares its entries with the original, so that the next assignment costs only what changes.
pub type AddressOwners = OrdMap<Arc<str>, TenantId>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_scheme_host_and_port() {
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
