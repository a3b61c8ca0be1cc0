//! Visits by day: what counts as a view, what survives a restart, and what a removed tenant keeps.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, binary};
use serde_json::Value as Json;

use crate::state::stateful_deployment::StatefulDeployment;

const TIMEOUT: Duration = Duration::from_secs(60);
const FIREFOX: &str =
    "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0";

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the exit code and the output of `rowhouse visits`.
fn visits(server: &TestServer, tenant: &str, flags: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .args(["visits", tenant, "--admin", &server.admin.to_string()])
        .args(flags)
        .output()
        .expect("rowhouse");
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    (output.status.code(), text)
}

/// Returns the sum of all days as JSON.
fn total(server: &TestServer) -> Json {
    let (code, text) = visits(server, "app", &["--format", "json"]);
    assert_eq!(code, Some(0), "{text}");
    let report: Json = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["time_zone"], "UTC");
    report["total"].clone()
}

/// Requests a page of `app`, and returns the status.
fn request(server: &TestServer, method: &str, path: &str, fields: &[&str]) -> u16 {
    let pairs = fields.iter().filter_map(|field| field.split_once(": "));
    let pairs: Vec<(&str, &str)> = pairs.collect();
    let domain = server.domain();
    server.request(method, &domain, path, &pairs).status
}

fn wait_for_views(server: &TestServer, views: u64) {
    wait("the views", || {
        total(server)["views"].as_u64() >= Some(views)
    });
}

#[test]
fn views_bots_referrers_missing_pages_and_bytes_survive_a_restart() {
    let deployment = StatefulDeployment::new();
    let mut server = deployment.serve();
    let get = |path: &str, fields: &[&str]| request(&server, "GET", path, fields);
    let own = format!("referer: http://{}/app", server.domain());
    // Not views: a bot, no user agent, a page fetched ahead, HEAD, a missing page, a file.
    assert_eq!(
        get(
            "/app/terms",
            &["user-agent: curl/8.5.0", "referer: https://bot.example/"]
        ),
        200
    );
    assert_eq!(get("/app/terms", &[]), 200);
    assert_eq!(get("/app/terms", &[FIREFOX, "sec-purpose: prefetch"]), 200);
    assert_eq!(request(&server, "HEAD", "/app/terms", &[FIREFOX]), 200);
    assert_eq!(get("/app/nowhere", &[FIREFOX]), 404);
    assert_eq!(get("/robots.txt", &[FIREFOX]), 200);
    // Views.
    let news = "referer: https://News.example:444/article?reader=secret";
    assert_eq!(get("/app/terms", &[FIREFOX, news]), 200);
    assert_eq!(get("/app/terms", &[FIREFOX, &own]), 200);
    assert_eq!(get("/app/terms", &[FIREFOX, "if-none-match: *"]), 304);
    assert_eq!(get("/app", &[FIREFOX, "referer: http://192.0.2.1/"]), 200);
    wait_for_views(&server, 4);

    let check = |total: &Json| {
        for (name, expected) in [
            ("views", 4),
            ("fetched_ahead", 1),
            ("bots", 2),
            ("not_found", 1),
        ] {
            assert_eq!(total[name], expected, "{name}: {total:#}");
        }
        assert!(total["bytes"].as_u64() > Some(1_000), "{total:#}");
        let pages = serde_json::json!([{"name": "/terms", "views": 3}, {"name": "/", "views": 1}]);
        assert_eq!(total["pages"], pages);
        let hosts = serde_json::json!([{"name": "news.example", "views": 1}]);
        assert_eq!(total["referrers"], hosts);
    };
    let before = total(&server);
    check(&before);
    let (code, text) = visits(&server, "app", &["--days", "2"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("views by referring host\nnews.example"),
        "{text}"
    );
    let console = server.get_admin("/sites/app").text();
    assert!(
        console.contains("Page views per day since 30 days ago: 4 in all"),
        "{console}"
    );
    assert!(
        console.contains(r#"<th scope="row">news.example</th><td>1</td>"#),
        "{console}"
    );
    assert_eq!(visits(&server, "home", &[]).0, Some(0));
    let (code, text) = visits(&server, "missing", &[]);
    assert_eq!(
        (code, text.contains("unknown tenant `missing`")),
        (Some(1), true),
        "{text}"
    );

    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    // Nothing about the visitors is in the state.
    let state = deployment.path("state");
    let found = Command::new("grep")
        .args(["-raE", "Firefox/143|reader=secret|192\\.0\\.2\\.1"])
        .arg(&state)
        .output()
        .expect("grep");
    assert!(
        found.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&found.stdout)
    );
    assert!(
        deployment
            .tables()
            .iter()
            .any(|table| table.starts_with("visits."))
    );

    let server = deployment.serve();
    check(&total(&server));
    assert_eq!(total(&server)["bytes"], before["bytes"]);
    assert_eq!(request(&server, "GET", "/app/terms", &[FIREFOX]), 200);
    wait_for_views(&server, 5);
}

#[test]
fn removed_tenant_keeps_its_visits_for_its_time() {
    let deployment = StatefulDeployment::new();
    let serve = |kept| {
        let flags = ["--state", "state", "--keep-removed", kept];
        TestServer::start(&deployment.path(""), &flags)
    };
    let server = serve("30d");
    assert_eq!(request(&server, "GET", "/app/terms", &[FIREFOX]), 200);
    wait_for_views(&server, 1);
    wait("its persisted folder", || {
        let tables = deployment.tables();
        tables.iter().any(|table| table == "good.tenant.app")
    });
    fs::rename(deployment.path("tenants/app"), deployment.path("away")).expect("moved");
    wait("the removal", || {
        request(&server, "GET", "/app/terms", &[]) == 404
    });
    assert_eq!(total(&server)["views"], 1);
    drop_after_flush(server);

    let server = serve("1s");
    wait("the end of its history", || {
        visits(&server, "app", &[]).0 == Some(1)
    });
    drop_after_flush(server);
    let server = serve("30d");
    assert_eq!(visits(&server, "app", &[]).0, Some(1));
}

/// Ends a server so that it writes its state.
fn drop_after_flush(mut server: TestServer) {
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "{}", server.log());
}
