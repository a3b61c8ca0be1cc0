//! A template that fails is reported once, without the false alarms that follow from it.

use std::fs;
use std::path::Path;

use rowhouse_tests::TestSite;
use tempfile::TempDir;

/// A description that no lint warns of.
const DESCRIPTION: &str =
    "description: A page of a sample site, long enough for search results and shared links.";

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// Returns a deployment whose theme has a layout `offer` that fails, and one that works.
fn deployment() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    write(
        at,
        "themes/corner/theme.yaml",
        "name: corner\nparent: base\n",
    );
    write(
        at,
        "themes/corner/layouts/offer.html",
        "{% extends \"layouts/base.html\" %}\n{% block main %}{{ page.headng }}{% endblock main %}\n",
    );
    folder
}

fn tenant(folder: &Path, id: &str, more: &str, pages: &[(&str, &str)]) {
    let manifest = format!("name: Sample {id}\ntheme: corner\n{more}");
    write(folder, &format!("tenants/{id}/tenant.yaml"), &manifest);
    for (file, text) in pages {
        let text = format!("---\ntitle: Page {file} of {id}\n{DESCRIPTION}\n{text}");
        write(folder, &format!("tenants/{id}/pages/{file}.md"), &text);
    }
}

const FAILING: &str = "layout: offer\n---\n## Prices\nText.\n";

#[test]
fn failed_template_is_reported_once_for_all_tenants() {
    let folder = deployment();
    for id in ["east", "north", "south"] {
        tenant(folder.path(), id, "", &[("index", FAILING)]);
    }
    let site = TestSite::copy_of(folder.path());
    let report = site.report_text();
    let failures = report.matches("Field `headng` is not defined").count();
    assert_eq!(failures, 1, "{report}");
    assert!(
        report.contains("(rendering `tenants/east/pages/index.md`), and for 2 more tenants"),
        "{report}"
    );
    assert!(
        report.contains(" --> themes/corner/layouts/offer.html:2:"),
        "{report}"
    );
    let errors = report.matches("error[").count();
    assert_eq!(errors, 1, "{report}");
}

#[test]
fn links_into_a_failed_page_are_not_broken() {
    let folder = deployment();
    let home = "---\nSee [prices](/offer#prices), [nothing](/text#nothing) and [text](/text).\n";
    tenant(
        folder.path(),
        "north",
        "",
        &[
            ("index", home),
            ("offer", FAILING),
            ("text", "---\nText.\n"),
        ],
    );
    let report = TestSite::copy_of(folder.path()).report_text();
    assert!(report.contains("template-failed"), "{report}");
    assert!(!report.contains("no id `prices`"), "{report}");
    assert!(report.contains("the page has no id `nothing`"), "{report}");
}

#[test]
fn failed_support_page_does_not_lack_an_address() {
    let folder = deployment();
    let app = "app: {category: LifestyleApplication}\n";
    let support = "layout: offer\n---\n[Write to us](company:email)\n";
    tenant(
        folder.path(),
        "north",
        app,
        &[("index", "---\nText.\n"), ("support", support)],
    );
    let report = TestSite::copy_of(folder.path()).report_text();
    assert!(report.contains("template-failed"), "{report}");
    assert!(report.contains("store-readiness"), "{report}");
    assert!(!report.contains("no email link"), "{report}");
}

#[test]
fn page_that_a_failed_tenant_may_link_to_is_no_orphan() {
    let folder = deployment();
    let pages = [("index", "---\nText.\n"), ("far", "---\nText.\n")];
    tenant(folder.path(), "north", "", &pages);
    let home = "---\nSee [far](north:/far).\n";
    let south = |layout: &str| {
        tenant(
            folder.path(),
            "south",
            "",
            &[("index", home), ("offer", layout)],
        );
    };
    south(FAILING);
    let report = TestSite::copy_of(folder.path()).report_text();
    assert!(report.contains("template-failed"), "{report}");
    assert!(!report.contains("orphan-page"), "{report}");
    south("---\nText.\n");
    let report = TestSite::copy_of(folder.path()).report_text();
    assert!(!report.contains("no page links to `/far`"), "{report}");
    assert!(report.contains("no page links to `/offer`"), "{report}");
}

#[test]
fn errors_of_a_theme_stand_for_its_tenants() {
    let folder = deployment();
    write(
        folder.path(),
        "themes/corner/layouts/offer.html",
        "{% block main %}",
    );
    for id in ["north", "south"] {
        tenant(folder.path(), id, "", &[("index", "---\nText.\n")]);
    }
    let site = TestSite::copy_of(folder.path());
    let report = site.report_text();
    assert!(!report.contains("unknown-theme"), "{report}");
    let (_, first) = report.split_once("error[").expect("an error");
    assert!(
        first.starts_with("template-failed]"),
        "the theme's own error: {report}"
    );
    assert!(!site.report().is_servable());
}

#[test]
fn template_that_lacks_a_missing_picture_is_not_reported() {
    let folder = deployment();
    let screens = "sections:\n  - kind: screens\n    title: Screens\n    items:\n      - {image: lost.png, alt: A list}\n---\n";
    tenant(folder.path(), "north", "", &[("index", screens)]);
    let report = TestSite::copy_of(folder.path()).report_text();
    assert!(report.contains("error[missing-asset]"), "{report}");
    assert!(!report.contains("template-failed"), "{report}");
}
