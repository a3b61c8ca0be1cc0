//! What a visitor waits for before the first view of a page of the six sites.

use release::snapshot::fields::{CACHE_TAG, X_REQUEST_ID};
use release::snapshot::{Body, Coding, HostEntry, Resource, Variant};
use rowhouse_tests::{TestSite, text_of, workspace};

/// Ten segments of 1,460 bytes: what a server sends before it hears from the other side (RFC 6928).
const ROUND_TRIP: usize = 14_600;

/// What the server adds to the fields of a page.
const ADDED: &str =
    "HTTP/1.1 200 OK\r\ncontent-length: 12345\r\ndate: Tue, 24 Nov 2026 10:20:37 GMT\r\n\r\n";

/// A name as requests have them.
const REQUEST_ID: &str = "2f847d16ee1a26dc-12345";

/// The bytes before a page as HTTP/1.1 writes them: later versions take fewer.
fn head(body: &Body, variant: &Variant) -> usize {
    let fields = body.fields.whole(variant.coding, &variant.etag);
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

#[test]
fn every_page_with_its_style_and_loader_comes_in_the_first_round_trip() {
    let mut site = TestSite::copy_of(&workspace());
    site.improve();
    let mut pages = 0;
    let mut heavy = Vec::new();
    for (host, entry) in &site.snapshot.hosts {
        let HostEntry::Site(routes) = entry else {
            continue;
        };
        for mount in routes.prefixes.values().chain(&routes.root) {
            let served = mount.pages.get().expect("pages");
            for (path, resource) in &served.resources {
                let (Some(html), Resource::Body(body)) = (text_of(resource), &**resource) else {
                    continue;
                };
                if !html.starts_with("<!doctype html>") {
                    continue;
                }
                pages += 1;
                let of = |coding| {
                    body.variants
                        .iter()
                        .find(|variant| variant.coding == coding)
                };
                let best = of(Coding::Brotli).expect("a coding");
                let (head, page) = (head(body, best), best.bytes.len());
                if head + page > ROUND_TRIP {
                    let bytes = head + page;
                    heavy.push(format!(
                        "{host}{}{path}: {bytes} bytes, {head} of them header fields",
                        mount.prefix
                    ));
                }
                // What comes after the words is there.
                for shown in html.split("<use href=\"").skip(1) {
                    let file = shown.split('#').next().unwrap_or_default();
                    let own = file.strip_prefix(&*mount.prefix).unwrap_or(file);
                    let is_there = file.is_empty() || served.resources.contains_key(own);
                    assert!(is_there, "{host}{path}: {file}");
                }
                // Nothing else is asked for before the first paint.
                assert!(html.contains("<style>"), "{host}{path}");
                assert!(!html.contains("rel=\"stylesheet\""), "{host}{path}");
                let count = |part: &str| html.matches(part).count();
                assert_eq!(count("<script type=\"speculationrules\">"), 1);
                assert_eq!(
                    count("<script"),
                    count("<script type=\"application/ld+json\">")
                        + count("<script type=\"module\" blocking=\"render\">")
                        + count("<script type=\"speculationrules\">"),
                    "{host}{path}"
                );
            }
        }
    }
    assert!(pages > 80, "{pages} pages");
    assert!(heavy.is_empty(), "{heavy:#?}");
}
