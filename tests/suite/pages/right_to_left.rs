//! Sites in Arabic, which is written from right to left, and in French.

use rowhouse_tests::{TestServer, TestSite, fixture};

const THEMES: [&str; 2] = ["base", "plain"];

/// Returns a site in Arabic and English, in a theme.
fn arabic(theme: &str) -> TestSite {
    let mut site = TestSite::copy_of(&fixture("arabic"));
    let own = format!("theme: {theme}\n");
    site.edit("tenants/mawj/tenant.yaml", "theme: base\n", &own);
    site
}

/// Returns the start tag of the root element.
fn root_of(page: &str) -> &str {
    let tag = page
        .split_once("<html")
        .and_then(|(_, rest)| rest.split_once('>'));
    tag.map_or("", |(tag, _)| tag)
}

#[test]
fn french_site_has_french_strings_and_dates() {
    for theme in THEMES {
        let mut site = arabic(theme);
        for (path, text) in [
            (
                "tenant.yaml",
                &*format!("name: Le Coin\ntheme: {theme}\nlanguage: fr\n"),
            ),
            (
                "pages/index.md",
                "---\ntitle: Accueil\n---\n\n[Mentions](/mentions)\n",
            ),
            (
                "pages/mentions.md",
                "---\ntitle: Mentions\nlayout: legal\nupdated: 2026-03-05\n---\n\nTexte.\n",
            ),
        ] {
            site.write(&format!("tenants/coin/{path}"), text);
        }
        let server = TestServer::start(site.folder(), &[]);
        let get = |path: &str| server.get(&server.domain(), path);
        let page = get("/coin/mentions").text();
        assert_eq!(root_of(&page), " lang=\"fr\"", "{theme}");
        let texts = [
            "Aller au contenu",
            "Dernière mise à jour le ",
            "5 mars 2026",
        ];
        for text in texts {
            assert!(page.contains(text), "{theme}: {text}: {page}");
        }
        let missing = get("/coin/rien");
        assert_eq!(missing.status, 404);
        assert!(missing.text().contains("Page introuvable"), "{theme}");
    }
}

#[test]
fn arabic_site_has_arabic_strings_and_dates() {
    for theme in THEMES {
        let site = arabic(theme);
        let server = TestServer::start(site.folder(), &[]);
        let get = |path: &str| server.get(&server.domain(), path);
        let texts = [
            "الانتقال إلى المحتوى",
            "ساري المفعول اعتبارًا من ",
            "5 مارس 2026",
        ];
        let page = get("/terms").text();
        for text in texts {
            assert!(page.contains(text), "{theme}: {text}: {page}");
        }
        let missing = get("/none");
        assert_eq!(missing.status, 404);
        let missing = missing.text();
        assert!(missing.contains("الصفحة غير موجودة"), "{theme}: {missing}");
        assert_eq!(root_of(&missing), " lang=\"ar\" dir=\"rtl\"", "{theme}");
    }
}

#[test]
fn only_arabic_pages_are_right_to_left() {
    for theme in THEMES {
        let site = arabic(theme);
        let server = TestServer::start(site.folder(), &[]);
        let get = |path: &str| server.get(&server.domain(), path).text();
        for (path, root) in [
            ("/", " lang=\"ar\" dir=\"rtl\""),
            ("/about", " lang=\"ar\" dir=\"rtl\""),
            ("/en", " lang=\"en\""),
            ("/en/about", " lang=\"en\""),
        ] {
            let page = get(path);
            assert_eq!(root_of(&page), root, "{theme}: {path}");
            for link in [
                "lang=\"ar\" hreflang=\"ar\" dir=\"rtl\"",
                "lang=\"en\" hreflang=\"en\" dir=\"ltr\"",
            ] {
                assert!(page.contains(link), "{theme}: {path}: {link}");
            }
        }
    }
}

#[test]
fn page_without_right_to_left_text_has_no_rules_for_it() {
    for theme in THEMES {
        let mut site = arabic(theme);
        site.write(
            "tenants/corner/tenant.yaml",
            format!("name: Corner\ntheme: {theme}\n"),
        );
        site.write(
            "tenants/corner/pages/index.md",
            "---\ntitle: Home\n---\n\nText.\n",
        );
        let server = TestServer::start(site.folder(), &[]);
        let has_rules = |path: &str| {
            let page = server.get(&server.domain(), path).text();
            assert!(page.contains("<style>"), "{path}: {page}");
            page.contains("[dir=\"rtl\"]")
        };
        assert!(has_rules("/about"), "{theme}");
        assert!(!has_rules("/corner"), "{theme}");
    }
}

#[test]
fn social_images_show_arabic_titles() {
    let mut site = arabic("base");
    site.reload();
    let report = site.report_text();
    // The site has pages without a translation, so the report has warnings.
    assert!(report.contains("missing-translation"), "{report}");
    assert!(!report.contains("missing-letters"), "{report}");
}
