//! The files around the pages for search engines, feed readers, browsers and app stores, on each host.

use std::fmt::Write as _;

use release::snapshot::Resource;
use rowhouse_tests::{TestSite, expect_text, fixture, text_of};

#[test]
fn every_host_serves_these_files() {
    let site = TestSite::fixture("sites");
    for host in ["studio.example", "app.studio.example"] {
        let files = site.host_files(host);
        let mut paths: Vec<&str> = files.keys().map(AsRef::as_ref).collect();
        paths.sort_unstable();
        let mut text = String::new();
        for path in paths {
            match files[path].as_ref() {
                Resource::Redirect(to) => {
                    writeln!(text, "=== {path}\n308 {}", to.to_str().expect("text"))
                }
                body => writeln!(text, "=== {path}\n{}", text_of(body).expect("a text")),
            }
            .expect("text");
        }
        expect_text(&text, &fixture(&format!("sites/expected/{host}.files.txt")));
    }
}

fn sitemap(site: &TestSite, host: &str) -> Vec<String> {
    let files = site.host_files(host);
    let text = files
        .get("/sitemap.xml")
        .and_then(|resource| text_of(resource))
        .unwrap_or_default();
    text.split("<loc>")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn sitemap_lists_canonical_indexable_pages_of_host() {
    let mut site = TestSite::fixture("sites");
    let domain = sitemap(&site, "studio.example");
    assert!(
        domain.contains(&"https://studio.example/".to_owned()),
        "{domain:?}"
    );
    assert!(domain.contains(&"https://studio.example/app/terms".to_owned()));
    assert!(
        !domain
            .iter()
            .any(|url| url.contains("/apps/") || url.ends_with("/us"))
    );

    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\ncanonical: host",
    )
    .edit(
        "tenants/app/pages/terms.md",
        "title: Terms",
        "title: Terms\nnoindex: true",
    )
    .reload();
    assert!(
        !sitemap(&site, "studio.example")
            .iter()
            .any(|url| url.contains("/app"))
    );
    assert_eq!(
        sitemap(&site, "app.studio.example"),
        ["https://app.studio.example/"]
    );
}

#[test]
fn sitemap_of_other_host_redirects_to_canonical_host() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\ncanonical: host\nhosts: [app.example]",
    )
    .reload();
    match site.host_files("app.studio.example")["/sitemap.xml"].as_ref() {
        Resource::Redirect(to) => assert_eq!(to, "https://app.example/sitemap.xml"),
        other => panic!("{other:?}"),
    }
    assert_eq!(sitemap(&site, "app.example").len(), 2);
}

#[test]
fn saved_page_makes_no_new_sitemap() {
    let mut site = TestSite::fixture("sites");
    let before = site.host_files("studio.example")["/sitemap.xml"].clone();
    site.edit(
        "tenants/app/pages/terms.md",
        "title: Terms",
        "title: Conditions",
    )
    .reload();
    let after = site.host_files("studio.example")["/sitemap.xml"].clone();
    assert!(
        std::sync::Arc::ptr_eq(&before, &after),
        "the sitemap was made again"
    );
    site.edit("tenants/app/pages/terms.md", "2025-08-19", "2025-08-20")
        .reload();
    let text = text_of(&site.host_files("studio.example")["/sitemap.xml"]).expect("a text");
    assert!(text.contains("<lastmod>2025-08-20</lastmod>"), "{text}");
}

#[test]
fn security_contact_does_not_expire_within_year() {
    let site = TestSite::fixture("sites");
    let text = text_of(&site.host_files("app.studio.example")["/.well-known/security.txt"])
        .expect("a text");
    assert!(
        text.contains("Contact: mailto:post@studio.example\n"),
        "{text}"
    );
    assert!(text.contains(&format!("Expires: {}-01-31", 2027)), "{text}");
}

#[test]
fn feed_is_same_everywhere_with_canonical_links() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/app/pages/index.md",
        "title: The App",
        "title: The App\ncollection: {feed: true}",
    )
    .edit(
        "tenants/app/pages/terms.md",
        "updated: 2025-08-19",
        "updated: 2025-08-19\ndate: 2025-08-01\nexcerpt: \"Fair & square <terms>\"",
    )
    .reload();
    let feed = site
        .page("app.studio.example", "", "/feed.xml")
        .expect("a feed");
    assert_eq!(
        site.page("studio.example", "/app", "/feed.xml").as_ref(),
        Some(&feed)
    );
    for part in [
        "<id>https://studio.example/app/terms</id>",
        "<published>2025-08-01T00:00:00Z</published>\n<updated>2025-08-19T00:00:00Z</updated>",
        "<summary>Fair &amp; square &lt;terms&gt;</summary>",
        "rel=\"self\" type=\"application/atom+xml\" href=\"https://studio.example/app/feed.xml\"",
    ] {
        assert!(feed.contains(part), "{part}\n{feed}");
    }
    for path in ["/", "/terms"] {
        let page = site.page("app.studio.example", "", path).expect("a page");
        assert!(
            page.contains("<link rel=\"alternate\" href=\"https://studio.example/app/feed.xml\" type=\"application/atom+xml\" title=\"The App | Street Company\">"),
            "{page}"
        );
    }
}

#[test]
fn authors_can_link_to_a_feed() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/home/pages/index.md",
        "[later](/later)",
        "[feed](/notes/feed.xml)",
    )
    .edit(
        "tenants/app/pages/index.md",
        "home:/about",
        "home:/notes/feed.xml",
    )
    .reload();
    let text = site.report_text();
    assert!(!text.contains("feed.xml"), "{text}");
}

#[test]
fn app_is_associated_with_own_host_only() {
    let mut site = TestSite::fixture("sites");
    let certificate = ["AB"; 32].join(":");
    site.edit(
        "tenants/app/tenant.yaml",
        "  platforms: [ios, web]",
        &format!(
            "  platforms: [ios, web]
  apple: {{team: A1B2C3D4E5, bundle: com.example.app, app_id: \"1234567890\"}}
  android: {{package: com.example.app, fingerprints: [\"{certificate}\"]}}
  ads: [\"ads.example, 1, DIRECT\"]"
        ),
    )
    .reload();
    assert_eq!(site.report_text().matches("error").count(), 0);

    let read = |path: &str| {
        let text = site.page("app.studio.example", "", path).expect("a file");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    let apple = read("/.well-known/apple-app-site-association");
    let detail = &apple["applinks"]["details"][0];
    assert_eq!(detail["appIDs"][0], "A1B2C3D4E5.com.example.app");
    let components = detail["components"].as_array().expect("a list");
    let pages_stay = serde_json::json!({"/": "/terms", "exclude": true});
    assert!(components.contains(&pages_stay), "{components:?}");
    assert_eq!(components.last(), Some(&serde_json::json!({"/": "*"})));
    assert_eq!(
        apple["webcredentials"]["apps"][0],
        "A1B2C3D4E5.com.example.app"
    );

    let android = read("/.well-known/assetlinks.json");
    let target = &android[0]["target"];
    assert_eq!(target["package_name"], "com.example.app");
    assert_eq!(target["sha256_cert_fingerprints"][0], certificate);
    let ads = site.page("app.studio.example", "", "/app-ads.txt");
    assert_eq!(ads.as_deref(), Some("ads.example, 1, DIRECT\n"));

    let mount = site.mount("app.studio.example", "").expect("a mount");
    for path in [
        "/.well-known/apple-app-site-association",
        "/.well-known/assetlinks.json",
    ] {
        let Resource::Body(body) = mount.resource(path).expect("a file").as_ref() else {
            panic!("{path} is no body");
        };
        let whole = body.variants.identity().expect("a body");
        let fields = body.fields.for_body(whole.encoding, &whole.etag);
        assert_eq!(fields["content-type"], "application/json", "{path}");
    }
    for (host, prefix) in [
        ("studio.example", ""),
        ("studio.example", "/app"),
        ("studio.example", "/apps/app"),
    ] {
        let mount = site.mount(host, prefix).expect("a mount");
        let pages = mount.pages.get().expect("rendered");
        let ties = pages
            .resources
            .paths()
            .filter(|path| path.starts_with("/.well-known/") || *path == "/app-ads.txt");
        assert_eq!(ties.count(), 0, "{host}{prefix}");
    }
    let banner = "<meta name=\"apple-itunes-app\" content=\"app-id=1234567890\">";
    for (host, prefix) in [("app.studio.example", ""), ("studio.example", "/app")] {
        let page = site.page(host, prefix, "/terms").expect("a page");
        assert!(page.contains(banner), "{host}{prefix}");
    }
}

#[test]
fn tenant_without_app_has_no_association() {
    let site = TestSite::fixture("sites");
    let pages = site.pages("app.studio.example", "");
    let ties = pages
        .resources
        .paths()
        .filter(|path| path.starts_with("/.well-known/"));
    assert_eq!(ties.count(), 0);
}

#[test]
fn every_page_has_social_image_with_title() {
    let mut site = TestSite::copy_of(&rowhouse_tests::workspace());
    assert!(
        site.rendered_image("studio.example", "/favicon.ico")
            .is_none()
    );
    site.render_images();
    let mut seen = std::collections::BTreeSet::new();
    for (path, title) in [
        ("/", "Build Web, Mobile, TV, and Game Applications"),
        ("/blog", "Blog"),
        ("/privacy-policy", "Privacy Policy"),
    ] {
        let page = site.page("studio.example", "", path).expect("a page");
        let content = |property: &str| {
            let rest = page.split(&format!("{property}\" content=\"")).nth(1);
            let rest = rest.unwrap_or_else(|| panic!("{path} says no {property}"));
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        assert_eq!(content("og:image:width"), "1200");
        assert_eq!(content("og:image:height"), "630");
        assert_eq!(content("og:image:alt"), format!("Halsted Studio: {title}"));
        assert_eq!(content("twitter:card"), "summary_large_image");
        let url = content("og:image");
        let file = url
            .strip_prefix("https://studio.example")
            .expect("the host");
        let Some(Resource::Body(picture)) = site.rendered_image("studio.example", file) else {
            panic!("{file} is no body");
        };
        let identity = picture.variants.identity().expect("a body");
        let bytes = identity.bytes.to_bytes().expect("bytes");
        assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
        // The header's width and height (W3C, PNG, section 11.2.1).
        assert_eq!(bytes[16..24], [0, 0, 4, 176, 0, 0, 2, 118]);
        assert!(seen.insert(url), "two pages share a picture");
    }
    for host in ["studio.example", "verses.studio.example"] {
        assert!(
            site.rendered_image(host, "/favicon.ico").is_some(),
            "{host}"
        );
    }
}

#[test]
fn social_image_of_author_is_not_replaced() {
    let site = TestSite::fixture("sites");
    let page = site.page("studio.example", "", "/").expect("a page");
    assert!(page.contains("og:image\" content=\"https://studio.example/assets/share."));
}
