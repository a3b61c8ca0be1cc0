//! The console at `/` of the admin listener: its pages without scripts, its commands, and its access control.

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rowhouse_tests::{Answer, TestServer};

use crate::state::stateful_deployment::StatefulDeployment;

const TIMEOUT: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Header fields of a browser that submits a form of the console.
const BROWSER: [(&str, &str); 3] = [
    ("origin", "http://localhost"),
    ("sec-fetch-site", "same-origin"),
    ("accept", "text/html,*/*;q=0.8"),
];

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a server that accepts commands with [`TOKEN`].
fn serve(deployment: &StatefulDeployment) -> TestServer {
    deployment.write("token", TOKEN);
    let folder = deployment.path("");
    TestServer::start(
        &folder,
        &["--state", "state", "--admin-token-file", "token"],
    )
}

/// Returns a page of the console.
fn get_page(server: &TestServer, path: &str) -> String {
    let answer = server.get_admin(path);
    assert_eq!(answer.status, 200, "{path}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    answer.text()
}

/// Returns the visible text of a page, in one line.
fn visible_text(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<').skip(1) {
        text.push(' ');
        text.push_str(piece.split_once('>').map_or("", |(_, text)| text));
    }
    let text = text.replace("&#x27;", "'").replace("&#x2F;", "/");
    let text = text.replace("&gt;", ">").replace("&quot;", "\"");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn save_terms(deployment: &StatefulDeployment, text: &str) {
    let front = "---\ntitle: Terms\n---\n";
    deployment.write("tenants/app/pages/terms.md", &format!("{front}{text}\n"));
}

fn terms_contain(server: &TestServer, words: &str) -> bool {
    let answer = server.get(&server.domain(), "/app/terms");
    answer.text().contains(words)
}

/// Returns the number of the newest release, once the folder's change is recorded.
fn newest(server: &TestServer) -> u64 {
    let text = server.get_admin("/tenants/app/releases").text();
    let releases: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
    releases
        .first()
        .and_then(|release| release["number"].as_u64())
        .unwrap_or(0)
}

#[test]
fn page_weight_is_same_before_and_after_first_request() {
    let deployment = StatefulDeployment::new();
    save_terms(&deployment, &"The same words again. ".repeat(3_000));
    let server = serve(&deployment);
    wait("a release", || newest(&server) == 1);
    let site = get_page(&server, "/sites/app");
    assert!(site.contains("warning[heading-order]"), "{site}");
    assert!(!site.contains("page-weight"), "{site}");
}

#[test]
fn first_page_is_complete_without_scripts() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    wait("a release", || newest(&server) == 1);
    let html = get_page(&server, "/");
    let text = visible_text(&html);
    for shown in [
        "Both sites are healthy",
        "Requests per second",
        "Error rate (5xx)",
        "99th percentile",
        "Render queue",
        "Memory",
        "Disk",
        "Release 1,",
        "first release since startup",
        "2 sites",
    ] {
        assert!(text.contains(shown), "`{shown}` in {text}");
    }
    let address = format!("href=\"http:&#x2F;&#x2F;{}&#x2F;app", server.domain());
    let plain = format!("href=\"http://{}/app", server.domain());
    assert!(html.contains(&address) || html.contains(&plain), "{html}");
    assert!(
        html.contains("role=\"img\"")
            && html.contains("aria-label=\"Requests per second over the last hour")
    );
    let site = visible_text(&get_page(&server, "/sites/app"));
    for shown in [
        "app is live",
        "warning[heading-order]",
        "first release since startup",
        "No request for a missing path since 20",
    ] {
        assert!(site.contains(shown), "`{shown}` in {site}");
    }
    assert_eq!(server.get_admin("/sites/nobody").status, 404);
    assert_eq!(server.get_admin("/sites/nobody/compare").status, 404);
    assert_eq!(server.get_admin("/nothing").status, 404);
}

/// Returns the highest value of a chart, from its label.
fn highest(html: &str, chart: &str) -> String {
    let label = format!("aria-label=\"{chart} over the last hour: ");
    let rest = html.split(&label).nth(1).expect("the chart");
    let label = rest.split('"').next().expect("its end");
    let (_, highest) = label.split_once("highest ").expect("its highest value");
    highest.to_owned()
}

#[test]
fn page_of_site_has_its_own_charts() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    wait("a release", || newest(&server) == 1);
    for _ in 0..60 {
        assert_eq!(server.get(&server.domain(), "/app/terms").status, 200);
    }
    let site = |id: &str| get_page(&server, &format!("/sites/{id}"));
    let is_counted = || !["0", "–"].contains(&&*highest(&site("app"), "Requests per second"));
    wait("the requests", is_counted);
    let own = site("app");
    assert_eq!(highest(&own, "Error rate (5xx)"), "0 %");
    let slowest = highest(&own, "Response time");
    assert!(slowest.ends_with("s"), "{slowest}");
    assert!(visible_text(&own).contains("50th percentile"), "{own}");
    // The charts of a site do not count requests for other sites.
    let other = site("home");
    assert_eq!(highest(&other, "Requests per second"), "0");
    assert_eq!(highest(&other, "Response time"), "–");
}

#[test]
fn policy_allows_only_files_of_admin_listener() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    let answer = server.get_admin("/");
    let policy = answer.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
    assert_eq!(answer.header("cache-control"), "no-store");
    let html = answer.text();
    assert!(
        !html.contains("<style") && !html.contains(" style=") && !html.contains(" onclick="),
        "{html}"
    );
    for (path, media_type) in [
        ("/console.css", "text/css; charset=utf-8"),
        ("/console.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        assert!(html.contains(&format!("\"{path}\"")), "{path}");
        let file = server.get_admin(path);
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, media_type)
        );
        // Visitors cannot reach these pages.
        assert_eq!(server.get(&server.domain(), path).status, 404, "{path}");
    }
    assert_eq!(server.get(&server.domain(), "/sites/app").status, 404);
    assert_eq!(server.get(&server.domain(), "/events").status, 404);
}

#[test]
fn broken_preview_is_no_site_with_errors() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    fs::create_dir(deployment.path("tenants/app@spring")).expect("a folder");
    deployment.write("tenants/app@spring/tenant.yaml", "naem: Spring\n");
    wait("the error", || get_page(&server, "/").contains("no-pages"));
    let text = visible_text(&get_page(&server, "/"));
    assert!(text.contains("Both sites are healthy"), "{text}");
}

#[test]
fn error_is_shown_as_check_prints_it() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    deployment.write(
        "tenants/app/pages/terms.md",
        "---\ntitel: Terms <b>\n---\nNew.\n",
    );
    wait("the error", || {
        get_page(&server, "/").contains("unknown-key")
    });
    for path in ["/", "/?show=broken", "/?q=APP"] {
        let html = get_page(&server, path);
        assert!(
            visible_text(&html).contains("1 of 2 sites has errors"),
            "{path}"
        );
        assert!(html.contains("sites/app"), "{path}");
    }
    for path in ["/", "/sites/app"] {
        let html = get_page(&server, path);
        let text = visible_text(&html);
        for shown in [
            "degraded",
            "error[unknown-key]: unknown key `titel`",
            "terms.md:2:1",
            "^^^^^",
            "did you mean `title`?",
        ] {
            assert!(text.contains(shown), "`{shown}` in {path}: {text}");
        }
        assert!(
            html.contains("&lt;b&gt;") && !html.contains("<b>"),
            "{html}"
        );
    }
    assert!(visible_text(&get_page(&server, "/?q=home")).contains("1 site"));
    assert!(visible_text(&get_page(&server, "/?q=nobody")).contains("No site found."));
    save_terms(&deployment, "Mended.");
    wait("its end", || {
        get_page(&server, "/").contains("Both sites are healthy")
    });
}

#[test]
fn console_rolls_back_resumes_and_compares() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    wait("a release", || newest(&server) == 1);
    save_terms(&deployment, "The words are fresh.");
    wait("the next release", || newest(&server) == 2);
    let compared = visible_text(&get_page(&server, "/sites/app/compare"));
    for shown in [
        "Changes from release 1 to 2",
        "/terms changed",
        "The words are fresh.",
    ] {
        assert!(compared.contains(shown), "`{shown}` in {compared}");
    }
    assert_eq!(
        server.get_admin("/sites/app/compare?from=1&to=9").status,
        404
    );
    let html = get_page(&server, "/sites/app");
    assert!(
        html.contains("tenants/app/rollback?release=1")
            || html.contains("tenants&#x2F;app&#x2F;rollback?release=1"),
        "{html}"
    );
    let right = format!("token={TOKEN}");
    let done = |answer: &Answer| (answer.status, answer.header("location").to_owned());
    let answer = server.submit("/tenants/app/rollback?release=1", &right, &BROWSER);
    assert_eq!(done(&answer), (303, "/sites/app?done=rollback".to_owned()));
    assert!(!terms_contain(&server, "fresh"));
    for path in ["/", "/sites/app", "/?show=pinned"] {
        assert!(
            visible_text(&get_page(&server, path)).contains("pinned to 1"),
            "{path}"
        );
    }
    assert!(
        visible_text(&get_page(&server, "/sites/app?done=rollback"))
            .contains("The server accepted the rollback.")
    );
    let answer = server.submit("/tenants/app/resume", &right, &BROWSER);
    assert_eq!(done(&answer), (303, "/sites/app?done=resume".to_owned()));
    assert!(terms_contain(&server, "fresh"));
}

#[test]
fn change_needs_token_and_same_origin() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    wait("a release", || newest(&server) == 1);
    save_terms(&deployment, "The words are fresh.");
    wait("the next release", || newest(&server) == 2);
    let right = format!("token={TOKEN}");
    let [_, site, accept] = BROWSER;
    let foreign = [
        ("origin", "http://evil.example"),
        ("sec-fetch-site", "cross-site"),
        accept,
    ];
    let cross_site = [BROWSER[0], ("sec-fetch-site", "cross-site"), accept];
    let other_port = [("origin", "http://localhost:1"), site, accept];
    for (form, fields, status) in [
        ("", &BROWSER, 401),
        ("token=0123456789abcdef0123456789abcdeF", &BROWSER, 401),
        (&right, &foreign, 403),
        (&right, &cross_site, 403),
        (&right, &other_port, 403),
    ] {
        let answer = server.submit("/tenants/app/rollback?release=1", form, fields);
        assert_eq!(
            answer.status,
            status,
            "{form} {fields:?}: {}",
            answer.text()
        );
        assert!(!answer.text().contains(TOKEN));
    }
    // A browser with a wrong token gets a page that says so.
    let answer = server.submit("/tenants/app/resume", "token=wrong", &BROWSER);
    assert!(visible_text(&answer.text()).contains("the token is not valid for this server"));
    for path in ["/", "/sites/app", "/tenants", "/console.js"] {
        assert_eq!(
            server.get_admin_as("rebound.example", path).status,
            421,
            "{path}"
        );
    }
    assert!(terms_contain(&server, "fresh"), "nothing was changed");
}

#[test]
fn console_without_token_is_read_only_and_explains_flag() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    wait("a release", || newest(&server) == 1);
    let html = get_page(&server, "/sites/app");
    assert!(visible_text(&html).contains("Commands are off."), "{html}");
    assert!(html.contains("--admin-token-file"));
    assert!(
        !html.contains("<form") && !html.contains("Roll back to"),
        "{html}"
    );
    let answer = server.submit("/tenants/app/resume", "", &BROWSER);
    assert_eq!(answer.status, 403);
    let answer = server.submit("/tenants/app/resume", "token=", &BROWSER);
    assert_eq!(answer.status, 413);
}

#[test]
fn console_reloads_folder_that_is_not_watched() {
    let deployment = StatefulDeployment::new();
    deployment.write("token", TOKEN);
    let flags = ["--watch", "off", "--admin-token-file", "token"];
    let server = TestServer::start(&deployment.path(""), &flags);
    save_terms(&deployment, "The words are fresh.");
    let right = format!("token={TOKEN}");
    let answer = server.submit("/tenants/app/read", &right, &BROWSER);
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/sites/app?done=read")
    );
    wait("the new words", || terms_contain(&server, "fresh"));
    assert_eq!(
        server
            .submit("/tenants/nobody/read", &right, &BROWSER)
            .status,
        404
    );
}

#[test]
fn certificates_are_listed_with_expiry_and_those_due_soon_first() {
    let deployment = StatefulDeployment::new();
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    // Half a day away from both neighbours, since the console rounds down to whole days.
    let expiry = SystemTime::now() + Duration::from_secs((4 * 24 + 12) * 60 * 60);
    parameters.not_after = expiry.into();
    let certificate = parameters.self_signed(&key).expect("a certificate");
    deployment.write("certificate.pem", &certificate.pem());
    deployment.write("key.pem", &key.serialize_pem());
    let server = TestServer::start(
        &deployment.path(""),
        &[
            "--https",
            "127.0.0.1:0",
            "--origin",
            "https://localhost",
            "--certificate",
            "certificate.pem",
            "--certificate-key",
            "key.pem",
        ],
    );
    let text = visible_text(&get_page(&server, "/"));
    for shown in [
        "localhost has a certificate that expires in 4 days",
        "app.localhost has no certificate",
    ] {
        assert!(text.contains(shown), "`{shown}` in {text}");
    }
    let site = visible_text(&get_page(&server, "/sites/app"));
    for shown in ["app.localhost missing", "localhost valid expires in 4 days"] {
        assert!(site.contains(shown), "`{shown}` in {site}");
    }
}

#[test]
fn missing_paths_are_listed_with_redirect_and_without_personal_data() {
    let deployment = StatefulDeployment::new();
    let server = serve(&deployment);
    let domain = server.domain();
    assert_eq!(server.get(&domain, "/app/term").status, 404);
    assert!(
        visible_text(&get_page(&server, "/"))
            .contains("app 1 request for 1 path, most often /term")
    );
    for path in [
        "/app/term?who=secret",
        "/app/a@b.example",
        "/app/%3Cscript%3E",
    ] {
        assert_eq!(server.get(&domain, path).status, 404, "{path}");
    }
    let html = get_page(&server, "/sites/app");
    let text = visible_text(&html);
    assert!(
        text.contains("2× /term - {from: /term, to: /terms}"),
        "{text}"
    );
    assert!(text.contains("/%3Cscript%3E"), "{text}");
    assert!(!html.contains("secret") && !html.contains("a@b"), "{html}");
    assert!(
        visible_text(&get_page(&server, "/"))
            .contains("app 3 requests for 2 paths, most often /term")
    );
    // A manifest accepts the text to paste.
    let manifest =
        fs::read_to_string(deployment.path("tenants/app/tenant.yaml")).expect("a manifest");
    let redirect = "redirects:\n  - {from: /term, to: /terms}\n";
    deployment.write("tenants/app/tenant.yaml", &format!("{manifest}{redirect}"));
    wait("the redirect", || {
        server.get(&domain, "/app/term").status == 308
    });
}
