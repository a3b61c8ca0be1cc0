//! Unpublished pages: drafts, which only authors see, and scheduled pages that other pages link to.

use std::sync::Arc;

use content::report::Severity;
use render::Islands;
use rowhouse_tests::{TestSite, fixture};
use rowhouse_ui::Bundle;

const DRAFT: &str = "---\ntitle: Soon\ndraft: true\naliases: [/later]\n---\n";

fn with_draft(mut site: TestSite) -> TestSite {
    site.write("tenants/app/pages/soon.md", DRAFT)
        .write(
            "tenants/app/pages/about.md",
            "---\ntitle: About\n---\nSee [soon](/soon) and [later](/later).\n",
        )
        .reload();
    site
}

fn for_authors() -> TestSite {
    let islands = Islands::new(Bundle::embedded().expect("the islands"), true);
    TestSite::with_islands(&fixture("sites"), Arc::new(islands.with_dev_script(true)))
}

#[test]
fn draft_does_not_exist_for_visitors() {
    let site = with_draft(TestSite::fixture("sites"));
    for path in ["/soon", "/later"] {
        assert_eq!(site.page("studio.example", "/app", path), None, "{path}");
    }
    assert!(site.page("studio.example", "/app", "/about").is_some());
    for (path, file) in site.host_files("studio.example") {
        let text = rowhouse_tests::text_of(file).unwrap_or_default();
        assert!(!text.contains("/soon"), "{path}");
    }
}

#[test]
fn links_to_drafts_are_warnings_and_drafts_are_counted() {
    let site = with_draft(TestSite::fixture("sites"));
    assert!(site.report().is_servable(), "{}", site.report_text());
    let said: Vec<(Severity, String, Option<usize>)> = site
        .report()
        .iter()
        .filter(|one| ["draft", "hidden-link"].contains(&one.code.as_str()))
        .map(|one| {
            (
                one.severity,
                one.message.clone(),
                one.position.map(|position| position.line),
            )
        })
        .collect();
    let link = |link: &str| format!("`{link}` links to a draft");
    assert_eq!(
        said,
        [
            (
                Severity::Note,
                "1 page is a draft: `/soon`".to_owned(),
                None
            ),
            (Severity::Warning, link("/soon"), Some(4)),
            (Severity::Warning, link("/later"), Some(4)),
        ]
    );
}

#[test]
fn draft_is_marked_for_authors() {
    let mut site = with_draft(for_authors());
    let page = site
        .page("studio.example", "/app", "/soon")
        .expect("the draft");
    assert!(page.contains("<title>Draft: Soon | "), "{page}");
    assert!(
        page.contains("<meta name=\"robots\" content=\"noindex\">"),
        "{page}"
    );
    assert!(page.contains(" data-draft></script>"), "{page}");
    let about = site
        .page("studio.example", "/app", "/about")
        .expect("a page");
    assert!(!about.contains("data-draft"), "{about}");
    assert!(
        !site.report_text().contains("hidden-link"),
        "{}",
        site.report_text()
    );
    let sitemap = site
        .host_files("studio.example")
        .get("/sitemap.xml")
        .expect("a sitemap");
    assert!(
        !rowhouse_tests::text_of(sitemap)
            .expect("text")
            .contains("/soon")
    );

    site.edit("tenants/app/pages/soon.md", "draft: true\n", "")
        .reload();
    let page = site
        .page("studio.example", "/app", "/soon")
        .expect("the page");
    assert!(
        page.contains("<title>Soon | ") && !page.contains("data-draft"),
        "{page}"
    );
}

const SALE: &str =
    "---\ntitle: Sale\npublish: 2026-12-01T09:00:00Z\nexpire: 2026-12-24T18:00:00Z\n---\n";
const SALE_LINK: &str = "---\ntitle: About\n---\n[The sale](/sale)\n";

fn with_sale(mut site: TestSite) -> TestSite {
    site.write("tenants/app/pages/sale.md", SALE)
        .write("tenants/app/pages/about.md", SALE_LINK);
    site
}

#[test]
fn scheduled_and_expired_pages_are_marked_for_authors() {
    let mut site = with_sale(for_authors());
    for (now, mark) in [
        (
            "2026-12-01T08:59:59Z",
            Some(" data-scheduled=\"2026-12-01T09:00:00Z\"></script>"),
        ),
        ("2026-12-01T09:00:00Z", None),
        (
            "2026-12-24T18:00:00Z",
            Some(" data-expired=\"2026-12-24T18:00:00Z\"></script>"),
        ),
    ] {
        site.reload_at(now);
        let page = site
            .page("studio.example", "/app", "/sale")
            .unwrap_or_else(|| panic!("no page at {now}"));
        let is_hidden = page.contains("<meta name=\"robots\" content=\"noindex\">");
        assert_eq!(is_hidden, mark.is_some(), "{now}: {page}");
        match mark {
            Some(mark) => assert!(page.contains(mark), "{now}: {page}"),
            None => assert!(
                !page.contains("data-scheduled") && !page.contains("data-expired"),
                "{page}"
            ),
        }
        let said = site.report_text();
        assert!(!said.contains("hidden-link"), "{said}");
        let sitemap = &site.host_files("studio.example")["/sitemap.xml"];
        let sitemap = rowhouse_tests::text_of(sitemap).expect("text");
        assert_eq!(sitemap.contains("/app/sale"), mark.is_none(), "{now}");
    }
}

#[test]
fn visitors_get_no_page_before_its_time_and_after_it() {
    let mut site = with_sale(TestSite::fixture("sites"));
    for (now, is_served) in [
        ("2026-12-01T08:59:59Z", false),
        ("2026-12-01T09:00:00Z", true),
        ("2026-12-24T18:00:00Z", false),
    ] {
        site.reload_at(now);
        let page = site.page("studio.example", "/app", "/sale");
        assert_eq!(page.is_some(), is_served, "{now}");
        let about = site.page("studio.example", "/app", "/about");
        let about = about.expect("a page");
        assert!(!about.contains("data-scheduled"), "{about}");
    }
}

#[test]
fn scheduled_and_expired_pages_are_listed_with_their_times() {
    let mut site = with_sale(TestSite::fixture("sites"));
    site.write(
        "tenants/app/pages/party.md",
        "---\ntitle: Party\nexpire: 2026-11-01T00:00:00+01:00\n---\n",
    );
    let listed = |site: &TestSite| -> Vec<String> {
        let report = site.report();
        let scheduled = report.iter().filter(|one| one.code.as_str() == "scheduled");
        let notes = scheduled.inspect(|one| assert_eq!(one.severity, Severity::Note));
        notes.map(|one| one.message.clone()).collect()
    };
    site.reload_at("2026-12-01T08:00:00Z");
    assert_eq!(
        listed(&site),
        [
            "2 pages are not served at this time: `/party` expired at 2026-10-31T23:00:00Z, `/sale` appears at 2026-12-01T09:00:00Z"
        ]
    );
    site.remove("tenants/app/pages/party.md")
        .reload_at("2026-12-02T08:00:00Z");
    assert_eq!(listed(&site), Vec::<String>::new());
}

#[test]
fn linked_page_expires_on_time() {
    let mut site = TestSite::fixture("sites");
    site.write(
        "tenants/app/pages/sale.md",
        "---\ntitle: Sale\nexpire: 2026-12-24T18:00:00Z\n---\n",
    )
    .write(
        "tenants/app/pages/about.md",
        "---\ntitle: About\n---\n[The sale](/sale)\n",
    )
    .reload_at("2026-12-24T17:59:59Z");
    assert!(site.page("studio.example", "/app", "/sale").is_some());
    site.reload_at("2026-12-24T18:00:00Z");
    assert_eq!(site.page("studio.example", "/app", "/sale"), None);
    let said = site.report_text();
    assert!(
        said.contains("`/sale` links to a page that is not published at this time"),
        "{said}"
    );
}
