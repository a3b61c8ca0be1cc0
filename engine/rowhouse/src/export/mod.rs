//! A snapshot as files for a static host: one folder a host name, the same bytes at the same paths.
//!
//! | module | what |
//! |---|---|
//! | here | which file stands for which path |
//! | [`rules`] | `_headers` and `_redirects`: what files alone cannot say |
//! | [`by_path`] | the same path by path, for [`nginx`] and [`caddy`] |
//! | [`folder`] | the files on disk: only what changed, and never a stranger's |
//!
//! A page at `/terms` is the file `terms.html` and not `terms/index.html`: for the first, Cloudflare Pages, Netlify and GitHub Pages answer `/terms` as it is, and the first two send `/terms/` there; for the second, all of them send `/terms` away to `/terms/`.
//!
//! **Invariant:** knows only a snapshot. It renders nothing: a byte that is exported is a byte that would be served.

mod by_path;
mod caddy;
pub mod folder;
mod nginx;
pub mod rules;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_TYPE, ETAG, LOCATION, VARY};
use http::{HeaderMap, HeaderValue};
use thiserror::Error;

use self::by_path::Answers;
use self::rules::Rules;
use release::snapshot::fields::{CACHE_TAG, X_REQUEST_ID};
use release::snapshot::{Body, Coding, HostEntry, HostRoutes, Mount, Resource, Snapshot};

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

/// Why a snapshot has no form as files.
#[derive(Debug, Error)]
pub enum PlanError {
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

/// Everything to write.
#[derive(Debug, Default)]
pub struct Plan {
    /// The files by their path: `company.example/terms.html`.
    pub files: BTreeMap<String, Bytes>,
    /// How many rules each host has, for hosts that limit them.
    pub counts: BTreeMap<String, rules::Counts>,
}

/// Lays a snapshot out as files.
///
/// # Errors
/// When two paths would be one file, or a path cannot be a file's name.
pub fn plan(snapshot: &Snapshot, options: Options) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    for (host, entry) in &snapshot.hosts {
        let mut site = Site::new(host, options);
        match entry {
            HostEntry::Site(routes) => site.routes(routes, snapshot)?,
            HostEntry::Moved(moved) => {
                site.rules.move_all(&moved.origin);
                site.answers.move_all(&moved.origin);
            }
        }
        // Beside the folder, where nobody can ask for it.
        let configuration = options.server.map(|server| match server {
            WebServer::Caddy => ("caddy", caddy::written(&site.answers, options.compressed)),
            WebServer::Nginx => (
                "nginx.conf",
                nginx::written(&site.answers, options.compressed),
            ),
        });
        if let Some((extension, text)) = configuration {
            plan.files
                .insert(format!("{host}.{extension}"), text.into());
        }
        let (files, counts) = site.finish();
        plan.counts.insert(host.to_string(), counts);
        plan.files.extend(
            files
                .into_iter()
                .map(|(file, bytes)| (format!("{host}/{file}"), bytes)),
        );
    }
    Ok(plan)
}

/// One host's folder as it grows.
struct Site<'a> {
    host: &'a str,
    options: Options,
    files: BTreeMap<String, Bytes>,
    /// The path that each file stands for.
    paths: BTreeMap<String, String>,
    rules: Rules,
    answers: Answers,
}

impl<'a> Site<'a> {
    fn new(host: &'a str, options: Options) -> Self {
        Self {
            host,
            options,
            files: BTreeMap::new(),
            paths: BTreeMap::new(),
            rules: Rules::default(),
            answers: Answers::default(),
        }
    }

    /// What the host answers, in the order in which the server looks: the mount that takes the path, the host's own files, the shared ones.
    fn routes(&mut self, routes: &HostRoutes, snapshot: &Snapshot) -> Result<(), PlanError> {
        let mounts = || routes.prefixes.values().chain(&routes.root);
        for mount in mounts() {
            let pages = mount.pages.get();
            for (below, resource) in pages.iter().flat_map(|pages| &pages.resources) {
                let path = joined(&mount.prefix, below);
                let taken = |other: &Mount| is_below(&path, &other.prefix);
                let longest = mounts()
                    .filter(|other| taken(other))
                    .map(|other| other.prefix.len());
                // What stands in for a picture gives way to it.
                let is_drawn = matches!(&**resource, Resource::Body(body) if body.status.is_redirection())
                    && routes
                        .pictures
                        .get(&*path)
                        .is_some_and(|slot| slot.get().is_some());
                if longest.max() == Some(mount.prefix.len()) && !is_drawn {
                    self.resource(&path, resource)?;
                }
            }
        }
        let pictures = routes.pictures.iter();
        let drawn = pictures.filter_map(|(path, slot)| Some((path, slot.get()?)));
        let files = routes.files.iter().chain(snapshot.shared.iter());
        for (path, resource) in files.map(|(path, file)| (path, &**file)).chain(drawn) {
            if !self.rules.knows(path) {
                self.resource(path, resource)?;
            }
        }
        for mount in mounts() {
            let pages = mount.pages.get();
            for (area, page) in pages.iter().flat_map(|pages| &pages.not_found) {
                let area = format!("{}{area}", mount.prefix);
                self.not_found(&area, page)?;
            }
        }
        if !self.files.contains_key("404.html") {
            self.put(
                "404.html",
                "the host's 404 page",
                &Bytes::from_static(NOT_FOUND),
            )?;
            let mut fields = HeaderMap::new();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            self.answers.not_found("", "404.html", &fields);
        }
        Ok(())
    }

    fn resource(&mut self, path: &str, resource: &Resource) -> Result<(), PlanError> {
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
                let is_page = essence(&fields) == "text/html" && !path.ends_with(".html");
                let file = file_of(path, is_page);
                self.body(&file, path, body)?;
                self.answers.file(path, &file, &fields);
                self.rules.file(path, &file, fields);
            }
        }
        Ok(())
    }

    fn not_found(&mut self, area: &str, resource: &Resource) -> Result<(), PlanError> {
        if let Resource::Body(body) = resource {
            let file = file_of(&format!("{area}/404"), true);
            self.body(&file, &format!("the 404 page of `{area}/`"), body)?;
            self.answers.not_found(area, &file, &fields(body));
            if self.options.not_found_rules && !area.is_empty() {
                self.rules.not_found(area);
            }
        }
        Ok(())
    }

    fn body(&mut self, file: &str, path: &str, body: &Body) -> Result<(), PlanError> {
        for variant in body.variants.iter() {
            let extension = match variant.coding {
                Coding::Identity => "",
                _ if !self.options.compressed => continue,
                Coding::Brotli => ".br",
                Coding::Zstd => ".zst",
                Coding::Gzip => ".gz",
            };
            self.put(&format!("{file}{extension}"), path, &variant.bytes)?;
        }
        Ok(())
    }

    fn put(&mut self, file: &str, path: &str, bytes: &Bytes) -> Result<(), PlanError> {
        // A line end would make two of one in the list of files.
        let is_name =
            |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
        if !file.split('/').all(is_name) || matches!(file, HEADERS | REDIRECTS) {
            return Err(PlanError::NoFileName {
                host: self.host.to_owned(),
                path: path.to_owned(),
            });
        }
        if let Some(other) = self.paths.insert(file.to_owned(), path.to_owned()) {
            return Err(PlanError::OneFile {
                host: self.host.to_owned(),
                file: file.to_owned(),
                one: other,
                other: path.to_owned(),
            });
        }
        self.files.insert(file.to_owned(), bytes.clone());
        Ok(())
    }

    fn finish(mut self) -> (BTreeMap<String, Bytes>, rules::Counts) {
        let written = match self.options.server {
            None => self.rules.write(),
            Some(_) => rules::Written::default(),
        };
        for (file, text) in [(HEADERS, written.headers), (REDIRECTS, written.redirects)] {
            if !text.is_empty() {
                self.files.insert(file.to_owned(), text.into());
            }
        }
        (self.files, written.counts)
    }
}

/// The file with the header fields, as Cloudflare Pages and Netlify read it.
const HEADERS: &str = "_headers";
/// The file with the redirects, as both read it.
const REDIRECTS: &str = "_redirects";

/// What the server would send with the plain body, without what a static host says by itself, or has no use for: a whole export is deployed at once, and no page of it purged.
fn fields(body: &Body) -> HeaderMap {
    let etag = HeaderValue::from_static("\"\"");
    let mut fields = body.fields.whole(Coding::Identity, &etag);
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

fn file_of(path: &str, is_page: bool) -> String {
    match (path.trim_start_matches('/'), is_page) {
        ("", true) => "index.html".to_owned(),
        (name, true) => format!("{name}.html"),
        (name, false) => name.to_owned(),
    }
}

/// The whole path of a resource of a mount.
fn joined(prefix: &str, below: &str) -> String {
    match (prefix, below) {
        ("", below) => below.to_owned(),
        (prefix, "/") => prefix.to_owned(),
        (prefix, below) => format!("{prefix}{below}"),
    }
}

/// Whether a prefix takes a path: whole segments only.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_file_that_answers_without_a_slash() {
        assert_eq!(file_of("/", true), "index.html");
        assert_eq!(file_of("/bluedoor", true), "bluedoor.html");
        assert_eq!(file_of("/bluedoor/terms", true), "bluedoor/terms.html");
        assert_eq!(file_of("/robots.txt", false), "robots.txt");
    }

    #[test]
    fn a_prefix_takes_whole_segments() {
        assert!(is_below("/da", "/da"));
        assert!(is_below("/da/x", "/da"));
        assert!(!is_below("/datenschutz", "/da"));
        assert!(is_below("/x", ""));
        assert_eq!(joined("/da", "/"), "/da");
        assert_eq!(joined("", "/"), "/");
    }
}
