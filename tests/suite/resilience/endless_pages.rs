//! Pages whose templates loop for ever: other tenants are served and reloaded as before, and `check` reports the cause.

use std::fs;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, TestSite};

use super::circular_links::check;

/// Far more than the program takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Loops without output, which only the watchdog ends.
const ENDLESS: &str = "{% if page.title == \"Endless\" %}{% set r = range(end=100000) %}{% for a in r %}{% for b in r %}{% for c in r %}{% endfor %}{% endfor %}{% endfor %}{% endif %}<footer>";

#[test]
fn endless_page_is_stopped_and_affects_no_other_tenant() {
    let mut site = TestSite::fixture("sites");
    site.edit("themes/base/layouts/page.html", "<footer>", ENDLESS);
    let terms = fs::read_to_string(site.path("tenants/app/pages/terms.md")).expect("a page");
    let server = TestServer::start(site.folder(), &[]);
    let app = || server.get(&server.domain(), "/app/terms");
    let good = app().text();
    assert!(good.contains("<h1>"), "{good}");
    let wait_until = |what: &str, done: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !done() {
            assert!(begin.elapsed() < TIMEOUT, "{what}: {}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // More jobs than may run for a tenant at once.
    for number in 0..3 {
        let endless = format!("---\ntitle: Endless\n---\n{number}\n");
        site.write("tenants/app/pages/terms.md", endless);
        let begun = format!("Neighbour {number}");
        let about = format!("---\ntitle: {begun}\n---\n## People\n");
        site.write("tenants/home/pages/about.md", about);
        wait_until("the other tenant", &|| {
            let about = server.get(&server.domain(), "/about");
            about.text().contains(&begun)
        });
    }
    // Both take ten seconds of processor time.
    let folder = site.folder();
    let text = std::thread::scope(|scope| {
        let checked = scope.spawn(|| check(folder));
        wait_until("the error", &|| {
            let text = server.get_admin("/tenants").text();
            text.contains("`tenants/app/pages/terms.md` did not end within 10 seconds")
        });
        checked.join().expect("a check")
    });
    assert!(server.log().contains("abandoned with its thread"));
    assert_eq!(app().text(), good, "the last valid page is served");
    assert!(text.contains("error[template-failed]"), "{text}");
    assert!(text.contains("themes/base/layouts/page.html"), "{text}");
    let corrected = terms.replace("title: ", "title: Corrected ");
    site.write("tenants/app/pages/terms.md", corrected);
    wait_until("the correction", &|| app().text().contains("<h1>Corrected"));
    // Pages are served slightly before the state is reported.
    wait_until("the end of the error", &|| {
        let text = server.get_admin("/tenants").text();
        !text.contains("did not end")
    });
}
