//! Tenants are rendered in the background or at the first request, and evicted beyond `--memory`. Visitors notice neither.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, TestSite, state};

/// More tenants than can have their content unpacked.
const TENANT_COUNT: usize = 300;

const TIMEOUT: Duration = Duration::from_secs(120);

fn id(number: usize) -> String {
    format!("t{number:03}")
}

fn page_with(words: &str) -> String {
    format!("---\ntitle: Page\n---\n{words}\n\n![A dot](dot.svg)\n")
}

/// Copies the fixture and adds many tenants, each of which shows its number.
fn create_many_tenants() -> TestSite {
    let mut site = TestSite::fixture("sites");
    let folder = site.folder().join("tenants");
    for number in 0..TENANT_COUNT {
        let tenant = folder.join(id(number));
        fs::create_dir_all(tenant.join("pages")).expect("a folder");
        fs::create_dir_all(tenant.join("assets")).expect("a folder");
        let dot = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {0}\"/>",
            number + 1
        );
        fs::write(tenant.join("assets/dot.svg"), dot).expect("a file");
        fs::write(tenant.join("tenant.yaml"), "name: One of many\n").expect("a file");
        let words = page_with(&format!("Tenant number {number}."));
        fs::write(tenant.join("pages/index.md"), words).expect("a file");
    }
    // The present content on disk.
    site.write("tenants/t000/pages/index.md", page_with("Tenant number 0."));
    site
}

fn get_page(server: &TestServer, number: usize) -> String {
    let begin = Instant::now();
    let answer = server.get(&server.domain(), &format!("/{}", id(number)));
    let (took, text) = (begin.elapsed(), answer.text());
    assert_eq!(answer.status, 200, "{number} after {took:?}\n{text}");
    text
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn metric(server: &TestServer, name: &str) -> f64 {
    let metrics = server.get_admin("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|value| value.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {metrics}"))
}

/// Returns the address of the drawing on a page.
fn drawing(page: &str) -> &str {
    let begin = page.find("src=\"").expect("a picture") + 5;
    let rest = &page[begin..];
    &rest[..rest.find('"').expect("an end")]
}

#[test]
fn requested_tenants_are_rendered_first_and_correctly() {
    let site = create_many_tenants();
    let server = TestServer::start_at_once(site.folder(), &[]);
    let last = TENANT_COUNT - 1;
    assert!(get_page(&server, last).contains(&format!("Tenant number {last}.")));
    let ready = server.get_admin("/readyz").text();
    assert!(ready.contains("pending: "), "others come later: {ready}");
    assert_eq!(server.get(&server.domain(), "/nobody").status, 404);
    for number in (0..TENANT_COUNT).step_by(7) {
        assert!(get_page(&server, number).contains(&format!("Tenant number {number}.")));
    }
    wait("the rest", || {
        !server.get_admin("/readyz").text().contains("pending")
    });
    assert!(metric(&server, "rowhouse_render_wait_seconds_count") >= 1.0);
    let sitemap = server.get(&server.domain(), "/sitemap.xml").text();
    assert!(sitemap.contains(&format!("/{}<", id(last))), "{sitemap}");
}

#[test]
fn evicted_tenant_is_restored_with_same_bytes() {
    let mut site = create_many_tenants();
    // Less memory than all tenants need.
    let server = TestServer::start(site.folder(), &["--memory", "500000"]);
    let first = get_page(&server, 0);
    let dot = drawing(&first).to_owned();
    let waits = || metric(&server, "rowhouse_render_wait_seconds_count");
    let ask_all = || (1..TENANT_COUNT).for_each(|number| drop(get_page(&server, number)));
    ask_all();
    wait("an evicted tenant", || {
        let before = waits();
        let again = get_page(&server, 0);
        assert_eq!(again, first);
        let has_waited = waits() > before;
        if !has_waited {
            ask_all();
        }
        has_waited
    });
    // An error in the folder of an evicted tenant does not change its pages.
    ask_all();
    site.write("tenants/t000/tenant.yaml", "nmae: Wrong\n");
    wait("the error", || {
        server
            .get_admin("/readyz")
            .text()
            .contains("t000: degraded")
    });
    assert_eq!(get_page(&server, 0), first);
    // Files of older pages exist after a change, too.
    site.write("tenants/t000/tenant.yaml", "name: One of many\n");
    site.write(
        "tenants/t000/assets/dot.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 900\"/>",
    );
    wait("the change", || drawing(&get_page(&server, 0)) != dot);
    assert_eq!(server.get(&server.domain(), &dot).status, 200);
}

#[test]
fn tenant_with_refused_alias_is_evicted_like_others() {
    let mut site = create_many_tenants();
    // Every tenant claims the alias, and one has it.
    for number in 0..TENANT_COUNT {
        let manifest = format!("tenants/{}/tenant.yaml", id(number));
        site.write(&manifest, "name: One of many\naliases: [/wanted]\n");
    }
    let server = TestServer::start(site.folder(), &["--memory", "500000"]);
    (0..TENANT_COUNT).for_each(|number| drop(get_page(&server, number)));
    let limit = metric(&server, "rowhouse_store_memory_limit_bytes");
    wait("room for what is requested next", || {
        metric(&server, "rowhouse_store_memory_bytes") <= 2.0 * limit
    });
}

#[test]
fn only_changed_folders_are_read_at_warm_start() {
    let site = create_many_tenants();
    // The times of a recent write are too coarse to prove that a file is unchanged.
    thread::sleep(Duration::from_secs(4));
    let start = || TestServer::start(site.folder(), &["--state", "state"]);
    let written = |number: usize| {
        let table = format!("read.tenant.{}", id(number));
        state::table(&site.path("state"), &table)
    };
    let server = start();
    wait("all that was read", || {
        (0..TENANT_COUNT).all(|number| written(number).is_some())
    });
    drop(server);
    let before: Vec<_> = (0..TENANT_COUNT).map(written).collect();
    let page = site.path(&format!("tenants/{}/pages/index.md", id(7)));
    let modified = fs::metadata(&page).and_then(|page| page.modified());
    let text = fs::read_to_string(&page).expect("a page");
    let other = text.replace("Tenant number 7.", "Tenant Nummer 7.");
    fs::write(&page, other).expect("a file");
    let file = fs::File::options().write(true).open(&page);
    let file = file.expect("a file");
    file.set_modified(modified.expect("a time"))
        .expect("a time");
    thread::sleep(Duration::from_secs(4));
    let server = start();
    assert!(get_page(&server, 7).contains("Tenant Nummer 7."));
    for number in (0..TENANT_COUNT).filter(|number| *number != 7).step_by(13) {
        assert!(get_page(&server, number).contains(&format!("Tenant number {number}.")));
    }
    wait("what was read of the other one", || written(7) != before[7]);
    // Later saves are written after the findings of the startup.
    drop(server);
    let changed = (0..TENANT_COUNT).filter(|number| written(*number) != before[*number]);
    assert_eq!(changed.collect::<Vec<_>>(), [7]);
}

#[test]
fn restoring_large_tenant_delays_no_other_tenant() {
    let site = create_many_tenants();
    let large = site.folder().join("tenants/large");
    fs::create_dir_all(large.join("pages")).expect("a folder");
    fs::write(large.join("tenant.yaml"), "name: Large\n").expect("a file");
    for number in 0..2_000 {
        let name = match number {
            0 => "index".to_owned(),
            number => format!("page-{number}"),
        };
        let words = format!(
            "---\ntitle: Page {number}\n---\n{}",
            "Some words. ".repeat(40)
        );
        fs::write(large.join(format!("pages/{name}.md")), words).expect("a file");
    }
    let server = TestServer::start_at_once(site.folder(), &[]);
    thread::scope(|scope| {
        let asked = scope.spawn(|| server.get(&server.domain(), "/large"));
        // All threads have started by then.
        thread::sleep(Duration::from_millis(100));
        // Requested tenants and pending ones.
        for number in (0..TENANT_COUNT)
            .step_by(30)
            .chain((0..TENANT_COUNT).step_by(30))
        {
            assert!(get_page(&server, number).contains(&format!("Tenant number {number}.")));
        }
        assert!(!asked.is_finished(), "no other request overlapped");
    });
    wait("the large one", || {
        server.get(&server.domain(), "/large/page-1999").status == 200
    });
}
