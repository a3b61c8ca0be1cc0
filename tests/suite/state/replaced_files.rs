//! Replaced files with hashed names: open or cached pages may still name them.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use release::snapshot::{HostEntry, Snapshot};
use render::CachePolicy;
use render::Islands;
use rowhouse_tests::text_of;
use rowhouse_ui::Bundle;
use supervisor::{DeploymentConfig, PersistedState, Registry};

use crate::state::stateful_deployment::{RETENTION_LIMITS, StatefulDeployment};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Whether the studio's host serves a path.
fn is_served(snapshot: &Snapshot, path: &str) -> bool {
    let Some(HostEntry::Site(routes)) = snapshot.hosts.get("studio.example") else {
        panic!("no site");
    };
    let below = |prefix: &str| {
        let mount = routes.prefixes.get(prefix)?;
        mount.resource(path.strip_prefix(prefix)?)
    };
    below("/app").is_some()
        || routes.replaced_file(path).is_some()
        || snapshot.shared.contains_key(path)
}

/// Returns the addresses of a tenant's file and of a theme's file on the current page.
fn addresses_on_page(snapshot: &Snapshot) -> [String; 2] {
    let Some(HostEntry::Site(routes)) = snapshot.hosts.get("studio.example") else {
        panic!("no site");
    };
    let mount = routes.prefixes.get("/app").expect("a mount");
    let page = text_of(mount.resource("/data").expect("a page")).expect("a text");
    [("href=\"", "/app/assets/data"), ("url(\"", "")].map(|(before, begin)| {
        let start = page.find(&format!("{before}{begin}")).expect("an address");
        let rest = &page[start + before.len()..];
        rest[..rest.find('"').expect("an end")].to_owned()
    })
}

/// Whether replaced files of the tenant are on the disk.
fn has_replaced_files(deployment: &StatefulDeployment) -> bool {
    let tables = deployment.tables();
    tables.iter().any(|table| table == "old.tenant.app")
}

#[test]
fn replaced_file_is_served_for_a_day_over_changes_and_restarts() {
    let deployment = StatefulDeployment::new();
    let places = DeploymentConfig {
        tenants: deployment.path("tenants"),
        themes: Some(deployment.path("themes")),
        origin: "https://studio.example".parse().expect("an origin"),
        hsts: None,
        caching: CachePolicy::default(),
        deployment: None,
    };
    let bundle = Bundle::embedded().expect("the islands");
    let islands = Arc::new(Islands::new(bundle, true));
    let start = || {
        let kept = PersistedState::open(&deployment.path("state"), &places, RETENTION_LIMITS);
        Registry::new(places.clone(), Arc::clone(&islands)).with_persisted(kept)
    };
    let at = |registry: &mut Registry, hours: usize| {
        let (day, hour) = (hours / 24 + 1, hours % 24);
        let now = format!("2026-11-{day:02}T{hour:02}:00:00Z");
        let now = now.parse().expect("a moment");
        let snapshot = registry.reload(now).expect("the folders");
        registry.persist();
        registry.finish_persisting();
        snapshot
    };
    let dot = deployment.path("themes/base/icons/dot.svg");
    let change = |number: usize| {
        deployment.write("tenants/app/assets/data.csv", &format!("number,{number}\n"));
        let text = fs::read_to_string(&dot).expect("a drawing");
        fs::write(&dot, format!("{text}<!-- {number} -->\n")).expect("a drawing");
    };
    let page = "---\ntitle: Data\n---\n[Data](../assets/data.csv)\n";
    deployment.write("tenants/app/pages/data.md", page);

    // Five changes while the process runs, one while it does not, and two restarts.
    let mut registry = start();
    let mut seen = Vec::new();
    for number in 0..=7 {
        change(number);
        if number >= 6 {
            drop(registry);
            registry = start();
        }
        let snapshot = at(&mut registry, number);
        seen.extend(addresses_on_page(&snapshot));
        for path in &seen {
            assert!(is_served(&snapshot, path), "{path} after {number} changes");
        }
    }
    assert_eq!(seen.len(), 16);
    // The first file was replaced at one o'clock.
    let snapshot = at(&mut registry, 25);
    assert!(!is_served(&snapshot, &seen[0]) && !is_served(&snapshot, &seen[1]));
    assert!(is_served(&snapshot, &seen[2]) && is_served(&snapshot, &seen[3]));
    drop(registry);
    // Another duration (`--keep-assets`).
    let mut registry = start().with_asset_retention(Duration::from_secs(22 * 60 * 60));
    let snapshot = at(&mut registry, 26);
    assert!(!is_served(&snapshot, &seen[6]) && is_served(&snapshot, &seen[8]));
    drop(registry);
    let snapshot = at(&mut start(), 40);
    let there = seen
        .iter()
        .filter(|path| is_served(&snapshot, path))
        .count();
    assert_eq!(there, 2, "what is shown now");

    assert!(has_replaced_files(&deployment));
    fs::remove_dir_all(deployment.path("tenants/app")).expect("a removed folder");
    let mut registry = start();
    at(&mut registry, 41);
    assert!(
        has_replaced_files(&deployment),
        "the data of a removed tenant stays for a time"
    );
    drop(registry);
    at(&mut start().with_removed_retention(Duration::ZERO), 42);
    assert!(
        !has_replaced_files(&deployment),
        "the data of a removed tenant is deleted after its time"
    );
}

/// Rendered images also have a hash in their names, but are in no table of files.
#[test]
fn replaced_rendered_image_is_served_over_restart() {
    let deployment = StatefulDeployment::new();
    let draw = |path: &str| {
        let start = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\">";
        let drawing = format!("{start}<path d=\"{path}\"/></svg>");
        deployment.write("tenants/app/assets/icon.svg", &drawing);
    };
    draw("M1 1h6v6z");
    let server = deployment.serve();
    let named = || {
        let page = server.get(&server.domain(), "/app").text();
        let (_, rest) = page
            .split_once("rel=\"apple-touch-icon\" href=\"")
            .expect("an icon");
        rest[..rest.find('"').expect("an end")].to_owned()
    };
    let path = named();
    let drawn = server.get(&server.domain(), &path);
    assert_eq!(drawn.status, 200, "{path}");
    draw("M2 2h4v4z");
    let begin = Instant::now();
    while named() == path {
        assert!(begin.elapsed() < TIMEOUT, "{}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
    let again = server.get(&server.domain(), &path);
    assert_eq!((again.status, &again.body), (200, &drawn.body), "{path}");
    while !has_replaced_files(&deployment) {
        assert!(begin.elapsed() < TIMEOUT, "{}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
    drop(server);
    let server = deployment.serve();
    let again = server.get(&server.domain(), &path);
    assert_eq!((again.status, &again.body), (200, &drawn.body), "{path}");
}
