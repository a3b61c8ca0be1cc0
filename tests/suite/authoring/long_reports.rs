//! Large content, and content with thousands of errors: reports are short, fast and always the same.

use std::time::{Duration, Instant};

use content::report::{Code, Severity};
use rowhouse_tests::TestSite;

/// Far more than any of these takes; quadratic code took minutes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The size of a page that once took minutes, in bytes.
const LARGE: usize = 250_000;

/// Creates a tenant with one page and a manifest, and returns the time of the reload.
fn site(front: &str, body: &str, manifest: &str) -> (TestSite, Duration) {
    let mut site = TestSite::fixture("errors/title-length");
    site.write(
        "tenants/sample/pages/index.md",
        format!("---\n{front}\n---\n{body}"),
    )
    .write(
        "tenants/sample/tenant.yaml",
        format!("name: Sample\n{manifest}"),
    );
    let begin = Instant::now();
    site.reload();
    (site, begin.elapsed())
}

/// Returns the number of findings with a code.
fn count_findings(site: &TestSite, code: Code) -> usize {
    let report = site.report();
    report
        .iter()
        .filter(|diagnostic| diagnostic.code == code)
        .count()
}

#[test]
fn repeated_error_is_listed_fifty_times_and_counted() {
    let many = |line: &str| line.repeat(LARGE / line.len());
    // The maximum number of keys of a file.
    let keys: String = (0..40_000)
        .map(|number| format!("k{number}: 1\n"))
        .collect();
    let redirects: String = (0..1_000)
        .map(|number| format!("  - {{from: /a{number}, to: /a{}}}\n", number + 1))
        .collect();
    let redirects = format!("redirects:\n{redirects}");
    let one_line: String = (0..LARGE / 13)
        .map(|number| format!("[x](/no{number}) "))
        .collect();
    let title = "title: A";
    for (code, front, body, manifest) in [
        (Code::RawHtml, title, many("x <b>\n"), ""),
        (Code::BrokenLink, title, many("[x](/nowhere)\n"), ""),
        (Code::BrokenLink, title, one_line.clone(), ""),
        (Code::MissingAsset, title, many("![x](nowhere.png)\n"), ""),
        (Code::BadValue, title, many("[x](javascript:x)\n"), ""),
        (Code::FillIn, title, many("<!-- fill in -->\n\n"), ""),
        (Code::MissingAlt, title, many("![](house.svg)\n"), ""),
        (Code::UnknownTenant, title, many("[x](nobody:/x)\n"), ""),
        (
            Code::UnknownKey,
            &format!("{title}\n{keys}"),
            String::new(),
            "",
        ),
        (
            Code::DuplicateKey,
            &"title: A\n".repeat(40_000),
            String::new(),
            "",
        ),
        (
            Code::RedirectChain,
            title,
            String::new(),
            redirects.as_str(),
        ),
    ] {
        let (site, took) = site(front, &body, manifest);
        let count = count_findings(&site, code);
        if code == Code::MissingAlt && count == 0 {
            // Reported only without an error: the fixture's theme may lack the drawing.
            assert_eq!(count_findings(&site, Code::MissingAsset), 51);
            continue;
        }
        assert_eq!(count, 51, "{code}\n{}", site.report_text());
        assert!(
            site.report_text()
                .contains("problems of this kind in total; not all are listed"),
            "{code}"
        );
        assert!(took < TIMEOUT, "{code}: {took:?}");
    }
}

#[test]
fn valid_links_cost_linear_time() {
    for body in ["[x](/)\n", "[x](/) "] {
        let (site, took) = site("title: A", &body.repeat(LARGE / body.len()), "");
        assert!(took < TIMEOUT, "{took:?}");
        assert!(site.report().is_servable(), "{}", site.report_text());
    }
}

#[test]
fn errors_of_tenant_are_listed_a_thousand_times() {
    let mut site = TestSite::fixture("errors/title-length");
    for number in 0..60 {
        let body = "[x](/nowhere)\n".repeat(60);
        site.write(
            &format!("tenants/sample/pages/page-{number}.md"),
            format!("---\ntitle: Page {number}\n---\n{body}"),
        );
    }
    site.reload();
    let count = count_findings(&site, Code::BrokenLink);
    assert!((1_000..1_100).contains(&count), "{count}");
    let text = site.report_text();
    assert!(
        text.contains("more problems in this and the following files are not listed"),
        "{text}"
    );
}

#[test]
fn page_and_manifest_above_one_megabyte_are_too_large() {
    let (site, _) = site("title: A", &"word ".repeat(250_000), "");
    assert_eq!(
        count_findings(&site, Code::TooLarge),
        1,
        "{}",
        site.report_text()
    );
    let mut site = TestSite::fixture("errors/title-length");
    let comment = "# a comment\n".repeat(100_000);
    site.write(
        "tenants/sample/tenant.yaml",
        format!("name: Sample\n{comment}"),
    )
    .reload();
    let text = site.report_text();
    assert!(
        text.contains(
            "error[too-large]: the file has 1.15 MiB; the limit of a page or a manifest is 1 MiB"
        ),
        "{text}"
    );
}

#[test]
fn error_of_all_pages_is_reported_deterministically() {
    let mut site = TestSite::fixture("sites");
    for number in 0..40 {
        let text = format!("---\ntitle: Page {number}\n---\n");
        site.write(&format!("tenants/app/pages/page-{number}.md"), text);
    }
    let layout = "themes/base/layouts/page.html";
    let text = std::fs::read_to_string(site.path(layout)).expect("a layout");
    let endless = "{% set r = range(end=100000) %}{% for a in r %}{% for b in r %}long {% endfor %}{% endfor %}";
    site.write(layout, format!("{text}{endless}\n"));
    let first = site.reload().report_text();
    assert!(first.contains("too-large"), "{first}");
    for number in 0..10 {
        // Renders everything again.
        site.write(
            layout,
            format!("{text}{endless}\n{}", " ".repeat(number + 1)),
        );
        assert_eq!(site.reload().report_text(), first, "{number}");
    }
    let report = site.report();
    assert!(report.count(Severity::Error) > 0);
}
