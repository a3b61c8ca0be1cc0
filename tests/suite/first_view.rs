//! What a visitor waits for before the first view of a page of the six sites.

use release::snapshot::{Coding, HostEntry, Resource};
use rowhouse_tests::{TestSite, text_of, workspace};

/// Ten segments of 1,460 bytes: what a server sends before it hears from the other side (RFC 6928).
const ROUND_TRIP: usize = 14_600;

/// The home page shows the drawings of all six sites above the fold.
const HOME: usize = 19_100;

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
                let bytes = of(Coding::Brotli).expect("a coding").bytes.len();
                let most = match (&**host, &*mount.prefix, &**path) {
                    ("studio.example", "", "/") => HOME,
                    _ => ROUND_TRIP,
                };
                if bytes > most {
                    heavy.push(format!("{host}{}{path}: {bytes} bytes", mount.prefix));
                }
                // Nothing else is asked for before the first paint.
                assert!(html.contains("<style>"), "{host}{path}");
                assert!(!html.contains("rel=\"stylesheet\""), "{host}{path}");
                let waits = html.matches("<script").count()
                    - html.matches("type=\"application/ld+json\"").count();
                assert_eq!(
                    waits,
                    html.matches("<script type=\"module\" blocking=\"render\">")
                        .count(),
                    "{host}{path}"
                );
            }
        }
    }
    assert!(pages > 80, "{pages} pages");
    assert!(heavy.is_empty(), "{heavy:#?}");
}
