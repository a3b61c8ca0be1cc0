//! Exports a snapshot as files for a static host: one folder for each host name, the same bytes at the same paths.
//!
//! | module | contents |
//! |---|---|
//! | this module | the file of each path |
//! | [`rules`] | `_headers` and `_redirects`: header fields, redirects and statuses |
//! | [`redirects`] | the redirects that authors wrote, by location |
//! | [`by_path`] | the same for each path, for [`nginx`] and [`caddy`] |
//! | [`Sink`] | the destination of the files |
//! | [`folder`] | a folder on disk as a sink; it replaces only changed files of earlier exports |
//!
//! A page at `/terms` is the file `terms.html` and not `terms/index.html`. With `terms.html`, Cloudflare Pages, Netlify and GitHub Pages serve `/terms` without a redirect, and the first two redirect `/terms/` to `/terms`. With `terms/index.html`, all of them redirect `/terms` to `/terms/`.
//!
//! A few tenants at a time are rendered and written, so that not all of them have to fit into memory. Header fields and redirects stay in memory until the host is complete.
//!
//! **Invariant:** renders nothing: an exported byte is a byte that would be served.

mod by_path;
mod caddy;
pub mod folder;
mod nginx;
mod redirects;
pub mod rules;
mod sink;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::header::{ACCEPT_RANGES, CONTENT_TYPE, ETAG, LOCATION, VARY};
use http::{HeaderMap, HeaderValue};
use thiserror::Error;

use self::by_path::PathResponses;
use self::rules::{HostRules, RuleCounts};
pub use self::sink::{Sink, WriteError};
use content::name::exported::{NOT_FOUND as NOT_FOUND_PAGE, file_of_page};
use release::payload::Payload;
use release::snapshot::fields::{CACHE_TAG, X_REQUEST_ID};
use release::snapshot::redirects::RedirectTable;
use release::snapshot::{Body, ContentEncoding, HostEntry, Resource, Snapshot};
use render::AddressMount;
use supervisor::{CompleteTenant, Registry};

/// The 404 page of a host without a root tenant. Without a `404.html`, some static hosts serve the landing page for every path.
const NOT_FOUND: &[u8] = b"404 Not Found\n";

/// The options of an export.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportOptions {
    /// Whether the compressed forms of each file (`.br`, `.gz`) are written, too.
    pub compressed: bool,
    /// Whether `_redirects` has the rules that only Netlify reads: for the 404 pages of folders, for parameters of a query, and for status 410.
    pub not_found_rules: bool,
    /// The web server that gets a configuration in place of `_headers` and `_redirects`.
    pub server: Option<WebServer>,
}

/// A web server with a configuration of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebServer {
    /// Caddy 2: `<host>.caddy` beside the host's folder.
    Caddy,
    /// nginx: `<host>.nginx.conf` beside the host's folder.
    Nginx,
}

/// The result of an export.
#[derive(Debug)]
pub struct ExportOutcome {
    /// The number of rules by host; some static hosts limit it.
    pub counts: BTreeMap<String, RuleCounts>,
    /// The tenants without files at one of their addresses.
    pub left_out: Vec<SkippedTenant>,
    /// The protected tenants, which have no files: a static host would give them to every visitor.
    pub protected: BTreeSet<String>,
    /// The redirects that a host without them may lack or apply to pages, one sentence each.
    pub differences: Vec<String>,
}

/// A tenant without files at one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the tenant `{tenant}` cannot be exported: {conflict}")]
pub struct SkippedTenant {
    /// The tenant.
    pub tenant: String,
    /// The reason.
    pub conflict: Conflict,
}

/// The reason why a tenant has no files at one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Conflict {
    /// Two paths have the same file.
    #[error(
        "on `{host}`, `{one}` and `{other}` need the same file `{file}`: rename one of the two pages"
    )]
    OneFile {
        /// The host.
        host: String,
        /// The file within the host's folder.
        file: String,
        /// A path.
        one: String,
        /// Another path.
        other: String,
    },
    /// A path that is not a valid file name.
    #[error("on `{host}`, the path `{path}` is not a valid file name: rename the page")]
    NoFileName {
        /// The host.
        host: String,
        /// The path.
        path: String,
    },
}

/// The reason why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// A file of the host itself conflicts with another file.
    #[error(transparent)]
    Host(#[from] Conflict),
    /// The files cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes everything that `registry` serves, as its last snapshot has it, to `sink`.
///
/// A tenant with a conflict on a host is skipped there. Other tenants are exported.
///
/// # Errors
/// Fails if a file of a host itself conflicts with another file, or if the sink fails.
pub fn export(
    registry: &Registry,
    snapshot: &Snapshot,
    options: ExportOptions,
    sink: &mut impl Sink,
) -> Result<ExportOutcome, ExportError> {
    let access = snapshot.access.as_deref();
    let is_protected = |tenant: &str| access.is_some_and(|access| access.rule(tenant).is_some());
    let mut protected = BTreeSet::new();
    let hosts = snapshot
        .hosts
        .iter()
        .filter(|(_, entry)| has_public_tenant(entry, is_protected));
    let mut sites: BTreeMap<&str, HostFolder<'_>> = hosts
        .map(|(host, entry)| (&**host, HostFolder::new(host, entry, options)))
        .collect();
    let mut left_out = Vec::new();
    registry.for_each_complete_tenant(options.compressed, |tenant| {
        let mut refused: Vec<&AddressMount> = Vec::new();
        let mut mounts = tenant.compiled.mounts.iter();
        if let Some(placed) = mounts.find(|placed| is_protected(&placed.mount.tenant)) {
            protected.insert(placed.mount.tenant.to_string());
            return Ok(());
        }
        for placed in &tenant.compiled.mounts {
            let Some(site) = sites.get_mut(placed.address.host.as_str()) else {
                continue;
            };
            match site.plan(placed, tenant) {
                Ok(plan) => site.write_plan(plan, sink)?,
                Err(conflict) => {
                    left_out.push(SkippedTenant {
                        tenant: placed.mount.tenant.to_string(),
                        conflict,
                    });
                    refused.push(placed);
                }
            }
        }
        for ((host, path), image) in &tenant.images {
            let is_refused = refused.iter().any(|placed| {
                placed.address.host == *host && path.starts_with(&*placed.mount.prefix)
            });
            if let Some(site) = sites.get_mut(host.as_str()).filter(|_| !is_refused) {
                site.write_once(path, image, sink)?;
            }
        }
        Ok::<_, ExportError>(())
    })?;
    let (mut counts, mut differences) = (BTreeMap::new(), Vec::new());
    for (host, site) in sites {
        let (host_counts, of_host) = site.finish(snapshot, sink)?;
        counts.insert(host.to_owned(), host_counts);
        differences.extend(of_host);
    }
    Ok(ExportOutcome {
        counts,
        left_out,
        protected,
        differences,
    })
}

/// Returns whether a host has files: it redirects, or serves a tenant that is not protected, or serves no tenant.
fn has_public_tenant(entry: &HostEntry, is_protected: impl Fn(&str) -> bool) -> bool {
    let HostEntry::Site(routes) = entry else {
        return true;
    };
    let mounts = || routes.root.iter().chain(routes.prefixes.values());
    mounts().next().is_none() || mounts().any(|mount| !is_protected(&mount.tenant))
}

/// The files and responses of a tenant at one of its addresses, before they are written.
#[derive(Default)]
struct AddressPlan<'t> {
    /// Each path with its resource.
    resources: Vec<(String, &'t Resource)>,
    /// The 404 pages, each with the path prefix that it applies to.
    not_found: Vec<(String, &'t Resource)>,
    /// Each file with its path and its bytes.
    files: BTreeMap<String, (String, Payload)>,
    /// The prefix of the address, and the redirects.
    redirects: Option<(&'t str, &'t RedirectTable)>,
}

/// The folder of a host while it is written.
struct HostFolder<'a> {
    host: &'a str,
    entry: &'a HostEntry,
    options: ExportOptions,
    /// The path of each file.
    paths: BTreeMap<String, String>,
    rules: HostRules,
    responses: PathResponses,
}

impl<'a> HostFolder<'a> {
    fn new(host: &'a str, entry: &'a HostEntry, options: ExportOptions) -> Self {
        Self {
            host,
            entry,
            options,
            paths: BTreeMap::new(),
            rules: HostRules::default(),
            responses: PathResponses::default(),
        }
    }

    /// Plans the files of a tenant at one of its addresses. As on the server, a path below a longer prefix belongs to another tenant.
    fn plan<'t>(
        &self,
        placed: &'t AddressMount,
        tenant: &'t CompleteTenant,
    ) -> Result<AddressPlan<'t>, Conflict> {
        let mut plan = AddressPlan::default();
        let HostEntry::Site(routes) = self.entry else {
            return Ok(plan);
        };
        let prefix = &placed.mount.prefix;
        let owner = match &**prefix {
            "" => routes.root.as_ref(),
            prefix => routes.prefixes.get(prefix),
        };
        let is_owner = owner.is_some_and(|owner| owner.tenant == placed.mount.tenant);
        let Some(pages) = placed.pages().filter(|_| is_owner) else {
            return Ok(plan);
        };
        for (below, resource) in in_order(pages.resources.iter()) {
            let path = joined(prefix, below);
            // A redirect in place of an image is dropped if the image is rendered.
            let image = || (self.host.to_owned(), path.clone());
            let is_rendered = || tenant.images.contains_key(&image());
            let is_placeholder =
                matches!(resource, Resource::Body(body) if body.status.is_redirection());
            let is_dropped =
                routes.is_owned_below(prefix, &path) || is_placeholder && is_rendered();
            if !is_dropped {
                self.plan_files(&mut plan, &path, file_of_resource(&path, resource))?;
                plan.resources.push((path, resource));
            }
        }
        let markdown = tenant.markdown.iter();
        for (below, form) in markdown.filter(|(below, _)| pages.markdown(below).is_some()) {
            let path = joined(prefix, below);
            if !routes.is_owned_below(prefix, &path) {
                self.plan_files(&mut plan, &path, file_of_resource(&path, form))?;
                plan.resources.push((path, form));
            }
        }
        plan.redirects = Some((prefix, &pages.redirects));
        for (area, page) in &pages.not_found {
            let area = format!("{prefix}{area}");
            let path = format!("the 404 page of `{area}/`");
            self.plan_files(&mut plan, &path, file_of_not_found(&area, page))?;
            plan.not_found.push((area, page));
        }
        Ok(plan)
    }

    /// Adds the files of a path to a plan. Two paths of a tenant may have the same file if its bytes are the same.
    fn plan_files(
        &self,
        plan: &mut AddressPlan<'_>,
        path: &str,
        body: Option<(String, &Body)>,
    ) -> Result<(), Conflict> {
        let Some((file, body)) = body else {
            return Ok(());
        };
        for (file, bytes) in self.variants(&file, body) {
            self.check(&file, path)?;
            match plan.files.get(&file) {
                Some((_, same)) if same == bytes => {}
                Some((other, _)) => return Err(self.one_file(file, other, path)),
                None => {
                    let planned = (path.to_owned(), bytes.clone());
                    plan.files.insert(file, planned);
                }
            }
        }
        Ok(())
    }

    /// Writes the files of a plan.
    fn write_plan(
        &mut self,
        plan: AddressPlan<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), ExportError> {
        for (file, (path, bytes)) in plan.files {
            self.put(file, &path, &bytes, sink)?;
        }
        for (path, resource) in plan.resources {
            self.add_rules(&path, resource);
        }
        if let (Some((prefix, table)), HostEntry::Site(routes)) = (plan.redirects, self.entry) {
            let redirects = &mut self.responses.redirects;
            redirects.add(prefix, table, |path| routes.is_owned_below(prefix, path));
        }
        for (area, page) in plan.not_found {
            if let Some((file, body)) = file_of_not_found(&area, page) {
                self.responses.not_found(&area, &file, &fields(body));
                if self.options.not_found_rules && !area.is_empty() {
                    self.rules.not_found(&area);
                }
            }
        }
        Ok(())
    }

    /// Writes the resource of a path, unless the path has one already.
    fn write_once(
        &mut self,
        path: &str,
        resource: &Resource,
        sink: &mut impl Sink,
    ) -> Result<(), ExportError> {
        match self.rules.has_path(path) {
            true => Ok(()),
            false => self.write_resource(path, resource, sink),
        }
    }

    /// Writes the files of a resource and adds its rules.
    fn write_resource(
        &mut self,
        path: &str,
        resource: &Resource,
        sink: &mut impl Sink,
    ) -> Result<(), ExportError> {
        if let Some((file, body)) = file_of_resource(path, resource) {
            let files: Vec<(String, Payload)> = self
                .variants(&file, body)
                .map(|(file, bytes)| (file, bytes.clone()))
                .collect();
            for (file, bytes) in files {
                self.put(file, path, &bytes, sink)?;
            }
        }
        self.add_rules(path, resource);
        Ok(())
    }

    /// Adds the response of a path to the rules.
    fn add_rules(&mut self, path: &str, resource: &Resource) {
        match resource {
            Resource::Redirect(location) => {
                self.rules.redirect(path, location);
                self.responses.redirect(path, location, 308);
            }
            Resource::Body(body) if body.status.is_redirection() => {
                if let Some(location) = fields(body).get(LOCATION) {
                    let location = from_root(path, location);
                    self.rules.redirect_temporarily(path, &location);
                    self.responses.redirect(path, &location, 302);
                }
            }
            Resource::Body(body) => {
                let fields = fields(body);
                let file = file_of(path, is_page(path, &fields));
                self.responses.file(path, &file, &fields);
                self.rules.file(path, &file, fields);
            }
        }
    }

    /// Returns the files of a body: the identity form and, with `compressed`, the compressed forms.
    fn variants<'b>(
        &self,
        file: &str,
        body: &'b Body,
    ) -> impl Iterator<Item = (String, &'b Payload)> + use<'b> {
        let (file, compressed) = (file.to_owned(), self.options.compressed);
        body.variants.iter().filter_map(move |variant| {
            let extension = match variant.encoding {
                ContentEncoding::Identity => "",
                _ if !compressed => return None,
                ContentEncoding::Brotli => ".br",
                ContentEncoding::Gzip => ".gz",
            };
            Some((format!("{file}{extension}"), &variant.bytes))
        })
    }

    /// Fails if a file name is not valid or belongs to another path.
    fn check(&self, file: &str, path: &str) -> Result<(), Conflict> {
        // The list of files has one line per file, so a line end would split a name.
        let is_name =
            |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
        if !file.split('/').all(is_name) || matches!(file, HEADERS | REDIRECTS) {
            return Err(Conflict::NoFileName {
                host: self.host.to_owned(),
                path: path.to_owned(),
            });
        }
        match self.paths.get(file) {
            Some(other) => Err(self.one_file(file.to_owned(), other, path)),
            None => Ok(()),
        }
    }

    fn one_file(&self, file: String, one: &str, other: &str) -> Conflict {
        Conflict::OneFile {
            host: self.host.to_owned(),
            file,
            one: one.to_owned(),
            other: other.to_owned(),
        }
    }

    /// Writes a file and records its path.
    fn put(
        &mut self,
        file: String,
        path: &str,
        bytes: &Payload,
        sink: &mut impl Sink,
    ) -> Result<(), ExportError> {
        self.check(&file, path)?;
        sink.put(format!("{}/{file}", self.host), bytes)?;
        self.paths.insert(file, path.to_owned());
        Ok(())
    }

    /// Writes the rest of a host after all tenants: its own files, the shared files, and the rules or the configuration.
    fn finish(
        mut self,
        snapshot: &Snapshot,
        sink: &mut impl Sink,
    ) -> Result<(RuleCounts, Vec<String>), ExportError> {
        match self.entry {
            HostEntry::Site(routes) => {
                let (own, shared) = (
                    in_order(routes.files.iter()),
                    in_order(snapshot.shared.iter()),
                );
                for (path, file) in own.into_iter().chain(shared) {
                    self.write_once(path, file, sink)?;
                }
                self.write_default_not_found(sink)?;
            }
            HostEntry::Redirect(moved) => {
                self.rules.move_all(&moved.origin);
                self.responses.move_all(&moved.origin);
            }
        }
        // Beside the folder, where no request can reach the configuration.
        let (host, compressed) = (self.host, self.options.compressed);
        let (extension, text) = match self.options.server {
            Some(WebServer::Caddy) => ("caddy", caddy::written(&self.responses, compressed)),
            Some(WebServer::Nginx) => ("nginx.conf", nginx::written(&self.responses, compressed)),
            None => {
                let is_netlify = self.options.not_found_rules;
                let written = self.rules.write(&self.responses.redirects, is_netlify);
                let differences = written.differences.iter();
                let differences = differences.map(|one| format!("`{host}`: {one}")).collect();
                for (file, text) in [(HEADERS, written.headers), (REDIRECTS, written.redirects)] {
                    if !text.is_empty() {
                        sink.put(format!("{host}/{file}"), &text.into())?;
                    }
                }
                return Ok((written.counts, differences));
            }
        };
        sink.put(format!("{host}.{extension}"), &text.into())?;
        Ok((RuleCounts::default(), Vec::new()))
    }

    /// Writes a 404 page for the host, unless a tenant has one for the whole host.
    fn write_default_not_found(&mut self, sink: &mut impl Sink) -> Result<(), ExportError> {
        if self.paths.contains_key("404.html") {
            return Ok(());
        }
        let text = Payload::from(NOT_FOUND);
        self.put("404.html".to_owned(), "the host's 404 page", &text, sink)?;
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        self.responses.not_found("", "404.html", &fields);
        Ok(())
    }
}

/// The file of header fields for Cloudflare Pages and Netlify.
const HEADERS: &str = "_headers";
/// The file of redirects for Cloudflare Pages and Netlify.
const REDIRECTS: &str = "_redirects";

/// Returns the header fields that the server would send with the identity form.
///
/// Fields that a static host sends by itself are left out. So is `Cache-Tag`: an export is deployed as a whole, and no single page is purged.
fn fields(body: &Body) -> HeaderMap {
    let etag = HeaderValue::from_static("\"\"");
    let mut fields = body.fields.for_body(ContentEncoding::Identity, &etag);
    for name in [ETAG, VARY, ACCEPT_RANGES, X_REQUEST_ID, CACHE_TAG] {
        fields.remove(name);
    }
    fields
}

/// Returns a `Location` relative to the root of the host. A resource may have one relative to its own path.
fn from_root(path: &str, location: &HeaderValue) -> HeaderValue {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    match location.to_str() {
        Ok(name) if !name.starts_with('/') => {
            HeaderValue::from_str(&format!("{folder}/{name}")).unwrap_or_else(|_| location.clone())
        }
        _ => location.clone(),
    }
}

/// Returns the media type without its parameters.
fn essence(fields: &HeaderMap) -> &str {
    let value = fields.get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or_default().trim()
}

/// Returns whether a resource is a page, whose file gets the ending `.html`.
fn is_page(path: &str, fields: &HeaderMap) -> bool {
    essence(fields) == "text/html" && !path.ends_with(".html")
}

/// Returns the file of a path, relative to the folder of the host.
fn file_of(path: &str, is_page: bool) -> String {
    match is_page {
        true => file_of_page(path),
        false => path.trim_start_matches('/').to_owned(),
    }
}

/// Returns the file of a path with its body; `None` for a redirect.
fn file_of_resource<'r>(path: &str, resource: &'r Resource) -> Option<(String, &'r Body)> {
    match resource {
        Resource::Body(body) if !body.status.is_redirection() => {
            Some((file_of(path, is_page(path, &fields(body))), body))
        }
        _ => None,
    }
}

/// Returns the file of the 404 page of the prefix `area`, with its body.
fn file_of_not_found<'r>(area: &str, resource: &'r Resource) -> Option<(String, &'r Body)> {
    match resource {
        Resource::Body(body) => Some((file_of_page(&format!("{area}/{NOT_FOUND_PAGE}")), body)),
        Resource::Redirect(_) => None,
    }
}

/// Sorts resources by path, so that equal snapshots give equal exports.
fn in_order<'a, P: AsRef<str> + ?Sized + 'a>(
    resources: impl Iterator<Item = (&'a P, &'a Arc<Resource>)>,
) -> BTreeMap<&'a str, &'a Resource> {
    resources
        .map(|(path, resource)| (path.as_ref(), &**resource))
        .collect()
}

/// Returns the path of a resource on the host.
fn joined(prefix: &str, below: &str) -> String {
    match (prefix, below) {
        ("", below) => below.to_owned(),
        (prefix, "/") => prefix.to_owned(),
        (prefix, below) => format!("{prefix}{below}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use release::snapshot::{Variant, Variants};

    #[test]
    fn page_is_a_file_without_a_folder_of_its_own() {
        assert_eq!(file_of("/", true), "index.html");
        assert_eq!(file_of("/bluedoor", true), "bluedoor.html");
        assert_eq!(file_of("/bluedoor/terms", true), "bluedoor/terms.html");
        assert_eq!(file_of("/robots.txt", false), "robots.txt");
    }

    #[test]
    fn path_of_a_mount_begins_with_its_prefix() {
        assert_eq!(joined("/da", "/"), "/da");
        assert_eq!(joined("", "/"), "/");
        assert_eq!(joined("/da", "/terms"), "/da/terms");
    }

    #[test]
    fn paths_of_a_tenant_share_a_file_only_with_equal_bytes() {
        let body = |text: &'static str| {
            let body = Body {
                status: http::StatusCode::OK,
                fields: Arc::new(release::snapshot::fields::Fields::new(
                    HeaderMap::new(),
                    false,
                    false,
                )),
                cache_tag: None,
                variants: Variants::new(Box::new([Variant {
                    encoding: ContentEncoding::Identity,
                    bytes: bytes::Bytes::from_static(text.as_bytes()).into(),
                    etag: HeaderValue::from_static("\"\""),
                }])),
            };
            Resource::Body(body)
        };
        let entry = HostEntry::Site(Arc::default());
        let mut site = HostFolder::new("studio.example", &entry, ExportOptions::default());
        let mut plan = AddressPlan::default();
        let (one, other) = (body("one"), body("other"));
        let mut add = |path: &str, resource: &Resource| {
            let Resource::Body(body) = resource else {
                panic!("a body")
            };
            site.plan_files(&mut plan, path, Some(("a.html".to_owned(), body)))
        };
        assert_eq!(add("/a", &one), Ok(()));
        assert_eq!(add("/a.html", &one), Ok(()));
        assert!(matches!(add("/b", &other), Err(Conflict::OneFile { .. })));
        let mut files = BTreeMap::new();
        site.write_plan(plan, &mut files).expect("files");
        assert_eq!(files["studio.example/a.html"], "one");
    }
}
