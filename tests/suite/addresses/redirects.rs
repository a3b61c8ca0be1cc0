//! Moved paths redirect within the mount of the request.

use std::collections::BTreeMap;
use std::process::Command;

use bytes::Bytes;
use rowhouse::export::{ExportOptions, export};
use rowhouse_tests::redirect_cases::{
    CASES, PLACES, QUERY_CASES, RedirectCase, SERVER_CASES, create_site,
};
use rowhouse_tests::{TestServer, TestSite, binary, fixture};

#[test]
fn redirect_works_under_every_mount() {
    let mut site = TestSite::fixture("sites");
    site.edit("tenants/app/tenant.yaml", "name: App", "name: App\nredirects:\n  - {from: /old/terms, to: \"/terms#scope\"}\n  - {from: /studio, to: \"home:/about\"}");
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let folder = site.path("");
    let server = TestServer::start(&folder, &[]);
    let (domain, app) = (server.domain(), format!("app.{}", server.domain()));
    let moved = |host: &str, path: &str| {
        let answer = server.get(host, path);
        (answer.status, answer.header("location").to_owned())
    };
    assert_eq!(moved(&app, "/old/terms"), (308, "/terms#scope".to_owned()));
    assert_eq!(
        moved(&domain, "/apps/app/old/terms"),
        (308, "/apps/app/terms#scope".to_owned())
    );
    assert_eq!(moved(&domain, "/app/studio"), (308, "/about".to_owned()));
    assert_eq!(
        moved(&app, "/studio"),
        (308, format!("http://{domain}/about"))
    );
}

#[test]
fn redirect_to_missing_page_is_broken_link() {
    let site = TestSite::copy_of(&fixture("errors/redirect-chain"));
    assert!(
        site.report_text().contains("error[redirect-chain]"),
        "{}",
        site.report_text()
    );
}

/// Asserts that a response is the one that a case expects, with the query and fragment of its location.
fn assert_case(case: &RedirectCase, prefix: &str, (status, location): (u16, &str), at: &str) {
    let expected = (case.status, case.location_at(prefix));
    assert_eq!(
        (status, location.to_owned()),
        expected,
        "{at}: {}",
        case.request
    );
}

#[test]
fn server_redirects_as_the_table_says_at_every_address() {
    let site = create_site();
    let server = TestServer::start(&site.path(""), &[]);
    let domain = server.domain();
    for (host, prefix) in PLACES {
        let host = host.replace("studio.example", &domain);
        for case in CASES.iter().chain(QUERY_CASES).chain(SERVER_CASES) {
            let answer = server.get(&host, &case.request_at(prefix));
            let location = answer.header("location");
            assert_case(case, prefix, (answer.status, location), &host);
            let head = server.request("HEAD", &host, &case.request_at(prefix), &[]);
            let of_head = (head.status, head.header("location"), head.body.len());
            assert_eq!(of_head, (answer.status, location, 0), "HEAD {case:?}");
            let caching = answer.header("cache-control");
            match case.status {
                301 | 308 => assert_eq!(caching, "max-age=3600", "{case:?}"),
                302 | 307 => assert_eq!(caching, "no-store", "{case:?}"),
                410 => assert!(answer.text().contains("<html"), "{case:?}"),
                _ => {}
            }
        }
    }
    // A wildcard of the root tenant ends at the prefix of another tenant.
    for (path, status) in [("/nothing", 308), ("/corner/nothing", 404), ("/about", 200)] {
        assert_eq!(server.get(&domain, path).status, status, "{path}");
    }
}

/// A host that reads `_redirects`, as its documentation says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StaticHost {
    /// Existing files come first, unless the status has a `!`. Parameters are conditions. A final slash has no meaning.
    Netlify,
    /// Redirects come first. A line with other than two or three words is ignored.
    Cloudflare,
}

impl StaticHost {
    /// Returns the status and the location for a request of a host's exported files.
    fn answer(self, files: &BTreeMap<String, Bytes>, host: &str, request: &str) -> (u16, String) {
        let (path, query) = request.split_once('?').unwrap_or((request, ""));
        let rules = files.get(&format!("{host}/_redirects"));
        let rules = rules.map_or("", |rules| std::str::from_utf8(rules).expect("UTF-8"));
        let decoded = percent_decoded(path);
        let name = decoded.trim_start_matches('/');
        let names = [
            name.to_owned(),
            format!("{name}.html"),
            format!("{name}index.html"),
        ];
        let has_file = names
            .iter()
            .any(|name| files.contains_key(&format!("{host}/{name}")));
        for rule in rules.lines() {
            let words: Vec<&str> = rule.split(' ').collect();
            let (Some((from, rest)), true) = (words.split_first(), words.len() >= 3) else {
                panic!("{rule}");
            };
            if self == Self::Cloudflare && words.len() > 3 {
                continue;
            }
            let [parameters @ .., target, status] = rest else {
                panic!("{rule}");
            };
            let splat = match from.strip_suffix("/*") {
                Some(prefix) if self == Self::Netlify && path == prefix => Some(""),
                Some(prefix) => path
                    .strip_prefix(prefix)
                    .and_then(|rest| rest.strip_prefix('/')),
                None => (path == *from).then_some(""),
            };
            let is_met = |parameter: &&str| query.split('&').any(|one| one == *parameter);
            let is_forced = status.ends_with('!') || self == Self::Cloudflare;
            let (Some(splat), true) = (splat, parameters.iter().all(is_met)) else {
                continue;
            };
            if has_file && !is_forced {
                continue;
            }
            let status: u16 = status.trim_end_matches('!').parse().expect("a status");
            if status >= 400 {
                return (status, String::new());
            }
            let target = target.replace(":splat", splat);
            let (address, fragment) = match target.split_once('#') {
                Some((address, fragment)) => (address, format!("#{fragment}")),
                None => (target.as_str(), String::new()),
            };
            let is_mail = address.starts_with("mailto:");
            let location = match (query, address.contains('?')) {
                ("", _) => address.to_owned(),
                _ if is_mail => address.to_owned(),
                (query, true) if self == Self::Netlify => format!("{address}&{query}"),
                (_, true) => address.to_owned(),
                (query, false) => format!("{address}?{query}"),
            };
            return (status, location + &fragment);
        }
        (if has_file { 200 } else { 404 }, String::new())
    }
}

/// Decodes the path of a request.
fn percent_decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || {
            char::from(rest.next().expect("a digit"))
                .to_digit(16)
                .expect("a digit")
        };
        bytes.push(match byte {
            b'%' => u8::try_from(digit() * 16 + digit()).expect("a byte"),
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn static_hosts_redirect_as_the_table_says() {
    let site = create_site();
    for host in [StaticHost::Netlify, StaticHost::Cloudflare] {
        let is_netlify = host == StaticHost::Netlify;
        let files = site.exported(ExportOptions {
            not_found_rules: is_netlify,
            ..ExportOptions::default()
        });
        let files = files.expect("files");
        for (name, prefix) in PLACES {
            let more = if is_netlify { QUERY_CASES } else { &[] };
            for case in CASES.iter().chain(more) {
                // Existing files come second on Cloudflare Pages.
                let is_shadowed = case.request == "/old/kept";
                // Lines of parameters have one word each.
                if (is_shadowed && !is_netlify) || case.request.contains("%2F") {
                    continue;
                }
                // The root tenant's wildcard applies below other tenants, too.
                let is_own = matches!(case.status, 301 | 302 | 307 | 308);
                if !is_netlify && !is_own {
                    continue;
                }
                let (status, location) = host.answer(&files, name, &case.request_at(prefix));
                let expected = RedirectCase {
                    status: match case.status {
                        308 => 301,
                        307 => 302,
                        status => status,
                    },
                    ..*case
                };
                assert_case(&expected, prefix, (status, &location), name);
            }
        }
    }
}

#[test]
fn rules_that_a_static_host_cannot_apply_are_left_out_and_named() {
    let site = create_site();
    let mut files = BTreeMap::new();
    let options = ExportOptions::default();
    let outcome = export(site.registry(), &site.snapshot, options, &mut files).expect("files");
    let differences = outcome.differences.join("\n");
    for named in [
        "`corner.studio.example`: `/?p=12` is left out: only Netlify reads the query",
        "`studio.example`: `/corner/old/removed` is left out: only Netlify sends status 410",
        "Cloudflare Pages also redirects `/old/kept` by `/old/*`",
        "`corner.studio.example`: `/top/*` is left out: a request such as `/top//host` could choose another site",
    ] {
        assert!(
            differences.contains(named),
            "{named} is not in {differences}"
        );
    }
    let rules = std::str::from_utf8(&files["corner.studio.example/_redirects"]).expect("UTF-8");
    assert!(!rules.contains("p=12") && !rules.contains("410"), "{rules}");
    assert!(!rules.contains("/top/*"), "{rules}");
}

#[test]
fn redirect_that_cannot_work_is_an_error_with_its_place() {
    let mut site = TestSite::fixture("sites");
    for (line, expected) in [
        (
            "{from: /a, to: /b}, {from: /b, to: /terms}",
            "error[redirect-chain]: `/a` redirects to `/b`",
        ),
        (
            "{from: /a, to: /b}, {from: /b, to: /a}",
            "`/a` never stops to redirect: `/a` to `/b` to `/a`",
        ),
        (
            "{from: /terms/*, to: \"/terms/x/:splat\"}",
            "never stops to redirect",
        ),
        (
            "{from: /a, query: {x: 1}, to: /b}, {from: /b, to: /a}",
            "never stops to redirect",
        ),
        (
            "{from: /terms, to: /}",
            "error[path-twice]: `pages/terms.md` already has the path `/terms`",
        ),
        (
            "{from: /a, to: /}, {from: /a/, to: /terms}",
            "error[path-twice]: the path `/a/` is redirected twice",
        ),
        (
            "{from: /a}",
            "error[missing-key]: the redirect from `/a` has no target",
        ),
        (
            "{from: /a, to: /, status: 410}",
            "error[bad-value]: `/a` has status 410 and a target",
        ),
        (
            "{from: /a, to: /, status: 303}",
            "`303` is not a valid value for `status`",
        ),
        (
            "{from: /a, to: \"/x/:splat\"}",
            "`/a` has no `*` that `:splat` can stand for",
        ),
        (
            "{from: \"/a/*\", to: \"/:splat/x\"}",
            "has `:splat` in a place that is not the last segment",
        ),
        (
            "{from: \"/a/*/b\", to: /}",
            "has a `*` that is not its last segment",
        ),
        (
            "{from: \"/a/*\", to: \"/x/:splat\"}",
            "error[broken-link]: the tenant has no page below `/x`",
        ),
        (
            "{from: \"/a?p=1\", to: /}",
            "hint: write the parameters under `query:`",
        ),
        (
            "{from: /robots.txt, to: /}",
            "`/robots.txt` is reserved for rowhouse",
        ),
        (
            "{from: \"/assets/*\", to: /}",
            "`/assets` is reserved for rowhouse",
        ),
    ] {
        let manifest = format!("name: App\nredirects: [{line}]\n");
        site.write("tenants/app/tenant.yaml", manifest).reload();
        let report = site.report_text();
        assert!(report.contains(expected), "{line}: {report}");
        let place = report
            .split("tenants/app/tenant.yaml:2:")
            .nth(1)
            .expect(line);
        assert!(place.contains("hint: "), "{line}: {report}");
    }
    // The feed of a collection is in use; the path of another feed is free.
    let moved = |path: &str| format!("redirects: [{{from: {path}, to: /about}}]\nname: Street");
    for (path, is_taken) in [("/notes/feed.xml", true), ("/feed.xml", false)] {
        let mut site = TestSite::fixture("sites");
        site.edit("tenants/home/tenant.yaml", "name: Street", &moved(path));
        site.reload();
        let message = format!("error[path-twice]: `{path}` is the feed of a collection");
        assert_eq!(site.report_text().contains(&message), is_taken, "{path}");
        assert_eq!(site.report().is_servable(), !is_taken, "{path}");
    }
    // Pages decide where a wildcard applies, and a fallback of all paths is no chain.
    let manifest = "name: App\nredirects: [{from: /*, to: /}, {from: /old/*, to: \"/:splat\"}, {from: /, query: {p: 1}, to: /terms}, {from: /x.php, to: /}]\n";
    site.write("tenants/app/tenant.yaml", manifest).reload();
    assert!(
        !site.report_text().contains("error["),
        "{}",
        site.report_text()
    );
}

#[test]
fn import_prints_manifest_lines_and_names_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("_redirects");
    std::fs::write(&file, "/old/* /new/:splat 302\n/de / 302 Language=de\n").expect("a file");
    let output = Command::new(binary())
        .args(["import", "redirects"])
        .arg(&file)
        .output()
        .expect("a result");
    assert_eq!(output.status.code(), Some(0));
    let lines = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        lines,
        "redirects:\n  - {from: \"/old/*\", to: \"/new/:splat\", status: 302}\n"
    );
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(
        notes.contains("_redirects:2:1: `Language=de` is a condition"),
        "{notes}"
    );
    assert!(notes.contains("hint: "), "{notes}");
}
