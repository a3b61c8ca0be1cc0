//! Islands that fail during rendering: each failure is an error with the component and the page, and does not affect other pages.

use std::fs;
use std::sync::Arc;

use render::Islands;
use rowhouse_tests::{TestSite, fixture};
use rowhouse_ui::Bundle;

/// Makes a bundle whose one island, `Odd`, runs `script`.
fn bundle(script: &str) -> Bundle {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("client")).expect("a folder");
    for name in ["runtime.B.js", "Odd.C.js"] {
        fs::write(folder.path().join("client").join(name), "export {}").expect("a file");
    }
    let manifest = r#"{
        "react": "0", "mode": "production",
        "runtime": {"file": "runtime.B.js", "imports": []},
        "islands": {"Odd": {"file": "Odd.C.js", "imports": [], "server": true,
            "props": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}, "rows": {"type": "integer", "minimum": 1}}, "required": ["name"], "additionalProperties": false}}}
    }"#;
    fs::write(folder.path().join("manifest.json"), manifest).expect("a file");
    let server = format!("globalThis.render = function Odd(name, props, prefix) {{ {script} }};");
    fs::write(folder.path().join("server.js"), server).expect("a file");
    fs::write(folder.path().join("dev.js"), "").expect("a file");
    fs::write(folder.path().join("loader.js"), "load()").expect("a file");
    Bundle::from_dir(folder.path()).expect("a bundle")
}

/// Adds the island to the page `/terms` of the fixture's app.
fn create_site(script: &str, props: &str) -> TestSite {
    create_site_for(script, props, "load")
}

fn create_site_for(script: &str, props: &str, client: &str) -> TestSite {
    let islands = Arc::new(Islands::new(bundle(script), true));
    let mut site = TestSite::with_islands(&fixture("sites"), islands);
    let call = format!(
        "{{% if page.path == \"/terms\" %}}{{{{ island(name=\"Odd\", props={props}, client=\"{client}\") }}}}{{% endif %}}"
    );
    site.edit(
        "themes/base/layouts/page.html",
        "<nav>",
        &format!("{call}<nav>"),
    )
    .reload();
    site
}

#[test]
fn valid_island_is_rendered_with_hydration_data() {
    let site = create_site(
        "return `<b>${JSON.parse(props).name}</b>`",
        r#"{"name": "A & \"B\""}"#,
    );
    let page = site
        .page("app.studio.example", "", "/terms")
        .expect("a page");
    assert!(page.contains("prefix=\"odd-\""), "{page}");
    assert!(page.contains("props=\"{&quot;name&quot;:&quot;A &amp; \\&quot;B\\&quot;&quot;}\"><b>A & \"B\"</b></row-island>"), "{page}");
    assert!(
        page.contains("<link rel=\"modulepreload\" href=\"/assets/Odd.C.js\" fetchpriority="),
        "{page}"
    );
    assert_eq!(
        page.matches("<script type=\"module\" blocking=\"render\">load()</script>")
            .count(),
        1
    );
    let other = site.page("app.studio.example", "", "/").expect("a page");
    assert!(
        !other.contains("<script type=\"module\""),
        "a page without islands has no script: {other}"
    );
}

#[test]
fn every_keyword_of_schema_is_enforced() {
    for (props, expected) in [
        (r#"{"name": ""}"#, "`name` is empty"),
        (
            r#"{"name": "x", "rows": 0}"#,
            "`rows`: the value is less than the minimum of 1",
        ),
    ] {
        let report = create_site("return '<b></b>'", props).report_text();
        assert!(report.contains("error[island-props]"), "{report}");
        assert!(report.contains(expected), "{report}");
    }
}

#[test]
fn modules_for_interaction_are_named_and_not_preloaded() {
    let site = create_site_for("return '<b></b>'", r#"{"name": "x"}"#, "interaction");
    let page = site
        .page("app.studio.example", "", "/terms")
        .expect("a page");
    for file in ["Odd.C.js", "runtime.B.js"] {
        let link = format!(
            "<link rel=\"modulepreload\" media=\"not all\" href=\"/assets/{file}\" fetchpriority="
        );
        assert!(page.contains(&link), "{file}: {page}");
    }
    assert!(page.contains("client=\"interaction\""), "{page}");
}

fn error(script: &str) -> String {
    let site = create_site(script, r#"{"name": "x"}"#);
    let text = site.report_text();
    assert!(
        text.contains("error[island-failed]: island `Odd` failed: "),
        "{text}"
    );
    assert!(
        text.contains("(rendering `tenants/app/pages/terms.md`)"),
        "{text}"
    );
    assert!(text.contains("themes/base/layouts/page.html:5:"), "{text}");
    assert!(
        site.page("app.studio.example", "", "/terms").is_some(),
        "the last valid state stays"
    );
    assert!(
        site.page("studio.example", "", "/about").is_some(),
        "the other tenant stays"
    );
    text
}

#[test]
fn throwing_island_reports_place() {
    let text = error("const rooms = undefined; return rooms.map(String)");
    assert!(
        text.contains("cannot read property 'map' of undefined"),
        "{text}"
    );
    assert!(text.contains("at Odd (server.js:1:"), "{text}");
}

#[test]
fn endless_island_is_stopped() {
    let text = error("for (;;) {}");
    assert!(
        text.contains("did not end within 25 million steps"),
        "{text}"
    );
}

#[test]
fn island_that_exhausts_memory_is_stopped() {
    let text = error("const eaten = []; for (;;) eaten.push(new Array(100000).fill(props))");
    assert!(
        text.contains("out of memory") || text.contains("null"),
        "{text}"
    );
}

#[test]
fn endlessly_recursive_island_is_stopped() {
    let text = error("const again = () => again() + 1; return again()");
    assert!(text.contains("call stack"), "{text}");
}

#[test]
fn invalid_props_are_reported_with_nearest_name() {
    let site = create_site("return ''", r#"{"nam": "x"}"#);
    let text = site.report_text();
    assert!(text.contains("error[island-props]: island `Odd`: unknown key `nam` in its properties (did you mean `name`?)"), "{text}");
    assert!(
        text.contains("its properties need the key `name`"),
        "{text}"
    );
}
