//! `rowhouse routes`: lists every page with its host, path, tenant, language and file.

use std::process::ExitCode;

use serde::Serialize;

use jiff::Timestamp;

use crate::cli::{ListFormat, RoutesArguments};
use crate::commands::output::{print, print_message};
use crate::commands::setup::registry;
use content::tenant::MANIFEST;
use content::tenant::assets::{file_of, named};
use release::snapshot::{HostEntry, Snapshot, markdown_path};
use render::CachePolicy;
use render::below;
use server::admin::status::{Availability, TenantStatus};
use supervisor::Registry;

/// A page or a text file at one address.
#[derive(Debug, Serialize)]
struct RouteLine {
    host: String,
    path: String,
    tenant: String,
    /// The language of a page (BCP 47).
    language: Option<String>,
    file: String,
    kind: &'static str,
    /// Whether this URL is the canonical one.
    canonical: bool,
    indexed: bool,
    /// The path of the page's Markdown form.
    markdown: Option<String>,
}

/// Prints every page and text file at every address of every tenant.
pub(crate) fn run(arguments: &RoutesArguments) -> anyhow::Result<ExitCode> {
    let registry = registry(&arguments.content, CachePolicy::default(), None, false)?;
    let mut registry = registry.without_compression();
    let snapshot = registry.reload(Timestamp::now())?;
    let routes = routes(&registry, &snapshot);
    match arguments.format {
        ListFormat::Json => print(&serde_json::to_string_pretty(&routes)?),
        ListFormat::Text => as_table(&routes),
    }
    let status = registry.status();
    let is_absent = |tenant: &&TenantStatus| tenant.state == Availability::Absent;
    for tenant in status.tenants().filter(is_absent) {
        print_message(&format!(
            "warning: `{0}` has errors and is left out: run `rowhouse check {0}`",
            tenant.id
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the routes of all tenants, sorted by host and path.
fn routes(registry: &Registry, snapshot: &Snapshot) -> Vec<RouteLine> {
    let mut routes = Vec::new();
    for (site, compiled) in registry.sites() {
        for placed in &compiled.mounts {
            let host = &placed.address.host;
            for page in site.pages.values() {
                for path in page.paths() {
                    let prefix = &placed.address.prefix;
                    let full = below(prefix, path);
                    let markdown = markdown_path(path);
                    let markdown = placed.pages().and_then(|pages| pages.markdown(&markdown));
                    if !is_served_at(snapshot, host, &full, &placed.mount.prefix) {
                        continue;
                    }
                    routes.push(RouteLine {
                        host: host.clone(),
                        path: full,
                        tenant: site.id.to_string(),
                        language: {
                            let language = site.manifest.language_of(&page.path);
                            Some(site.manifest.languages()[language].as_str().to_owned())
                        },
                        file: site.name_of(&page.file),
                        kind: "page",
                        canonical: placed.address.canonical && path == page.path,
                        indexed: !page.front.noindex && !site.id.is_preview(),
                        markdown: markdown.map(|(path, _)| below(prefix, path)),
                    });
                }
            }
            let texts = site.manifest.files();
            let texts = texts.filter(|_| placed.address.prefix.is_empty());
            for (path, file) in texts.filter(|(path, _)| is_served_at(snapshot, host, path, "")) {
                let asset = named(&site.assets, file.as_str(), MANIFEST);
                let file = asset.map_or_else(|| file.as_str().to_owned(), |(key, _)| file_of(key));
                routes.push(RouteLine {
                    host: host.clone(),
                    path,
                    tenant: site.id.to_string(),
                    language: None,
                    file: site.name_of(&file),
                    kind: "file",
                    canonical: placed.address.canonical,
                    indexed: false,
                    markdown: None,
                });
            }
        }
    }
    routes.sort_by(|one, other| (&one.host, &one.path).cmp(&(&other.host, &other.path)));
    routes
}

/// Returns whether the path belongs to the tenant at `prefix`. A longer prefix of the host would belong to another tenant.
fn is_served_at(snapshot: &Snapshot, host: &str, path: &str, prefix: &str) -> bool {
    match snapshot.hosts.get(host) {
        Some(HostEntry::Site(routes)) => !routes.is_owned_below(prefix, path),
        _ => false,
    }
}

/// Prints routes in columns.
fn as_table(routes: &[RouteLine]) {
    let width = |column: fn(&RouteLine) -> &str| {
        routes
            .iter()
            .map(|route| column(route).len())
            .max()
            .unwrap_or(0)
    };
    let language_of = |route: &RouteLine| route.language.clone().unwrap_or_default();
    let language = routes.iter().map(|route| language_of(route).len()).max();
    let language = language.unwrap_or(0);
    let (host, path, tenant) = (
        width(|route| &route.host),
        width(|route| &route.path),
        width(|route| &route.tenant),
    );
    for route in routes {
        print(&format!(
            "{:host$}  {:path$}  {:tenant$}  {:language$}  {}{}",
            route.host,
            route.path,
            route.tenant,
            language_of(route),
            route.file,
            if route.canonical || route.kind != "page" {
                ""
            } else {
                "  (names the canonical URL)"
            },
        ));
    }
}
