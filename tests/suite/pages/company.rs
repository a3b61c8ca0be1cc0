//! Company facts: pages state the facts of the company profile, and leave them out without a profile.

use content::report::Code;
use rowhouse_tests::{TestSite, text_of};

const CONTACT: &str = "/.well-known/security.txt";
const PAGES: [(&str, &str); 5] = [
    ("", "/"),
    ("/app", "/"),
    ("/app", "/hours"),
    ("/app", "/notes"),
    ("/app", "/notes/first"),
];

fn without_company() -> TestSite {
    TestSite::fixture("errors/missing-company")
}

fn page(site: &TestSite, prefix: &str, path: &str) -> String {
    site.page("studio.example", prefix, path)
        .unwrap_or_else(|| panic!("{prefix}{path}: {}", site.report_text()))
}

fn warnings(site: &TestSite) -> Vec<(String, String)> {
    let report = site.report();
    let of_company = report
        .iter()
        .filter(|found| found.code == Code::MissingCompany);
    of_company
        .map(|found| (found.file.clone(), found.message.clone()))
        .collect()
}

#[test]
fn pages_without_company_profile_state_no_company_fact() {
    let site = without_company();
    for (prefix, path) in PAGES {
        let html = page(&site, prefix, path);
        for invented in [
            "mailto:",
            "postmaster",
            "&copy;",
            "©",
            "\"Organization\"",
            "#organization",
            "\"publisher\"",
            "\"author\"",
            "areaServed",
            "| studio.example",
            "content=\"studio.example\"",
            ">studio.example<",
        ] {
            assert!(!html.contains(invented), "{path}: {invented}: {html}");
        }
    }
    let hours = page(&site, "/app", "/hours");
    assert!(hours.contains("<title>Hours | App</title>"), "{hours}");
    assert!(
        hours.contains("<meta property=\"og:site_name\" content=\"App\">"),
        "{hours}"
    );
    assert!(hours.contains("<a>Write to us</a>"), "{hours}");
    assert!(hours.contains("<a href=\"/\">home</a>"), "{hours}");
    let home = page(&site, "", "/");
    assert!(home.contains("<title>Street</title>"), "{home}");
    assert!(home.contains("\"@type\":\"WebSite\""), "{home}");
    assert!(!home.contains("<form"), "{home}");
}

#[test]
fn theme_plain_leaves_company_facts_out() {
    let mut site = without_company();
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\ntheme: plain",
    )
    .reload();
    let hours = page(&site, "/app", "/hours");
    assert!(!hours.contains("class=\"footer-name\""), "{hours}");
    assert!(!hours.contains("©"), "{hours}");
    assert!(
        hours.contains("<a href=\"/app\">App</a>\n</p>"),
        "the header names the site: {hours}"
    );
}

#[test]
fn security_contact_needs_company_profile() {
    let mut site = without_company();
    for host in ["studio.example", "app.studio.example"] {
        assert!(!site.host_files(host).contains_key(CONTACT), "{host}");
    }
    site.edit(
        "tenants/home/tenant.yaml",
        "root: true",
        "root: true\ncompany: {name: Street, legal_name: Street LLC, description: It keeps a street., email: post@studio.example}",
    )
    .reload();
    let text = text_of(&site.host_files("app.studio.example")[CONTACT]).expect("a text");
    assert!(text.contains("mailto:post@studio.example"), "{text}");
    assert_eq!(warnings(&site), []);
}

#[test]
fn feed_without_company_profile_names_its_site_as_author() {
    let site = without_company();
    let feed = page(&site, "/app", "/notes/feed.xml");
    assert!(feed.contains("<title>Notes | App</title>"), "{feed}");
    assert!(feed.contains("<name>App</name>"), "{feed}");
}

#[test]
fn missing_company_profile_is_one_warning() {
    let mut site = without_company();
    let found = warnings(&site);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].0.ends_with("tenants/home/tenant.yaml"),
        "{found:?}"
    );

    site.edit("tenants/home/tenant.yaml", "root: true\n", "")
        .reload();
    let found = warnings(&site);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0.ends_with("/tenants"), "{found:?}");

    // The manifest that cannot be read may have the profile.
    site.write("tenants/broken/tenant.yaml", "name: [").reload();
    assert_eq!(warnings(&site), []);
}

#[test]
fn company_of_a_refused_root_is_not_missing() {
    let mut site = without_company();
    let company = "company: {name: Street, legal_name: Street Ltd, description: It sells., email: a@street.example}\n";
    site.write("tenants/deployment.yaml", "tenants: {}\n")
        .edit(
            "tenants/home/tenant.yaml",
            "root: true\n",
            &format!("root: true\n{company}"),
        )
        .reload();
    let report = site.report_text();
    assert!(report.contains("error[address-refused]"), "{report}");
    assert_eq!(warnings(&site), [], "{report}");
}

#[test]
fn pages_without_root_tenant_link_to_their_own_landing_page() {
    let mut site = without_company();
    site.remove("tenants/home").reload();
    let first = page(&site, "/app", "/notes/first");
    assert!(!first.contains("href=\"/\""), "{first}");
    assert!(first.contains("href=\"/app\""), "{first}");
    assert!(
        first.contains("\"item\":\"https://studio.example/app\""),
        "{first}"
    );
    assert!(
        !first.contains("\"item\":\"https://studio.example/\""),
        "{first}"
    );
}

#[test]
fn link_to_missing_fact_of_profile_is_warning() {
    let mut site = TestSite::fixture("sites");
    assert_eq!(warnings(&site), []);
    site.edit(
        "tenants/home/tenant.yaml",
        "  scheduling: https://cal.example/call\n",
        "",
    )
    .write(
        "tenants/app/pages/about.md",
        "---\ntitle: About\n---\n[Book a call](company:scheduling)\n",
    )
    .reload();
    let found = warnings(&site);
    assert!(
        found
            .iter()
            .any(|(file, message)| file.ends_with("about.md")
                && message == "`company:scheduling`: the company profile has no `scheduling`"),
        "{found:?}"
    );
    let about = page(&site, "/app", "/about");
    assert!(about.contains("<a>Book a call</a>"), "{about}");
}
