//! The manual, at `/manual` of the admin listener.
//!
//! The manual is a tenant, which is compiled at its first request, from a temporary folder and the built-in themes. The manual stays in memory until the process ends.
//!
//! **Invariant:** knows nothing of the tenants that the server serves.

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use bytes::Bytes;
use http::header::LOCATION;
use http::{Response, StatusCode};
use jiff::Timestamp;
use release::snapshot::fields::CACHE_TAG;
use release::snapshot::{HostEntry, HostRoutes, Resource, ResourceTable};
use render::{ASSETS, CachePolicy, Islands};
use rowhouse_ui::Bundle;
use server::admin::status::StatusBoard;
use supervisor::{DeploymentConfig, Registry};

use crate::manual;

/// The prefix of the manual, which is the address that its tenant's name gives it.
pub(super) const PREFIX: &str = "/manual";

/// The host for which the manual is compiled, which its pages name as their home: `/` of the admin listener is the console. Links are paths.
const HOST: &str = "console";

/// The pages of the manual, once one was requested, or the reason why there are none.
#[derive(Debug, Default)]
pub(super) struct ManualPages(OnceLock<Result<CompiledManual, String>>);

/// The compiled manual.
#[derive(Debug)]
struct CompiledManual {
    routes: Arc<HostRoutes>,
    /// The files that all tenants of a deployment share, by path.
    shared: Arc<ResourceTable>,
}

impl ManualPages {
    /// Returns the manual's response at a path of the admin listener; `None` if the path is not the manual's.
    ///
    /// # Errors
    /// If the manual cannot be compiled, for example because no temporary folder can be made.
    pub(super) fn response(&self, path: &str) -> Result<Option<Response<Bytes>>, &str> {
        let below = path.strip_prefix(PREFIX);
        let below = below.filter(|below| below.is_empty() || below.starts_with('/'));
        let manual = match below {
            Some(_) => Some(
                self.0
                    .get_or_init(|| compile().map_err(|error| format!("{error:#}"))),
            ),
            // The page that loads a shared file was compiled before.
            None => self.0.get().filter(|_| path.starts_with(ASSETS)),
        };
        let Some(manual) = manual else {
            return Ok(None);
        };
        let manual = manual.as_ref().map_err(String::as_str)?;
        let resource = match below {
            Some(below) => page(&manual.routes, below),
            None => manual.shared.get(path),
        };
        Ok(resource.and_then(|resource| response(resource)))
    }
}

/// Returns the page at a path below the prefix, or the manual's page for unknown paths.
fn page<'r>(routes: &'r HostRoutes, below: &str) -> Option<&'r Arc<Resource>> {
    let mount = routes.prefixes.get(PREFIX)?;
    let path = match below.trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    let not_found = || Some(&mount.pages.get()?.not_found.last()?.1);
    mount.resource(path).or_else(not_found)
}

/// Returns a resource as a response, without a content encoding.
fn response(resource: &Resource) -> Option<Response<Bytes>> {
    let mut response = Response::default();
    match resource {
        Resource::Redirect(location) => {
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(LOCATION, location.clone());
        }
        Resource::Body(body) => {
            *response.status_mut() = body.status;
            *response.body_mut() = body.variants.identity()?.bytes.to_bytes().ok()?;
            response.headers_mut().clone_from(body.fields.parts().0);
            // A placeholder: the field names the tenant for caches in front of a server.
            response.headers_mut().remove(CACHE_TAG);
        }
    }
    Some(response)
}

/// Compiles the manual as a tenant of its own deployment.
fn compile() -> anyhow::Result<CompiledManual> {
    let folder = tempfile::Builder::new()
        .prefix("rowhouse-manual-")
        .tempdir();
    let folder = folder.context("cannot make a temporary folder")?;
    let tenants = folder.path().join("tenants");
    manual::write(&tenants.join(manual::ID), &manual::files()?)?;
    let config = DeploymentConfig {
        tenants,
        themes: None,
        deployment: None,
        origin: format!("http://{HOST}").parse()?,
        hsts: None,
        caching: CachePolicy::default(),
    };
    let islands = Islands::new(Bundle::embedded()?, false);
    let mut registry = Registry::new(config, Arc::new(islands)).without_compression();
    let now = Timestamp::now();
    let snapshot = registry.reload(now)?;
    let finished = registry.finish(&StatusBoard::default(), now);
    let snapshot = finished.unwrap_or(snapshot);
    match snapshot.hosts.get(HOST) {
        Some(HostEntry::Site(routes)) => Ok(CompiledManual {
            routes: Arc::clone(routes),
            shared: snapshot.shared,
        }),
        _ => anyhow::bail!("the manual has errors:\n{}", registry.diagnostics(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pages: &ManualPages, path: &str) -> (StatusCode, String) {
        let response = pages.response(path).unwrap().expect(path);
        let body = String::from_utf8_lossy(response.body()).into_owned();
        (response.status(), body)
    }

    #[test]
    fn manual_is_complete_below_its_prefix() {
        let pages = ManualPages::default();
        assert!(pages.response("/sites/manual").unwrap().is_none());
        assert!(pages.response("/assets/none.js").unwrap().is_none());
        let (status, start) = text(&pages, "/manual");
        assert_eq!(status, StatusCode::OK);
        assert_eq!(text(&pages, "/manual/").0, StatusCode::OK);
        assert_eq!(text(&pages, "/manual/none").0, StatusCode::NOT_FOUND);
        assert_eq!(text(&pages, "/manual/search.json").0, StatusCode::OK);
        // Every link and file of a page is below the prefix, or is a shared file; `/` is the console. Images that the program draws, such as the icon for home screens, are left out.
        let values = ["href=\"", "src=\""]
            .iter()
            .flat_map(|name| start.split(name).skip(1));
        let own = values.filter_map(|rest| rest.split(['"', '#']).next());
        let own: Vec<&str> = own
            .filter(|link| link.starts_with('/') && *link != "/" && !link.contains("touch-icon"))
            .collect();
        assert!(own.len() > 10, "{own:?}");
        for link in own {
            let (status, _) = text(&pages, link);
            assert_eq!(status, StatusCode::OK, "{link}");
        }
    }

    #[test]
    fn console_links_to_pages_that_the_manual_has() {
        let pages = ManualPages::default();
        let frame = include_str!("../../console/frame.html");
        let links = frame.split('"').filter(|part| part.starts_with(PREFIX));
        let mut count = 0;
        for link in links {
            assert_eq!(text(&pages, link).0, StatusCode::OK, "{link}");
            count += 1;
        }
        assert!(count >= 2, "{frame}");
    }
}
