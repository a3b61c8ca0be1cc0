//! Assignment of addresses: no tenant takes an address from its owner.

use release::snapshot::HostEntry;
use rowhouse_tests::{TestSite, copy};

/// Returns the owner of an address, or `nobody`.
fn owner(site: &TestSite, host: &str, prefix: &str) -> String {
    let mount = site.mount(host, prefix);
    mount.map_or_else(|| "nobody".to_owned(), |mount| mount.tenant.to_string())
}

#[test]
fn tenant_is_served_at_host_prefix_and_aliases() {
    let site = TestSite::fixture("sites");
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
fn www_and_root_tenants_label_redirect_to_domain() {
    let site = TestSite::fixture("sites");
    for host in ["www.studio.example", "home.studio.example"] {
        match site.snapshot.hosts.get(host) {
            Some(HostEntry::Redirect(moved)) => assert_eq!(moved.origin, "https://studio.example"),
            other => panic!("{host}: {other:?}"),
        }
    }
}

#[test]
fn owner_of_address_does_not_depend_on_order_of_arrival() {
    let mut site = TestSite::fixture("sites");
    // `aaa` comes first by name, but an alias never takes precedence over a folder's name.
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
fn page_of_root_precedes_folder_name_at_cold_start() {
    let site = TestSite::fixture("errors/address-taken");
    assert_eq!(owner(&site, "studio.example", "/gamma"), "nobody");
    assert_eq!(
        owner(&site, "gamma.studio.example", ""),
        "gamma",
        "it keeps its other mounts"
    );
}

#[test]
fn new_page_of_root_takes_no_path_from_its_owner() {
    let mut site = TestSite::fixture("sites");
    site.write("tenants/home/pages/app.md", "---\ntitle: App\n---\n")
        .reload();
    assert_eq!(owner(&site, "studio.example", "/app"), "app");
    let text = site.report_text();
    assert!(
        text.contains(
            "error[address-taken]: the path `/app` belongs to the tenant `app`\n\
             --> tenants/home/pages/app.md"
        ),
        "{text}"
    );
    site.remove("tenants/home/pages/app.md");
    site.edit(
        "tenants/home/tenant.yaml",
        "root: true",
        "root: true\nredirects: [{from: /apps/app/old, to: /about}]",
    )
    .reload();
    let text = site.report_text();
    assert!(
        text.contains("the path `/apps/app/old` belongs to the tenant `app`")
            && text.contains("tenants/home/tenant.yaml:5:20"),
        "{text}"
    );

    site.remove("tenants/app").reload();
    assert_eq!(owner(&site, "studio.example", "/apps/app"), "nobody");
    let text = site.report_text();
    assert!(
        !text.contains("address-taken"),
        "it is the root's now: {text}"
    );
}

#[test]
fn new_folder_takes_no_path_of_download_or_later_page_of_root() {
    let mut site = TestSite::fixture("sites");
    site.write("tenants/home/assets/kit.zip", "PK");
    site.edit(
        "tenants/home/tenant.yaml",
        "root: true",
        "root: true\ndownloads: {kit: assets/kit.zip}",
    );
    for (page, key) in [
        ("launch", "publish: 2030-01-01T00:00:00Z"),
        ("fair", "expire: 2020-01-01T00:00:00Z"),
        ("idea", "draft: true"),
    ] {
        let text = format!("---\ntitle: Later\n{key}\n---\n");
        site.write(&format!("tenants/home/pages/{page}.md"), text);
    }
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    for id in ["kit", "launch", "fair", "idea"] {
        site.write(&format!("tenants/{id}/tenant.yaml"), "name: Taker\n");
        let page = "---\ntitle: Home\n---\n";
        site.write(&format!("tenants/{id}/pages/index.md"), page);
        site.reload();
        let prefix = format!("/{id}");
        assert_eq!(owner(&site, "studio.example", &prefix), "nobody");
        let host = format!("{id}.studio.example");
        assert_eq!(owner(&site, &host, ""), id, "it keeps its host");
        let taken = format!("the path `{prefix}` belongs to the tenant `home`");
        assert!(site.report_text().contains(&taken), "{id}");
    }
}

#[test]
fn alias_within_collection_of_root_is_refused() {
    let mut site = TestSite::fixture("sites");
    let news = "---\ntitle: News\ncollection: {}\n---\n";
    site.write("tenants/home/pages/news/index.md", news);
    site.reload();
    site.write(
        "tenants/ghost/tenant.yaml",
        "name: Ghost\naliases: [/news/urgent]\n",
    );
    site.write("tenants/ghost/pages/index.md", "---\ntitle: Home\n---\n");
    site.reload();
    assert_eq!(owner(&site, "studio.example", "/news/urgent"), "nobody");
}

const TAKER: &str = "name: A
root: true
hosts: [app.example]
aliases: [/apps/app]
";

#[test]
fn new_folder_takes_no_address_from_its_owner() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\nhosts: [app.example]",
    )
    .reload();
    let wanted = [
        ("studio.example", "", "home"),
        ("app.example", "", "app"),
        ("studio.example", "/apps/app", "app"),
    ];
    let before = site.page("app.example", "", "/");
    // `aaa` comes first by name, and its own name conflicts with no claim.
    site.add_tenant("aaa", TAKER);
    site.reload();
    for (host, prefix, tenant) in wanted {
        assert_eq!(owner(&site, host, prefix), tenant, "{host}{prefix}");
    }
    assert_eq!(site.page("app.example", "", "/"), before);
    assert_eq!(owner(&site, "studio.example", "/aaa"), "aaa");
    let text = site.report_text();
    for (what, place) in [
        ("the domain's root belongs to the tenant `home`", "2:1"),
        ("the host `app.example` belongs to the tenant `app`", "3:9"),
        ("the path `/apps/app` belongs to the tenant `app`", "4:11"),
    ] {
        let place = format!("{what}\n --> tenants/aaa/tenant.yaml:{place}");
        assert!(text.contains(&place), "{place}:\n{text}");
    }
    assert_eq!(text.matches("error[").count(), 3, "{text}");

    // A folder with errors keeps its addresses with its last valid state.
    site.write("tenants/app/tenant.yaml", "nam: App\n").reload();
    assert_eq!(owner(&site, "app.example", ""), "app");

    // A released address goes to a waiting tenant at once.
    site.write("tenants/app/tenant.yaml", "name: App\n")
        .reload();
    assert_eq!(owner(&site, "app.example", ""), "aaa");
    assert_eq!(owner(&site, "studio.example", "/apps/app"), "aaa");
    site.remove("tenants/home").reload();
    assert_eq!(owner(&site, "studio.example", ""), "aaa");
}

#[test]
fn removed_folder_releases_addresses_to_waiting_tenant() {
    let mut site = TestSite::fixture("sites");
    site.add_tenant("aaa", "name: A\naliases: [/app]\n");
    site.reload();
    assert_eq!(owner(&site, "studio.example", "/app"), "app");
    site.remove("tenants/app").reload();
    assert_eq!(owner(&site, "studio.example", "/app"), "aaa");
    assert!(
        !site.report_text().contains("address-taken"),
        "{}",
        site.report_text()
    );
}

#[test]
fn new_folder_takes_no_path_below_prefix_of_other_tenant() {
    let mut site = TestSite::fixture("sites");
    site.add_tenant("aaa", "name: A\naliases: [/app/terms, /apps/app/x]\n");
    site.reload();
    for prefix in ["/app/terms", "/apps/app/x"] {
        assert_eq!(owner(&site, "studio.example", prefix), "nobody");
        let taken = format!("the path `{prefix}` belongs to the tenant `app`");
        assert!(
            site.report_text().contains(&taken),
            "{}",
            site.report_text()
        );
    }
}

#[test]
fn tenant_that_was_never_valid_keeps_its_name() {
    let mut site = TestSite::fixture("sites");
    site.write("tenants/zzz/tenant.yaml", "nam: Z\n");
    site.add_tenant(
        "aaa",
        "name: A\naliases: [/zzz]\nhosts: [zzz.studio.example]\n",
    );
    site.reload();
    site.add_tenant("zzz", "name: Z\n");
    site.reload();
    assert_eq!(owner(&site, "studio.example", "/zzz"), "zzz");
    assert_eq!(owner(&site, "zzz.studio.example", ""), "zzz");
}

#[test]
fn released_address_is_served_only_by_new_owner() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\nhosts: [app.example]",
    );
    site.reload();
    site.add_tenant("aaa", "name: A\nhosts: [app.example]\n");
    site.reload();
    // The new manifest is valid, but its pages are not: the last pages stay at the old addresses.
    site.edit("tenants/app/tenant.yaml", "hosts: [app.example]\n", "");
    site.write(
        "tenants/app/pages/extra.md",
        "---\ntitle: Extra\n---\n[nowhere](/nowhere)\n",
    )
    .reload();
    assert_eq!(owner(&site, "app.example", ""), "aaa");
    assert_eq!(owner(&site, "studio.example", "/app"), "app");
}

#[test]
fn domain_www_and_root_label_cannot_be_claimed() {
    let mut site = TestSite::fixture("sites");
    let hosts = [
        "studio.example",
        "www.studio.example",
        "home.studio.example",
    ];
    site.add_tenant("aaa", &format!("name: A\nhosts: [{}]\n", hosts.join(", ")));
    site.reload();
    for host in hosts {
        assert_ne!(owner(&site, host, ""), "aaa", "{host}");
    }
    assert_eq!(site.report_text().matches("error[").count(), 3);
    site.remove("tenants/home").reload();
    assert_eq!(owner(&site, "studio.example", ""), "nobody");
    assert_eq!(
        owner(&site, "home.studio.example", ""),
        "aaa",
        "as any other"
    );
}

#[test]
fn aliases_of_root_are_refused_with_reason() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/home/tenant.yaml",
        "root: true",
        "root: true\naliases: [/one, /two]",
    )
    .reload();
    let text = site.report_text();
    assert!(
        text.contains("`home` is at the domain's root") && text.contains("tenant.yaml:5:11"),
        "{text}"
    );
    assert_eq!(owner(&site, "studio.example", ""), "home");
}

#[test]
fn too_many_claims_are_refused() {
    let list = |count: usize, of: fn(usize) -> String| {
        let items: Vec<String> = (0..count)
            .map(|number| format!("  - {}\n", of(number)))
            .collect();
        items.concat()
    };
    let path = |number| format!("/a{number}");
    let host = |number| format!("a{number}.example");
    let redirect = |number| format!("{{from: /a{number}, to: /}}");
    for (key, most, of) in [
        ("aliases", 64, path as fn(usize) -> String),
        ("hosts", 16, host),
        ("redirects", 10_000, redirect),
    ] {
        for count in [most, most + 1, 12_000] {
            let mut site = TestSite::fixture("sites");
            site.add_tenant("aaa", &format!("name: A\n{key}:\n{}", list(count, of)));
            site.reload();
            assert_eq!(
                site.mount("studio.example", "/aaa").is_some(),
                count <= most,
                "{count} {key}: {}",
                site.report_text()
            );
            let place = format!("tenants/aaa/tenant.yaml:{}:5", most + 3);
            assert_eq!(site.report_text().contains(&place), count > most, "{key}");
        }
    }
    let mut site = TestSite::fixture("sites");
    site.add_tenant("aaa", "name: A\n");
    let text = format!("---\ntitle: A\naliases:\n{}---\n", list(17, path));
    site.write("tenants/aaa/pages/b.md", text).reload();
    let text = site.report_text();
    assert!(text.contains("tenants/aaa/pages/b.md:20:5"), "{text}");
}

#[test]
fn canonical_url_is_the_same_under_every_mount() {
    let mut site = TestSite::fixture("sites");
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
fn copied_folder_is_new_site_and_takes_no_address() {
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

    // By name, the copy comes before the original folder.
    let folder = |name: &str| site.path(&format!("tenants/{name}"));
    copy(&folder("verses"), &folder("sample"));
    site.edit("tenants/sample/tenant.yaml", "name: Verses", "name: Sample");
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
        text.contains("does not allow the tenant `sample` to claim `/apps/verses`"),
        "{text}"
    );
    assert_eq!(text.matches("error[").count(), 1, "{text}");
}
