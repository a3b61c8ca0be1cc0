//! Who answers where, from the set of folders alone.

use rowhouse::snapshot::HostEntry;
use rowhouse_tests::TestSite;

#[test]
fn a_tenant_answers_at_its_host_its_prefix_and_its_aliases() {
    let site = TestSite::fixture("street");
    for (host, prefix) in [
        ("app.studio.example", ""),
        ("studio.example", "/app"),
        ("studio.example", "/apps/app"),
    ] {
        let mount = site
            .mount(host, prefix)
            .unwrap_or_else(|| panic!("nobody at {host}{prefix}"));
        assert_eq!(mount.tenant.as_ref(), "app");
    }
    assert_eq!(
        site.mount("studio.example", "")
            .expect("the root")
            .tenant
            .as_ref(),
        "home"
    );
}

#[test]
fn www_and_the_root_tenants_own_label_move_to_the_domain() {
    let site = TestSite::fixture("street");
    for host in ["www.studio.example", "home.studio.example"] {
        match site.snapshot.hosts.get(host) {
            Some(HostEntry::Moved(moved)) => assert_eq!(moved.origin, "https://studio.example"),
            other => panic!("{host}: {other:?}"),
        }
    }
}

#[test]
fn who_owns_an_address_does_not_depend_on_the_order_of_arrival() {
    let mut site = TestSite::fixture("street");
    // `aaa` comes first by name, but an alias never beats a folder's name.
    site.write(
        "tenants/aaa/tenant.yaml",
        "name: A\naliases: [/app]\nhosts: [app.studio.example]\n",
    );
    site.write("tenants/aaa/pages/index.md", "---\ntitle: A\n---\n");
    site.reload();
    assert_eq!(
        site.mount("studio.example", "/app")
            .expect("a mount")
            .tenant
            .as_ref(),
        "app"
    );
    assert_eq!(
        site.mount("app.studio.example", "")
            .expect("a mount")
            .tenant
            .as_ref(),
        "app"
    );
    assert_eq!(
        site.mount("studio.example", "/aaa")
            .expect("a mount")
            .tenant
            .as_ref(),
        "aaa"
    );
    let text = site.report_text();
    assert!(text.contains("tenants/aaa/tenant.yaml:2:"), "{text}");
    assert!(
        text.contains("the path `/app` belongs to the tenant `app`"),
        "{text}"
    );
}

#[test]
fn a_page_of_the_root_tenant_beats_a_folders_name() {
    let mut site = TestSite::fixture("street");
    site.write("tenants/home/pages/app.md", "---\ntitle: App\n---\n")
        .reload();
    assert!(site.mount("studio.example", "/app").is_none());
    assert!(
        site.mount("app.studio.example", "").is_some(),
        "it keeps its other mounts"
    );
}

#[test]
fn the_canonical_url_is_one_under_every_mount() {
    let mut site = TestSite::fixture("street");
    let canonical = |site: &TestSite| -> Vec<String> {
        [
            ("app.studio.example", ""),
            ("studio.example", "/app"),
            ("studio.example", "/apps/app"),
        ]
        .iter()
        .map(|(host, prefix)| {
            let page = site.page(host, prefix, "/terms").expect("a page");
            let line = page
                .lines()
                .find(|line| line.contains("rel=\"canonical\""))
                .expect("a canonical link");
            line.split('"').nth(3).expect("a URL").to_owned()
        })
        .collect()
    };
    assert_eq!(canonical(&site), ["https://studio.example/app/terms"; 3]);
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\ncanonical: host",
    )
    .reload();
    assert_eq!(canonical(&site), ["https://app.studio.example/terms"; 3]);
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\nhosts: [app.example]",
    )
    .reload();
    assert_eq!(canonical(&site), ["https://app.example/terms"; 3]);
}

#[test]
fn a_copied_folder_is_a_site_of_its_own_and_takes_nothing() {
    let mut site = TestSite::copy_of(&rowhouse_tests::workspace());
    let verses = [
        ("verses.studio.example", ""),
        ("studio.example", "/verses"),
        ("studio.example", "/apps/verses"),
    ];
    let bytes = |site: &TestSite| {
        verses.map(|(host, prefix)| site.page(host, prefix, "/terms").expect("a page"))
    };
    let before = bytes(&site);

    // By name it comes before the folder that it is a copy of.
    for file in [
        "tenant.yaml",
        "pages/index.md",
        "pages/privacy.md",
        "pages/support.md",
        "pages/terms.md",
    ] {
        let text = std::fs::read_to_string(site.path(&format!("tenants/verses/{file}")));
        let text = text
            .expect("a file")
            .replace("name: Verses", "name: Sample");
        site.write(&format!("tenants/sample/{file}"), text);
    }
    site.reload();
    assert_eq!(bytes(&site), before);
    for (host, prefix) in [("sample.studio.example", ""), ("studio.example", "/sample")] {
        for path in ["/", "/privacy", "/support", "/terms"] {
            let page = site.page(host, prefix, path).expect("a page");
            assert!(
                page.contains("href=\"https://studio.example/sample"),
                "{host}{prefix}{path}"
            );
        }
    }
    let text = site.report_text();
    assert!(
        text.contains("the path `/apps/verses` belongs to the tenant `verses`"),
        "{text}"
    );
    assert_eq!(text.matches("mistake[").count(), 1, "{text}");
}
