//! Instructions for caches between the program and its visitors.

use rowhouse_tests::{TestServer, TestSite, fixture};

#[test]
fn cache_tags_name_tenant_and_page_at_every_address() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let domain = server.domain();
    let app = format!("app.{domain}");
    for (host, path, status, tag) in [
        (&app, "/terms", 200, "app,app/terms"),
        (&domain, "/app/terms", 200, "app,app/terms"),
        (&domain, "/apps/app/terms", 200, "app,app/terms"),
        (&domain, "/us", 200, "home,home/about"),
        (&domain, "/", 200, "home,home/"),
        (&domain, "/nowhere", 404, "home"),
        (&domain, "/app/nowhere", 404, "app"),
        (&"stranger.example".to_owned(), "/", 421, ""),
    ] {
        let answer = server.get(host, path);
        assert_eq!(
            (answer.status, answer.header("cache-tag")),
            (status, tag),
            "{host}{path}"
        );
        let control = answer.header("cache-control");
        assert_eq!(control, "public, max-age=0, must-revalidate");
    }
}

#[test]
fn redirect_has_cache_tag_of_its_tenant() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\ncanonical: host\nhosts: [app.example]\nredirects: [{from: /old, to: /terms}]",
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let server = TestServer::start(site.folder(), &[]);
    let domain = server.domain();
    let app = format!("app.{domain}");
    for (host, path, tag) in [
        (domain.as_str(), "/about/", "home,home/about"),
        (&domain, "/app/", "app,app/"),
        (&domain, "/apps/app/terms/", "app,app/terms"),
        (&domain, "/app/old", "app,app/old"),
        ("app.example", "/old", "app,app/old"),
        (&app, "/sitemap.xml", "app,app/sitemap.xml"),
        (&format!("www.{domain}"), "/about", "home"),
        (&format!("home.{domain}"), "/app/terms", "home"),
    ] {
        let answer = server.get(host, path);
        assert_eq!(
            (answer.status, answer.header("cache-tag")),
            (308, tag),
            "{host}{path}"
        );
        assert_eq!(answer.header("cache-control"), "max-age=3600");
    }
}

#[test]
fn only_etag_validates_page() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let domain = server.domain();
    // The date that a page states does not change with the layout, so no response has `Last-Modified`.
    for path in ["/app/terms", "/notes/first", "/about", "/robots.txt"] {
        let answer = server.get(&domain, path);
        assert_eq!(answer.header("last-modified"), "", "{path}");
    }
    let since = [("if-modified-since", "Tue, 19 Aug 2025 00:00:00 GMT")];
    let answer = server.request("GET", &domain, "/app/terms", &since);
    assert_eq!(answer.status, 200);
    let known = [since[0], ("if-none-match", answer.header("etag"))];
    let answer = server.request("GET", &domain, "/app/terms", &known);
    assert_eq!(answer.status, 304);
}

#[test]
fn shared_caches_store_pages_if_flag_is_set() {
    let flags = [
        "--page-shared-max-age",
        "60",
        "--page-stale-while-revalidate",
        "600",
    ];
    let server = TestServer::start(&fixture("sites"), &flags);
    let domain = server.domain();
    let control = |path: &str| {
        let answer = server.get(&domain, path);
        (answer.status, answer.header("cache-control").to_owned())
    };
    let told = "public, max-age=0, s-maxage=60, stale-while-revalidate=600";
    assert_eq!(control("/about"), (200, told.to_owned()));
    assert_eq!(control("/nowhere"), (404, told.to_owned()));
}
