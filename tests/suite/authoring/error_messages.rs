//! Every error code has a fixture, and every message an expected text.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use content::report::Code;
use rowhouse_tests::{TestSite, expect_text, fixture};

/// Codes that no folder in a repository can show. Each has a test below or beside its module.
const WITHOUT_FIXTURE: [Code; 10] = [
    Code::Certificate,
    Code::FolderTwice,
    Code::ForeignSymlink,
    Code::IncompleteFile,
    Code::IslandFailed,
    Code::PageWeight,
    Code::Pinned,
    Code::ProgramFailed,
    Code::TooLarge,
    Code::Unreadable,
];

fn cases() -> Vec<String> {
    let mut cases: Vec<String> = fs::read_dir(fixture("errors"))
        .expect("the fixtures")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    cases.sort();
    cases
}

#[test]
fn every_message_is_as_expected() {
    for case in cases() {
        let site = TestSite::fixture(&format!("errors/{case}"));
        let text = site.report_text();
        assert!(
            text.contains(&format!("[{case}]")),
            "{case} does not show its error:\n{text}"
        );
        expect_text(&text, &fixture(&format!("errors/{case}/expected.txt")));
    }
}

#[test]
fn every_code_has_fixture_and_every_fixture_has_code() {
    let codes: BTreeSet<&str> = Code::ALL
        .iter()
        .filter(|code| !WITHOUT_FIXTURE.contains(code))
        .map(|code| code.as_str())
        .collect();
    let cases = cases();
    let cases: BTreeSet<&str> = cases.iter().map(String::as_str).collect();
    assert_eq!(codes, cases);
}

#[test]
fn link_out_of_folder_is_refused() {
    let mut site = TestSite::fixture("sites");
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(
        outside.path().join("secret.md"),
        "---\ntitle: Secret\n---\n",
    )
    .expect("a file");
    link(
        &outside.path().join("secret.md"),
        &site.path("tenants/app/pages/secret.md"),
    );
    site.reload();
    assert!(
        site.report_text().contains("error[foreign-symlink]"),
        "{}",
        site.report_text()
    );
    assert!(site.page("app.studio.example", "", "/secret").is_none());
    assert!(
        site.page("app.studio.example", "", "/").is_some(),
        "the last valid state stays"
    );
}

#[test]
fn link_within_folder_and_linked_folder_are_allowed() {
    let mut site = TestSite::fixture("sites");
    link(
        &site.path("tenants/app/pages/terms.md"),
        &site.path("tenants/app/pages/conditions.md"),
    );
    link(&site.path("tenants/app"), &site.path("tenants/twin"));
    site.reload();
    assert!(
        site.page("app.studio.example", "", "/conditions").is_some(),
        "{}",
        site.report_text()
    );
    assert!(
        site.page("twin.studio.example", "", "/terms").is_some(),
        "{}",
        site.report_text()
    );
}

#[test]
fn heavy_page_is_reported_with_bytes() {
    let mut site = TestSite::fixture("errors/title-length");
    let mut number = 1_u64;
    let words = (0..9_000).map(|_| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:x} ", number >> 40)
    });
    let text = format!("---\ntitle: Heavy\n---\n{}\n", words.collect::<String>());
    site.write("tenants/sample/pages/index.md", text).reload();
    let text = site.report_text();
    assert!(
        text.contains("warning[page-weight]: the page has"),
        "{text}"
    );
}

#[test]
fn errors_suppress_style_warnings() {
    let mut site = TestSite::fixture("errors/title-length");
    site.edit(
        "tenants/sample/pages/index.md",
        "Words.",
        "[Nowhere](/nowhere)",
    )
    .reload();
    let text = site.report_text();
    assert!(
        text.contains("broken-link") && !text.contains("title-length"),
        "{text}"
    );
}

#[cfg(unix)]
fn link(target: &Path, name: &Path) {
    std::os::unix::fs::symlink(target, name).expect("a link");
}
