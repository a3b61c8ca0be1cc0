//! The files around the pages: what search engines, feed readers, browsers and app stores find on each host.

use std::fmt::Write as _;

use rowhouse::snapshot::Resource;
use rowhouse_tests::{TestSite, expect_text, fixture, text_of};

#[test]
fn every_host_answers_these_files() {
    let site = TestSite::fixture("street");
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
        expect_text(
            &text,
            &fixture(&format!("street/expected/{host}.files.txt")),
        );
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
fn a_sitemap_lists_what_is_canonical_on_its_host_and_may_be_found() {
    let mut site = TestSite::fixture("street");
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
fn a_host_that_is_not_canonical_sends_to_the_one_that_is() {
    let mut site = TestSite::fixture("street");
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
fn a_saved_page_costs_no_new_sitemap() {
    let mut site = TestSite::fixture("street");
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
fn the_contact_for_weaknesses_never_expires_within_its_year() {
    let site = TestSite::fixture("street");
    let text = text_of(&site.host_files("app.studio.example")["/.well-known/security.txt"])
        .expect("a text");
    assert!(
        text.contains("Contact: mailto:post@studio.example\n"),
        "{text}"
    );
    assert!(text.contains(&format!("Expires: {}-01-31", 2027)), "{text}");
}

#[test]
fn a_feed_is_the_same_everywhere_and_its_links_are_canonical() {
    let mut site = TestSite::fixture("street");
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
    let mut site = TestSite::fixture("street");
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
