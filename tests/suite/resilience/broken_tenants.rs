//! A broken tenant of every fixture changes neither the bytes nor the response times of the six tenants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{Answer, TestServer, Visitor, copy, fixture, workspace};
use tempfile::TempDir;

/// Far more than a change takes, since the tests share their machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest response time on a busy machine that other tests share.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(20);
/// The least number of responses while a tenant is added and removed, which takes hundreds of milliseconds.
const ANSWERS: usize = 10;

/// Returns every page of the six tenants, by host and path.
fn pages(folder: &Path, origin: &str) -> Vec<(String, String)> {
    let routes = std::process::Command::new(rowhouse_tests::binary())
        .args(["routes", "--format", "json", "--origin", origin])
        .current_dir(folder)
        .output()
        .expect("rowhouse");
    let routes: Vec<serde_json::Value> = serde_json::from_slice(&routes.stdout).expect("JSON");
    let text =
        |route: &serde_json::Value, key: &str| route[key].as_str().expect("a text").to_owned();
    let both = |route: &serde_json::Value| (text(route, "host"), text(route, "path"));
    routes.iter().map(both).collect()
}

fn ask(visitor: &mut Visitor, port: u16, page: &(String, String)) -> Answer {
    let host = format!("{}:{port}", page.0);
    let answer = visitor.get(&host, &page.1, &["accept-encoding: gzip"]);
    answer.unwrap_or_else(|error| panic!("{host}{}: {error}", page.1))
}

/// Returns the state of each tenant, and whether it has findings.
fn states(server: &TestServer) -> BTreeMap<String, String> {
    let tenants = server.get_admin("/tenants").text();
    let tenants: Vec<serde_json::Value> = serde_json::from_str(&tenants).expect("JSON");
    let state =
        |tenant: &serde_json::Value, key: &str| tenant[key].as_str().expect("a text").to_owned();
    let states = tenants.iter();
    let states = states.map(|tenant| (state(tenant, "id"), state(tenant, "state")));
    // A tenant whose folder was removed is listed for a day.
    states.filter(|(_, state)| state != "removed").collect()
}

fn wait_until(server: &TestServer, what: &str, is_so: impl Fn(&BTreeMap<String, String>) -> bool) {
    let begin = Instant::now();
    loop {
        let states = states(server);
        if is_so(&states) {
            return;
        }
        assert!(
            begin.elapsed() < TIMEOUT,
            "{what}: {states:?}\n{}",
            server.log()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn broken_tenants_change_nothing_for_others() {
    let root = TempDir::new().expect("a folder");
    for part in ["tenants", "themes"] {
        copy(&workspace().join(part), &root.path().join(part));
    }
    let server = TestServer::start(root.path(), &[]);
    let port = server.visitors.port();
    let pages = pages(root.path(), &format!("http://{}", server.domain()));
    let mut visitor = Visitor::new(server.visitors);
    let before: Vec<Answer> = pages
        .iter()
        .map(|page| ask(&mut visitor, port, page))
        .collect();
    assert!(before.len() > 100 && before.iter().all(|answer| answer.status == 200));
    let own: BTreeSet<String> = states(&server).into_keys().collect();
    assert_eq!(own.len(), 6);

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // A failed assertion must end the visitor, too; otherwise the scope waits for it.
        let _stop = Stop(&stop);
        let watch = scope.spawn(|| slowest(server.visitors, port, &pages, &stop));
        let mut kinds = 0;
        for case in fs::read_dir(fixture("errors")).expect("the fixtures") {
            let case = case.expect("a fixture").path();
            let kind = case
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let names = add_fixture(&case, &kind, root.path());
            wait_until(&server, &kind, |states| {
                states.keys().any(|name| !own.contains(name))
            });
            for (page, before) in pages.iter().zip(&before) {
                let now = ask(&mut visitor, port, page);
                let same = now.status == 200
                    && now.body == before.body
                    && now.header("etag") == before.header("etag");
                assert!(same, "{kind} changed {}{}", page.0, page.1);
            }
            for name in names {
                fs::remove_dir_all(root.path().join(name)).expect("a removed folder");
            }
            wait_until(&server, &kind, |states| {
                states.keys().eq(own.iter()) && states.values().all(|state| state == "live")
            });
            kinds += 1;
        }
        assert!(kinds >= 30, "only {kinds} kinds");
        stop.store(true, Ordering::SeqCst);
        let (answers, slowest, page) = watch.join().expect("a visitor");
        assert!(slowest < MAX_RESPONSE_TIME, "{page} took {slowest:?}");
        assert!(answers >= kinds * ANSWERS, "only {answers} answers");
    });
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Adds a fixture's tenants to the six under new names, with its theme if it has one. Returns the new names, tenants first.
fn add_fixture(case: &Path, kind: &str, root: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let themes = case.join("themes");
    if themes.is_dir() {
        let theme = format!("themes/x-{kind}");
        let only = fs::read_dir(&themes).expect("the themes").next();
        let only = only.expect("a theme").expect("a theme").path();
        copy(&only, &root.join(&theme));
        names.push(theme);
    }
    for tenant in fs::read_dir(case.join("tenants")).expect("tenants") {
        let tenant = tenant.expect("a tenant").path();
        if !tenant.is_dir() {
            // Does not copy the operator's file.
            continue;
        }
        let name = tenant
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let name = format!("tenants/x-{kind}-{name}");
        let beside = root.join("beside");
        copy(&tenant, &beside);
        if themes.is_dir() {
            let manifest = beside.join("tenant.yaml");
            let text = fs::read_to_string(&manifest).expect("a manifest");
            let lines = text.lines().filter(|line| !line.starts_with("theme:"));
            let text = lines.collect::<Vec<_>>().join("\n");
            fs::write(&manifest, format!("{text}\ntheme: x-{kind}\n")).expect("a file");
        }
        fs::rename(beside, root.join(&name)).expect("a moved folder");
        names.insert(0, name);
    }
    names
}

/// Requests pages until stopped. Returns the number of responses, and the longest time with its page.
fn slowest(
    address: std::net::SocketAddr,
    port: u16,
    pages: &[(String, String)],
    stop: &AtomicBool,
) -> (usize, Duration, String) {
    let mut visitor = Visitor::new(address);
    let mut answers = 0;
    let mut slowest = (Duration::ZERO, String::new());
    for page in pages.iter().cycle() {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let begin = Instant::now();
        ask(&mut visitor, port, page);
        answers += 1;
        if begin.elapsed() > slowest.0 {
            slowest = (begin.elapsed(), format!("{}{}", page.0, page.1));
        }
        thread::sleep(Duration::from_millis(2));
    }
    (answers, slowest.0, slowest.1)
}

#[test]
fn slow_tenant_delays_no_other_tenant() {
    const PAGES: usize = 600;
    let root = TempDir::new().expect("a folder");
    for part in ["tenants", "themes"] {
        copy(&fixture("sites").join(part), &root.path().join(part));
    }
    let large = root.path().join("tenants/large");
    fs::create_dir_all(large.join("pages")).expect("a folder");
    fs::write(large.join("tenant.yaml"), "name: Large\n").expect("a file");
    let page = |number: usize, words: &str| {
        let text = format!("---\ntitle: Page {number}\n---\n{words}\n");
        fs::write(large.join(format!("pages/page-{number}.md")), text).expect("a file");
    };
    (0..PAGES).for_each(|number| page(number, "As it was."));
    let server = TestServer::start(root.path(), &[]);
    let says = |path: &str, words: &str| server.get(&server.domain(), path).text().contains(words);
    let wait = |path: &str, words: &str| {
        let begin = Instant::now();
        while !says(path, words) {
            assert!(begin.elapsed() < TIMEOUT, "{path}\n{}", server.log());
            thread::sleep(Duration::from_millis(1));
        }
    };
    // Startup has not waited for it.
    wait("/large/page-7", "As it was.");

    page(7, "As it is.");
    let terms = root.path().join("tenants/app/pages/terms.md");
    fs::write(terms, "---\ntitle: Terms\n---\nIn no time.\n").expect("a file");
    wait("/app/terms", "In no time.");
    assert!(
        says("/large/page-7", "As it was."),
        "both came at once: the quick one has waited"
    );
    wait("/large/page-7", "As it is.");

    // A change during the reload is not lost.
    page(8, "One change.");
    thread::sleep(Duration::from_millis(200));
    page(8, "Another change.");
    wait("/large/page-8", "Another change.");
}
