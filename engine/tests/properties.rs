//! What holds for every request and every folder, tried with invented ones.
//!
//! A short while by default; `PROPTEST_CASES=100000 cargo test --test properties` goes on for longer. What fails is reduced to its smallest form, and becomes a test of its own elsewhere.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/sample.rs"]
mod sample;

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rowhouse::compile::link::{Target, below, target};
use rowhouse::name::TenantId;
use rowhouse::serve::respond::{Answer, Asked, Party, respond};
use rowhouse::snapshot::Snapshot;
use rowhouse::source::Folder;

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(sample::snapshot);

/// Paths that exist, that nearly exist, and that try something.
fn path() -> impl Strategy<Value = String> {
    let known = select(vec![
        "about",
        "blog",
        "first",
        "bluedoor",
        "apps",
        "terms",
        "da",
        "datenschutz",
        "moved",
        "assets",
        "site.css",
        "font.woff2",
        "",
        ".",
        "..",
        "%2e%2e",
        "%2f",
        "%00",
        "%",
        "%C3%A9",
        "caf%C3%A9",
        "*",
        "http:",
        "evil.example",
        "\\",
        ";",
        "@",
    ]);
    let segment = prop_oneof![4 => known.prop_map(str::to_owned), 1 => "[!-~]{0,12}"];
    (vec(segment, 0..6), "(\\?[!-~]{0,10})?")
        .prop_map(|(segments, query)| format!("/{}{query}", segments.join("/")))
}

/// Hosts that exist, in every spelling, and others.
fn host() -> impl Strategy<Value = String> {
    let name = select(vec![
        "studio.example",
        "bluedoor.example",
        "empty.example",
        "www.studio.example",
        "nobody.example",
        "example",
        "",
        "127.0.0.1",
        "[::1]",
    ]);
    let known = (
        name,
        any::<u32>(),
        select(vec!["", ".", ":80", ".:8080", ":", ":x", "/", "@a"]),
    )
        .prop_map(|(name, upper, rest)| {
            let spelled = name.chars().enumerate().map(|(at, letter)| {
                if upper >> (at % 32) & 1 == 1 {
                    letter.to_ascii_uppercase()
                } else {
                    letter
                }
            });
            spelled.collect::<String>() + rest
        });
    prop_oneof![4 => known, 1 => "[ -~]{0,20}"]
}

fn fields() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let field = prop_oneof![
        select(vec![
            "br",
            "gzip, br;q=0.5",
            "identity;q=0",
            "*;q=0",
            "gzip;q=2"
        ])
        .prop_map(|value| ("accept-encoding", value.to_owned())),
        "bytes=[0-9]{0,3}-[0-9]{0,3}(,[0-9]-)?".prop_map(|value| ("range", value)),
        select(vec![
            "*",
            "\"plain\"",
            "W/\"plain\"",
            "\"x\", \"plain\"",
            "\""
        ])
        .prop_map(|value| ("if-none-match", value.to_owned())),
        select(vec!["*", "\"plain\"", "W/\"plain\"", "\"other\""])
            .prop_map(|value| ("if-match", value.to_owned())),
        select(vec!["Wed, 21 Oct 2026 07:28:00 GMT", "yesterday"])
            .prop_map(|value| ("if-modified-since", value.to_owned())),
        select(vec!["\"plain\"", "Wed, 21 Oct 2026 07:28:00 GMT"])
            .prop_map(|value| ("if-range", value.to_owned())),
        ("[ -~]{0,30}").prop_map(|value| ("accept-encoding", value)),
    ];
    vec(field, 0..5)
}

/// The tenants that a host may answer with.
fn tenants_of(host: &str) -> &'static [&'static str] {
    let name = host.split(':').next().unwrap().to_ascii_lowercase();
    match name.strip_suffix('.').unwrap_or(&name) {
        "studio.example" => &["studio", "bluedoor", "da"],
        "bluedoor.example" => &["bluedoor"],
        _ => &[],
    }
}

fn check(host: &str, method: &Method, answer: &Answer<'_>) -> Result<(), TestCaseError> {
    let (status, headers) = (answer.response.status(), answer.response.headers());
    let body = answer.response.body();
    match answer.party {
        Party::Tenant(mount) => {
            prop_assert!(
                tenants_of(host).contains(&&*mount.tenant),
                "{}",
                mount.tenant
            );
        }
        Party::Host | Party::Nobody => {
            let text = String::from_utf8_lossy(body);
            prop_assert!(!text.contains("page ") && !text.contains(" of "), "{text}");
        }
    }
    if let Some(location) = headers.get("location") {
        let location = location.to_str().unwrap();
        let here = location.starts_with('/') && !location.starts_with("//");
        prop_assert!(
            here || location.starts_with("https://studio.example/"),
            "{location}"
        );
    }
    let empty = [204, 304].contains(&status.as_u16()) || *method == Method::HEAD;
    prop_assert!(!empty || body.is_empty());
    prop_assert_eq!(
        status == StatusCode::PARTIAL_CONTENT,
        headers.contains_key("content-range")
            && !body.is_empty()
            && status != StatusCode::RANGE_NOT_SATISFIABLE
    );
    prop_assert_eq!(
        status == StatusCode::METHOD_NOT_ALLOWED,
        !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
            && matches!(answer.party, Party::Tenant(_))
    );
    let known = [200, 204, 206, 304, 308, 400, 404, 405, 412, 416, 421];
    prop_assert!(known.contains(&status.as_u16()), "{status}");
    Ok(())
}

/// Lines that a manifest or front matter may have, or may not.
fn yaml() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        select(vec![
            "name: Corner",
            "root: true",
            "hosts: [a.example]",
            "aliases: [/x, y]",
            "theme: base",
            "title: A page",
            "description: >",
            "  folded",
            "sections:",
            "  - kind: call",
            "  - kind: cards",
            "date: 2025-02-30",
            "tags: [a, b]",
            "publish: 2026-01-01T00:00:00Z",
            "? a",
            "&a b",
            "*a",
            "---",
            "redirects: [{from: /a, to: /b}]",
            "brand: {accent: '#fff'}",
            "\t",
            "- ",
            "name:",
            "{",
            "\"",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,30}",
        "\\PC{0,10}",
    ];
    vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn a_host_answers_with_its_own_tenants_only(
        path in path(),
        host in host(),
        method in prop_oneof![6 => Just("GET"), 2 => Just("HEAD"), 1 => Just("OPTIONS"), 1 => Just("BREW")],
        fields in fields(),
    ) {
        let (Ok(uri), Ok(named)) = (path.parse::<Uri>(), HeaderValue::from_str(&host)) else {
            return Ok(());
        };
        let method: Method = method.parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("host", named);
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
        }
        let asked = Asked {
            method: &method,
            uri: &uri,
            version: Version::HTTP_11,
            headers: &headers,
            content: false,
        };
        check(&host, &method, &respond(&SNAPSHOT, &asked))?;
    }

    #[test]
    fn the_absolute_form_and_the_authority_name_the_host(authority in host(), host in host(), path in path(), http2 in any::<bool>()) {
        let uri = format!("http://{authority}{path}").parse::<Uri>();
        let (Ok(uri), Ok(named)) = (uri, HeaderValue::from_str(&host)) else {
            return Ok(());
        };
        let mut headers = HeaderMap::new();
        headers.insert("host", named);
        let asked = Asked {
            method: &Method::GET,
            uri: &uri,
            version: if http2 { Version::HTTP_2 } else { Version::HTTP_11 },
            headers: &headers,
            content: false,
        };
        let answer = respond(&SNAPSHOT, &asked);
        let authority = uri.authority().unwrap().as_str().to_owned();
        check(&authority, &Method::GET, &answer)?;
        if http2 && tenants_of(&authority) != tenants_of(&host) {
            prop_assert!(!matches!(answer.party, Party::Tenant(_)));
        }
    }

    #[test]
    fn a_folder_is_a_site_or_has_mistakes_with_their_lines(manifest in yaml(), front in yaml(), body in "\\PC{0,80}") {
        let page = format!("---\n{front}\n---\n{body}");
        let files = [("tenant.yaml", &manifest), ("pages/index.md", &page)];
        let folder = Folder {
            label: "tenants/corner".to_owned(),
            files: files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).clone().into()))
                .collect(),
        };
        let (site, report) = rowhouse::tenant::read(&TenantId::new("corner").unwrap(), &folder);
        prop_assert_eq!(site.is_some(), report.is_servable());
        for diagnostic in report.iter() {
            let file = files.iter().find(|(path, _)| folder.name_of(path) == diagnostic.file);
            if let (Some(place), Some((_, text))) = (&diagnostic.place, file) {
                let lines = text.lines().count().max(1);
                prop_assert!((1..=lines + 1).contains(&place.line), "{diagnostic:?} in {text:?}");
            }
        }
    }

    #[test]
    fn a_link_stays_below_its_prefix_or_leaves_as_it_is(link in "(/?[a-z.]{0,5}){0,3}(:/[a-z]{0,3})?(\\?q)?(#[a-z]{0,3})?", any in "\\PC{0,20}") {
        for link in [link, any] {
            match target(&link) {
                Target::Own(path, fragment) => {
                    prop_assert!(path.is_empty() || path.starts_with('/'));
                    prop_assert!(!path.contains(['?', '#']));
                    prop_assert_eq!(fragment.is_some(), link.contains('#'));
                    if path.starts_with('/') {
                        prop_assert!(below("/corner", &path).starts_with("/corner"));
                    }
                }
                Target::Neighbour(tenant, path, _) => {
                    prop_assert!(path.starts_with('/') && !path.starts_with("//"));
                    let written = format!("{tenant}:{path}");
                    prop_assert!(link.starts_with(&written));
                }
                Target::Outside => prop_assert!(!link.starts_with(['/', '#', '?'])),
            }
        }
    }
}
