//! Files that a host serves for all its tenants: `/robots.txt` (RFC 9309), `/sitemap.xml` and `/.well-known/security.txt` (RFC 9116).

use std::sync::Arc;

use http::HeaderValue;

use super::sitemap::{self, Listing};
use crate::pages::links::resolver::DeploymentFacts;
use crate::resources::file_resource::plain_file;
use content::name::reserved::{ROBOTS, SECURITY, SITEMAP};
use release::snapshot::{Resource, ResourceTable};

/// The facts about a host that its files are made from, beside the deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The name of the host.
    pub host: String,
    /// The host that search engines should index instead, usually the host itself.
    pub canonical: String,
    /// The sitemap entries of its tenants.
    pub listings: Vec<Arc<Listing>>,
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Makes the files of a host, by path.
#[must_use]
pub fn host_files(facts: &HostFacts, deployment: &DeploymentFacts) -> ResourceTable {
    let is_secure = deployment.origin.is_secure();
    let canonical = deployment.origin.at(&facts.canonical);
    let sitemap = format!("{canonical}{}", SITEMAP);
    let mut table = ResourceTable::new();
    if facts.host == facts.canonical {
        for (path, text) in sitemap::files(&canonical, &facts.listings) {
            table.insert(path.into(), plain_file("application/xml", text, is_secure));
        }
    } else if let Ok(location) = HeaderValue::from_str(&sitemap) {
        let moved = Arc::new(Resource::Redirect(location));
        table.insert(SITEMAP.into(), moved);
    }
    let has_sitemap = table.contains_key(SITEMAP);
    let robots = robots(has_sitemap.then_some(sitemap.as_str()));
    table.insert(ROBOTS.into(), plain_file(TEXT, robots, is_secure));
    if let Some(text) = security(&facts.host, deployment) {
        table.insert(SECURITY.into(), plain_file(TEXT, text, is_secure));
    }
    table
}

/// Writes `robots.txt`, which allows everything. Pages that must not be indexed have `noindex` in their head.
fn robots(sitemap: Option<&str>) -> String {
    let sitemap = sitemap.map_or_else(String::new, |url| format!("\nSitemap: {url}\n"));
    format!("User-agent: *\nAllow: /\n{sitemap}")
}

/// Writes `security.txt`. Returns `None` without a company profile: the file must name a contact (RFC 9116, section 2.5.3).
///
/// It expires at the end of next January, so it is always valid and does not change within a year. RFC 9116 (section 2.5.5) recommends less than a year, which it hardly exceeds.
fn security(host: &str, deployment: &DeploymentFacts) -> Option<String> {
    let email = deployment.company.as_ref()?.email.as_str();
    let expires = deployment.year + 1;
    // A web URL must be `https` in this file (section 2.5.2).
    let canonical = if deployment.origin.is_secure() {
        format!("Canonical: {}{SECURITY}\n", deployment.origin.at(host))
    } else {
        String::new()
    };
    Some(format!(
        "Contact: mailto:{email}\nExpires: {expires}-01-31T23:59:59Z\n{canonical}"
    ))
}
