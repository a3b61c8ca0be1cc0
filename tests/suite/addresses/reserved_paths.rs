//! Paths of the engine, which no tenant can claim.

use std::collections::BTreeSet;

use content::name::reserved::{hides_reserved_path, is_reserved};
use release::snapshot::HostEntry;
use rowhouse_tests::TestSite;

/// Paths of the engine, at the top of a host and of every tenant.
const OWN: [&str; 12] = [
    "/assets",
    "/assets/base.css",
    "/.well-known",
    "/.well-known/security.txt",
    "/.rowhouse/events",
    "/x/.y",
    "/robots.txt",
    "/sitemap.xml",
    "/sitemap-2.xml",
    "/favicon.ico",
    "/site.webmanifest",
    "/notes/feed.xml",
];

#[test]
fn reserved_paths_cannot_be_claimed() {
    for path in OWN {
        let manifest = |line: &str| format!("name: A\n{line}\n");
        let page = |line: &str| format!("---\ntitle: A\n{line}---\n");
        let cases = [
            ("tenant.yaml", manifest(&format!("aliases: [{path}]"))),
            (
                "tenant.yaml",
                manifest(&format!("redirects: [{{from: {path}, to: /}}]")),
            ),
            ("pages/b.md", page(&format!("aliases: [{path}]\n"))),
            (&format!("pages{path}.md"), page("")),
        ];
        for (file, text) in cases {
            // A redirect may have the path of a feed that no collection has.
            if path.ends_with("/feed.xml") && text.contains("redirects:") {
                continue;
            }
            let mut site = TestSite::fixture("sites");
            site.add_tenant("aaa", "name: A\n");
            site.write(&format!("tenants/aaa/{file}"), text).reload();
            let text = site.report_text();
            // Files whose names begin with a dot are not read, except in one folder.
            let is_read = !file.contains("/.") || file.contains(".well-known/");
            assert_eq!(
                text.contains(&format!("`{path}` is reserved for rowhouse")),
                is_read,
                "{file} with {path}:\n{text}"
            );
            assert!(site.mount("studio.example", path).is_none(), "{path}");
            assert_eq!(is_read, site.mount("studio.example", "/aaa").is_none());
        }
    }
    // Below another tenant's prefix, too.
    for path in ["/app/assets", "/app/site.webmanifest", "/x/robots.txt"] {
        let mut site = TestSite::fixture("sites");
        site.add_tenant("aaa", &format!("name: A\naliases: [{path}]\n"));
        site.reload();
        assert!(site.mount("studio.example", path).is_none(), "{path}");
    }
}

#[test]
fn generated_files_have_reserved_paths() {
    let site = TestSite::copy_of(&rowhouse_tests::workspace());
    let mut seen = BTreeSet::new();
    for (id, entry) in &site.snapshot.hosts {
        let HostEntry::Site(host) = entry else {
            continue;
        };
        // Images are served below the mount whose pages name them.
        assert!(host.images.keys().all(|path| hides_reserved_path(path)));
        seen.extend(
            host.files
                .keys()
                .chain(site.snapshot.shared.keys())
                .cloned(),
        );
        let pages: BTreeSet<&str> = site
            .registry()
            .sites()
            .flat_map(|(site, _)| site.pages.values())
            .flat_map(|page| page.paths())
            .collect();
        for mount in host.root.iter().chain(host.prefixes.values()) {
            let rendered = mount.pages.get().expect("rendered");
            let paths = rendered
                .resources
                .paths()
                .filter(|path| !pages.contains(path));
            seen.extend(paths.map(Box::from));
        }
        assert!(host.files.len() >= 2, "{id}");
    }
    assert!(
        seen.len() > 50 && seen.contains("/blog/feed.xml"),
        "{seen:?}"
    );
    let free: Vec<_> = seen.iter().filter(|path| !is_reserved(path)).collect();
    assert!(free.is_empty(), "a tenant could claim {free:?}");
}
