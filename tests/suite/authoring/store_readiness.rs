//! The lint `store-readiness`: facts of the manifest that answer it, and things that an app does not need.

use rowhouse_tests::TestSite;

const MANIFEST: &str = "tenants/sample/tenant.yaml";
const APP: &str = "app: {category: BusinessApplication";

fn sample() -> TestSite {
    TestSite::fixture("errors/store-readiness")
}

fn with_app(keys: &str) -> Vec<String> {
    let mut site = sample();
    site.edit(MANIFEST, APP, &format!("{APP}, {keys}")).reload();
    found(&site)
}

fn found(site: &TestSite) -> Vec<String> {
    let report = site.report();
    let of_stores = report
        .iter()
        .filter(|one| one.code.as_str() == "store-readiness");
    of_stores.map(|one| one.message.clone()).collect()
}

fn names(found: &[String], words: &str) -> bool {
    found.iter().any(|message| message.contains(words))
}

#[test]
fn app_without_accounts_needs_no_deletion() {
    assert!(names(
        &with_app("platforms: [android]"),
        "delete their account"
    ));
    assert!(names(&with_app("platforms: [android]"), "without the app"));
    let stated = with_app("platforms: [android], account: false");
    assert!(!names(&stated, "account"), "{stated:?}");
    assert!(names(&stated, "minimum age"), "{stated:?}");
}

#[test]
fn app_for_any_age_states_no_minimum_age() {
    assert!(names(&found(&sample()), "minimum age"));
    assert!(!names(&with_app("any_age: true"), "minimum age"));
}

#[test]
fn thing_that_is_not_needed_is_silent_with_a_reason() {
    assert!(names(&found(&sample()), "terms of service"));
    let silent = with_app("not_needed: [{need: terms, reason: It is free.}]");
    assert!(!names(&silent, "terms of service"), "{silent:?}");
    assert!(names(&silent, "privacy policy has no date"), "{silent:?}");

    let mut site = sample();
    site.edit(
        MANIFEST,
        APP,
        &format!("{APP}, not_needed: [{{need: terms}}]"),
    )
    .reload();
    let text = site.report_text();
    assert!(text.contains("error[missing-key]"), "{text}");
}

#[test]
fn pages_of_stores_and_law_need_a_contact() {
    let mut site = sample();
    let pages = [
        (
            "delete-account",
            "the page about deleting an account has no email link",
        ),
        (
            "accessibility",
            "the page about accessibility has no email link",
        ),
        ("imprint", "the imprint has no email link"),
    ];
    let before = found(&site);
    for (page, message) in pages {
        let path = format!("tenants/sample/pages/{page}.md");
        site.write(&path, format!("---\ntitle: {page}\n---\nWords.\n"))
            .reload();
        assert!(!before.iter().any(|known| known == message));
        assert!(names(&found(&site), message), "{page}: {:?}", found(&site));
        site.write(
            &path,
            format!("---\ntitle: {page}\n---\n[Write to us](company:email).\n"),
        )
        .reload();
        assert!(!names(&found(&site), message), "{page}: {:?}", found(&site));
    }
}
