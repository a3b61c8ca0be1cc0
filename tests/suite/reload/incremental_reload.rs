//! A reload looks only at the changes, and gives the same result as a new process.

use std::collections::BTreeMap;

use release::snapshot::{HostEntry, Mount, Resource, Snapshot};
use rowhouse_tests::TestSite;

/// Returns all responses, by host and path, without replaced files.
fn answers(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (host, entry) in &snapshot.hosts {
        let HostEntry::Site(routes) = entry else {
            all.insert(host.to_string(), "moved".to_owned());
            continue;
        };
        let mut add = |path: &str, resource: &Resource| {
            if !path.contains("/assets/") {
                all.insert(format!("{host}{path}"), answer(resource));
            }
        };
        for (path, resource) in &routes.files {
            add(path, resource);
        }
        let mut mount = |mount: &Mount| {
            let pages = mount.pages.get().expect("what is rendered");
            for (path, resource) in pages.resources.iter() {
                add(&format!("{}{path}", mount.prefix), resource);
            }
        };
        routes.root.iter().for_each(|root| mount(root));
        routes.prefixes.values().for_each(|one| mount(one));
        for path in routes.images.keys() {
            all.insert(format!("{host}{path}"), "a picture".to_owned());
        }
    }
    all
}

fn answer(resource: &Resource) -> String {
    match resource {
        Resource::Redirect(to) => format!("{to:?}"),
        Resource::Body(body) => {
            let identity = body.variants.identity().expect("a body");
            format!("{} {:?}", body.status, identity.etag)
        }
    }
}

#[track_caller]
fn as_from_the_beginning(site: &mut TestSite) {
    site.reload();
    let anew = TestSite::copy_of(site.folder());
    let (own, anew) = (answers(&site.snapshot), answers(&anew.snapshot));
    let paths: std::collections::BTreeSet<&String> = own.keys().chain(anew.keys()).collect();
    for path in paths {
        assert_eq!(own.get(path), anew.get(path), "{path}");
    }
}

#[test]
fn every_change_gives_responses_of_new_process() {
    let mut site = TestSite::fixture("sites");
    let app = "tenants/app/tenant.yaml";
    let page = |title: &str| format!("---\ntitle: {title}\n---\nText of {title}.\n");
    // A page's text, its title, a new page, a removed page, and a page that is not for search engines.
    as_from_the_beginning(site.write("tenants/app/pages/terms.md", page("Terms")));
    as_from_the_beginning(site.write("tenants/app/pages/terms.md", page("Rules")));
    as_from_the_beginning(site.write("tenants/app/pages/more.md", page("More")));
    let hidden = "---\ntitle: More\nnoindex: true\n---\nText.\n";
    as_from_the_beginning(site.write("tenants/app/pages/more.md", hidden));
    as_from_the_beginning(site.remove("tenants/app/pages/more.md"));
    // Addresses, and the canonical one.
    let addresses = "aliases: [/apps/app, /store]\nhosts: [app.example]";
    as_from_the_beginning(site.edit(app, "aliases: [/apps/app]", addresses));
    as_from_the_beginning(site.edit(app, "aliases:", "canonical: host\naliases:"));
    as_from_the_beginning(site.edit(app, "hosts: [app.example]\n", ""));
    // Another drawing, and the data of this site that all sites show.
    as_from_the_beginning(site.edit(app, "#1f4fa3", "#7a1fa3"));
    as_from_the_beginning(site.edit(app, "name: App", "name: Application"));
    // The root tenant's pages, and the company.
    as_from_the_beginning(site.edit("tenants/home/pages/about.md", "Ada", "Ada L."));
    as_from_the_beginning(site.edit(
        "tenants/home/tenant.yaml",
        "Street Company LLC",
        "Street Ltd",
    ));
    // A tenant is added, changed together with another one, and removed.
    site.write("tenants/third/pages/index.md", page("Third"));
    as_from_the_beginning(site.write("tenants/third/tenant.yaml", "name: Third\n"));
    site.write("tenants/third/pages/index.md", page("Third again"));
    as_from_the_beginning(site.write("tenants/app/pages/terms.md", page("Terms again")));
    as_from_the_beginning(site.remove("tenants/third"));
    // A host that one tenant has and another claims: the claim is refused, and granted after the owner's removal.
    let wants = |name: &str| format!("name: {name}\nhosts: [both.example]\naliases: [/both]\n");
    site.write("tenants/left/pages/index.md", page("Left"));
    as_from_the_beginning(site.write("tenants/left/tenant.yaml", wants("Left")));
    site.write("tenants/right/pages/index.md", page("Right"));
    as_from_the_beginning(site.write("tenants/right/tenant.yaml", wants("Right")));
    as_from_the_beginning(site.write("tenants/right/pages/index.md", page("Right again")));
    as_from_the_beginning(site.remove("tenants/left"));
    as_from_the_beginning(site.write("tenants/right/tenant.yaml", "name: Right\n"));
}
