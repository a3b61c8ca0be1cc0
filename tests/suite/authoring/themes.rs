//! A theme defines sections, UI strings and settings: another company, another language and a new section type, without Rust.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use content::schema::Schema;
use content::yaml::{Node, parse};
use rowhouse_tests::{TestSite, binary, copy, fixture, text_of, workspace};

/// Creates a German company: a theme with its own section type and a parent, and two tenants.
fn german_over(parent: &str) -> TestSite {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&fixture("german"), folder.path());
    let themes = folder.path().join("themes");
    copy(
        &workspace().join("themes").join(parent),
        &themes.join(parent),
    );
    let manifest = themes.join("laden/theme.yaml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let text = text.replace("parent: plain", &format!("parent: {parent}"));
    fs::write(manifest, text).expect("a written file");
    TestSite::copy_of(folder.path())
}

/// Creates the German company over the theme `plain`.
fn german() -> TestSite {
    german_over("plain")
}

/// Returns the words of a text, which consist of letters.
fn words(text: &str) -> BTreeSet<String> {
    text.split(|character: char| !character.is_alphabetic())
        .filter(|word| word.chars().count() > 1)
        .map(str::to_lowercase)
        .collect()
}

/// Returns the text of a page that people read or hear, with attributes that contain text.
fn visible_text(html: &str) -> String {
    let mut said = String::new();
    let mut rest = html;
    while let Some((text, after)) = rest.split_once('<') {
        // Addresses in a feed are not text.
        let spoken = text
            .split_whitespace()
            .filter(|part| !part.starts_with("https://"));
        said.extend(spoken.flat_map(|part| [part, " "]));
        let (tag, after) = after.split_once('>').unwrap_or((after, ""));
        let value = |name: &str| {
            let (_, value) = tag.split_once(&format!(" {name}=\""))?;
            value.split('"').next()
        };
        let is_about = |name: &str| {
            ["description", "title", "alt", "site_name"]
                .iter()
                .any(|word| name.ends_with(word))
        };
        let names = [
            "alt",
            "title",
            "aria-label",
            "placeholder",
            "label",
            "value",
            "data-error-title",
            "data-error-text",
        ];
        let mut say = |text: &str| {
            said.push_str(text);
            said.push(' ');
        };
        names
            .iter()
            .filter_map(|name| value(name))
            .for_each(&mut say);
        if let Some(content) = value("content")
            && [value("name"), value("property")]
                .into_iter()
                .flatten()
                .any(is_about)
        {
            say(content);
        }
        if let Some(props) = value("props") {
            let props = props.replace("&quot;", "\"").replace("&amp;", "&");
            let props: serde_json::Value = serde_json::from_str(&props).expect("properties");
            strings(&props["labels"], &mut say);
        }
        rest = if tag.starts_with("script type=\"application/ld+json\"") {
            let (graph, after) = after.split_once("</script>").expect("an end");
            let graph: serde_json::Value = serde_json::from_str(graph).expect("a graph");
            named(&graph, &mut say);
            after
        } else if tag.starts_with("style") || tag.starts_with("script") {
            let (_, after) = after.split_once("</").unwrap_or_default();
            after.split_once('>').map_or("", |(_, after)| after)
        } else {
            after
        };
    }
    said.replace("{hotkey}", "")
}

/// Visits every text of a value.
fn strings(value: &serde_json::Value, say: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => say(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, say)),
        serde_json::Value::Object(pairs) => pairs.values().for_each(|item| strings(item, say)),
        _ => {}
    }
}

/// Visits the texts of structured data: names, descriptions, headlines, languages, purposes of an address.
fn named(value: &serde_json::Value, say: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|item| named(item, say)),
        serde_json::Value::Object(pairs) => {
            for (key, item) in pairs {
                let in_words = [
                    "name",
                    "description",
                    "headline",
                    "text",
                    "contactType",
                    "availableLanguage",
                ];
                match item {
                    serde_json::Value::String(text) if in_words.contains(&key.as_str()) => {
                        say(text)
                    }
                    other => named(other, say),
                }
            }
        }
        _ => {}
    }
}

/// Returns all words of the company and its theme, and the months of the language.
fn german_words(site: &TestSite, parent: &str) -> BTreeSet<String> {
    let mut known = words("Januar Februar März Mai");
    let parent = format!("themes/{parent}/strings/de.yaml");
    for file in [
        "tenants/laden/tenant.yaml",
        "tenants/laden/pages/index.md",
        "tenants/laden/pages/impressum.md",
        "tenants/laden/pages/blog/index.md",
        "tenants/laden/pages/blog/lesung-1.md",
        "tenants/laden/pages/blog/lesung-2.md",
        "tenants/cafe/tenant.yaml",
        "tenants/cafe/pages/index.md",
        "themes/laden/strings/de.yaml",
        parent.as_str(),
    ] {
        let text = fs::read_to_string(site.path(file)).expect("a file");
        // Keys are not visible text.
        let lines = text.lines().map(|line| {
            let line = line.trim_start_matches([' ', '-']);
            let value = line.split_once(": ").map_or(line, |(_, value)| value);
            if file.ends_with(".md") { line } else { value }
        });
        known.extend(words(&lines.collect::<Vec<_>>().join("\n")));
    }
    known
}

#[test]
fn german_theme_has_no_english_word() {
    for parent in ["plain", "base"] {
        check_no_english_word(&german_over(parent), parent);
    }
}

fn check_no_english_word(site: &TestSite, parent: &str) {
    assert!(site.report().is_servable(), "{}", site.report_text());
    let known = german_words(site, parent);
    let rendered = site.pages("studio.example", "");
    let not_found = rendered
        .not_found
        .iter()
        .map(|(path, page)| (format!("404 {path}"), page));
    let refused = rendered.method_not_allowed.iter();
    let refused = refused.map(|(path, page)| (format!("405 {path}"), page));
    let pages = rendered
        .resources
        .iter()
        .map(|(path, page)| (path.to_string(), page))
        .chain(not_found)
        .chain(refused);
    let mut looked = 0;
    for (path, page) in pages {
        let Some(text) = text_of(page) else {
            continue;
        };
        if !text.contains("<html") && !text.contains("<feed") {
            continue;
        }
        assert!(text.contains("lang=\"de\""), "{path}");
        let said = words(&visible_text(&text));
        let strange: Vec<_> = said.difference(&known).collect();
        assert!(strange.is_empty(), "{path} says {strange:?}");
        looked += 1;
    }
    assert!(looked >= 9, "{looked} pages");
    let page = site.page("studio.example", "", "/").expect("a page");
    for words in [
        "8:00 bis 18:30 Uhr",
        "2 Tage in der Woche",
        "Gilt seit dem 4. Mai 2026.",
        ">zeiten.pdf</a>",
    ] {
        assert!(page.contains(words), "no `{words}` in {page}");
    }
    let cafe = site.page("studio.example", "/cafe", "/").expect("a page");
    assert!(cafe.contains("lang=\"de-AT\""), "{cafe}");
    let missing = text_of(&rendered.not_found.last().expect("a page").1).expect("a text");
    assert!(missing.contains("Zurück in den Laden"), "{missing}");
    let unknown = site.snapshot.unknown_host.as_ref().expect("an answer");
    let unknown = text_of(unknown).expect("a text");
    assert!(words(&unknown).is_subset(&known), "{unknown}");
}

#[test]
fn consent_notice_is_left_out_by_setting_of_both_themes() {
    for parent in ["plain", "base"] {
        let mut site = german_over(parent);
        let page = site.page("studio.example", "", "/").expect("a page");
        assert!(page.contains("data-consent-open data"), "{parent}: {page}");
        let manifest = site.path("tenants/laden/tenant.yaml");
        let text = fs::read_to_string(manifest).expect("a manifest");
        site.write(
            "tenants/laden/tenant.yaml",
            format!("{text}settings: {{consent_notice: false}}\n"),
        );
        site.reload();
        assert!(site.report().is_servable(), "{}", site.report_text());
        let page = site.page("studio.example", "", "/").expect("a page");
        for part in ["data-consent-open data", "name=\"Consent\""] {
            assert!(!page.contains(part), "{parent}: `{part}` in {page}");
        }
    }
}

/// Adds settings to both sites of the German company. The one at the root is `Buchladen Lindgren`.
fn set(site: &mut TestSite, settings: &str) {
    for tenant in ["laden", "cafe"] {
        let manifest = format!("tenants/{tenant}/tenant.yaml");
        let text = fs::read_to_string(site.path(&manifest)).expect("a manifest");
        let text = text.split("settings:").next().expect("a text");
        site.write(&manifest, format!("{text}settings: {{{settings}}}\n"));
        site.write(
            &format!("tenants/{tenant}/assets/logo.svg"),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" viewBox=\"0 0 60 20\"><path id=\"a\" fill=\"currentColor\" d=\"M0 0h60v20z\"/></svg>\n",
        );
        let image = fixture("errors/unsuited-logo/tenants/sample/assets/small.png");
        let image = fs::read(image).expect("an image");
        fs::write(
            site.path(&format!("tenants/{tenant}/assets/night.png")),
            image,
        )
        .expect("a written file");
    }
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
}

#[test]
fn logo_is_in_the_header_with_its_size_and_the_name_of_the_site() {
    for parent in ["plain", "base"] {
        let mut site = german_over(parent);
        let before = site.page("studio.example", "/cafe", "/").expect("a page");
        assert!(
            !before.contains("site-logo") && !before.contains("logo-ratio"),
            "{before}"
        );
        set(&mut site, "logo: logo.svg");
        let page = site.page("studio.example", "/cafe", "/").expect("a page");
        for part in [
            "<svg width=\"60\" height=\"20\" aria-hidden=\"true\" viewBox=\"0 0 60 20\">",
            "d=\"M0 0h60v20z\"",
            "--logo-ratio:60/20",
        ] {
            assert!(page.contains(part), "{parent}: no `{part}` in {page}");
        }
        let header = page.split("<main").next().expect("a header");
        let link = match parent {
            "plain" => "</span>Caf\u{e9} Lindgren</a>",
            _ => {
                "<use href=\"#_site-logo\"></use></svg><span class=\"header-name\">Caf\u{e9} Lindgren</span>"
            }
        };
        assert!(header.contains(link), "{parent}: no `{link}` in {header}");
    }
}

#[test]
fn logo_that_has_the_name_replaces_it_for_those_who_see_it() {
    for (parent, name) in [
        (
            "plain",
            "<span class=\"visually-hidden\">Caf\u{e9} Lindgren</span></a>",
        ),
        (
            "base",
            "<span class=\"header-name\">Caf\u{e9} Lindgren</span>",
        ),
    ] {
        let mut site = german_over(parent);
        set(&mut site, "logo: logo.svg, logo_has_name: true");
        let page = site.page("studio.example", "/cafe", "/").expect("a page");
        assert!(page.contains(name), "{parent}: no `{name}` in {page}");
        if parent == "base" {
            assert!(
                page.contains(".logo-has-name .header-name{position:absolute"),
                "{page}"
            );
        }
    }
}

#[test]
fn logo_by_night_may_be_an_image() {
    for parent in ["plain", "base"] {
        let mut site = german_over(parent);
        set(&mut site, "logo: logo.svg, logo_night: night.png");
        let page = site.page("studio.example", "/cafe", "/").expect("a page");
        for part in [
            "viewBox=\"0 0 24 24\" aria-hidden=\"true\"><image href=\"/cafe/assets/night.",
            "@media (prefers-color-scheme:light){.logo-night{display:none}}",
            "@media (prefers-color-scheme:dark){.logo-day{display:none}}",
        ] {
            assert!(page.contains(part), "{parent}: no `{part}` in {page}");
        }
        assert!(
            site.report_text()
                .contains("the logo `night.png` is 24 pixels high"),
            "{}",
            site.report_text()
        );
    }
}

#[test]
fn hero_shows_an_image_with_its_alt_text_and_size() {
    for parent in ["plain", "base"] {
        let mut site = german_over(parent);
        set(&mut site, "");
        site.write(
            "tenants/cafe/pages/index.md",
            "---\ntitle: Caf\u{e9}\nsections:\n  - {kind: hero, image: logo.svg, image_text: Ein Dreieck}\n---\n",
        );
        site.reload();
        let page = site.page("studio.example", "/cafe", "/").expect("a page");
        let image = " alt=\"Ein Dreieck\" width=\"60\" height=\"20\"";
        assert!(page.contains(image), "{parent}: no `{image}` in {page}");
        assert!(!page.contains("lot page-house"), "{parent}: {page}");
    }
}

#[test]
fn row_of_a_comparison_without_a_cell_for_each_column_is_an_error() {
    for parent in ["plain", "base"] {
        let mut site = german_over(parent);
        let page = "tenants/cafe/pages/index.md";
        site.write(
            page,
            "---\ntitle: Caf\u{e9}\nsections:\n  - kind: comparison\n    title: Tee\n    columns: [A, B]\n    rows:\n      - {label: Preis, values: [\"1\", \"2\"]}\n      - {label: Menge, values: [\"1\"]}\n---\n",
        );
        site.reload();
        let text = site.report_text();
        for words in [
            "error[bad-value]: `values` has 1 item, but `columns` has 2 items",
            &format!("{page}:9:32"),
            "hint: A value for each column",
        ] {
            assert!(text.contains(words), "{parent}: no `{words}` in\n{text}");
        }
        assert_eq!(text.matches("bad-value").count(), 1, "{text}");
    }
}

#[test]
fn consent_notice_has_space_below_a_replaced_footer() {
    for parent in ["plain", "base"] {
        let mut site = german_over(parent);
        site.write(
            "themes/laden/components/Footer.html",
            "{% component Footer(@company) -%}\n<footer>{{ company.name }}</footer>\n{%- endcomponent Footer %}\n",
        );
        site.reload();
        let page = site.page("studio.example", "", "/").expect("a page");
        assert!(
            page.contains("<footer>Lindgren</footer>"),
            "{parent}: {page}"
        );
        let space = "row-island:has(> .consent:not([hidden]))::after{";
        assert!(page.contains(space), "{parent}: no `{space}` in {page}");
    }
}

#[test]
fn error_in_own_section_type_has_place_and_nearest_key() {
    let mut site = german();
    site.edit(
        "tenants/laden/pages/index.md",
        "{tag: Samstag",
        "{tga: Samstag",
    );
    site.reload();
    let text = site.report_text();
    for words in [
        "error[unknown-key]: unknown key `tga` in an item of `tage`",
        "tenants/laden/pages/index.md:9:10",
        "did you mean `tag`?",
        "error[missing-key]: an item of `tage` needs the key `tag`",
        "`tag`: Der Wochentag.",
    ] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
    // The last valid pages are still served.
    assert!(site.page("studio.example", "", "/").is_some());
}

#[test]
fn schemas_of_tenant_have_section_types_settings_and_strings_of_theme() {
    let site = german();
    let output = Command::new(binary())
        .args(["schema", "schemas"])
        .current_dir(site.folder())
        .output()
        .expect("rowhouse");
    assert!(output.status.success(), "{output:?}");
    let schema = |name: &str| {
        let path = site.path(&format!("schemas/{name}.schema.json"));
        let text = fs::read_to_string(&path).expect("a schema");
        let schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        Schema::new(schema, |_, _| Ok(())).expect("a schema")
    };
    let page = schema("laden/page");
    let fits = |schema: &Schema, yaml: &str| {
        let node: Node = parse(yaml, 1).expect("YAML");
        schema.check(&node).0.is_empty()
    };
    let section = |tag: &str| {
        format!(
            "title: A\nsections: [{{kind: zeiten, title: B, tage: [{{{tag}: Mo, von: a, bis: b}}]}}]"
        )
    };
    assert!(fits(&page, &section("tag")));
    assert!(!fits(&page, &section("tga")));
    assert!(!fits(&page, "title: A\nsections: [{title: B}]"));
    let text = page.root().to_string();
    assert!(text.contains("Der Wochentag."), "{text}");
    let manifest = schema("laden/tenant");
    assert!(fits(
        &manifest,
        "name: A\nsettings: {}\nstrings: {engine: {home: Start}}"
    ));
    assert!(!fits(
        &manifest,
        "name: A\nstrings: {engine: {hoem: Start}}"
    ));
    assert!(!fits(&manifest, "name: A\nsettings: {shade: dark}"));
}

#[test]
fn theme_change_renders_only_its_tenants() {
    let mut site = TestSite::fixture("sites");
    site.write("themes/other/theme.yaml", "name: other\nparent: base\n");
    site.write("themes/alone/theme.yaml", "name: alone\nroles: {}\n");
    for part in ["layouts", "strings"] {
        copy(
            &fixture("sites/themes/base").join(part),
            &site.path("themes/alone").join(part),
        );
    }
    for (tenant, theme) in [("child", "other"), ("stranger", "alone")] {
        site.write(
            &format!("tenants/{tenant}/tenant.yaml"),
            format!("name: {tenant}\ntheme: {theme}\n"),
        );
        site.write(
            &format!("tenants/{tenant}/pages/index.md"),
            "---\ntitle: A page\n---\nWords.\n",
        );
    }
    site.edit(
        "tenants/child/pages/index.md",
        "---\nWords",
        "sections: [{kind: call, title: Come}]\n---\nWords",
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let mounts = |site: &TestSite| {
        ["/child", "/stranger"].map(|prefix| site.mount("studio.example", prefix).expect("a mount"))
    };
    let changes: [(&str, &str, &str); 4] = [
        (
            "themes/base/sections/call/section.html",
            "<h2>",
            "<h2 class=\"loud\">",
        ),
        (
            "themes/base/sections/call/schema.yaml",
            "The heading.",
            "What stands above.",
        ),
        ("themes/base/strings/en.yaml", "Home", "Begin"),
        ("themes/base/theme.yaml", "#a52c1c", "#a51c1c"),
    ];
    for (file, from, to) in changes {
        let before = mounts(&site);
        site.edit(file, from, to);
        site.reload();
        let after = mounts(&site);
        assert!(
            !Arc::ptr_eq(&before[0], &after[0]),
            "{file} did not reach the child"
        );
        assert!(
            Arc::ptr_eq(&before[1], &after[1]),
            "{file} reached a stranger"
        );
    }
    let page = site.page("studio.example", "/child", "/").expect("a page");
    assert!(page.contains("<h2 class=\"loud\">Come</h2>"), "{page}");
}

#[test]
fn page_has_only_used_styles() {
    let site = TestSite::copy_of(&workspace());
    let style = |prefix: &str, path: &str| {
        let page = site.page("studio.example", prefix, path).expect("a page");
        assert!(!page.contains("rel=\"stylesheet\""), "{path}");
        let (_, rest) = page.split_once("<style>").expect("a style");
        let (style, rest) = rest.split_once("</style>").expect("an end");
        assert!(!rest.contains("<style"), "{path}");
        style.to_owned()
    };
    let (app, home, projects) = (
        style("/bluedoor", "/"),
        style("", "/"),
        style("", "/projects"),
    );
    assert!(app.contains(".plan-price") && !home.contains(".plan-price"));
    assert!(projects.contains(".street-lots") && !home.contains(".street-lots"));
    assert!(home.contains(".row-of-houses a{") && !app.contains(".row-of-houses a{"));
    // Classes that only a script writes are in the styles of pages with that island.
    assert!(home.contains(".toast-close{") && home.contains(".field-error{"));
    assert!(!projects.contains(".contact-form{"));
    assert!(home.contains(".tenant-bluedoor{--tenant:tenant-bluedoor;--spot:light-dark("));
    assert!(app.starts_with(
        "@layer reset,tokens,roles,base,layout,components,compositions,islands,print;"
    ));
}
