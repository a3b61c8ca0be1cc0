//! Properties of routing and negotiation: each response belongs to the right tenant and has an encoding that the client accepts.
//!
//! `PROPTEST_CASES=100000` runs more cases than the default. A failing case is reduced, and becomes a test of its own elsewhere.

use crate::sample;
use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use release::snapshot::{ContentEncoding, Snapshot};
use server::response::respond::{RequestHead, ResponseOwner, RoutedResponse, respond};

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(sample::snapshot);

/// Generates paths that exist, paths that nearly exist, and attacks.
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

/// Generates hosts that exist, in any spelling, and others.
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

/// Returns the tenants that may answer for a host.
fn tenants_of(host: &str) -> &'static [&'static str] {
    let name = host.split(':').next().unwrap().to_ascii_lowercase();
    match name.strip_suffix('.').unwrap_or(&name) {
        "studio.example" => &["studio", "bluedoor", "da"],
        "bluedoor.example" => &["bluedoor"],
        _ => &[],
    }
}

fn check(host: &str, method: &Method, answer: &RoutedResponse<'_>) -> Result<(), TestCaseError> {
    let (status, headers) = (answer.response.status(), answer.response.headers());
    let body = answer.response.body();
    match answer.owner {
        ResponseOwner::Tenant(mount) => {
            prop_assert!(
                tenants_of(host).contains(&&*mount.tenant),
                "{}",
                mount.tenant
            );
        }
        ResponseOwner::Host | ResponseOwner::Unknown => {
            let text = String::from_utf8_lossy(body.in_memory().unwrap());
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
            && !matches!(answer.owner, ResponseOwner::Unknown)
    );
    let known = [200, 204, 206, 304, 308, 400, 404, 405, 412, 416, 421];
    prop_assert!(known.contains(&status.as_u16()), "{status}");
    Ok(())
}

/// Answers a plain request.
fn get(path: &str, host: &'static str, lines: &[HeaderValue]) -> RoutedResponse<'static> {
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static(host));
    for line in lines {
        headers.append("accept-encoding", line.clone());
    }
    let uri = path.parse::<Uri>().unwrap();
    let request = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
    respond(&SNAPSHOT, &request)
}

/// Generates decoded paths of existing pages.
fn page() -> impl Strategy<Value = (&'static str, &'static str)> {
    select(vec![
        ("studio.example", "/about"),
        ("studio.example", "/blog/first"),
        ("studio.example", "/bluedoor/terms"),
        ("studio.example", "/apps/bluedoor/terms"),
        ("studio.example", "/da"),
        ("bluedoor.example", "/caf\u{e9}"),
    ])
}

/// Percent-encodes the path: the chosen bytes and all that must be encoded, in either case.
fn spelled(path: &str, encoded: u32, upper: u32) -> String {
    let bytes = path.bytes().enumerate().map(|(at, byte)| {
        let bit = |mask: u32| mask >> (at % 32) & 1 == 1;
        match (byte == b'/', bit(encoded) || !byte.is_ascii(), bit(upper)) {
            (false, true, true) => format!("%{byte:02X}"),
            (false, true, false) => format!("%{byte:02x}"),
            _ => char::from(byte).to_string(),
        }
    });
    bytes.collect()
}

/// Parses an `Accept-Encoding` field in the simplest way: the valid elements with their weights.
fn elements(line: &str) -> Vec<(String, f64)> {
    let elements = line.split(',').filter_map(|element| {
        let (token, weight) = match element.split_once(';') {
            None => (element, 1.0),
            Some((token, rest)) => {
                let (name, weight) = rest.split_once('=')?;
                if !name.trim().eq_ignore_ascii_case("q") {
                    return None;
                }
                (token, weight.trim().parse().ok()?)
            }
        };
        Some((token.trim().to_ascii_lowercase(), weight))
    });
    elements.collect()
}

proptest! {
    #[test]
    fn host_answers_only_with_its_own_tenants(
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
        let request = RequestHead::new(&method, &uri, Version::HTTP_11, &headers, false);
        check(&host, &method, &respond(&SNAPSHOT, &request))?;
    }

    #[test]
    fn absolute_form_and_authority_name_the_host(authority in host(), host in host(), path in path(), http2 in any::<bool>()) {
        let uri = format!("http://{authority}{path}").parse::<Uri>();
        let (Ok(uri), Ok(named)) = (uri, HeaderValue::from_str(&host)) else {
            return Ok(());
        };
        let mut headers = HeaderMap::new();
        headers.insert("host", named);
        let version = if http2 { Version::HTTP_2 } else { Version::HTTP_11 };
        let request = RequestHead::new(&Method::GET, &uri, version, &headers, false);
        let answer = respond(&SNAPSHOT, &request);
        let authority = uri.authority().unwrap().as_str().to_owned();
        check(&authority, &Method::GET, &answer)?;
        if http2 && tenants_of(&authority) != tenants_of(&host) {
            prop_assert!(!matches!(answer.owner, ResponseOwner::Tenant(_)));
        }
    }

    #[test]
    fn all_spellings_of_a_path_get_the_same_response((host, path) in page(), encoded: u32, upper: u32) {
        let plain = get(&spelled(path, 0, 0), host, &[]).response;
        prop_assert_eq!(plain.status(), StatusCode::OK);
        let other = get(&spelled(path, encoded, upper), host, &[]).response;
        prop_assert_eq!(other.status(), StatusCode::OK);
        prop_assert_eq!(other.headers(), plain.headers());
        prop_assert_eq!(other.body(), plain.body());
    }

    #[test]
    fn redirect_for_a_slash_reaches_the_page_in_one_step((host, path) in page(), encoded: u32, query in "(\\?[a-z/=&]{0,8})?") {
        let spelled = spelled(path, encoded, encoded);
        let moved = get(&format!("{spelled}/{query}"), host, &[]).response;
        prop_assert_eq!(moved.status(), StatusCode::PERMANENT_REDIRECT);
        let headers = moved.headers();
        let location = headers["location"].to_str().unwrap();
        prop_assert_eq!(location, format!("{spelled}{query}"));
        prop_assert_eq!(get(location, host, &[]).response.status(), StatusCode::OK);
    }

    #[test]
    fn refused_encoding_is_never_sent(lines in vec("((br|gzip|x-gzip|zstd|identity|\\*|deflate) ?(; ?[qQ]=(0|1|0\\.[0-9]{0,3}|0\\.000|1\\.0))?(, ?)?){0,4}", 0..3)) {
        let fields: Vec<HeaderValue> = lines.iter().map(|line| line.parse().unwrap()).collect();
        let answer = get("/about", "studio.example", &fields);
        let coding = answer.encoding;
        let headers = answer.response.headers();
        let said = headers.get("content-encoding").map(|value| value.to_str().unwrap());
        prop_assert_eq!(said, (coding != ContentEncoding::Identity).then(|| coding.token()));
        prop_assert_eq!(&headers["vary"], "accept-encoding");
        if coding != ContentEncoding::Identity {
            let all: Vec<_> = lines.iter().flat_map(|line| elements(line)).collect();
            let named: Vec<f64> = all
                .iter()
                .filter(|(token, _)| token == coding.token() || (coding == ContentEncoding::Gzip && token == "x-gzip"))
                .map(|(_, weight)| *weight)
                .collect();
            let any = || all.iter().any(|(token, weight)| token == "*" && *weight > 0.0);
            prop_assert!(named.iter().any(|weight| *weight > 0.0) || (named.is_empty() && any()), "{coding:?} for {lines:?}");
        }
    }
}
