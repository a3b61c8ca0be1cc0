//! What a host answers for all its tenants: `/robots.txt` (RFC 9309), `/sitemap.xml` and `/.well-known/security.txt` (RFC 9116).

use std::sync::Arc;

use http::HeaderValue;

use super::sitemap::{self, Listing};
use crate::pages::links::resolver::Deployment;
use crate::resources::file_resource::plain_file;
use content::name::reserved::{ROBOTS, SECURITY, SITEMAP};
use release::snapshot::{Resource, ResourceTable};

/// What the files of a host are made from, beside what all hosts share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Its name.
    pub host: String,
    /// The host that search engines should keep instead, most often itself.
    pub canonical: String,
    /// What its tenants handed out for the sitemap.
    pub listings: Vec<Arc<Listing>>,
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The files of a host, by path.
#[must_use]
pub fn host_files(facts: &HostFacts, deployment: &Deployment) -> ResourceTable {
    let secure = deployment.origin.is_secure();
    let canonical = deployment.origin.at(&facts.canonical);
    let sitemap = format!("{canonical}{}", SITEMAP);
    let mut table = ResourceTable::new();
    if facts.host == facts.canonical {
        for (path, text) in sitemap::files(&canonical, &facts.listings) {
            table.insert(path.into(), plain_file("application/xml", text, secure));
        }
    } else if let Ok(location) = HeaderValue::from_str(&sitemap) {
        let moved = Arc::new(Resource::Redirect(location));
        table.insert(SITEMAP.into(), moved);
    }
    let has_sitemap = table.contains_key(SITEMAP);
    let robots = robots(has_sitemap.then_some(sitemap.as_str()));
    table.insert(ROBOTS.into(), plain_file(TEXT, robots, secure));
    table.insert(
        SECURITY.into(),
        plain_file(TEXT, security(&facts.host, deployment), secure),
    );
    table
}

/// Everything may be fetched: what should not be found says so in its own head.
fn robots(sitemap: Option<&str>) -> String {
    let sitemap = sitemap.map_or_else(String::new, |url| format!("\nSitemap: {url}\n"));
    format!("User-agent: *\nAllow: /\n{sitemap}")
}

/// Where to report a weakness. It expires at the end of next January: always in the future, hardly ever more than the year that RFC 9116 (section 2.5.5) recommends as the most, and the same all year round.
fn security(host: &str, deployment: &Deployment) -> String {
    let email = deployment.company.email.as_str();
    let expires = deployment.year + 1;
    // A web address must be `https` there (section 2.5.2).
    let canonical = if deployment.origin.is_secure() {
        format!("Canonical: {}{SECURITY}\n", deployment.origin.at(host))
    } else {
        String::new()
    };
    format!("Contact: mailto:{email}\nExpires: {expires}-01-31T23:59:59Z\n{canonical}")
}
