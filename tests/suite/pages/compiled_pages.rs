//! The compiled pages of a folder, to the byte: text, heads, structured data, links under every mount.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use release::snapshot::{ContentEncoding, HostEntry, Resource};
use rowhouse_tests::{TestSite, expect_text, fixture, text_of, workspace};
use tempfile::TempDir;

/// Every address of the fixture that has pages: host and prefix.
const PLACES: [(&str, &str); 4] = [
    ("studio.example", ""),
    ("studio.example", "/app"),
    ("studio.example", "/apps/app"),
    ("app.studio.example", ""),
];

#[test]
fn folder_compiles_to_expected_pages() {
    let site = TestSite::fixture("sites");
    for (host, prefix) in PLACES {
        let pages = site.pages(host, prefix);
        let mut paths: Vec<&str> = pages.resources.paths().collect();
        paths.sort_unstable();
        let mut text = String::new();
        for path in paths.iter().filter(|path| !path.starts_with("/assets/")) {
            match pages.resources[*path].as_ref() {
                Resource::Redirect(to) => {
                    writeln!(text, "=== {path}\n308 {}", to.to_str().expect("text"))
                }
                page => writeln!(text, "=== {path}\n{}", text_of(page).expect("a page")),
            }
            .expect("text");
        }
        for (part, page) in &pages.not_found {
            writeln!(
                text,
                "=== 404 below `{part}`\n{}",
                text_of(page).expect("a page")
            )
            .expect("text");
        }
        writeln!(
            text,
            "=== 405\n{}",
            text_of(&pages.method_not_allowed[0].1).expect("a page")
        )
        .expect("text");
        let name = format!("{host}{}", prefix.replace('/', "_"));
        expect_text(&text, &fixture(&format!("sites/expected/{name}.html")));
    }
    expect_text(&site.report_text(), &fixture("sites/expected/report.txt"));
}

#[test]
fn error_pages_have_social_metadata() {
    let site = TestSite::copy_of(&workspace());
    let mut looked_at = 0;
    for host in site.snapshot.hosts.values() {
        let HostEntry::Site(routes) = host else {
            continue;
        };
        for mount in routes.root.iter().chain(routes.prefixes.values()) {
            let pages = mount.pages.get().expect("rendered");
            let errors = pages.not_found.iter().chain(&pages.method_not_allowed);
            for (_, page) in errors {
                let html = text_of(page).expect("a page");
                let content = |tag: &str| {
                    let (_, rest) = html
                        .split_once(tag)
                        .unwrap_or_else(|| panic!("{tag}: {html}"));
                    rest.split('"').next().expect("a value").to_owned()
                };
                let description = content("<meta name=\"description\" content=\"");
                assert!(description.len() > 30, "{description}");
                for tag in ["property=\"og:description", "name=\"twitter:description"] {
                    assert_eq!(content(&format!("{tag}\" content=\"")), description);
                }
                assert_ne!(content("property=\"og:title\" content=\""), "");
                for tag in ["property=\"og:image", "name=\"twitter:image"] {
                    let image = content(&format!("{tag}\" content=\""));
                    assert!(
                        image.starts_with("https://") && image.ends_with(".png"),
                        "{image}"
                    );
                }
                assert!(
                    !html.contains("rel=\"canonical\""),
                    "an error has no address"
                );
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 20, "only {looked_at} pages");
}

#[test]
fn same_folders_give_same_bytes() {
    let (one, other) = (TestSite::fixture("sites"), TestSite::fixture("sites"));
    for (host, prefix) in PLACES {
        let (one, other) = (one.pages(host, prefix), other.pages(host, prefix));
        assert_eq!(one.resources.iter().count(), other.resources.iter().count());
        for (path, resource) in one.resources.iter() {
            match (resource.as_ref(), other.resources[path].as_ref()) {
                (Resource::Body(one), Resource::Body(other)) => {
                    for (one, other) in one.variants.iter().zip(other.variants.iter()) {
                        assert_eq!(
                            (one.encoding, &one.etag, &one.bytes),
                            (other.encoding, &other.etag, &other.bytes),
                            "{path}"
                        );
                    }
                }
                (Resource::Redirect(one), Resource::Redirect(other)) => {
                    assert_eq!(one, other, "{path}");
                }
                _ => panic!("{path} is a body here and a redirect there"),
            }
        }
    }
}

#[test]
fn page_has_every_content_encoding() {
    let mut site = TestSite::fixture("sites");
    let codings = |site: &TestSite| -> Vec<(ContentEncoding, u64)> {
        let pages = site.pages("studio.example", "");
        let Resource::Body(body) = pages.resources["/"].as_ref() else {
            panic!("no body")
        };
        let variants = body.variants.iter();
        variants
            .map(|one| (one.encoding, one.bytes.len()))
            .collect()
    };
    let quick = codings(&site);
    let named: Vec<ContentEncoding> = quick.iter().map(|(coding, _)| *coding).collect();
    assert_eq!(
        named,
        [
            ContentEncoding::Brotli,
            ContentEncoding::Gzip,
            ContentEncoding::Identity
        ]
    );
    let all = codings(site.add_best_encodings());
    assert_eq!(all[0].0, ContentEncoding::Brotli);
    assert!(all[0].1 < quick[0].1, "it takes long, and comes later");
    assert_eq!(all[1..], quick[1..]);
}

#[test]
fn invalid_page_leaves_last_valid_site_and_other_tenants() {
    let mut site = TestSite::fixture("sites");
    let before = site
        .page("app.studio.example", "", "/terms")
        .expect("a page");
    site.edit("tenants/app/pages/terms.md", "title: Terms", "titel: Terms")
        .reload();
    assert_eq!(
        site.page("app.studio.example", "", "/terms").as_ref(),
        Some(&before)
    );
    assert!(site.page("studio.example", "", "/about").is_some());
    site.edit(
        "tenants/app/pages/terms.md",
        "titel: Terms",
        "title: Conditions",
    )
    .reload();
    let after = site
        .page("app.studio.example", "", "/terms")
        .expect("a page");
    assert!(
        after.contains("<title>Conditions | Street Company</title>"),
        "{after}"
    );
}

#[test]
fn change_renders_only_changed_tenant() {
    let mut site = TestSite::fixture("sites");
    let (home, app) = (
        site.mount("studio.example", ""),
        site.mount("app.studio.example", ""),
    );
    site.edit(
        "tenants/app/pages/terms.md",
        "title: Terms",
        "title: Conditions",
    )
    .reload();
    let same = |one, other: Option<std::sync::Arc<_>>| {
        std::sync::Arc::ptr_eq(&one, &other.expect("a mount"))
    };
    assert!(
        same(home.expect("a mount"), site.mount("studio.example", "")),
        "the other tenant was compiled again"
    );
    assert!(
        !same(app.expect("a mount"), site.mount("app.studio.example", "")),
        "the change was not read"
    );
}

#[test]
fn link_keeps_query_and_fragment() {
    let mut site = TestSite::fixture("sites");
    site.write(
        "tenants/app/pages/ask.md",
        "---\ntitle: Ask\n---\n## Here\n\n[own](/terms?from=ask&n=1#scope) [home](home:/notes?tag=a) [same](#here)\n",
    );
    site.reload();
    for (prefix, host, own, home) in [
        ("/app", "studio.example", "/app/terms", "/notes"),
        (
            "",
            "app.studio.example",
            "/terms",
            "https://studio.example/notes",
        ),
    ] {
        let page = site.page(host, prefix, "/ask").expect("a page");
        for href in [
            format!("{own}?from=ask&amp;n=1#scope"),
            format!("{home}?tag=a"),
            "#here".to_owned(),
        ] {
            assert!(
                page.contains(&format!("href=\"{href}\"")),
                "{href} in {page}"
            );
        }
    }
}

#[test]
fn files_of_older_pages_are_served_for_a_day() {
    let mut site = TestSite::fixture("sites");
    let doors = |site: &TestSite| -> Vec<String> {
        let now = site
            .pages("studio.example", "/app")
            .resources
            .paths()
            .map(ToString::to_string);
        let Some(HostEntry::Site(routes)) = site.snapshot.hosts.get("studio.example") else {
            panic!("no site");
        };
        let replaced = routes.replaced.get("/app").into_iter();
        let before = replaced.flat_map(|files| files.keys().map(ToString::to_string));
        now.chain(before)
            .filter(|path| path.starts_with("/assets/door."))
            .collect()
    };
    let drawings = |site: &TestSite| {
        site.snapshot
            .shared
            .keys()
            .filter(|path| path.starts_with("/assets/dot."))
            .count()
    };
    let first = doors(&site);
    for change in 1..=5 {
        site.write(
            "tenants/app/assets/door.svg",
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><g id=\"d{change}\"/></svg>"),
        );
        site.write(
            "themes/base/icons/dot.svg",
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><g id=\"d{change}\"/></svg>"),
        );
        site.reload_at(&format!("2026-11-21T1{change}:00:00Z"));
        assert!(doors(&site).contains(&first[0]), "after {change} changes");
        assert_eq!(doors(&site).len(), 1 + change);
        assert_eq!(drawings(&site), 1 + change);
    }
    // The first file was replaced at eleven, the second at twelve.
    site.reload_at("2026-11-22T11:30:00Z");
    assert!(!doors(&site).contains(&first[0]));
    assert_eq!((doors(&site).len(), drawings(&site)), (5, 5));
}

#[test]
fn removed_folder_is_gone_and_new_folder_is_served() {
    let mut site = TestSite::fixture("sites");
    site.remove("tenants/app");
    site.write("tenants/new/tenant.yaml", "name: New\n");
    site.write("tenants/new/pages/index.md", "---\ntitle: New\n---\n");
    site.reload();
    assert!(site.mount("app.studio.example", "").is_none());
    assert!(site.mount("studio.example", "/app").is_none());
    assert!(site.page("new.studio.example", "", "/").is_some());
    assert!(site.page("studio.example", "/new", "/").is_some());
}

#[test]
fn broken_theme_leaves_every_page() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "themes/base/layouts/page.html",
        "{{ page.body }}",
        "{{ page.body | nofilter }}",
    )
    .reload();
    assert!(site.page("studio.example", "", "/").is_some());
    let text = site.report_text();
    assert!(text.contains("themes/base/layouts/page.html:"), "{text}");
}

#[test]
fn unused_theme_renders_no_tenant() {
    let mut site = TestSite::fixture("sites");
    site.write("themes/other/theme.yaml", "name: Other\nparent: base\n")
        .reload();
    let before = site.mount("app.studio.example", "").expect("a mount");
    site.edit("themes/other/theme.yaml", "name: Other", "name: Another")
        .write("themes/third/theme.yaml", "name: Third\n")
        .write("themes/third/layouts/page.html", "{{ nothing | at_all }}")
        .reload();
    let after = site.mount("app.studio.example", "").expect("a mount");
    assert!(Arc::ptr_eq(&before, &after));

    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\ntheme: other",
    )
    .reload();
    let page = |site: &TestSite| site.page("app.studio.example", "", "/terms");
    let before = page(&site).expect("a page");
    site.edit(
        "themes/base/layouts/page.html",
        "<footer>",
        "<footer id=\"new\">",
    )
    .reload();
    assert_ne!(
        page(&site),
        Some(before),
        "the parent's files are its own, too"
    );
}

#[test]
fn props_of_theme_match_embedded_islands() {
    let site = TestSite::copy_of(&rowhouse_tests::workspace());
    let report = site.report();
    let errors: Vec<_> = report
        .iter()
        .filter(|diagnostic| diagnostic.severity != content::report::Severity::Note)
        .collect();
    assert!(
        errors.is_empty(),
        "the repository's own tenants are not clean:\n{}",
        site.report_text()
    );
}

#[test]
fn page_is_published_and_expires_on_time() {
    let mut site = TestSite::fixture("sites");
    site.write(
        "tenants/app/pages/sale.md",
        "---\ntitle: Sale\npublish: 2026-12-01T09:00:00-06:00\nexpire: 2026-12-24T18:00:00-06:00\n---\n",
    );
    let shown = |site: &mut TestSite, now: &str| {
        site.reload_at(now);
        site.page("app.studio.example", "", "/sale").is_some()
    };
    assert!(!shown(&mut site, "2026-12-01T14:59:59Z"));
    let due = site.registry().next_change();
    assert_eq!(due.expect("a moment").to_string(), "2026-12-01T15:00:00Z");
    assert!(shown(&mut site, "2026-12-01T15:00:00Z"));
    assert!(shown(&mut site, "2026-12-24T23:59:59Z"));
    assert!(!shown(&mut site, "2026-12-25T00:00:00Z"));
}

#[test]
fn copyright_year_follows_time_zone_of_company() {
    let mut site = TestSite::fixture("sites");
    let footer = |site: &mut TestSite, now: &str| {
        site.reload_at(now);
        let page = site.page("studio.example", "", "/").expect("a page");
        page.split_once("Street Company LLC ").expect("a footer").1[..4].to_owned()
    };
    assert_eq!(footer(&mut site, "2027-01-01T05:59:59Z"), "2026");
    assert_eq!(footer(&mut site, "2027-01-01T06:00:00Z"), "2027");
}

#[test]
fn tenant_without_social_image_uses_that_of_root() {
    let site = TestSite::fixture("sites");
    let image = |host: &str, prefix: &str| -> String {
        let page = site.page(host, prefix, "/").expect("a page");
        let (_, rest) = page
            .split_once("<meta property=\"og:image\" content=\"")
            .expect("an image");
        rest.split('"').next().expect("a URL").to_owned()
    };
    let own = image("studio.example", "");
    assert!(
        own.starts_with("https://studio.example/assets/share."),
        "{own}"
    );
    assert_eq!(image("studio.example", "/app"), own);
    assert_eq!(image("app.studio.example", ""), own);
}

#[test]
fn questions_become_faq_with_absolute_links() {
    let mut site = TestSite::fixture("sites");
    let questions = workspace().join("themes/base/sections/questions/schema.yaml");
    let schema = std::fs::read_to_string(questions).expect("a schema");
    site.write("themes/base/sections/questions/schema.yaml", schema);
    site.write(
        "themes/base/sections/questions/section.html",
        "<p>Asked</p>\n",
    );
    site.edit(
        "tenants/app/pages/terms.md",
        "title: Terms",
        "title: Terms\nschema: contact\nsections:\n  - kind: questions\n    items:\n      - {question: \"Where?\", answer: \"[Here](#scope) or [home](/).\"}",
    )
    .reload();
    assert!(
        !site.report_text().contains("error["),
        "{}",
        site.report_text()
    );
    let page = site
        .page("app.studio.example", "", "/terms")
        .expect("a page");
    assert!(
        page.contains(r#""@type":["ContactPage","FAQPage"]"#),
        "{page}"
    );
    for href in [
        "https://studio.example/app/terms#scope",
        "https://studio.example/app",
    ] {
        assert!(
            page.contains(&format!(r#"href=\"{href}\""#)),
            "{href}\n{page}"
        );
    }
}

#[test]
fn grouped_sections_share_linkable_part() {
    let site = TestSite::copy_of(&rowhouse_tests::workspace());
    let page = site.page("studio.example", "", "/").expect("a page");
    let about = page
        .split("<div class=\"group\" id=\"about\">")
        .nth(1)
        .expect("the part");
    let about = about.split("</section>\n</div>").next().expect("its end");
    for word in ["End-to-end delivery", "Our mission", "products shipped"] {
        assert!(about.contains(word), "{word}\n{about}");
    }
    assert!(!about.contains("Send Message"), "{about}");
}

/// Returns the font files that a page preloads, and the upright ones that its style names, by their names without a hash.
fn fonts_of(html: &str) -> (Vec<String>, Vec<String>) {
    let named = |text: &str| {
        let (_, file) = text.split_once("/assets/").expect("a file");
        let (file, _) = file.split_once(".woff2").expect("a font");
        let (name, _) = file.rsplit_once('.').expect("a hash");
        name.to_owned()
    };
    let preloaded = html.split("<link rel=\"preload\"").skip(1);
    let faces = html.split("@font-face{").skip(1);
    let faces = faces.filter_map(|face| face.split('}').next());
    let upright = faces.filter(|face| face.contains("url(") && !face.contains("italic"));
    (preloaded.map(named).collect(), upright.map(named).collect())
}

#[test]
fn page_with_rare_characters_uses_complete_font_file() {
    let folder = TempDir::new().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join("tenants/sample").join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("tenant.yaml", "name: Sample\ntheme: base\nroot: true\n");
    for (name, title) in [
        ("index", "Plain words"),
        ("german", "Größe"),
        ("polish", "Łódź"),
        ("vietnamese", "Tiếng Việt"),
    ] {
        write(
            &format!("pages/{name}.md"),
            &format!("---\ntitle: {title}\n---\nWords, \"and\" signs…\n"),
        );
    }
    let site = TestSite::copy_of(folder.path());
    let fonts = |path: &str| fonts_of(&site.page("studio.example", "", path).expect("a page"));
    let first = ["big-shoulders", "public-sans"].map(ToOwned::to_owned);
    let whole = ["big-shoulders.whole", "public-sans.whole"].map(ToOwned::to_owned);
    let (preloaded, named) = fonts("/");
    assert_eq!(preloaded, first);
    assert!(!named.iter().any(|file| whole.contains(file)), "{named:?}");
    assert!(named.contains(&"public-sans.more".to_owned()), "{named:?}");
    for path in ["/german", "/polish", "/vietnamese"] {
        assert_eq!(fonts(path), (whole.to_vec(), whole.to_vec()), "{path}");
    }
}
