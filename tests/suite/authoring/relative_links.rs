//! Links as editors write them: relative to the linking file, with every character that a name can have.

use std::collections::BTreeSet;

use rowhouse::export::ExportOptions;
use rowhouse_tests::TestSite;

use crate::pages::broken_links::{addresses, broken_of};

/// The addresses of the tenant in these tests.
const PLACES: [(&str, &str); 3] = [
    ("corner.studio.example", ""),
    ("studio.example", "/corner"),
    ("studio.example", "/apps/corner"),
];

const NAMES: [&str; 6] = [
    "50% off.txt",
    "a#b.txt",
    "what?.txt",
    "sp\u{e4}ti & caf\u{e9}.txt",
    "\"quoted\" 'name'.txt",
    "<odd>.txt",
];

/// Encodes a name for a path (URL standard), and the characters with a meaning in Markdown.
fn encoded(name: &str) -> String {
    let encode = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() || b"-._~&'".contains(&b) => char::from(b).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(encode).collect()
}

fn create_site(body: &str) -> TestSite {
    let mut site = TestSite::fixture("sites");
    site.add_tenant("corner", "name: Corner\naliases: [/apps/corner]\n");
    site.write(
        "tenants/corner/pages/index.md",
        format!("---\ntitle: Corner\n---\n{body}\n"),
    );
    site.write(
        "tenants/corner/pages/terms.md",
        "---\ntitle: Terms\n---\n## Fees\n\nNone. [Back](index.md), [home](./index.md)\n",
    );
    site
}

fn is_clean(site: &TestSite) -> bool {
    !site.report_text().contains("error[")
}

#[test]
fn link_is_relative_to_its_file() {
    let mut site = create_site(
        "[T](terms.md) [F](./terms.md#fees) [P](../assets/plan.txt) [N](note.txt) [E](blog/first.md)",
    );
    site.write("tenants/corner/assets/plan.txt", "A plan.");
    site.write("tenants/corner/pages/note.txt", "A note.");
    site.write(
        "tenants/corner/pages/blog/first.md",
        "---\ntitle: First\nback: {label: Back, link: ../terms.md}\n---\n[T](../terms.md#fees) [P](../../assets/plan.txt) [A](/assets/plan.txt)\n",
    );
    site.edit(
        "tenants/corner/tenant.yaml",
        "name: Corner",
        "name: Corner\nredirects: [{from: /old, to: pages/terms.md}]",
    );
    site.reload();
    assert!(is_clean(&site), "{}", site.report_text());
    for (host, prefix) in PLACES {
        let home = site.page(host, prefix, "/").expect("a page");
        for link in ["/terms", "/terms#fees", "/blog/first"] {
            let link = format!("href=\"{prefix}{link}\"");
            assert!(home.contains(&link), "{link} in {home}");
        }
        assert!(home.contains(&format!("href=\"{prefix}/assets/plan.")));
        assert!(home.contains(&format!("href=\"{prefix}/assets/note.")));
        let first = site.page(host, prefix, "/blog/first").expect("a page");
        assert!(first.contains(&format!("href=\"{prefix}/terms#fees\"")));
        assert_eq!(
            first
                .matches(&format!("href=\"{prefix}/assets/plan."))
                .count(),
            2
        );
    }
    let (checked, broken) = broken_of(&mut site, "corner");
    assert!(checked > 30 && broken.is_empty(), "{broken:#?}");
}

#[test]
fn link_to_missing_file_is_error_with_line() {
    for (link, says) in [
        (
            "term.md",
            "error[broken-link]: the page `term.md` does not exist",
        ),
        (
            "../assets/plan.pdf",
            "`plan.pdf` does not exist in the tenant's `assets`",
        ),
        (
            "plan.pdf",
            "`plan.pdf`: the file `pages/plan.pdf` does not exist",
        ),
        (
            "../../app/tenant.yaml",
            "links to a file outside the tenant's folder",
        ),
        ("../tenant.yaml", "the page `../tenant.yaml` does not exist"),
    ] {
        let mut site = create_site(&format!("One.\n\n[x]({link})"));
        site.reload();
        let text = site.report_text();
        assert!(text.contains(says), "{link}: {text}");
        assert!(text.contains("tenants/corner/pages/index.md:6:"), "{text}");
    }
}

#[test]
fn link_to_missing_first_page_names_the_file_of_the_page() {
    let mut site = create_site("One.");
    site.remove("tenants/corner/pages/index.md");
    site.write(
        "tenants/corner/pages/terms.md",
        "---\ntitle: Terms\n---\n[home](/)\n",
    );
    site.reload();
    let text = site.report_text();
    assert!(
        text.contains("add `pages/index.md`, or correct the link"),
        "{text}"
    );
}

#[test]
fn file_is_served_with_any_name_and_spelling() {
    let mut body = String::new();
    for name in NAMES {
        let encoded = encoded(name);
        body += &format!("[a](../assets/{encoded}) [b](</assets/{encoded}>)\n\n");
    }
    body += "[c](<../assets/50% off.txt>) [d](../assets/spa%CC%88ti%20&%20cafe%CC%81.txt)\n\n";
    body += "[e](<../assets/spa\u{308}ti & cafe\u{301}.txt>) [f](../assets/nfd-u%CC%88.txt) [g](../assets/nfd-%C3%BC.txt)\n";
    let mut site = create_site(&body);
    for name in NAMES {
        site.write(&format!("tenants/corner/assets/{name}"), name);
    }
    site.write("tenants/corner/assets/nfd-u\u{308}.txt", "u");
    site.reload();
    assert!(is_clean(&site), "{}", site.report_text());
    let (checked, broken) = broken_of(&mut site, "corner");
    assert!(checked > 50 && broken.is_empty(), "{broken:#?}");

    let files = site.exported(ExportOptions::default()).expect("files");
    let mut seen = BTreeSet::new();
    for (host, prefix) in PLACES {
        let html = site.page(host, prefix, "/").expect("a page");
        let assets = addresses(&html).into_iter();
        for address in assets.filter(|address| address.contains("/assets/")) {
            let file = format!("{host}{address}");
            assert!(files.contains_key(&file), "{file} is not exported");
            assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
            if address.ends_with(".txt") {
                seen.insert(address);
            }
        }
    }
    assert_eq!(seen.len(), (NAMES.len() + 1) * PLACES.len(), "{seen:#?}");
}

#[test]
fn same_name_in_two_unicode_forms_is_error() {
    let mut site = create_site("Words.");
    site.write("tenants/corner/assets/caf\u{e9}.txt", "one");
    site.write("tenants/corner/assets/cafe\u{301}.txt", "two");
    site.reload();
    assert!(
        site.report_text()
            .contains("two files have names that look the same"),
        "{}",
        site.report_text()
    );
}

#[test]
fn company_profile_links_no_file() {
    let mut site = TestSite::fixture("sites");
    site.write("tenants/home/assets/kit.zip", "zip");
    site.edit(
        "tenants/home/tenant.yaml",
        "{label: Privacy, link: /about}",
        "{label: Kit, link: assets/kit.zip}",
    )
    .reload();
    let text = site.report_text();
    assert!(text.contains("is a file of this tenant"), "{text}");
}
