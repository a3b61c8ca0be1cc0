//! Content that needs more than a machine has meets a limit with a clear message, in time, and other tenants are served as before.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rowhouse_tests::TestSite;

/// Far more than the program takes, and far less than the content would take without a limit.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reloads the changed deployment, and returns the report. The tenant `home` must be served.
fn report(site: &mut TestSite) -> String {
    let begin = Instant::now();
    site.reload();
    assert!(begin.elapsed() < TIMEOUT, "it took {:?}", begin.elapsed());
    assert!(site.page("studio.example", "", "/about").is_some());
    assert!(
        site.page("app.studio.example", "", "/terms").is_some(),
        "the last valid state is gone"
    );
    site.report_text()
}

fn assert_contains(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "no `{expected}` in:\n{text}");
    }
}

/// Adds a template before the footer of the theme's layout `page`.
fn add_to_layout(site: &mut TestSite, template: &str) {
    site.edit(
        "themes/base/layouts/page.html",
        "<footer>",
        &format!("{template}\n<footer>"),
    );
}

#[test]
fn ten_thousand_pages_exceed_limit() {
    let mut site = TestSite::fixture("sites");
    for number in 0..10_000 {
        site.write(
            &format!("tenants/app/pages/many/page-{number}.md"),
            format!("---\ntitle: Page {number}\n---\n"),
        );
    }
    assert_contains(
        &report(&mut site),
        &[
            "error[too-large]",
            "pages; the limit is 2000",
            "several tenants",
        ],
    );
}

#[test]
fn template_error_after_loop_has_place_in_source() {
    let mut site = TestSite::fixture("sites");
    add_to_layout(
        &mut site,
        "{% for a in [1, 2] %}{{ a }}{% endfor %}{{ nothing.at.all }}",
    );
    assert_contains(&report(&mut site), &["page.html:12:44", "nothing"]);
}

#[test]
fn page_with_endless_output_is_stopped() {
    let mut site = TestSite::fixture("sites");
    add_to_layout(
        &mut site,
        "{% set text = page.body ~ page.body ~ \"0123456789\" %}{% for a in range(end=100000) %}{% for b in [1,2,3,4,5,6,7,8] %}{{ text }} 0123456789 {% endfor %}{% endfor %}",
    );
    assert_contains(
        &report(&mut site),
        &["error[too-large]", "more than 8 MiB", "page.html"],
    );
}

#[test]
fn recursive_components_and_includes_are_found() {
    let mut site = TestSite::fixture("sites");
    add_to_layout(&mut site, "{% include \"layouts/page.html\" %}");
    assert_contains(&report(&mut site), &["error[", "layouts/page.html"]);
    let mut site = TestSite::fixture("sites");
    site.edit(
        "themes/base/sections/call/section.html",
        "</",
        "{{<Section section={section} index={index} />}}</",
    );
    site.edit(
        "tenants/app/pages/index.md",
        "---\n",
        "---\nsections: [{kind: call, title: A, actions: [{label: B, link: /terms}]}]\n",
    );
    assert_contains(
        &report(&mut site),
        &["error[template-failed]", "recursion depth for components"],
    );
}

#[test]
fn exponential_drawing_is_refused() {
    let mut site = TestSite::fixture("sites");
    let steps: String = (1..40)
        .map(|step| {
            format!(
                "<g id=\"a{step}\"><use href=\"#a{0}\"/><use href=\"#a{0}\"/></g>\n",
                step - 1
            )
        })
        .collect();
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">\n<path id=\"a0\" d=\"M0 0h9\"/>\n{steps}</svg>"
    );
    site.write("tenants/app/assets/icon.svg", svg);
    assert_contains(
        &report(&mut site),
        &[
            "error[too-large]",
            "assets/icon.svg:1:1",
            "more than 10000",
            "simpler SVG",
        ],
    );
    let begin = Instant::now();
    site.render_images();
    assert!(begin.elapsed() < TIMEOUT);
}

#[test]
fn deeply_nested_markdown_ends() {
    let mut site = TestSite::fixture("sites");
    let deep = |mark: &str| format!("---\ntitle: Deep\n---\n{}\n", mark.repeat(20_000));
    for (name, mark) in [
        ("a", "> "),
        ("b", "["),
        ("c", "*a **b "),
        ("d", "- "),
        ("e", "<div>"),
        ("f", "![[]("),
        ("g", "`` ` "),
    ] {
        site.write(&format!("tenants/app/pages/deep-{name}.md"), deep(mark));
    }
    let text = report(&mut site);
    assert!(!text.contains("program-failed"), "{text}");
}

#[test]
fn deeply_nested_or_multiplied_yaml_ends() {
    let list = |name: &str, item: &str| format!("{name}: &{name} [{}]\n", [item; 9].join(","));
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let laughs: String = names
        .windows(2)
        .map(|pair| list(pair[1], &format!("*{}", pair[0])))
        .collect();
    for (yaml, words) in [
        (format!("{}{laughs}", list("a", "x")), "tenant.yaml:"),
        (
            format!("name: {}", "[".repeat(50_000)),
            "nested more than 24 levels deep",
        ),
        (
            format!("name: {}", "{a: ".repeat(50_000)),
            "nested more than 24 levels deep",
        ),
        (format!("name: {}", "- ".repeat(50_000)), "tenant.yaml:"),
    ] {
        let mut site = TestSite::fixture("sites");
        site.write("tenants/app/tenant.yaml", yaml);
        assert_contains(&report(&mut site), &["error[", words]);
    }
}

#[test]
fn files_too_large_too_deep_or_special_are_named() {
    let mut site = TestSite::fixture("sites");
    let path = site.path("tenants/app/assets/huge.bin");
    fs::File::create(path)
        .and_then(|file| file.set_len(33 << 20))
        .expect("a sparse file");
    assert_contains(
        &report(&mut site),
        &[
            "error[too-large]",
            "assets/huge.bin",
            "the file has 33 MiB; the limit of a file is 32 MiB",
        ],
    );

    let mut site = TestSite::fixture("sites");
    site.write(
        &format!("tenants/app/pages/{}x.md", "a/".repeat(20)),
        "---\ntitle: X\n---\n",
    );
    assert_contains(
        &report(&mut site),
        &["error[too-large]", "nested more than 16 levels deep"],
    );

    let mut site = TestSite::fixture("sites");
    let pipe = site.path("tenants/app/assets/pipe");
    assert!(
        Command::new("mkfifo")
            .arg(pipe)
            .status()
            .expect("mkfifo")
            .success()
    );
    assert_contains(
        &report(&mut site),
        &["error[unreadable]", "assets/pipe", "not a regular file"],
    );
}

#[test]
fn pages_with_too_much_html_are_refused() {
    let mut site = TestSite::fixture("sites");
    let before = site
        .page("app.studio.example", "", "/terms")
        .expect("a page");
    // Nested quotes: each character of the page becomes two tags.
    let quotes = format!("{} deep\n\n", ">".repeat(100)).repeat(1_000);
    for number in 0..200 {
        let text = format!("---\ntitle: Page {number}\n---\n{quotes}");
        site.write(&format!("tenants/app/pages/page-{number}.md"), text);
    }
    site.reload();
    let text = site.report_text();
    assert!(
        text.contains("the tenant has more than 96 MiB of HTML at 3 addresses"),
        "{text}"
    );
    let now = site
        .page("app.studio.example", "", "/terms")
        .expect("a page");
    assert_eq!(now, before, "the last valid page is served");
}
