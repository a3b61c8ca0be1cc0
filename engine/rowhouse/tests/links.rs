//! Property tests of link resolution: under every mount, a link in a page resolves to a page, or is reported with its line.
//!
//! The tests are short by default; `PROPTEST_CASES=100000` makes them longer. A failure is reduced to its smallest form, and gets a test of its own.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use content::formats::link::{LinkTarget, parse_link};
use content::report::{Code, Severity};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use release::snapshot::{ContentEncoding, Snapshot};
use render::CachePolicy;
use render::Islands;
use render::below;
use rowhouse_ui::Bundle;
use server::response::respond::{RequestHead, respond};
use supervisor::{DeploymentConfig, Registry};
use tempfile::TempDir;
use url::Url;

/// Returns a configuration with an eighth of the usual cases, since each case renders a tenant.
fn reduced_case_count() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.div_ceil(8),
        ..usual
    }
}

/// The mounts of the tenant with the generated links: origin and path prefix.
const MOUNTS: [(&str, &str); 3] = [
    ("https://corner.studio.example", ""),
    ("https://studio.example", "/corner"),
    ("https://studio.example", "/shops/corner"),
];

/// A deployment of two tenants. One of them gets a new page in every case.
struct Deployment {
    folder: TempDir,
    registry: Registry,
}

thread_local! {
    static DEPLOYMENT: RefCell<Deployment> = RefCell::new(Deployment::new());
}

impl Deployment {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join("tenants").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("studio/tenant.yaml", "name: Studio\nroot: true\n");
        write("studio/pages/index.md", "---\ntitle: Studio\n---\n");
        write("studio/pages/about.md", "---\ntitle: About\n---\n");
        write(
            "corner/tenant.yaml",
            "name: Corner\naliases: [/shops/corner]\nredirects: [{from: /old, to: /terms}]\n",
        );
        write("corner/pages/index.md", "---\ntitle: Corner\n---\n");
        write(
            "corner/pages/terms.md",
            "---\ntitle: Terms\naliases: [/conditions]\n---\n## Fees\n",
        );
        write("corner/pages/notes/first.md", "---\ntitle: First\n---\n");
        let config = DeploymentConfig {
            tenants: folder.path().join("tenants"),
            // A small theme, since every case renders it.
            themes: Some(
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/sites/themes"),
            ),
            deployment: None,
            origin: "https://studio.example".parse().unwrap(),
            hsts: None,
            caching: CachePolicy::default(),
        };
        let islands = Islands::new(Bundle::embedded().unwrap(), true);
        let registry = Registry::new(config, Arc::new(islands));
        Self { folder, registry }
    }

    fn with_page(&mut self, body: &str) -> Snapshot {
        let page = format!("---\ntitle: Links\n---\n{body}\n");
        fs::write(
            self.folder.path().join("tenants/corner/pages/links.md"),
            page,
        )
        .unwrap();
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        self.registry.reload(now).unwrap()
    }
}

fn get(snapshot: &Snapshot, url: &Url) -> (StatusCode, Option<String>, String) {
    let uri: Uri = url[url::Position::BeforePath..url::Position::AfterQuery]
        .parse()
        .unwrap();
    let headers = HeaderMap::from_iter([(
        http::header::HOST,
        HeaderValue::from_str(url.host_str().unwrap()).unwrap(),
    )]);
    let asked = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
    let answer = respond(snapshot, &asked);
    assert_eq!(answer.encoding, ContentEncoding::Identity);
    let headers = answer.response.headers();
    let location = headers.get("location");
    let location = location.map(|value| value.to_str().unwrap().to_owned());
    let text = String::from_utf8_lossy(answer.response.body().in_memory().unwrap()).into_owned();
    (answer.response.status(), location, text)
}

/// Generates links: valid ones, nearly valid ones, and those of other schemes.
fn link() -> impl Strategy<Value = String> {
    let known = select(vec![
        "/",
        "/terms",
        "/terms/",
        "/terms#fees",
        "/terms#none",
        "#fees",
        "#",
        "/conditions",
        "/notes/first",
        "/notes",
        "/notes/none",
        "/old",
        "/links",
        "/Terms",
        "/terms?a=b",
        "/terms?a#fees",
        "//evil.example",
        "/../about",
        "/./terms",
        "/%74erms",
        "/terms%2F",
        "/\\evil.example",
        "terms",
        "./terms",
        "../terms",
        "terms.md",
        "./terms.md#fees",
        "terms.md#none",
        "notes/first.md",
        "none.md",
        "index.md",
        "../tenant.yaml",
        "../../x.md",
        "../assets/none.css",
        "../assets/a b.css",
        ".",
        "..",
        "?a",
        "corner:/terms",
        "corner:/none",
        "corner:terms",
        "studio:/about",
        "studio:/none",
        "studio:/",
        "nobody:/",
        "company:email",
        "company:fax",
        "https://a.example/x",
        "https://",
        "http://a b",
        "mailto:a@b.example",
        "mailto:",
        "tel:+1-312-555-0142",
        "tel:x",
        "javascript:alert(1)",
        "JavaScript:x",
        "java\tscript:x",
        "data:text/html,x",
        "vbscript:x",
        "/sitemap.xml",
        "/robots.txt",
        "/corner",
        "/corner/terms",
        "/assets/none.css",
        "/caf\u{e9}",
        "/terms\u{200b}",
        "x:/",
        "a@b.example",
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => "/[a-z./%#?:]{0,8}", 1 => "[!-;=?-~]{0,10}"]
}

/// Returns each link between the heading and the footer of a page.
fn hrefs(html: &str) -> Vec<String> {
    let (_, rest) = html.split_once("</h1>").unwrap();
    let (main, _) = rest.split_once("<footer>").unwrap();
    let parts = main.split("<a ").skip(1);
    let hrefs = parts.filter_map(|part| part.split_once("href=\"")?.1.split_once('"'));
    hrefs.map(|(href, _)| href.replace("&amp;", "&")).collect()
}

proptest! {
    #![proptest_config(crate::reduced_case_count())]

    #[test]
    fn link_resolves_to_a_page_under_every_mount_or_is_reported_with_its_line(links in vec(link(), 1..4)) {
        let body: String = links.iter().map(|link| format!("[words](<{link}>)\n\n")).collect();
        DEPLOYMENT.with_borrow_mut(|deployment| {
            let snapshot = deployment.with_page(&body);
            let report = deployment.registry.report();
            let told: Vec<_> = report.iter().filter(|told| told.file.ends_with("corner/pages/links.md")).collect();
            for told in &told {
                if let (Some(place), Some(text)) = (told.position, &told.text) {
                    prop_assert!(place.line >= 1 && place.column <= text.chars().count() + 1, "{told:?}");
                }
            }
            if !report.is_servable() {
                let lines = told.iter().filter(|told| told.severity == Severity::Error && told.position.is_some());
                prop_assert!(lines.count() > 0, "{report:?}");
                return Ok(());
            }
            for (origin, prefix) in MOUNTS {
                let page = Url::parse(&format!("{origin}{prefix}/links")).unwrap();
                let (status, _, html) = get(&snapshot, &page);
                prop_assert_eq!(status, StatusCode::OK);
                for href in hrefs(&html) {
                    let url = page.join(&href);
                    let url = url.map_err(|error| TestCaseError::fail(format!("{href}: {error}")))?;
                    prop_assert!(["https", "http", "mailto", "tel"].contains(&url.scheme()), "{href}");
                    let host = url.host_str().unwrap_or("");
                    if host != "studio.example" && !host.ends_with(".studio.example") {
                        continue;
                    }
                    let (mut status, location, mut html) = get(&snapshot, &url);
                    if let Some(location) = location {
                        let there = url.join(&location).unwrap();
                        (status, _, html) = get(&snapshot, &there);
                    }
                    let warned = told.iter().any(|told| matches!(told.code, Code::BrokenNeighbourLink | Code::UnknownTenant));
                    prop_assert!(status == StatusCode::OK || warned, "{status} for {href} at {page}");
                    if let Some(fragment) = url.fragment().filter(|id| !id.is_empty() && status == StatusCode::OK) {
                        prop_assert!(html.contains(&format!("id=\"{fragment}\"")), "{href} at {page}");
                    }
                }
            }
            Ok(())
        })?;
    }
}

proptest! {
    #[test]
    fn link_stays_below_its_prefix_or_is_unchanged(link in "(/?[a-z.]{0,5}){0,3}(:/[a-z]{0,3})?(\\?q)?(#[a-z]{0,3})?", any in "\\PC{0,20}") {
        for link in [link, any] {
            match parse_link(&link) {
                Ok(LinkTarget::SameTenant(path, fragment)) => {
                    prop_assert!(path.is_empty() || path.starts_with('/'));
                    prop_assert!(!path.contains(['?', '#']));
                    prop_assert_eq!(fragment.is_some(), link.contains('#'));
                    if path.starts_with('/') {
                        prop_assert!(below("/corner", &path).starts_with("/corner"));
                    }
                }
                Ok(LinkTarget::OtherTenant(tenant, path, _)) => {
                    prop_assert!(path.starts_with('/') && !path.starts_with("//"));
                    let written = format!("{tenant}:{path}");
                    prop_assert!(link.starts_with(&written));
                }
                Ok(LinkTarget::Relative | LinkTarget::External | LinkTarget::Company(_)) => prop_assert!(!link.starts_with(['/', '#', '?'])),
                Err(_) => {}
            }
        }
    }
}
