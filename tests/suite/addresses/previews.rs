//! Previews: a folder `<id>@<label>` is served at `<label>--<id>.<domain>` only, is in no list, and changes nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowhouse_tests::{Answer, TestServer, copy, stderr, stdout};

use crate::state::stateful_deployment::StatefulDeployment;

const TIMEOUT: Duration = Duration::from_secs(60);
const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "OPTIONS"];

/// Copies the tenant `app` to a preview with other terms.
fn add_preview(deployment: &StatefulDeployment, id: &str) {
    let preview = deployment.path(&format!("tenants/{id}"));
    copy(&deployment.path("tenants/app"), &preview);
    write_terms(deployment, id, "Spring terms");
}

fn write_terms(deployment: &StatefulDeployment, id: &str, text: &str) {
    let page = format!("---\ntitle: Terms\naliases: [/rules]\n---\n{text}.\n");
    deployment.write(&format!("tenants/{id}/pages/terms.md"), &page);
}

fn host_of(server: &TestServer, label: &str) -> String {
    format!("{label}--app.{}", server.domain())
}

fn terms(server: &TestServer, label: &str) -> Answer {
    server.get(&host_of(server, label), "/terms")
}

fn wait(server: &TestServer, what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < TIMEOUT,
            "timeout: {what}\n{}",
            server.log()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that the live tenants have not changed once no change is pending: a page can be live a moment before its change is complete.
fn assert_unchanged(server: &TestServer, before: &BTreeMap<String, String>) {
    wait(server, "the end of all changes", || {
        !server.get_admin("/readyz").text().contains("pending")
    });
    assert_eq!(live(server), *before);
}

/// Returns what visitors and search engines get from the live tenants, and the releases and alarms that operators get.
fn live(server: &TestServer) -> BTreeMap<String, String> {
    let domain = server.domain();
    let app = format!("app.{domain}");
    let pages = [
        (&domain, "/"),
        (&domain, "/about"),
        (&domain, "/notes"),
        (&domain, "/notes/feed.xml"),
        (&domain, "/sitemap.xml"),
        (&domain, "/robots.txt"),
        (&domain, "/search.json"),
        (&domain, "/app"),
        (&domain, "/app/terms"),
        (&domain, "/apps/app/terms"),
        (&app, "/terms"),
        (&app, "/robots.txt"),
        (&app, "/sitemap.xml"),
        (&app, "/search.json"),
    ];
    let pages = pages.into_iter().map(|(host, path)| {
        let answer = server.get(host, path);
        if answer.status == 200 {
            assert_eq!(answer.header("x-robots-tag"), "", "{host}{path}");
        }
        let text = format!("{} {}", answer.status, answer.text());
        (format!("{host}{path}"), text)
    });
    let admin = ["/readyz", "/tenants/app/releases", "/tenants/home/releases"];
    let admin = admin.map(|path| {
        let text = server.get_admin(path).text();
        let lines = text.lines().filter(|line| !line.starts_with("app@"));
        (path.to_owned(), lines.collect::<Vec<_>>().join("\n"))
    });
    let metrics = server.get_admin("/metrics").text();
    let tenants = metrics
        .lines()
        .filter(|line| line.starts_with("rowhouse_tenants{"));
    let tenants = ("tenants".to_owned(), tenants.collect::<Vec<_>>().join("\n"));
    pages.chain(admin).chain([tenants]).collect()
}

/// Returns the line of a tenant in `/tenants`.
fn line(server: &TestServer, id: &str) -> serde_json::Value {
    let lines: Vec<serde_json::Value> =
        serde_json::from_slice(&server.get_admin("/tenants").body).expect("JSON");
    let line = lines.into_iter().find(|line| line["id"] == id);
    line.unwrap_or_default()
}

fn state_of(server: &TestServer, id: &str) -> String {
    line(server, id)["state"].as_str().unwrap_or("").to_owned()
}

#[test]
fn preview_is_served_at_its_host_only_and_never_indexed() {
    let deployment = StatefulDeployment::new();
    add_preview(&deployment, "app@spring");
    let server = deployment.serve();
    let (domain, host) = (server.domain(), host_of(&server, "spring"));
    let page = terms(&server, "spring");
    assert_eq!(page.status, 200);
    for expected in [
        "Spring terms".to_owned(),
        format!("<link rel=\"canonical\" href=\"http://{host}/terms\">"),
        "<meta name=\"robots\" content=\"noindex\">".to_owned(),
    ] {
        assert!(
            page.text().contains(&expected),
            "{expected}: {}",
            page.text()
        );
    }
    let front = server.get(&host, "/").text();
    let picture = front.split('"').find(|part| part.ends_with(".svg"));
    let paths = [
        ("/", 200),
        ("/terms", 200),
        ("/terms.md", 200),
        ("/terms/", 308),
        ("/rules", 200),
        ("/missing", 404),
        ("/%zz", 400),
        ("/robots.txt", 200),
        ("/favicon.ico", 200),
        (picture.expect("a picture"), 200),
    ];
    for (path, status) in paths {
        let answer = server.get(&host, path);
        assert_eq!(answer.status, status, "{path}");
        for method in METHODS {
            let answer = server.request(method, &host, path, &[]);
            assert_eq!(answer.header("x-robots-tag"), "noindex", "{method} {path}");
        }
    }
    let known = [("if-none-match", page.header("etag"))];
    let unchanged = server.request("GET", &host, "/terms", &known);
    assert_eq!(
        (unchanged.status, unchanged.header("x-robots-tag")),
        (304, "noindex")
    );
    let sitemap = server.get(&host, "/sitemap.xml").text();
    assert!(!sitemap.contains("<loc>"), "{sitemap}");
    // Neither its folder nor the aliases of its manifest are addresses.
    for path in [
        "/app@spring/terms",
        "/app%40spring/terms",
        "/spring--app/terms",
    ] {
        assert_eq!(server.get(&domain, path).status, 404, "{path}");
    }
    for path in ["/app/terms", "/apps/app/terms"] {
        let text = server.get(&domain, path).text();
        assert!(text.contains("scope"), "{path}: {text}");
    }
    let other = format!("spring.app.{domain}");
    assert_eq!(server.get(&other, "/terms").status, 421);
}

#[test]
fn preview_changes_no_other_tenant_and_goes_with_its_folder() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    wait(&server, "releases", || {
        ["app", "home"].iter().all(|tenant| {
            let releases = server.get_admin(&format!("/tenants/{tenant}/releases"));
            releases.text().contains("\"number\":1")
        })
    });
    let before = live(&server);
    add_preview(&deployment, "app@spring");
    wait(&server, "a preview", || {
        terms(&server, "spring").text().contains("Spring terms")
    });
    assert_unchanged(&server, &before);
    write_terms(&deployment, "app@spring", "Summer terms");
    wait(&server, "a change", || {
        terms(&server, "spring").text().contains("Summer terms")
    });
    assert_unchanged(&server, &before);
    // A broken preview keeps its last valid pages, and a new one has none. No alert calls an operator for either.
    add_preview(&deployment, "app@autumn");
    for id in ["app@spring", "app@autumn"] {
        deployment.write(&format!("tenants/{id}/tenant.yaml"), "name: [\n");
    }
    wait(&server, "broken previews", || {
        state_of(&server, "app@spring") == "degraded" && !state_of(&server, "app@autumn").is_empty()
    });
    assert!(terms(&server, "spring").text().contains("Summer terms"));
    assert_unchanged(&server, &before);
    for id in ["app@spring", "app@autumn"] {
        fs::remove_dir_all(deployment.path(&format!("tenants/{id}"))).expect("a folder");
    }
    wait(&server, "the removal", || {
        ["spring", "autumn"]
            .iter()
            .all(|label| terms(&server, label).status == 421)
    });
    assert_unchanged(&server, &before);
}

#[test]
fn preview_is_in_no_list_of_sites() {
    let deployment = StatefulDeployment::new();
    add_preview(&deployment, "app@spring");
    let manifest = deployment.path("tenants/home/tenant.yaml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let text = format!("{text}    - {{tenant: app@spring, name: Zanzibar}}\n");
    fs::write(manifest, text).expect("a manifest");
    let server = deployment.serve();
    let home = server.get(&server.domain(), "/about").text();
    assert!(home.contains("href=\"/app\""), "{home}");
    let sitemap = server.get(&server.domain(), "/sitemap.xml").text();
    for text in [home, sitemap] {
        assert!(
            !text.contains("Zanzibar") && !text.contains("spring"),
            "{text}"
        );
    }
}

#[test]
fn preview_is_protected_by_its_own_rule_or_by_that_of_its_tenant() {
    let deployment = StatefulDeployment::new();
    add_preview(&deployment, "app@spring");
    add_preview(&deployment, "app@autumn");
    let printed = rowhouse_tests::run(
        &deployment.path(""),
        &["token", "client", "--tenant", "app@spring"],
    );
    let printed = stdout(&printed);
    let token = printed
        .lines()
        .find_map(|line| line.strip_prefix("token: "));
    let token = token.expect("a token").to_owned();
    let rules = printed[printed.find("access:").expect("the lines")..].replace("\n\n", "\n");
    let rules = format!("root: home\n{rules}\n");
    deployment.write("tenants/deployment.yaml", &rules);
    let server = deployment.serve();
    let credential = format!("Basic {}", STANDARD.encode(format!("client:{token}")));
    let opened = |label: &str| {
        let fields = [("authorization", &*credential)];
        server.request("GET", &host_of(&server, label), "/terms", &fields)
    };
    let refused = terms(&server, "spring");
    assert_eq!(refused.status, 401);
    assert!(!refused.text().contains("Spring"), "{}", refused.text());
    let page = opened("spring");
    assert!(page.text().contains("Spring terms"), "{}", page.text());
    assert_eq!(page.header("cache-control"), "private, no-cache");
    assert_eq!(page.header("x-robots-tag"), "noindex");
    assert_eq!(terms(&server, "autumn").status, 200);
    let app = || server.get(&server.domain(), "/app/terms").status;
    assert_eq!(app(), 200);
    deployment.write(
        "tenants/deployment.yaml",
        &rules.replace("app@spring:", "app:"),
    );
    wait(&server, "the protection of the tenant", || app() == 401);
    for label in ["spring", "autumn"] {
        assert_eq!(terms(&server, label).status, 401, "{label}");
        assert_eq!(opened(label).status, 200, "{label}");
    }
}

#[test]
fn old_preview_ends_after_a_warning_until_its_folder_changes() {
    let deployment = StatefulDeployment::new();
    add_preview(&deployment, "app@spring");
    let folder = deployment.path("");
    let server = TestServer::start(&folder, &["--state", "state", "--preview-max-age", "7s"]);
    let host = host_of(&server, "spring");
    let live = server.get(&server.domain(), "/app/terms").text();
    wait(&server, "a warning", || {
        server.log().contains("preview ends soon")
    });
    wait(&server, "the end", || {
        terms(&server, "spring").status == 410
    });
    assert!(
        server
            .log()
            .contains("preview is older than --preview-max-age")
    );
    for path in ["/", "/terms", "/missing", "/robots.txt", "/rules"] {
        for method in METHODS {
            let answer = server.request(method, &host, path, &[]);
            assert_eq!(answer.status, 410, "{method} {path}");
            assert_eq!(answer.header("x-robots-tag"), "noindex", "{method} {path}");
            assert!(!answer.text().contains("Spring"), "{}", answer.text());
        }
    }
    assert_eq!(state_of(&server, "app@spring"), "expired");
    assert_eq!(server.get(&server.domain(), "/app/terms").text(), live);
    assert_eq!(state_of(&server, "app"), "live");
    assert!(!server.get_admin("/readyz").text().contains("alarm"));
    write_terms(&deployment, "app@spring", "Summer terms");
    wait(&server, "a new begin", || {
        terms(&server, "spring").text().contains("Summer terms")
    });
    wait(&server, "another end", || {
        terms(&server, "spring").status == 410
    });
    drop(server);
    // The age is that of the folder, not of the server.
    let server = TestServer::start(&folder, &["--state", "state", "--preview-max-age", "7s"]);
    assert_eq!(terms(&server, "spring").status, 410);
    drop(server);
    let server = deployment.serve();
    assert_eq!(terms(&server, "spring").status, 200);
}

#[test]
fn console_and_tenants_list_previews_with_their_age() {
    let deployment = StatefulDeployment::new();
    add_preview(&deployment, "app@spring");
    let server = deployment.serve();
    let all = server.get_admin("/").text();
    let list = server.get_admin("/?show=previews").text();
    let site = server.get_admin("/sites/app@spring").text();
    let is_row = |text: &str, id: &str| text.contains(&format!("href=\"/sites/{id}\""));
    assert!(is_row(&all, "app@spring") && is_row(&all, "app"), "{all}");
    assert!(
        is_row(&list, "app@spring") && !is_row(&list, "app"),
        "{list}"
    );
    for text in [&list, &site] {
        assert!(text.contains("data-state=\"preview\""), "{text}");
        assert!(text.to_lowercase().contains("changed <time"), "{text}");
        assert!(text.contains("ends <time"), "{text}");
    }
    let line = line(&server, "app@spring");
    let preview = &line["preview"];
    assert_eq!(preview["of"], "app", "{line}");
    let [changed, ends] = ["changed", "ends"].map(|key| preview[key].as_u64().expect("a time"));
    assert_eq!(ends - changed, 14 * 24 * 60 * 60);
    assert!(
        server
            .get_admin("/tenants")
            .text()
            .matches("\"preview\"")
            .count()
            == 1
    );
}

#[test]
fn preview_has_releases_of_its_own() {
    let deployment = StatefulDeployment::new();
    add_preview(&deployment, "app@spring");
    let server = deployment.serve();
    let admin = server.admin.to_string();
    let run = |arguments: &[&str]| {
        let flags = ["--admin", &admin];
        rowhouse_tests::run(&deployment.path(""), &[arguments, &flags].concat())
    };
    write_terms(&deployment, "app@spring", "Summer terms");
    wait(&server, "a second release", || {
        let list = stdout(&run(&["releases", "app@spring", "--format", "json"]));
        list.contains("\"number\":2") || list.contains("\"number\": 2")
    });
    let done = run(&["rollback", "app@spring", "1"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(terms(&server, "spring").text().contains("Spring terms"));
    let list = stdout(&run(&["releases", "app", "--format", "json"]));
    assert_eq!(list.matches("\"number\"").count(), 1, "{list}");
    drop(server);
    let server = deployment.serve();
    assert!(terms(&server, "spring").text().contains("Spring terms"));
}

#[test]
fn check_says_what_is_wrong_with_the_name_of_a_preview() {
    let deployment = StatefulDeployment::new();
    for id in ["app@Spring", "app@v2", "app@", "gone@spring", "app@next"] {
        add_preview(&deployment, id);
    }
    let long = format!("app@{}", "x".repeat(59));
    add_preview(&deployment, &long);
    let checked = rowhouse_tests::run(&deployment.path(""), &["check"]);
    let text = [stdout(&checked), stderr(&checked)].concat();
    assert_eq!(checked.status.code(), Some(1), "{text}");
    for expected in [
        "error[bad-folder-name]: `app@Spring` is not a valid name of a preview: the label after `@` must consist of a-z, 0-9 and inner hyphens\n--> tenants/app@Spring\n",
        "error[bad-folder-name]: `app@v2` is not a valid name of a preview: a label of two characters makes a reserved host name\n--> tenants/app@v2\n",
        "its host label would have 64 characters; the limit is 63",
        "hint: rename the folder, for example to `app@next`",
        "hint: rename the folder, with a label of one, or of three or more characters, for example to `app@next`",
        "hint: rename the folder, with a label of at most 58 characters, for example to `app@next`",
        "warning[unknown-tenant]: the preview shows the tenant `gone`, which does not exist\n--> tenants/gone@spring\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let server = TestServer::start(&deployment.path(""), &[]);
    assert_eq!(terms(&server, "next").status, 200);
    assert_eq!(server.get(&server.domain(), "/app/terms").status, 200);
}

#[test]
fn export_is_the_same_with_and_without_previews() {
    let deployment = StatefulDeployment::new();
    let export = |to: &str| {
        let exported = rowhouse_tests::run(&deployment.path(""), &["export", to]);
        let said = stderr(&exported);
        assert!(exported.status.success(), "{said}");
        files(&deployment.path(to))
    };
    let before = export("before");
    add_preview(&deployment, "app@spring");
    add_preview(&deployment, "app@Autumn");
    add_preview(&deployment, "app@broken");
    deployment.write("tenants/app@broken/tenant.yaml", "name: [\n");
    assert!(export("after") == before);
}

/// Returns the files below a folder by their paths.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").display();
                found.insert(name.to_string(), fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn new_names_the_command_that_makes_a_preview() {
    let deployment = StatefulDeployment::new();
    let refused = rowhouse_tests::run(&deployment.path(""), &["new", "app@spring"]);
    assert_ne!(refused.status.code(), Some(0));
    let said = stderr(&refused);
    assert!(
        said.contains("run `cp -R tenants/app tenants/app@spring`"),
        "{said}"
    );
    assert!(!deployment.path("tenants/app@spring").exists());
}
