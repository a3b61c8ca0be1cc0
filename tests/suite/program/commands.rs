//! The program as its users run it: commands, signals, and the six sites over HTTP.

use std::process::Command;

use rowhouse_tests::{TestServer, binary, expect_text, fixture, run, stderr, stdout, workspace};

#[test]
fn help_is_as_expected() {
    let help = run(&workspace(), &["--help"]);
    assert!(help.status.success());
    expect_text(&stdout(&help), &fixture("help.txt"));
}

#[test]
fn check_finds_nothing_in_six_sites() {
    let check = run(&workspace(), &["check"]);
    assert_eq!(
        check.status.code(),
        Some(0),
        "{}{}",
        stdout(&check),
        stderr(&check)
    );
    assert!(
        stderr(&check).contains("0 errors, 0 warnings"),
        "{}",
        stderr(&check)
    );
}

#[test]
fn check_of_unknown_key_exits_with_1_and_names_place_and_nearest_key() {
    let folder = fixture("errors/unknown-key");
    let check = run(&folder, &["check"]);
    assert_eq!(check.status.code(), Some(1));
    let text = stdout(&check);
    assert!(text.contains("tenants/sample/tenant.yaml:2:1"), "{text}");
    assert!(text.contains("did you mean `tagline`?"), "{text}");
}

#[test]
fn json_report_has_every_field() {
    let folder = fixture("errors/unknown-key");
    let check = run(&folder, &["check", "--format", "json"]);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&check.stdout).expect("JSON");
    let first = list.iter().find(|item| item["line"] == 2).expect("line 2");
    assert_eq!(
        first["file"],
        "tenants/sample/pages/index.md".replace("pages/index.md", "tenant.yaml")
    );
    assert_eq!(
        (&first["column"], &first["severity"]),
        (&1.into(), &"error".into())
    );
    assert_eq!(
        (&first["code"], &first["text"]),
        (&"unknown-key".into(), &"tagine: A typing error".into())
    );
}

#[test]
fn check_of_unknown_tenant_exits_with_2() {
    let check = run(&fixture("sites"), &["check", "ap"]);
    assert_eq!(check.status.code(), Some(2));
    assert!(
        stderr(&check).contains("unknown tenant `ap`: did you mean `app`?"),
        "{}",
        stderr(&check)
    );
}

#[test]
fn missing_folder_is_reported_in_one_sentence() {
    let check = run(&fixture("sites"), &["check", "--tenants", "nowhere"]);
    assert_eq!(check.status.code(), Some(2));
    let text = stderr(&check);
    assert!(text.contains("cannot read the folder `nowhere`"), "{text}");
    assert!(
        text.contains("make a first site with `rowhouse new ID`"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn routes_list_tenant_of_each_page() {
    let routes = run(
        &fixture("sites"),
        &["routes", "--origin", "https://studio.example"],
    );
    expect_text(&stdout(&routes), &fixture("sites/expected/routes.txt"));
}

#[test]
fn routes_name_the_tenant_that_is_left_out() {
    let routes = run(&fixture("errors/unknown-key"), &["routes"]);
    assert_eq!(routes.status.code(), Some(0));
    let text = stderr(&routes);
    assert!(
        text.contains("`sample` has errors and is left out: run `rowhouse check sample`"),
        "{text}"
    );
}

#[test]
fn routes_list_verification_files_at_their_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, text) in [
        (
            "tenant.yaml",
            "name: Corner\ntheme: plain\nfiles:\n  proof.html: assets/proof.html\n",
        ),
        ("pages/index.md", "---\ntitle: Home\n---\nWords.\n"),
        ("assets/proof.html", "proof\n"),
    ] {
        let path = folder.path().join("tenants/corner").join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let routes = stdout(&run(folder.path(), &["routes"]));
    let lines: Vec<&str> = routes
        .lines()
        .filter(|line| line.contains("proof"))
        .collect();
    assert_eq!(lines.len(), 1, "{routes}");
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    let file = "tenants/corner/assets/proof.html";
    assert_eq!(words, ["corner.localhost", "/proof.html", "corner", file]);
}

#[test]
fn environment_variable_replaces_flag() {
    let routes = Command::new(binary())
        .arg("routes")
        .env("ROWHOUSE_ORIGIN", "https://other.example")
        .current_dir(fixture("sites"))
        .output()
        .expect("rowhouse");
    assert!(
        stdout(&routes).contains("app.other.example"),
        "{}",
        stdout(&routes)
    );
}

#[test]
fn empty_environment_variables_count_as_unset() {
    let help = stdout(&run(&workspace(), &["serve", "--help"]));
    let variables = help.split("[env: ").skip(1);
    let variables = variables.map(|rest| rest.split(['=', ']']).next().expect("a name"));
    let variables: Vec<(&str, &str)> = variables.map(|name| (name, "")).collect();
    assert!(variables.len() > 30, "{variables:?}");
    let serve = Command::new(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--tenants", "nowhere"])
        .envs(variables)
        .current_dir(fixture("sites"))
        .output()
        .expect("rowhouse");
    let text = stderr(&serve);
    assert!(text.contains("cannot read the folder `nowhere`"), "{text}");
    assert_eq!(serve.status.code(), Some(2));
}

#[test]
fn version_names_package_version_and_known_commit() {
    let version = stdout(&run(&workspace(), &["--version"]));
    let package = concat!("rowhouse ", env!("CARGO_PKG_VERSION"));
    let commit = version.strip_prefix(package).expect("the version");
    assert!(commit == "\n" || commit.starts_with(" ("), "{version}");
}

#[test]
fn server_serves_every_host_and_prefix_and_ends_on_signal() {
    let mut server = TestServer::start(&fixture("sites"), &[]);
    let domain = server.domain();
    let app = format!("app.{domain}");

    for (host, path) in [
        (&domain, "/app/terms"),
        (&domain, "/apps/app/terms"),
        (&app, "/terms"),
    ] {
        let answer = server.get(host, path);
        assert_eq!(answer.status, 200, "{host}{path}");
        assert!(
            answer
                .text()
                .contains(&format!("href=\"http://{domain}/app/terms\"")),
            "one canonical URL"
        );
    }
    let terms = server.get(&app, "/terms").text();
    assert!(terms.contains("<a href=\"/\">Home</a>"), "{terms}");
    let terms = server.get(&domain, "/apps/app/terms").text();
    assert!(
        terms.contains("<a href=\"/apps/app\">Home</a>"),
        "links stay in their mount: {terms}"
    );

    for host in [
        format!("APP.LocalHost:{}", server.visitors.port()),
        "app.localhost.".to_owned(),
        "app.localhost".to_owned(),
    ] {
        assert_eq!(server.get(&host, "/terms").status, 200, "{host}");
    }
    let stranger = server.get("stranger.example", "/");
    assert_eq!(stranger.status, 421);
    assert!(
        !stranger.text().contains("Street"),
        "an unknown host learns no name"
    );

    let missing = server.get(&domain, "/nowhere");
    assert_eq!(missing.status, 404);
    assert_eq!(missing.header("x-robots-tag"), "noindex");
    assert!(missing.text().contains("Page not found"));
    let missing = server.get(&domain, "/notes/nowhere");
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("There is no such note."));
    let posted = server.request("POST", &domain, "/about", &[("content-length", "0")]);
    assert_eq!(posted.status, 405);
    assert!(
        posted.text().contains("405 Method Not Allowed"),
        "{}",
        posted.text()
    );
    let slash = server.get(&domain, "/about/?a=1");
    assert_eq!(
        (slash.status, slash.header("location")),
        (308, "/about?a=1")
    );

    let page = server.request(
        "GET",
        &domain,
        "/",
        &[("accept-encoding", "br;q=0.5, gzip")],
    );
    assert_eq!(page.header("content-encoding"), "gzip");
    let again = server.request(
        "GET",
        &domain,
        "/",
        &[
            ("accept-encoding", "gzip"),
            ("if-none-match", page.header("etag")),
        ],
    );
    assert_eq!(again.status, 304);

    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "SIGTERM drains and ends with 0");
}

#[test]
fn signal_reloads_without_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("tenants/home/pages");
    std::fs::create_dir_all(&pages).expect("a folder");
    std::fs::write(
        folder.path().join("tenants/home/tenant.yaml"),
        "name: Home\nroot: true\n",
    )
    .expect("a file");
    std::fs::write(pages.join("index.md"), "---\ntitle: Before\n---\n").expect("a file");
    let server = TestServer::start(folder.path(), &[]);
    let domain = server.domain();
    assert!(server.get(&domain, "/").text().contains("Before"));
    std::fs::write(pages.join("index.md"), "---\ntitle: After\n---\n").expect("a file");
    server.signal("HUP");
    let begin = std::time::Instant::now();
    while !server.get(&domain, "/").text().contains("After") {
        assert!(begin.elapsed().as_secs() < 30, "timeout: the change");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn every_code_is_explained() {
    for code in content::report::Code::ALL {
        let explained = run(&workspace(), &["check", "--explain", code.as_str()]);
        assert!(explained.status.success());
        assert!(stdout(&explained).contains(code.explanation()));
    }
    let stranger = run(&workspace(), &["check", "--explain", "unknown-kye"]);
    assert_eq!(stranger.status.code(), Some(2));
    assert!(
        stderr(&stranger).contains("did you mean `unknown-key`?"),
        "{}",
        stderr(&stranger)
    );
}

#[test]
fn sarif_has_rule_and_region_for_every_result() {
    let check = run(
        &fixture("errors/unknown-key"),
        &["check", "--format", "sarif"],
    );
    let log: serde_json::Value = serde_json::from_slice(&check.stdout).expect("JSON");
    // The parts that the schema of SARIF 2.1.0 requires of a log, a run, a driver, a rule and a result.
    assert_eq!(log["version"], "2.1.0");
    assert!(
        log["$schema"]
            .as_str()
            .is_some_and(|text| text.ends_with("sarif-2.1.0.json"))
    );
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "rowhouse");
    for rule in driver["rules"].as_array().expect("rules") {
        assert!(
            rule["id"].is_string() && rule["shortDescription"]["text"].is_string(),
            "{rule}"
        );
    }
    assert!(
        ["utf16CodeUnits", "unicodeCodePoints"]
            .contains(&run["columnKind"].as_str().expect("a kind"))
    );
    let results = run["results"].as_array().expect("results");
    assert!(!results.is_empty());
    for result in results {
        assert!(result["message"]["text"].is_string(), "{result}");
        assert!(
            ["none", "note", "warning", "error"]
                .contains(&result["level"].as_str().expect("a level"))
        );
        let artifact = &result["locations"][0]["physicalLocation"]["artifactLocation"];
        let uri = artifact["uri"].as_str().expect("a URI");
        assert!(
            !uri.contains([' ', '\\']) && !uri.starts_with('/'),
            "{uri} is no relative URI reference"
        );
        let index = result["ruleIndex"].as_u64().expect("an index");
        assert_eq!(
            run["tool"]["driver"]["rules"][usize::try_from(index).expect("small")]["id"],
            result["ruleId"]
        );
    }
    let region = &results[0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (
            &region["startLine"],
            &region["startColumn"],
            &region["endColumn"]
        ),
        (&3.into(), &1.into(), &11.into())
    );
}

#[test]
fn new_tenant_passes_check_and_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("tenants")).expect("a folder");
    let new = run(folder.path(), &["new", "corner-shop"]);
    assert!(new.status.success(), "{}", stderr(&new));
    assert!(
        stderr(&new).contains("http://corner-shop.localhost:8080/"),
        "{}",
        stderr(&new)
    );
    let check = run(folder.path(), &["check"]);
    assert_eq!(check.status.code(), Some(0), "{}", stdout(&check));
    let text = stdout(&check);
    let (company, text) = text.split_once("\n\n").expect("a first warning");
    assert!(company.starts_with("warning[missing-company]"), "{company}");
    let warnings = text.matches("warning[").count();
    assert!(warnings > 10, "{text}");
    assert_eq!(
        warnings,
        text.matches("warning[fill-in]").count(),
        "only what is the owner's:\n{text}"
    );
    let line =
        "warning[fill-in]: tenants/corner-shop/pages/index.md:23: - image: screens/first.svg\n";
    assert!(text.contains(line), "a line each, with its place:\n{text}");
    assert_eq!(text.lines().count(), warnings + 3, "and one hint:\n{text}");
    let routes = stdout(&run(folder.path(), &["routes"]));
    for path in [
        "/corner-shop",
        "/corner-shop/privacy",
        "/corner-shop/terms",
        "/corner-shop/support",
    ] {
        assert!(routes.contains(path), "{path} is not in\n{routes}");
    }
    let again = run(folder.path(), &["new", "corner-shop"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        stderr(&again).contains("already exists"),
        "{}",
        stderr(&again)
    );
    let bad = run(folder.path(), &["new", "Corner Shop"]);
    assert!(
        stderr(&bad).contains("`Corner Shop` is not a valid tenant id"),
        "{}",
        stderr(&bad)
    );
}

#[test]
fn schemas_have_every_key_of_manifest() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = run(folder.path(), &["schema", "schemas"]);
    assert!(schema.status.success(), "{}", stderr(&schema));
    let text = std::fs::read_to_string(folder.path().join("schemas/tenant.schema.json"))
        .expect("a schema");
    let schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        schema["properties"]["name"]["description"],
        "The site's name as visitors read it."
    );
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], serde_json::json!(["name"]));
}

#[test]
fn each_request_is_one_line_of_access_log_without_client_text() {
    let mut server = TestServer::start(&fixture("sites"), &["--access-log", "json"]);
    let app = format!("app.{}", server.domain());
    assert_eq!(
        server
            .request(
                "GET",
                &app,
                "/terms?q=invented",
                &[("accept-encoding", "gzip")]
            )
            .status,
        200
    );
    assert_eq!(server.get(&app, "/invented").status, 404);
    assert_eq!(server.get("invented.example", "/").status, 421);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let log = server.log();
    let mut lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .filter(|line: &serde_json::Value| line["duration_us"].is_u64())
        .collect();
    // Each worker writes its lines independently.
    lines.sort_by_key(|line| line["status"].as_u64());
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                &line["tenant"],
                &line["route"],
                &line["status"],
                &line["encoding"],
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (&"app".into(), &"/terms".into(), &200.into(), &"gzip".into()),
            (&"app".into(), &"/*".into(), &404.into(), &"identity".into()),
            (
                &"_unknown".into(),
                &"".into(),
                &421.into(),
                &"identity".into()
            ),
        ]
    );
    assert!(!log.contains("invented"), "{log}");
}

#[test]
fn access_log_is_off_by_default() {
    let server = TestServer::start(&fixture("sites"), &[]);
    assert_eq!(server.get(&server.domain(), "/").status, 200);
    assert!(!server.log().contains("duration_us"), "{}", server.log());
}

#[test]
fn admin_listener_responds_only_to_its_own_names() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let status = |host: &str| server.get_admin_as(host, "/tenants");
    for host in [
        "evil.example",
        "evil.example:8081",
        "localhost.evil.example",
        "127.0.0.1.nip.example",
    ] {
        let answer = status(host);
        assert_eq!(answer.status, 421, "{host}");
        let text = answer.text();
        assert!(
            text.contains("--admin-host") && text.lines().count() == 1,
            "{text}"
        );
    }
    for host in [
        "localhost",
        "LOCALHOST.:8081",
        "127.0.0.1",
        "10.1.2.3:8081",
        "[::1]:8081",
    ] {
        assert_eq!(status(host).status, 200, "{host}");
    }
    let server = TestServer::start(
        &fixture("sites"),
        &[
            "--admin-host",
            "Ops.example",
            "--admin-host",
            "rowhouse.monitoring.svc",
        ],
    );
    for host in [
        "ops.example",
        "OPS.example:8081",
        "rowhouse.monitoring.svc",
        "localhost",
    ] {
        assert_eq!(server.get_admin_as(host, "/tenants").status, 200, "{host}");
    }
    assert_eq!(server.get_admin_as("evil.example", "/tenants").status, 421);
    let refused = run(
        &fixture("sites"),
        &["serve", "--admin-host", "ops.example:8081"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("--admin-host"),
        "{}",
        stderr(&refused)
    );
}
