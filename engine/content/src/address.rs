//! Which tenant answers where: hosts and path prefixes, given out by one rule.
//!
//! 1. Nobody gets one of the engine's own paths ([`crate::name::reserved`]), the domain but by `root`, or its `www.`.
//! 2. Where there is a `deployment.yaml`, only what it lists is given, beyond the tenants' own names; without it the manifests are believed.
//! 3. Who has an address keeps it, for as long as the folder is there and wants it. What somebody else has is an error of whoever wants it, too: of a new page of the root tenant, of a new folder's name, of `hosts` and `aliases`.
//! 4. What nobody has is given in this order, so that the same folders give the same result at each fresh start:
//!    the root tenant's pages and redirects; the folders' names (`corner.<domain>` and `/corner`); `hosts` and `aliases`, first those that carry the tenant's own name (`/apps/corner`, `corner.example`), so that a copied folder takes nothing from the one it was copied from; ties by the tenants' names.
//!
//! A prefix below another tenant's prefix takes paths from it, and is that tenant's; only a `deployment.yaml` can list one.
//!
//! **Invariant:** knows no content and no request; it only gives out names. An address has one owner at most.

mod assign;
mod claim;
pub mod deployment;

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;
use url::Url;

use crate::name::TenantId;

pub use assign::{AddressRules, Assignment, assign};

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

    /// The port that visitors type, where it is not the scheme's own.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// The origin of another host of this deployment: `http://corner.localhost:8080`.
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

/// Who has which address: a host, or the domain with a prefix behind it (`company.example/corner`). Each has one owner.
pub type Owners = HashMap<String, TenantId>;

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
