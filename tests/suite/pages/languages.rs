//! A tenant in several languages.

use rowhouse_tests::{TestServer, TestSite, fixture};

/// Adds a tenant in English and German whose page `/prices` is not translated.
fn corner() -> TestSite {
    let mut site = TestSite::copy_of(&fixture("errors/old-translation"));
    for (path, text) in [
        ("tenant.yaml", "name: Corner\nlanguages: [en, de]\n"),
        (
            "pages/index.md",
            "---\ntitle: Home\n---\n\n[Terms](/terms), [prices](/prices)\n",
        ),
        (
            "pages/index.de.md",
            "---\ntitle: Start\n---\n\n[AGB](/terms#haftung), [Preise](prices.md)\n",
        ),
        ("pages/prices.md", "---\ntitle: Prices\n---\n\nText.\n"),
        (
            "pages/terms.md",
            "---\ntitle: Terms\nlayout: legal\nupdated: 2026-03-05\n---\n\nText.\n",
        ),
        (
            "pages/terms.de.md",
            "---\ntitle: AGB\nlayout: legal\nupdated: 2026-03-05\n---\n\n## Haftung\n\nText.\n",
        ),
    ] {
        site.write(&format!("tenants/corner/{path}"), text);
    }
    site
}

#[test]
fn translations_are_served_below_their_language() {
    let site = corner();
    let server = TestServer::start(site.folder(), &[]);
    let domain = server.domain();
    let own_host = format!("corner.{domain}");
    for (host, prefix) in [(&domain, "/corner"), (&own_host, "")] {
        let get = |path: &str| server.get(host, &format!("{prefix}{path}"));
        let (english, german) = (get("/terms"), get("/de/terms"));
        assert_eq!(
            (english.status, german.status),
            (200, 200),
            "{}",
            server.log()
        );
        let (english, german) = (english.text(), german.text());
        assert!(english.contains("<html lang=\"en\"") && english.contains("March 5, 2026"));
        assert!(german.contains("<html lang=\"de\"") && german.contains("5. M\u{e4}rz 2026"));
        assert!(german.contains("\"inLanguage\":\"de\""));
        for page in [&english, &german] {
            for (language, path) in [
                ("en", "/terms"),
                ("de", "/de/terms"),
                ("x-default", "/terms"),
            ] {
                let link = format!("/corner{path}\" hreflang=\"{language}\">");
                assert!(page.contains(&link), "{link}: {page}");
            }
        }
        let home = get("/de").text();
        assert!(
            home.contains(&format!("href=\"{prefix}/de/terms#haftung\"")),
            "{home}"
        );
        assert!(
            home.contains(&format!("href=\"{prefix}/prices\"")),
            "{home}"
        );
        let missing = get("/de/none");
        assert_eq!(missing.status, 404);
        assert!(missing.text().contains("Seite nicht gefunden"));
        assert!(!get("/none").text().contains("Seite nicht gefunden"));
        assert_eq!(get("/de/prices").status, 404);
    }
    let sitemap = server.get(&domain, "/sitemap.xml").text();
    assert!(sitemap.contains("xmlns:xhtml=\"http://www.w3.org/1999/xhtml\""));
    assert!(
        sitemap.contains("hreflang=\"x-default\" href="),
        "{sitemap}"
    );
}

#[test]
fn switcher_links_each_page_to_its_translation() {
    for theme in ["base", "plain"] {
        let mut site = corner();
        let manifest = format!("name: Corner\ntheme: {theme}\nlanguages: [en, de]\n");
        site.write("tenants/corner/tenant.yaml", &manifest);
        let server = TestServer::start(site.folder(), &[]);
        let host = format!("corner.{}", server.domain());
        let links = |path: &str| {
            let page = server.get(&host, path).text();
            let (_, switcher) = page.split_once("<nav class=\"languages\"")?;
            let (switcher, _) = switcher.split_once("</nav>")?;
            let links = switcher
                .split("<li>")
                .skip(1)
                .map(|link| link.trim().to_owned());
            Some(links.collect::<Vec<_>>())
        };
        let link = |href: &str, language: &str, current: &str, name: &str| {
            format!(
                "<a href=\"{href}\" lang=\"{language}\" hreflang=\"{language}\" dir=\"ltr\"{current}>{name}</a></li>"
            )
        };
        let current = " aria-current=\"true\"";
        for (path, english, german, is_english) in [
            ("/terms", "/terms", "/de/terms", true),
            ("/de/terms", "/terms", "/de/terms", false),
            ("/prices", "/prices", "/de", true),
        ] {
            let (first, second) = if is_english {
                (current, "")
            } else {
                ("", current)
            };
            let expected = vec![
                link(english, "en", first, "English"),
                link(german, "de", second, "Deutsch"),
            ];
            let found = links(path).map(|links| {
                let links = links.into_iter();
                links
                    .map(|link| link.replace("\n</ul>", ""))
                    .collect::<Vec<_>>()
            });
            assert_eq!(found, Some(expected), "{theme}: {path}");
        }
    }
}

#[test]
fn untranslated_page_is_warning_and_default_language_has_no_suffix() {
    let mut site = corner();
    site.reload();
    let report = site.report_text();
    assert!(!report.contains("orphan-page"), "{report}");
    assert!(
        report.contains("the page has no translation in `de`"),
        "{report}"
    );
    assert_eq!(report.matches("missing-translation").count(), 1, "{report}");
    site.write(
        "tenants/corner/pages/prices.en.md",
        "---\ntitle: Prices again\n---\n",
    );
    site.write("tenants/corner/pages/de/shop.md", "---\ntitle: Shop\n---\n");
    site.reload();
    let report = site.report_text();
    for words in [
        "rename the file to `pages/prices.md`",
        "rename the file to `pages/shop.de.md`",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

#[test]
fn language_beside_languages_is_error() {
    let mut site = corner();
    site.write(
        "tenants/corner/tenant.yaml",
        "name: Corner\nlanguage: en\nlanguages: [en, de]\n",
    );
    site.reload();
    let report = site.report_text();
    assert!(report.contains("hint: remove `language`"), "{report}");
}
