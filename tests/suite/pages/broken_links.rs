//! Checks every address in every page of every mount: links, scripts, styles, images, drawings.
//!
//! The snapshot responds by the same function that serves visitors.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::header::{HOST, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Response, Uri, Version};
use release::snapshot::{HostEntry, Mount};
use rowhouse_tests::{TestSite, fixture, text_of, workspace};
use server::response::respond::{RequestHead, respond};

const ORIGIN: &str = "https://studio.example";

/// Returns the status of a path of a host.
fn status(site: &TestSite, host: &str, path: &str) -> u16 {
    answer(site, host, path, &[]).status().as_u16()
}

/// Returns the response for a path of a host, requested with these header fields.
pub(crate) fn answer(
    site: &TestSite,
    host: &str,
    path: &str,
    fields: &[(HeaderName, &str)],
) -> Response<Bytes> {
    let uri: Uri = path
        .parse()
        .unwrap_or_else(|error| panic!("{host}{path}: {error}"));
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_str(host).expect("a host"));
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_str(value).expect("a value"));
    }
    let asked = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
    let response = respond(&site.snapshot, &asked).response.into_response();
    response.map(|body| body.in_memory().cloned().expect("a body in memory"))
}

/// Returns the values of attributes that contain addresses.
pub(crate) fn addresses(html: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let values = |attribute: &str| {
        let starts = html.match_indices(attribute).map(|(start, _)| start);
        let starts = starts.map(|start| start + attribute.len());
        let values = starts.filter_map(|start| html[start..].split('"').next());
        values
            .map(|value| value.replace("&amp;", "&"))
            .collect::<Vec<_>>()
    };
    for attribute in [" href=\"", " src=\"", " action=\"", " poster=\""] {
        found.extend(values(attribute));
    }
    for set in values(" srcset=\"") {
        let addresses = set
            .split(',')
            .filter_map(|one| one.split_whitespace().next());
        found.extend(addresses.map(ToOwned::to_owned));
    }
    found
}

/// Returns each page of a host with its path.
fn pages<'a>(prefix: &'a str, mount: &'a Mount) -> impl Iterator<Item = (String, String)> + 'a {
    let pages = mount.pages.get().expect("rendered");
    pages
        .resources
        .iter()
        .filter(|(path, _)| !path.starts_with("/assets/"))
        .filter_map(move |(path, resource)| {
            let path = render::below(prefix, path);
            Some((path, text_of(resource)?))
        })
        .filter(|(_, text)| text.starts_with("<!doctype html>"))
}

/// Returns the number of checked addresses, and the broken ones by page.
fn broken(site: &TestSite) -> (usize, BTreeMap<String, Vec<String>>) {
    let mut checked = 0;
    let mut broken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (host, entry) in &site.snapshot.hosts {
        let HostEntry::Site(routes) = entry else {
            continue;
        };
        let root = routes.root.iter().map(|mount| ("", mount));
        let prefixed = routes
            .prefixes
            .iter()
            .map(|(prefix, mount)| (prefix.as_ref(), mount));
        for (path, html) in root
            .chain(prefixed)
            .flat_map(|(prefix, mount)| pages(prefix, mount))
        {
            for address in addresses(&html) {
                let (host, target) = match address.strip_prefix(ORIGIN) {
                    Some("") => ("studio.example", "/"),
                    Some(path) if path.starts_with('/') => ("studio.example", path),
                    _ if address.starts_with('/') => (host.as_ref(), address.as_str()),
                    _ => continue,
                };
                let target = target.split('#').next().unwrap_or_default();
                checked += 1;
                if status(site, host, target) != 200 {
                    broken
                        .entry(format!("{host}{path}"))
                        .or_default()
                        .push(address);
                }
            }
        }
    }
    (checked, broken)
}

/// Renders all images and Markdown forms. Returns the number of checked addresses, and the broken ones on pages of one tenant.
pub(crate) fn broken_of(
    site: &mut TestSite,
    tenant: &str,
) -> (usize, BTreeMap<String, Vec<String>>) {
    site.render_images().make_markdown_forms();
    let (checked, mut broken) = broken(site);
    broken.retain(|page, _| page.contains(tenant));
    (checked, broken)
}

#[test]
fn every_address_in_every_mount_exists() {
    let mut site = TestSite::copy_of(&workspace());
    site.render_images().make_markdown_forms();
    let (checked, mut broken) = broken(&site);
    assert!(checked > 2_000, "only {checked} addresses were looked at");
    // The sixth card links to a page that is known to be missing.
    if let Some(projects) = broken.get_mut("studio.example/projects") {
        projects.retain(|address| address != "/projects/after");
    }
    broken.retain(|_, addresses| !addresses.is_empty());
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn check_finds_link_broken_by_template() {
    let mut site = TestSite::copy_of(&fixture("sites"));
    site.edit(
        "themes/base/layouts/page.html",
        "<footer>",
        "<footer><a href=\"/nowhere\">x</a>",
    );
    site.reload();
    let (_, broken) = broken(&site);
    assert!(
        broken.contains_key("app.studio.example/terms"),
        "{broken:#?}"
    );
    assert!(
        broken.contains_key("studio.example/apps/app/terms"),
        "{broken:#?}"
    );
}
