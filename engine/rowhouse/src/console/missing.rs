//! Requested paths without a page, with the line of a manifest that redirects each of them.
//!
//! **Invariant:** suggests only pages that the tenant serves.

use std::time::SystemTime;

use content::report::nearest;
use release::snapshot::{HostEntry, Resource, Snapshot};
use serde::Serialize;
use server::metrics::not_found::NotFoundPath;

use super::parts::ConsoleParts;
use super::value_text::{MomentView, grouped};

/// A requested path without a page.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MissingPath {
    path: String,
    count: String,
    /// The line for `redirects:` in the tenant's manifest.
    redirect: String,
}

impl MissingPath {
    /// Returns the path with a redirect to the most similar of `pages`, or else to `/`.
    pub(super) fn new(missing: NotFoundPath, pages: &[String]) -> Self {
        let NotFoundPath { path, count } = missing;
        let similar = nearest(&path, pages.iter().map(String::as_str));
        let redirect = format!(
            "  - {{from: {}, to: {}}}",
            scalar(&path),
            scalar(similar.unwrap_or("/"))
        );
        Self {
            path,
            count: grouped(count),
            redirect,
        }
    }
}

/// Returns the time since which missing paths are counted.
pub(super) fn missing_since(parts: &ConsoleParts, now: SystemTime) -> MomentView {
    MomentView::new(parts.snapshots.not_found.counted_since(), now)
}

/// Returns the paths of the pages of a tenant, relative to its own root.
pub(super) fn pages_of(snapshot: &Snapshot, tenant: &str) -> Vec<String> {
    let sites = snapshot.hosts.values().filter_map(|host| match host {
        HostEntry::Site(routes) => Some(routes),
        HostEntry::Redirect(_) => None,
    });
    let mounts = sites.flat_map(|routes| routes.root.iter().chain(routes.prefixes.values()));
    // All mounts of a tenant have the same pages. Requested mounts are filled first.
    let mut own = mounts.filter(|mount| *mount.tenant == *tenant);
    let Some(pages) = own.find_map(|mount| mount.pages.get()) else {
        return Vec::new();
    };
    let is_page = |path: &str, resource: &Resource| {
        matches!(resource, Resource::Body(_)) && !path.contains('.')
    };
    let all = pages.resources.pages().iter();
    let all = all.filter(|(path, resource)| is_page(path, resource));
    let mut paths: Vec<String> = all.map(|(path, _)| path.to_string()).collect();
    paths.sort_unstable();
    paths
}

/// Returns a text as a scalar of a YAML flow mapping, quoted if needed (YAML 1.2, section 7.3).
fn scalar(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    if text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        // A JSON string is a double-quoted scalar of YAML.
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_names_the_most_similar_page() {
        let pages = ["/", "/prices", "/terms"].map(str::to_owned);
        let redirect = |path: &str| {
            let missing = NotFoundPath {
                path: path.to_owned(),
                count: 1_200,
            };
            MissingPath::new(missing, &pages)
        };
        assert_eq!(
            redirect("/price").redirect,
            "  - {from: /price, to: /prices}"
        );
        assert_eq!(redirect("/price").count, "1,200");
        assert_eq!(
            redirect("/something-else-entirely").redirect,
            "  - {from: /something-else-entirely, to: /}"
        );
        assert_eq!(
            redirect("/a,{b}\"").redirect,
            r#"  - {from: "/a,{b}\"", to: /}"#
        );
    }
}
