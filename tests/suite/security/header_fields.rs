//! Every header field of each type of response, and the values of the security fields.

use std::collections::BTreeSet;

use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Version};
use render::policy_hash;
use rowhouse_tests::{Answer, TestServer, TestSite, fixture, workspace};
use server::response::respond::{RequestHead, respond};

/// Fields of every response.
const ALWAYS: &[&str] = &[
    "cache-control",
    "connection",
    "content-length",
    "date",
    "x-request-id",
];
/// Further fields of every response with a body.
const BODY: &[&str] = &[
    "content-type",
    "cross-origin-resource-policy",
    "x-content-type-options",
];
/// Fields of a page with any status.
const PAGE: &[&str] = &[
    "cache-tag",
    "content-encoding",
    "content-security-policy",
    "cross-origin-opener-policy",
    "permissions-policy",
    "referrer-policy",
    "vary",
    "x-frame-options",
];

/// Creates a deployment with a redirect.
fn create_site() -> TestSite {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\nredirects: [{from: /old, to: /terms}]",
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    site
}

/// Checks that a response has exactly these fields.
fn assert_fields(answer: &Answer, status: u16, lists: &[&[&str]]) {
    let names: BTreeSet<&str> = answer.headers.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = lists.concat().into_iter().collect();
    assert_eq!((answer.status, names), (status, listed));
}

#[test]
fn pages_send_only_listed_header_fields() {
    let site = create_site();
    let server = TestServer::start(site.folder(), &[]);
    let domain = server.domain();
    let coded = ("accept-encoding", "gzip, br");
    let ask = |method: &str, path: &str| server.request(method, &domain, path, &[coded]);
    let page: &[&str] = &[ALWAYS, BODY, PAGE].concat();
    assert_fields(&ask("GET", "/about"), 200, &[page, &["etag"]]);
    assert_fields(&ask("HEAD", "/about"), 200, &[page, &["etag"]]);
    assert_fields(&ask("GET", "/app/terms"), 200, &[page, &["etag"]]);
    assert_fields(&ask("GET", "/nowhere"), 404, &[page, &["x-robots-tag"]]);
    assert_fields(
        &ask("POST", "/about"),
        405,
        &[page, &["allow", "x-robots-tag"]],
    );
    let etag = ask("GET", "/about").header("etag").to_owned();
    let known = server.request("GET", &domain, "/about", &[coded, ("if-none-match", &etag)]);
    let kept = [
        "cache-control",
        "connection",
        "date",
        "etag",
        "vary",
        "x-request-id",
    ];
    assert_fields(&known, 304, &[&kept]);
}

#[test]
fn other_responses_send_only_listed_header_fields() {
    let site = create_site();
    let server = TestServer::start(site.folder(), &[]);
    let domain = server.domain();
    let page = server.get(&domain, "/app/terms").text();
    let drawing = page
        .split_once("url(\"")
        .and_then(|(_, rest)| rest.split('"').next())
        .expect("a drawing");
    let file: &[&str] = &[ALWAYS, BODY, &["etag", "vary"]].concat();
    assert_fields(
        &server.get(&domain, drawing),
        200,
        &[file, &["accept-ranges", "content-security-policy"]],
    );
    let part = server.request("GET", &domain, drawing, &[("range", "bytes=0-1")]);
    assert_fields(
        &part,
        206,
        &[
            file,
            &["accept-ranges", "content-range", "content-security-policy"],
        ],
    );
    assert_fields(&server.get(&domain, "/robots.txt"), 200, &[file]);
    for moved in ["/about/", "/app/old"] {
        let answer = server.get(&domain, moved);
        assert_fields(&answer, 308, &[ALWAYS, &["cache-tag", "location"]]);
    }
    let refused = server.get(&domain, "/%");
    assert_fields(
        &refused,
        400,
        &[ALWAYS, &["content-type", "x-content-type-options"]],
    );
    let options = server.request("OPTIONS", &domain, "/about", &[]);
    assert_fields(
        &options,
        204,
        &[&["allow", "connection", "date", "x-request-id"]],
    );
}

#[test]
fn policy_allows_inline_style_and_script_by_hash() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let page = server.get(&server.domain(), "/app/terms");
    let policy = page.header("content-security-policy");
    let text = page.text();
    let between = |start: &str, end: &str| {
        let (_, rest) = text.split_once(start).expect("an element");
        policy_hash(rest.split_once(end).expect("an end").0)
    };
    let style = between("<style>", "</style>");
    let styles = policy.split_once("style-src ").expect("styles").1;
    let styles = styles.split_once(';').expect("an end").0;
    assert!(styles.split(' ').any(|hash| hash == style), "{policy}");
    assert!(
        !styles.contains("self") && !styles.contains("unsafe"),
        "{policy}"
    );
    // The tenant's own colours come last.
    let own = ":root{--accent:light-dark(#1f4fa3,#8fb6ff)}</style>";
    assert!(text.contains(own), "{text}");

    let workspace = TestSite::copy_of(&workspace());
    let headers = secure(&workspace, "studio.example", "/");
    let policy = headers["content-security-policy"].to_str().expect("a text");
    let home = workspace.page("studio.example", "", "/").expect("a page");
    let (_, rest) = home.split_once("blocking=\"render\">").expect("a script");
    let script = policy_hash(rest.split_once("</script>").expect("an end").0);
    // Both policies must allow the script.
    assert_eq!(policy.matches(&script).count(), 2, "{policy}");
}

/// Returns the header fields for an `https` origin.
fn secure(site: &TestSite, host: &'static str, path: &str) -> HeaderMap {
    let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
    let uri = path.parse().expect("a target");
    let asked = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
    respond(&site.snapshot, &asked)
        .response
        .headers()
        .into_owned()
}

/// The rules of the Mozilla HTTP Observatory that depend on the server, each with its full score.
#[test]
fn observatory_gives_full_score() {
    let site = create_site();
    for (host, path) in [
        ("studio.example", "/"),
        ("studio.example", "/app/terms"),
        ("app.studio.example", "/"),
        ("studio.example", "/nowhere"),
        ("app.studio.example", "/nowhere"),
    ] {
        let headers = secure(&site, host, path);
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or("")
        };

        // The second policy narrows the first: it also limits scripts to that origin.
        let policies: Vec<&str> = text("content-security-policy").split(", ").collect();
        let [_, narrowing] = policies[..] else {
            panic!("{policies:?}");
        };
        let inline = narrowing.strip_prefix("script-src *:*/assets/ ");
        let inline: Vec<&str> = inline.expect("hashes").split(' ').collect();
        assert!(inline.iter().all(|hash| hash.starts_with("'sha256-")));
        let policy: Vec<Vec<&str>> = policies[0]
            .split(';')
            .map(|directive| directive.split_whitespace().collect())
            .collect();
        let directive = |name: &str| {
            policy
                .iter()
                .find(|directive| directive.first() == Some(&name))
        };
        assert!(!text("content-security-policy").contains("unsafe-"));
        assert_eq!(
            directive("default-src").expect("a default")[1..],
            ["'none'"]
        );
        assert_eq!(directive("object-src").expect("objects")[1..], ["'none'"]);
        assert_eq!(directive("base-uri").expect("a base")[1..], ["'none'"]);
        assert_eq!(
            directive("frame-ancestors").expect("frames")[1..],
            ["'none'"]
        );
        assert_eq!(
            directive("script-src").expect("scripts")[1..],
            [&["'self'"], &inline[..]].concat()
        );
        assert_eq!(
            directive("form-action").expect("forms")[1..],
            ["'self'", "mailto:"]
        );
        assert_eq!(
            directive("require-trusted-types-for").expect("types")[1..],
            ["'script'"]
        );
        assert!(directive("upgrade-insecure-requests").is_some());
        let foreign = policy
            .iter()
            .flatten()
            .find(|source| source.contains("//") || source.contains('*'));
        assert_eq!(foreign, None, "no other origin and no wildcard");

        let hsts = text("strict-transport-security");
        let age = hsts
            .strip_prefix("max-age=")
            .and_then(|rest| rest.split(';').next());
        let age: u64 = age.expect("an age").parse().expect("seconds");
        assert!(age >= 15_768_000, "{hsts}");
        assert_eq!(text("x-content-type-options"), "nosniff");
        assert_eq!(text("x-frame-options"), "DENY");
        assert_eq!(text("referrer-policy"), "strict-origin-when-cross-origin");
        assert_eq!(text("cross-origin-opener-policy"), "same-origin");
        assert_eq!(text("cross-origin-resource-policy"), "same-site");
        assert_eq!(
            text("permissions-policy"),
            "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()"
        );
        assert!(!headers.contains_key("set-cookie"));
        assert!(!headers.contains_key("access-control-allow-origin"));
    }
}

#[test]
fn only_https_origin_sends_hsts() {
    let site = create_site();
    let field = "strict-transport-security";
    assert!(secure(&site, "studio.example", "/about").contains_key(field));
    // A resource that all hosts share cannot set a policy for each host.
    assert!(!secure(&site, "studio.example", "/robots.txt").contains_key(field));
    let server = TestServer::start(site.folder(), &[]);
    let page = server.get(&server.domain(), "/");
    assert_eq!(page.header("strict-transport-security"), "");
    let policy = page.header("content-security-policy");
    assert!(!policy.contains("upgrade-insecure-requests"), "{policy}");
}

/// Returns the policy of the root tenant's own host, of a prefix on that host and of another tenant's host, with these lines in the manifests.
fn hsts(home: &str, app: &str) -> [String; 3] {
    let mut site = create_site();
    site.edit(
        "tenants/home/tenant.yaml",
        "name: Street",
        &format!("name: Street\n{home}"),
    );
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        &format!("name: App\n{app}"),
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    [
        ("studio.example", "/"),
        ("studio.example", "/app/terms"),
        ("app.studio.example", "/terms"),
    ]
    .map(|(host, path)| {
        let headers = secure(&site, host, path);
        let field = headers.get("strict-transport-security");
        let text = field.and_then(|value| value.to_str().ok());
        text.unwrap_or_default().to_owned()
    })
}

#[test]
fn only_owner_of_host_decides_hsts() {
    const HOST: &str = "max-age=63072000";
    const BELOW: &str = "max-age=63072000; includeSubDomains";
    assert_eq!(hsts("", ""), [HOST, HOST, HOST]);
    assert_eq!(hsts("", "hsts: subdomains"), [HOST, HOST, BELOW]);
    assert_eq!(hsts("hsts: subdomains", ""), [BELOW, BELOW, HOST]);
    let listed = format!("{BELOW}; preload");
    assert_eq!(hsts("", "hsts: preload"), [HOST, HOST, &listed]);
    let parts = |parts: &str| hsts("", &format!("hsts: {{{parts}}}"));
    assert_eq!(parts("subdomains: true"), [HOST, HOST, BELOW]);
    assert_eq!(
        parts("subdomains: true, preload: true"),
        [HOST, HOST, &listed]
    );
    assert_eq!(parts(""), [HOST, HOST, HOST]);
    assert_eq!(hsts("hsts: off", ""), ["max-age=0", "max-age=0", HOST]);
    assert_eq!(hsts("", "hsts: off"), [HOST, HOST, "max-age=0"]);
}
