//! The bytes that a visitor waits for before the first view of a page of the six sites.

use release::snapshot::fields::{CACHE_TAG, X_REQUEST_ID};
use release::snapshot::{Body, ContentEncoding, HostEntry, Mount, MountPages, Resource, Variant};
use rowhouse_tests::{TestSite, text_of, workspace};

/// Ten segments of 1,460 bytes: the initial window of a TCP connection (RFC 6928).
const ROUND_TRIP: u64 = 14_600;

/// Fields that the server adds to those of a page.
const ADDED: &str =
    "HTTP/1.1 200 OK\r\ncontent-length: 12345\r\ndate: Tue, 24 Nov 2026 10:20:37 GMT\r\n\r\n";

/// An example of a request id.
const REQUEST_ID: &str = "2f847d16ee1a26dc-12345";

/// Returns the length of the head in HTTP/1.1, which is longer than in later versions.
fn head(body: &Body, variant: &Variant) -> usize {
    let fields = body.fields.for_body(variant.encoding, &variant.etag);
    let fields = fields.iter().map(|(name, value)| {
        let value = match name {
            name if name == CACHE_TAG => body.cache_tag.as_ref().map_or(0, |tag| tag.len()),
            name if name == X_REQUEST_ID => REQUEST_ID.len(),
            _ => value.len(),
        };
        name.as_str().len() + ": ".len() + value + "\r\n".len()
    });
    ADDED.len() + fields.sum::<usize>()
}

/// A page of the six sites, and its address.
struct Found<'s> {
    place: String,
    mount: &'s Mount,
    served: &'s MountPages,
    body: &'s Body,
    html: String,
}

fn pages(site: &TestSite) -> Vec<Found<'_>> {
    let hosts = site.snapshot.hosts.iter();
    let mounts = hosts.filter_map(|(host, entry)| match entry {
        HostEntry::Site(routes) => Some((host, routes.prefixes.values().chain(&routes.root))),
        _ => None,
    });
    let mut found = Vec::new();
    for (host, mount) in mounts.flat_map(|(host, mounts)| mounts.map(move |one| (host, one))) {
        let served = mount.pages.get().expect("pages");
        for (path, resource) in served.resources.iter() {
            let (Some(html), Resource::Body(body)) = (text_of(resource), &**resource) else {
                continue;
            };
            if html.starts_with("<!doctype html>") {
                found.push(Found {
                    place: format!("{host}{}{path}", mount.prefix),
                    mount,
                    served,
                    body,
                    html,
                });
            }
        }
    }
    assert!(found.len() > 80, "{} pages", found.len());
    found
}

#[test]
fn every_page_fits_into_first_round_trip() {
    let mut site = TestSite::copy_of(&workspace());
    let mut heavy = Vec::new();
    for Found { place, body, .. } in pages(&site) {
        // The first visitor gets the quick encoding, usually over HTTP/2, whose header fields are shorter.
        let quick = body.variants.iter().next().expect("a coding").bytes.len();
        if quick > ROUND_TRIP {
            heavy.push(format!("{place}: {quick} bytes for who asks first"));
        }
    }
    site.add_best_encodings();
    for Found { place, body, .. } in pages(&site) {
        let best = body.variants.iter().next().expect("a coding");
        assert_eq!(best.encoding, ContentEncoding::Brotli, "{place}");
        let (head, page) = (head(body, best) as u64, best.bytes.len());
        if head + page > ROUND_TRIP {
            let bytes = head + page;
            heavy.push(format!(
                "{place}: {bytes} bytes, {head} of them header fields"
            ));
        }
    }
    assert!(heavy.is_empty(), "{heavy:#?}");
}

#[test]
fn first_view_needs_no_further_request() {
    let site = TestSite::copy_of(&workspace());
    for page in pages(&site) {
        let (place, html) = (&page.place, &page.html);
        // Drawings in separate files exist.
        for shown in html.split("<use href=\"").skip(1) {
            let file = shown.split('#').next().unwrap_or_default();
            let own = file.strip_prefix(&*page.mount.prefix).unwrap_or(file);
            let is_there = file.is_empty() || page.served.resources.contains_key(own);
            assert!(is_there, "{place}: {file}");
        }
        assert!(html.contains("<style>"), "{place}");
        assert!(!html.contains("rel=\"stylesheet\""), "{place}");
        let count = |part: &str| html.matches(part).count();
        assert_eq!(count("<script type=\"speculationrules\">"), 1);
        assert_eq!(
            count("<script"),
            count("<script type=\"application/ld+json\">")
                + count("<script type=\"module\" blocking=\"render\">")
                + count("<script type=\"speculationrules\">"),
            "{place}"
        );
    }
}
