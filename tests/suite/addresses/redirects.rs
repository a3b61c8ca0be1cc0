//! Moved paths redirect within the mount of the request.

use rowhouse_tests::{TestServer, TestSite, fixture};

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
