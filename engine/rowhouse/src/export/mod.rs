//! A snapshot as files for a static host: one folder a host name, the same bytes at the same paths.
//!
//! | module | what |
//! |---|---|
//! | here | which file stands for which path |
//! | [`rules`] | `_headers` and `_redirects`: what files alone cannot say |
//! | [`by_path`] | the same path by path, for [`nginx`] and [`caddy`] |
//! | [`Sink`] | what takes the files |
//! | [`folder`] | the files on disk: only what changed, and never a stranger's |
//!
//! A page at `/terms` is the file `terms.html` and not `terms/index.html`: for the first, Cloudflare Pages, Netlify and GitHub Pages answer `/terms` as it is, and the first two send `/terms/` there; for the second, all of them send `/terms` away to `/terms/`.
//!
//! Tenants come a few at a time and are on the disk before the next ones do, so that all of them need not fit into memory. What is known of a file beside its bytes stays until its host is whole.
//!
//! **Invariant:** renders nothing: a byte that is exported is a byte that would be served.

mod by_path;
mod caddy;
pub mod folder;
mod nginx;
pub mod rules;
mod sink;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{ACCEPT_RANGES, CONTENT_TYPE, ETAG, LOCATION, VARY};
use http::{HeaderMap, HeaderValue};
use thiserror::Error;

use self::by_path::Answers;
use self::rules::{HostRules, RuleCounts};
pub use self::sink::{Sink, WriteError};
use content::name::exported::{NOT_FOUND as NOT_FOUND_PAGE, file_of_page};
use release::payload::Payload;
use release::snapshot::fields::{CACHE_TAG, X_REQUEST_ID};
use release::snapshot::{Body, Coding, HostEntry, Resource, Snapshot};
use render::PlacedMount;
use supervisor::Registry;

/// What a host's root answers where no tenant has it: without a `404.html` some static hosts take every path for the landing page.
const NOT_FOUND: &[u8] = b"404 Not Found\n";

/// How to export.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether each file gets its compressed forms beside it.
    pub compressed: bool,
    /// Whether `_redirects` names the 404 pages below the root, in the way that Netlify finds them.
    pub not_found_rules: bool,
    /// Who serves the files: a configuration for it then stands in the place of `_headers` and `_redirects`.
    pub server: Option<WebServer>,
}

/// A web server that is told by its own configuration what files alone cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebServer {
    /// Caddy 2: `<host>.caddy` beside the host's folder.
    Caddy,
    /// nginx: `<host>.nginx.conf` beside the host's folder.
    Nginx,
}

/// What an export came to.
#[derive(Debug)]
pub struct Exported {
    /// How many rules each host has, for hosts that limit them.
    pub counts: BTreeMap<String, RuleCounts>,
    /// The tenants that are left out at a place.
    pub left_out: Vec<LeftOut>,
}

/// A tenant that has no files at one of its places.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the tenant `{tenant}` is left out there: {conflict}")]
pub struct LeftOut {
    /// The tenant.
    pub tenant: String,
    /// Why.
    pub conflict: Conflict,
}

/// Why a tenant has no files at one of its places.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Conflict {
    /// Two paths would be one file.
    #[error(
        "on `{host}`, `{one}` and `{other}` would both be the file `{file}`: rename one of the two pages"
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
    /// A path that is no file name.
    #[error("on `{host}`, the path `{path}` is no file name: rename it")]
    NoFileName {
        /// The host.
        host: String,
        /// The path.
        path: String,
    },
}

/// Why there is no export.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The host's own files have no place.
    #[error(transparent)]
    Host(#[from] Conflict),
    /// The files cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Gives everything that `registry` serves, as its last snapshot has it, to `sink`. A tenant whose files have no place on a host is left out there, and stops no other.
///
/// # Errors
/// When a host's own files have no place, or the sink does not take a file.
pub fn export(
    registry: &Registry,
    snapshot: &Snapshot,
    options: Options,
    sink: &mut impl Sink,
) -> Result<Exported, ExportError> {
    let hosts = snapshot.hosts.iter();
    let mut sites: BTreeMap<&str, HostFolder<'_>> = hosts
        .map(|(host, entry)| (&**host, HostFolder::new(host, entry, options)))
        .collect();
    let mut left_out = Vec::new();
    registry.for_each_complete_tenant(options.compressed, |tenant| {
        let mut refused: Vec<&PlacedMount> = Vec::new();
        for placed in &tenant.compiled.mounts {
            let Some(site) = sites.get_mut(placed.address.host.as_str()) else {
                continue;
            };
            match site.plan(placed, &tenant.pictures) {
                Ok(plan) => site.tenant(plan, sink)?,
                Err(conflict) => {
                    left_out.push(LeftOut {
                        tenant: placed.mount.tenant.to_string(),
                        conflict,
                    });
                    refused.push(placed);
                }
            }
        }
        for ((host, path), picture) in &tenant.pictures {
            let is_refused = refused.iter().any(|placed| {
                placed.address.host == *host && path.starts_with(&*placed.mount.prefix)
            });
            if let Some(site) = sites.get_mut(host.as_str()).filter(|_| !is_refused) {
                site.resource_unless_known(path, picture, sink)?;
            }
        }
        Ok::<_, ExportError>(())
    })?;
    let mut counts = BTreeMap::new();
    for (host, site) in sites {
        counts.insert(host.to_owned(), site.finish(snapshot, sink)?);
    }
    Ok(Exported { counts, left_out })
}

/// What a tenant has at one of its places, before any of it is written.
#[derive(Default)]
struct PlacePlan<'t> {
    /// Each path with what it answers.
    answers: Vec<(String, &'t Resource)>,
    /// The page for what is not found, by the part of the host that it speaks for.
    not_found: Vec<(String, &'t Resource)>,
    /// Each file with the path that it stands for and its bytes.
    files: BTreeMap<String, (String, Payload)>,
}

/// One host's folder as it grows.
struct HostFolder<'a> {
    host: &'a str,
    entry: &'a HostEntry,
    options: Options,
    /// The path that each file stands for.
    paths: BTreeMap<String, String>,
    rules: HostRules,
    answers: Answers,
}

impl<'a> HostFolder<'a> {
    fn new(host: &'a str, entry: &'a HostEntry, options: Options) -> Self {
        Self {
            host,
            entry,
            options,
            paths: BTreeMap::new(),
            rules: HostRules::default(),
            answers: Answers::default(),
        }
    }

    /// What a tenant answers at one of its places: as the server does, no path that a longer prefix takes.
    fn plan<'t>(
        &self,
        placed: &'t PlacedMount,
        pictures: &BTreeMap<(String, String), Arc<Resource>>,
    ) -> Result<PlacePlan<'t>, Conflict> {
        let mut plan = PlacePlan::default();
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
            // What stands in for a picture gives way to it.
            let is_drawn = || pictures.contains_key(&(self.host.to_owned(), path.clone()));
            let stands_in =
                matches!(resource, Resource::Body(body) if body.status.is_redirection());
            let gives_way = routes.is_taken_below(prefix, &path) || stands_in && is_drawn();
            if !gives_way {
                self.plan_files(&mut plan, &path, file_of_resource(&path, resource))?;
                plan.answers.push((path, resource));
            }
        }
        for (area, page) in &pages.not_found {
            let area = format!("{prefix}{area}");
            let path = format!("the 404 page of `{area}/`");
            self.plan_files(&mut plan, &path, file_of_not_found(&area, page))?;
            plan.not_found.push((area, page));
        }
        Ok(plan)
    }

    /// Adds the files of a path to a plan. Two paths of one tenant may share a file of the same bytes.
    fn plan_files(
        &self,
        plan: &mut PlacePlan<'_>,
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

    /// Writes what was planned.
    fn tenant(&mut self, plan: PlacePlan<'_>, sink: &mut impl Sink) -> Result<(), ExportError> {
        for (file, (path, bytes)) in plan.files {
            self.put(file, &path, &bytes, sink)?;
        }
        for (path, resource) in plan.answers {
            self.answer(&path, resource);
        }
        for (area, page) in plan.not_found {
            if let Some((file, body)) = file_of_not_found(&area, page) {
                self.answers.not_found(&area, &file, &fields(body));
                if self.options.not_found_rules && !area.is_empty() {
                    self.rules.not_found(&area);
                }
            }
        }
        Ok(())
    }

    /// What a path answers that no tenant's page has.
    fn resource_unless_known(
        &mut self,
        path: &str,
        resource: &Resource,
        sink: &mut impl Sink,
    ) -> Result<(), ExportError> {
        match self.rules.knows(path) {
            true => Ok(()),
            false => self.resource(path, resource, sink),
        }
    }

    fn resource(
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
        self.answer(path, resource);
        Ok(())
    }

    /// Notes what a path answers, for the rules.
    fn answer(&mut self, path: &str, resource: &Resource) {
        match resource {
            Resource::Redirect(location) => {
                self.rules.redirect(path, location);
                self.answers.redirect(path, location, 308);
            }
            Resource::Body(body) if body.status.is_redirection() => {
                if let Some(location) = fields(body).get(LOCATION) {
                    let location = beside(path, location);
                    self.rules.redirect_for_now(path, &location);
                    self.answers.redirect(path, &location, 302);
                }
            }
            Resource::Body(body) => {
                let fields = fields(body);
                let file = file_of(path, is_page(path, &fields));
                self.answers.file(path, &file, &fields);
                self.rules.file(path, &file, fields);
            }
        }
    }

    /// The files of a body: itself and its compressed forms.
    fn variants<'b>(
        &self,
        file: &str,
        body: &'b Body,
    ) -> impl Iterator<Item = (String, &'b Payload)> + use<'b> {
        let (file, compressed) = (file.to_owned(), self.options.compressed);
        body.variants.iter().filter_map(move |variant| {
            let extension = match variant.coding {
                Coding::Identity => "",
                _ if !compressed => return None,
                Coding::Brotli => ".br",
                Coding::Gzip => ".gz",
            };
            Some((format!("{file}{extension}"), &variant.bytes))
        })
    }

    /// Whether a file may stand for a path.
    fn check(&self, file: &str, path: &str) -> Result<(), Conflict> {
        // A line end would make two of one in the list of files.
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

    /// What is left once all tenants are there: the host's own files and the shared ones, and what says how all are to be answered.
    fn finish(
        mut self,
        snapshot: &Snapshot,
        sink: &mut impl Sink,
    ) -> Result<RuleCounts, ExportError> {
        match self.entry {
            HostEntry::Site(routes) => {
                let (own, shared) = (
                    in_order(routes.files.iter()),
                    in_order(snapshot.shared.iter()),
                );
                for (path, file) in own.into_iter().chain(shared) {
                    self.resource_unless_known(path, file, sink)?;
                }
                self.last_not_found(sink)?;
            }
            HostEntry::Redirect(moved) => {
                self.rules.move_all(&moved.origin);
                self.answers.move_all(&moved.origin);
            }
        }
        // Beside the folder, where nobody can ask for it.
        let (host, compressed) = (self.host, self.options.compressed);
        let (beside, text) = match self.options.server {
            Some(WebServer::Caddy) => ("caddy", caddy::written(&self.answers, compressed)),
            Some(WebServer::Nginx) => ("nginx.conf", nginx::written(&self.answers, compressed)),
            None => {
                let written = self.rules.write();
                for (file, text) in [(HEADERS, written.headers), (REDIRECTS, written.redirects)] {
                    if !text.is_empty() {
                        sink.put(format!("{host}/{file}"), &text.into())?;
                    }
                }
                return Ok(written.counts);
            }
        };
        sink.put(format!("{host}.{beside}"), &text.into())?;
        Ok(RuleCounts::default())
    }

    /// A page for what nobody has, where no tenant has one for the whole host.
    fn last_not_found(&mut self, sink: &mut impl Sink) -> Result<(), ExportError> {
        if self.paths.contains_key("404.html") {
            return Ok(());
        }
        let text = Payload::from(NOT_FOUND);
        self.put("404.html".to_owned(), "the host's 404 page", &text, sink)?;
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        self.answers.not_found("", "404.html", &fields);
        Ok(())
    }
}

/// The file with the header fields, as Cloudflare Pages and Netlify read it.
const HEADERS: &str = "_headers";
/// The file with the redirects, as both read it.
const REDIRECTS: &str = "_redirects";

/// What the server would send with the plain body, without what a static host says by itself, or has no use for: a whole export is deployed at once, and no page of it purged.
fn fields(body: &Body) -> HeaderMap {
    let etag = HeaderValue::from_static("\"\"");
    let mut fields = body.fields.for_body(Coding::Identity, &etag);
    for name in [ETAG, VARY, ACCEPT_RANGES, X_REQUEST_ID, CACHE_TAG] {
        fields.remove(name);
    }
    fields
}

/// A `Location` from the host's root, which may name a file beside the path that answers with it.
fn beside(path: &str, location: &HeaderValue) -> HeaderValue {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    match location.to_str() {
        Ok(name) if !name.starts_with('/') => {
            HeaderValue::from_str(&format!("{folder}/{name}")).unwrap_or_else(|_| location.clone())
        }
        _ => location.clone(),
    }
}

fn essence(fields: &HeaderMap) -> &str {
    let value = fields.get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or_default().trim()
}

fn is_page(path: &str, fields: &HeaderMap) -> bool {
    essence(fields) == "text/html" && !path.ends_with(".html")
}

fn file_of(path: &str, is_page: bool) -> String {
    match is_page {
        true => file_of_page(path),
        false => path.trim_start_matches('/').to_owned(),
    }
}

/// The file of what a path answers, if it answers one.
fn file_of_resource<'r>(path: &str, resource: &'r Resource) -> Option<(String, &'r Body)> {
    match resource {
        Resource::Body(body) if !body.status.is_redirection() => {
            Some((file_of(path, is_page(path, &fields(body))), body))
        }
        _ => None,
    }
}

/// The file of the page for what is not found below `area`.
fn file_of_not_found<'r>(area: &str, resource: &'r Resource) -> Option<(String, &'r Body)> {
    match resource {
        Resource::Body(body) => Some((file_of_page(&format!("{area}/{NOT_FOUND_PAGE}")), body)),
        Resource::Redirect(_) => None,
    }
}

/// A table by path, so that an export of the same is the same.
fn in_order<'a, P: AsRef<str> + ?Sized + 'a>(
    resources: impl Iterator<Item = (&'a P, &'a Arc<Resource>)>,
) -> BTreeMap<&'a str, &'a Resource> {
    resources
        .map(|(path, resource)| (path.as_ref(), &**resource))
        .collect()
}

/// The whole path of a resource of a mount.
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
    fn a_page_is_a_file_that_answers_without_a_slash() {
        assert_eq!(file_of("/", true), "index.html");
        assert_eq!(file_of("/bluedoor", true), "bluedoor.html");
        assert_eq!(file_of("/bluedoor/terms", true), "bluedoor/terms.html");
        assert_eq!(file_of("/robots.txt", false), "robots.txt");
    }

    #[test]
    fn a_path_of_a_mount_begins_with_its_prefix() {
        assert_eq!(joined("/da", "/"), "/da");
        assert_eq!(joined("", "/"), "/");
        assert_eq!(joined("/da", "/terms"), "/da/terms");
    }

    #[test]
    fn paths_of_one_tenant_share_a_file_of_the_same_bytes_only() {
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
                    coding: Coding::Identity,
                    bytes: bytes::Bytes::from_static(text.as_bytes()).into(),
                    etag: HeaderValue::from_static("\"\""),
                }])),
            };
            Resource::Body(body)
        };
        let entry = HostEntry::Site(Arc::default());
        let mut site = HostFolder::new("studio.example", &entry, Options::default());
        let mut plan = PlacePlan::default();
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
        site.tenant(plan, &mut files).expect("files");
        assert_eq!(files["studio.example/a.html"], "one");
    }
}
