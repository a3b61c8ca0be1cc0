//! A tenant in several languages.

use rowhouse_tests::{TestServer, TestSite, fixture, run, stdout};
use serde_json::Value as Json;

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
fn error_pages_follow_language_of_path() {
    let mut site = corner();
    let manifest = "name: Corner\nlanguages: [en, de]\nredirects:\n  - {from: /old, status: 410}\n  - {from: /de/alt, status: 410}\n";
    site.write("tenants/corner/tenant.yaml", manifest);
    let server = TestServer::start(site.folder(), &["--state", "state"]);
    let domain = server.domain();
    let own_host = format!("corner.{domain}");
    let (not_found, refused) = (
        ["Page not found", "Seite nicht gefunden"],
        [
            "Unexpected Application Error!",
            "Unerwarteter Anwendungsfehler",
        ],
    );
    for (host, prefix) in [(&domain, "/corner"), (&own_host, "")] {
        for (method, path, status, titles, language) in [
            ("GET", "/none", 404, not_found, 0),
            ("GET", "/de/none", 404, not_found, 1),
            ("GET", "/de.html", 404, not_found, 0),
            ("GET", "/old", 410, not_found, 0),
            ("GET", "/de/alt", 410, not_found, 1),
            ("POST", "/terms", 405, refused, 0),
            ("POST", "/de/terms", 405, refused, 1),
            ("DELETE", "/de", 405, refused, 1),
            ("PUT", "/deutsch", 405, refused, 0),
        ] {
            let answer = server.request(method, host, &format!("{prefix}{path}"), &[]);
            let (what, text) = (format!("{method} {host}{prefix}{path}"), answer.text());
            assert_eq!(answer.status, status, "{what}");
            let tag = format!("<html lang=\"{}\"", ["en", "de"][language]);
            assert!(text.contains(&tag), "{what}: {text}");
            assert!(text.contains(titles[language]), "{what}: {text}");
            assert!(!text.contains(titles[1 - language]), "{what}: {text}");
        }
    }
}

#[test]
fn store_badges_and_prices_are_in_language_of_page() {
    for theme in ["base", "plain"] {
        let mut site = corner();
        let manifest = format!("name: Corner\ntheme: {theme}\nlanguages: [en, de]\n");
        site.write("tenants/corner/tenant.yaml", manifest);
        for (file, month) in [("index.md", "month"), ("index.de.md", "Monat")] {
            let page = format!(
                "---
title: Home
sections:
  - kind: badges
    title: Stores
    items:
      - {{store: app-store, link: https://store.example}}
      - {{store: google-play, link: https://store.example}}
  - kind: plans
    title: Price
    items:
      - {{name: One, price: 18 \u{20ac}, period: {month}}}
---
"
            );
            site.write(&format!("tenants/corner/pages/{file}"), page);
        }
        let server = TestServer::start(site.folder(), &[]);
        let host = format!("corner.{}", server.domain());
        for (path, words) in [
            ("/", ["Download on the <b>", "Get it on <b>", "per month"]),
            ("/de", ["Laden im <b>", "Jetzt bei <b>", "pro Monat"]),
        ] {
            let page = server.get(&host, path).text();
            for word in words {
                assert!(page.contains(word), "{theme} {path}: {word}: {page}");
            }
        }
    }
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

/// Adds a root tenant in English and German, whose company has texts by language. Its page `/press` is not translated.
fn studio() -> TestSite {
    let mut site = corner();
    let manifest = "name: {en: Tide, de: Flut}
root: true
languages: [en, de]
tagline: {en: High water, de: Hochwasser}
description:
  en: When the water is high and low, on your beach and on all other beaches.
  de: Wann das Wasser hoch steht, an Ihrem Strand und an allen anderen.
search: true
app:
  name: {en: Tide Table, de: Gezeiten}
  category: WeatherApplication
company:
  name: {en: Salt Company, de: Salz AG}
  legal_name: Salt Company Ltd
  description: {en: It sells salt., de: Sie verkauft Salz.}
  blurb: {en: Salt for all., de: Salz für alle.}
  email: post@salt.example
  navigation:
    en: [{label: About, link: /about}]
    de: [{label: Über uns, link: /about}]
  columns:
    - title: {en: Links, de: Verweise}
      links: [{label: {en: Jobs, de: Stellen}, link: /jobs}]
  legal: [{label: {en: Press, de: Presse}, link: /press}]
";
    site.write("tenants/tide/tenant.yaml", manifest);
    for (path, text) in [
        ("index.md", "title: Home"),
        (
            "index.de.md",
            "title: Start\nsections:\n  - kind: hero\n    title: Wasserstand heute",
        ),
        ("about.md", "title: About\naliases: [/us, /jobs]"),
        (
            "about.de.md",
            "title: Wir\ndescription: Wer wir sind, seit wann es uns gibt und warum wir Salz verkaufen.",
        ),
        ("press.md", "title: Press"),
    ] {
        let text = format!("---\n{text}\n---\n\n[Us](/us), [press](/press#top)\n");
        site.write(&format!("tenants/tide/pages/{path}"), text);
    }
    site.reload();
    let report = site.report_text();
    assert!(!report.contains("error["), "{report}");
    site
}

#[test]
fn manifest_texts_follow_language_of_page() {
    let site = studio();
    let page = |path: &str| site.page("studio.example", "", path).expect(path);
    let (english, german) = (page("/about"), page("/de/about"));
    for (page, texts) in [
        (
            &english,
            [
                "<title>About | Salt Company</title>",
                "content=\"Salt Company\"",
                "content=\"When the water",
                "\"name\":\"Salt Company\"",
                "Salt for all.",
                ">Links</h2>",
                "content=\"Tide: About\"",
                "href=\"/site.webmanifest\"",
            ],
        ),
        (
            &german,
            [
                "<title>Wir | Salz AG</title>",
                "content=\"Salz AG\"",
                "content=\"Wer wir sind",
                "\"name\":\"Salz AG\"",
                "Salz f\u{fc}r alle.",
                ">Verweise</h2>",
                "content=\"Flut: Wir\"",
                "href=\"/de/site.webmanifest\"",
            ],
        ),
    ] {
        for text in texts {
            assert!(page.contains(text), "{text}: {page}");
        }
    }
    assert!(!german.contains("Salt Company<"), "{german}");
    let home = page("/de");
    for text in [
        "content=\"Wann das Wasser",
        "\"name\":\"Gezeiten\"",
        "Wasserstand heute",
    ] {
        assert!(home.contains(text), "{text}: {home}");
    }
}

#[test]
fn company_links_go_to_translation_on_pages_of_all_tenants() {
    let site = studio();
    for (host, prefix, path, domain) in [
        ("studio.example", "", "/de/about", ""),
        ("studio.example", "/corner", "/de/terms", ""),
        (
            "corner.studio.example",
            "",
            "/de/terms",
            "https://studio.example",
        ),
    ] {
        let page = site.page(host, prefix, path).expect("a page");
        for link in [
            format!("href=\"{domain}/de/about\""),
            "\u{dc}ber uns".to_owned(),
            "Stellen".to_owned(),
            format!("<a href=\"{domain}/press\" hreflang=\"en\">Presse</a>"),
        ] {
            assert!(page.contains(&link), "{host}{prefix}{path}: {link}: {page}");
        }
        assert!(
            !page.contains(&format!("href=\"{domain}/about\" class")),
            "{page}"
        );
    }
    let english = site
        .page("corner.studio.example", "", "/terms")
        .expect("a page");
    assert!(
        english.contains("<a href=\"https://studio.example/press\">Press</a>"),
        "{english}"
    );
}

#[test]
fn link_to_page_in_other_language_says_so() {
    let site = studio();
    let german = site.page("studio.example", "", "/de").expect("a page");
    assert!(german.contains("<a href=\"/de/about\">Us</a>"), "{german}");
    assert!(
        german.contains("<a href=\"/press#top\" hreflang=\"en\">press</a>"),
        "{german}"
    );
    let english = site.page("studio.example", "", "/").expect("a page");
    assert!(english.contains("<a href=\"/us\">Us</a>"), "{english}");
    assert!(
        english.contains("<a href=\"/press#top\">press</a>"),
        "{english}"
    );
}

#[test]
fn each_language_has_its_own_search_and_web_manifest() {
    let mut site = studio();
    site.write(
        "tenants/tide/pages/search.json.de.md",
        "---\ntitle: Suche\n---\n",
    );
    site.reload();
    let report = site.report_text();
    assert!(report.contains("search.json.de.md"), "{report}");
    let server = TestServer::start(studio().folder(), &[]);
    let get = |path: &str| server.get(&server.domain(), path).text();
    assert_eq!(
        get("/search.json").split("\"parts\"").next(),
        Some("{\"pages\":[[\"/\",\"Home\"],[\"/about\",\"About\"],[\"/press\",\"Press\"]],")
    );
    // The page without a translation is found, too.
    assert_eq!(
        get("/de/search.json").split("\"parts\"").next(),
        Some("{\"pages\":[[\"/de\",\"Start\"],[\"/de/about\",\"Wir\"],[\"/press\",\"Press\"]],")
    );
    let german = get("/de/site.webmanifest");
    for fact in [
        "\"name\":\"Flut\"",
        "\"lang\":\"de\"",
        "\"start_url\":\"/de\"",
        "\"scope\":\"/\"",
    ] {
        assert!(german.contains(fact), "{fact}: {german}");
    }
    let english = get("/site.webmanifest");
    assert!(english.contains("\"name\":\"Tide\""), "{english}");
    assert!(english.contains("\"start_url\":\"/\""), "{english}");
}

#[test]
fn settings_and_strings_follow_language_of_page() {
    let mut site = corner();
    let manifest = "name: Corner
theme: plain
languages: [en, de]
strings:
  engine:
    not_found:
      title: {en: Gone, de: Fort}
";
    site.write("tenants/corner/tenant.yaml", manifest);
    site.reload();
    let report = site.report_text();
    assert!(!report.contains("error["), "{report}");
    let server = TestServer::start(site.folder(), &[]);
    let host = format!("corner.{}", server.domain());
    for (path, title) in [("/none", "Gone"), ("/de/none", "Fort")] {
        let page = server.get(&host, path);
        assert_eq!(page.status, 404);
        assert!(page.text().contains(title), "{title}: {}", page.text());
    }
}

#[test]
fn text_in_unknown_language_or_without_default_is_error_with_line() {
    let mut site = corner();
    for (manifest, message, place, hint) in [
        (
            "name: {en: Corner, fr: Coin}\nlanguages: [en, de]\n",
            "`fr` is not one of the site's `languages`",
            "tenant.yaml:1:20",
            "write `languages: [en, de, fr]`, or remove the value",
        ),
        (
            "name: Corner\nlanguages: [en, de]\ntagline:\n  de: Ecke\n",
            "`tagline` has no value in `en`, the default language",
            "tenant.yaml:4:3",
            "add `en: ...`",
        ),
        (
            "name: Corner\ntagline: {en: Corner}\n",
            "`en` is a language, but the site has no `languages`",
            "tenant.yaml:2:11",
            "list the languages instead of `language`: `languages: [en, ...]`",
        ),
        (
            "name: Corner\nlanguages: [en, de]\nstrings: {footer: {privacy_choices: {en: A, de: B, it: C}}}\n",
            "`it` is not one of the site's `languages`",
            "tenant.yaml:3:52",
            "write `languages: [en, de, it]`, or remove the value",
        ),
        (
            "name: {en: Corner, de: 5}\nlanguages: [en, de]\n",
            "`name` should be a text",
            "tenant.yaml:1:24",
            "",
        ),
    ] {
        site.write("tenants/corner/tenant.yaml", manifest);
        site.reload();
        let report = site.report_text();
        for words in [message, place, hint] {
            assert!(report.contains(words), "{words}: {report}");
        }
        assert_eq!(report.matches("error[").count(), 1, "{report}");
    }
}

#[test]
fn language_without_pages_is_one_warning_with_line() {
    let mut site = corner();
    site.write(
        "tenants/corner/tenant.yaml",
        "name: Corner\nlanguages: [en, de, pl]\n",
    );
    site.reload();
    let report = site.report_text();
    assert_eq!(report.matches("no page is in `pl`").count(), 1, "{report}");
    assert!(report.contains("tenant.yaml:2:1"), "{report}");
    assert!(report.contains("pages/prices.md:2:1"), "{report}");
}

#[test]
fn site_in_one_language_has_no_switcher_and_no_hreflang() {
    for theme in ["base", "plain"] {
        let mut site = corner();
        for manifest in ["language: de\n", "languages: [de]\n"] {
            for page in ["index.de", "terms.de"] {
                let _ = std::fs::remove_file(site.path(&format!("tenants/corner/pages/{page}.md")));
            }
            let manifest = format!("name: Corner\ntheme: {theme}\n{manifest}");
            site.write("tenants/corner/tenant.yaml", manifest);
            site.reload();
            let page = site.page("corner.studio.example", "", "/terms");
            let page = page.expect("a page");
            assert!(!page.contains("class=\"languages\""), "{page}");
            assert!(!page.contains("hreflang"), "{page}");
        }
    }
}

#[test]
fn routes_and_schema_know_languages() {
    let site = corner();
    let routes = stdout(&run(site.folder(), &["routes"]));
    for line in [
        "/corner/de/terms  corner  de  tenants/corner/pages/terms.de.md",
        "/corner/terms     corner  en  tenants/corner/pages/terms.md",
    ] {
        assert!(routes.contains(line), "{line}: {routes}");
    }
    let routes = stdout(&run(site.folder(), &["routes", "--format", "json"]));
    assert!(routes.contains("\"language\": \"de\""), "{routes}");
    let schemas = stdout(&run(site.folder(), &["schema"]));
    let schemas: Json = serde_json::from_str(&schemas).expect("JSON");
    for pointer in [
        "/tenant/properties/name",
        "/tenant/$defs/NamedLink/properties/label",
        "/tenant/$defs/Company/properties/navigation",
    ] {
        let shapes = &schemas.pointer(pointer).expect(pointer)["anyOf"];
        assert_eq!(shapes[0], shapes[1]["additionalProperties"], "{pointer}");
        assert!(shapes[0]["type"].is_string(), "{pointer}: {shapes}");
    }
}

#[test]
fn misnamed_translation_is_told_its_name() {
    let mut site = corner();
    for file in ["prices.ger.md", "terms_de.md", "index.faq.md"] {
        let text = format!("---\ntitle: {file}\n---\n\nText.\n");
        site.write(&format!("tenants/corner/pages/{file}"), &text);
    }
    site.remove("tenants/corner/pages/terms.de.md").reload();
    let report = site.report_text();
    for hint in [
        "or rename the file to `pages/prices.de.md`",
        "rename `pages/terms_de.md` to `pages/terms.de.md`",
    ] {
        assert!(report.contains(hint), "{hint}: {report}");
    }
}

#[test]
fn logo_by_night_needs_a_logo_by_day() {
    let mut site = corner();
    for theme in ["base", "plain"] {
        let manifest =
            format!("name: Corner\ntheme: {theme}\nsettings: {{logo_night: night.svg}}\n");
        site.write("tenants/corner/tenant.yaml", manifest);
        let report = site.reload().report_text();
        assert!(report.contains("needs the key `logo`"), "{theme}: {report}");
        assert!(
            report.contains("rename `logo_night` to `logo`"),
            "{theme}: {report}"
        );
    }
}

#[test]
fn languages_in_a_text_are_one_error() {
    let mut site = corner();
    let manifest = "name: {en: Corner, de: Ecke}\nlanguages: en, de\n";
    site.write("tenants/corner/tenant.yaml", manifest);
    let report = site.reload().report_text();
    assert!(report.contains("write a list: `[en, de]`"), "{report}");
    assert!(!report.contains("is a language, but"), "{report}");
}
