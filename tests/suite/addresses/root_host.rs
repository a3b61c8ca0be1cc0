//! The root tenant on its own host: its pages link to no other origin.

use rowhouse_tests::TestSite;

fn root_on_own_host() -> TestSite {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/home/tenant.yaml",
        "root: true\n",
        "root: true\ncanonical: host\nhosts: [street.example]\n",
    )
    .edit(
        "tenants/home/tenant.yaml",
        "legal:\n    - {label: Privacy, link: /about}",
        "legal:\n    - {label: Privacy, link: /privacy}",
    )
    .write(
        "tenants/home/pages/privacy.md",
        "---\ntitle: Privacy\ndescription: A page that only the footer of the sites links to, by the company profile.\n---\nWords.\n",
    )
    .reload();
    site
}

/// Returns the `href` of all links of a page in its body.
fn links(html: &str) -> Vec<&str> {
    let (_, body) = html.split_once("<body").expect("a body");
    let parts = body.split("<a ").skip(1);
    parts
        .filter_map(|part| part.split_once("href=\"")?.1.split('"').next())
        .collect()
}

#[test]
fn root_tenant_on_own_host_links_to_no_other_origin() {
    let site = root_on_own_host();
    for path in ["/about", "/privacy"] {
        let html = site.page("street.example", "", path).expect("a page");
        let found = links(&html);
        let elsewhere = found
            .iter()
            .filter(|link| link.starts_with("https://studio.example"));
        // Only the link to the other tenant, which is served at the domain, leaves the host.
        let elsewhere: Vec<_> = elsewhere
            .filter(|link| !link.starts_with("https://studio.example/app"))
            .collect();
        assert!(elsewhere.is_empty(), "{path}: {elsewhere:?}");
        for own in ["/", "/privacy"] {
            assert!(found.contains(&own), "{path} links to {own}: {found:?}");
        }
        let (head, _) = html.split_once("<body").expect("a body");
        assert!(
            head.contains("\"item\":\"https://street.example/\"")
                && !head.contains("\"item\":\"https://studio.example/\""),
            "{head}"
        );
    }
}

#[test]
fn page_that_only_the_footer_links_to_is_no_orphan_on_own_host() {
    let mut site = root_on_own_host();
    let orphans = |site: &TestSite| -> Vec<String> {
        let report = site.report();
        let orphans = report
            .iter()
            .filter(|found| found.code.as_str() == "orphan-page");
        orphans.map(|found| found.message.clone()).collect()
    };
    assert_eq!(
        orphans(&site),
        Vec::<String>::new(),
        "{}",
        site.report_text()
    );
    site.write(
        "tenants/home/pages/alone.md",
        "---\ntitle: Alone\n---\nWords.\n",
    )
    .reload();
    assert_eq!(orphans(&site), ["no page links to `/alone`"]);
}

#[test]
fn other_tenants_link_to_the_root_tenant_by_the_domain() {
    let site = root_on_own_host();
    let html = site.page("app.studio.example", "", "/").expect("a page");
    assert!(
        links(&html).contains(&"https://studio.example/privacy"),
        "{html}"
    );
}
