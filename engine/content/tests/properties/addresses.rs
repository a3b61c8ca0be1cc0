//! Properties of address assignment for any tenants and any sequence of changes. An address has at most one owner, the owner keeps it, and the engine's own paths are never assigned.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use content::address::deployment::DeploymentFile;
use content::address::{AddressOwners, AddressRules, Assignment, Origin, assign, assign_changed};
use content::name::TenantId;
use content::name::reserved::hides_reserved_path;
use content::source::Folder;
use content::tenant::{Site, read};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const DOMAIN: &str = "studio.example";

/// A change of the folders.
#[derive(Debug, Clone)]
enum Event {
    /// A folder is added or replaced. Some folders are invalid.
    Folder(&'static str, Wanted),
    /// The program restarts and finds the folder invalid, with no earlier valid version.
    Lost(&'static str),
    /// A folder is removed.
    Gone(&'static str),
    /// `deployment.yaml` is replaced or removed.
    Deployment(Option<&'static str>),
}

/// The claims of a folder's manifest, and its pages.
#[derive(Debug, Clone)]
struct Wanted {
    root: bool,
    hosts: Vec<&'static str>,
    aliases: Vec<&'static str>,
    redirects: Vec<&'static str>,
    pages: Vec<&'static str>,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    const HOSTS: [&str; 6] = [
        "a.example",
        "app.example",
        "app.studio.example",
        "home.studio.example",
        "studio.example",
        "www.studio.example",
    ];
    const ALIASES: [&str; 9] = [
        "/app",
        "/apps",
        "/apps/app",
        "/apps/app/x",
        "/home",
        "/x",
        "/x/y",
        "/zed",
        "/assets",
    ];
    const PATHS: [&str; 6] = [
        "/app",
        "/apps/app/x",
        "/terms",
        "/x/y",
        "/zed/a",
        "/robots.txt",
    ];
    let rarely_all = |paths: &'static [&'static str], most| {
        subsequence(paths, 0..most).prop_map(|mut some| {
            // The last path makes the folder invalid, which should be rare.
            if some.len() < 2 {
                some.retain(|path| *path != paths[paths.len() - 1]);
            }
            some
        })
    };
    (
        any::<bool>(),
        subsequence(&HOSTS, 0..4),
        rarely_all(&ALIASES, 6),
        rarely_all(&PATHS, 3),
        rarely_all(&PATHS, 4),
    )
        .prop_map(|(root, hosts, aliases, redirects, pages)| Wanted {
            root,
            hosts,
            aliases,
            redirects,
            pages,
        })
}

fn event() -> impl Strategy<Value = Event> {
    const DEPLOYMENTS: [&str; 3] = [
        "root: home\ntenants: {app: {aliases: [/apps/app, /app], hosts: [app.example]}}",
        "root: app\ntenants: {zed: {aliases: [/x], hosts: [a.example]}, apps: {aliases: [/x/y]}}",
        "tenants: {}",
    ];
    let id = select(vec!["app", "apps", "home", "zed"]);
    prop_oneof![
        8 => (id.clone(), wanted()).prop_map(|(id, wanted)| Event::Folder(id, wanted)),
        1 => id.clone().prop_map(Event::Lost),
        2 => id.prop_map(Event::Gone),
        1 => proptest::option::of(select(DEPLOYMENTS.to_vec())).prop_map(Event::Deployment),
    ]
}

/// Returns the site of a folder, if it has no errors.
fn site(id: &TenantId, wanted: &Wanted) -> Option<Site> {
    let redirects = wanted.redirects.iter();
    let redirects: Vec<String> = redirects
        .map(|from| format!("{{from: {from}, to: /}}"))
        .collect();
    let manifest = format!(
        "name: Site\nroot: {}\nhosts: [{}]\naliases: [{}]\nredirects: [{}]\n",
        wanted.root,
        wanted.hosts.join(", "),
        wanted.aliases.join(", "),
        redirects.join(", "),
    );
    let pages = wanted.pages.iter().map(|path| format!("pages{path}.md"));
    let pages = pages.chain(["pages/index.md".to_owned()]);
    let page = Bytes::from_static(b"---\ntitle: Page\n---\n");
    let files = pages.map(|file| (file, page.clone()));
    let folder = Folder {
        label: format!("tenants/{id}"),
        files: files
            .chain([("tenant.yaml".to_owned(), manifest.into())])
            .collect(),
        ..Folder::default()
    };
    read(id, &folder).0
}

/// Returns the addresses that a tenant claims by its name and manifest, and is allowed to claim.
fn claims(
    id: &TenantId,
    site: Option<&Site>,
    root: Option<&TenantId>,
    deployment: Option<&DeploymentFile>,
) -> BTreeSet<String> {
    let mut all = BTreeSet::from([format!("{id}.{DOMAIN}")]);
    let is_root = root == Some(id);
    if !is_root {
        all.insert(format!("{DOMAIN}/{id}"));
    }
    let Some(site) = site else { return all };
    let allows = |key, text: &str| deployment.is_none_or(|one| one.allows(id, key, text));
    let own = [DOMAIN.to_owned(), format!("www.{DOMAIN}")];
    let hosts = site.manifest.hosts.iter().map(|host| host.as_str());
    all.extend(
        hosts
            .filter(|host| allows("hosts", host) && !own.contains(&(*host).to_owned()))
            .map(ToOwned::to_owned),
    );
    if !is_root {
        let aliases = site.manifest.aliases.iter().map(|alias| alias.as_str());
        all.extend(
            aliases
                .filter(|alias| allows("aliases", alias))
                .map(|alias| format!("{DOMAIN}{alias}")),
        );
    }
    let may_root = match deployment {
        Some(deployment) => deployment.claims.root.as_deref() == Some(id.as_str()),
        None => site.manifest.root,
    };
    if may_root {
        all.insert(DOMAIN.to_owned());
    }
    all
}

/// Returns all assigned addresses with their owners, and checks them.
fn given(assignment: &Assignment) -> BTreeMap<String, &TenantId> {
    let mut all = BTreeMap::new();
    for (id, addresses) in &assignment.addresses {
        for address in addresses.iter() {
            let name = address.key();
            assert_eq!(all.insert(name, id), None, "{address:?} has two owners");
            assert!(!hides_reserved_path(&address.prefix), "{address:?}");
            assert_ne!(address.host, format!("www.{DOMAIN}"));
            let is_root = address.host == DOMAIN && address.prefix.is_empty();
            assert!(
                !is_root || assignment.root.as_ref() == Some(id),
                "{address:?}"
            );
        }
        assert!(addresses.first().is_some_and(|first| first.canonical));
    }
    all
}

/// Checks that an assignment to the changed tenants gives the same addresses and conflicts as an assignment to all tenants.
fn check_changed(
    before: &Assignment,
    complete: &Assignment,
    tenants_before: &BTreeMap<TenantId, Option<Site>>,
    tenants: &BTreeMap<TenantId, Option<Site>>,
    deployment: Option<&DeploymentFile>,
) {
    let origin: Origin = format!("https://{DOMAIN}").parse().unwrap();
    let rules = AddressRules {
        origin: &origin,
        deployment,
        before: &before.owners,
    };
    let ids = tenants_before.keys().chain(tenants.keys());
    let has_changed = |id: &&TenantId| {
        let (before, now) = (tenants_before.get(*id), tenants.get(*id));
        format!("{before:?}") != format!("{now:?}")
    };
    let changed: BTreeMap<&TenantId, Option<&Site>> = ids
        .filter(has_changed)
        .map(|id| (id, tenants.get(id).and_then(Option::as_ref)))
        .collect();
    let is_unknown = |id: &&TenantId| {
        let known = [tenants_before.get(*id), tenants.get(*id)];
        known.into_iter().flatten().any(Option::is_none)
    };
    if changed.keys().any(is_unknown) {
        return;
    }
    let root = before
        .root
        .as_ref()
        .and_then(|root| tenants.get(root)?.as_ref());
    let is_refused = |(id, site): (&TenantId, &Option<Site>)| {
        site.is_none() || before.conflicts.contains_key(id)
    };
    let mut others = tenants.iter().filter(|(id, _)| !changed.contains_key(id));
    let has_refused = others.any(is_refused);
    let Some(quick) = assign_changed(rules, before, &changed, root, has_refused) else {
        return;
    };
    assert_eq!(quick.addresses, complete.addresses);
    assert_eq!(quick.owners, complete.owners);
    assert_eq!(quick.root, complete.root);
    for id in changed.keys() {
        assert_eq!(quick.conflicts.get(*id), complete.conflicts.get(*id));
    }
}

proptest! {
    #[test]
    fn address_has_one_owner_which_keeps_it(events in proptest::collection::vec(event(), 1..12)) {
        let origin: Origin = format!("https://{DOMAIN}").parse().unwrap();
        let mut tenants: BTreeMap<TenantId, Option<Site>> = BTreeMap::new();
        let mut deployment: Option<DeploymentFile> = None;
        let mut before = AddressOwners::new();
        let mut last = Assignment::default();
        let mut last_tenants = tenants.clone();
        for event in events {
            let is_folder = matches!(event, Event::Folder(..) | Event::Gone(_));
            match event {
                Event::Folder(id, wanted) => {
                    let id = TenantId::new(id).unwrap();
                    let site = site(&id, &wanted);
                    // An invalid folder is served in its last valid version.
                    let last = tenants.entry(id).or_default();
                    *last = site.or_else(|| last.take());
                }
                Event::Lost(id) => {
                    tenants.entry(TenantId::new(id).unwrap()).and_modify(|site| *site = None);
                }
                Event::Gone(id) => drop(tenants.remove(id)),
                Event::Deployment(text) => {
                    deployment = text.and_then(|text| DeploymentFile::read("deployment.yaml", text).0);
                }
            }
            let give = |before: &AddressOwners| {
                let rules = AddressRules { origin: &origin, deployment: deployment.as_ref(), before };
                assign(rules, tenants.iter().map(|(id, site)| (id, site.as_ref())))
            };
            let after = give(&before);
            let given = given(&after);
            for (address, owner) in &given {
                prop_assert_eq!(after.owners.get(address.as_str()), Some(*owner));
            }
            let root = after.root.as_ref();
            for (id, site) in &tenants {
                let mut wants = claims(id, site.as_ref(), root, deployment.as_ref());
                if site.is_none() {
                    // The claims are unknown, so the tenant keeps its addresses.
                    let had = before.iter().filter(|(_, owner)| *owner == id);
                    wants.extend(had.map(|(address, _)| address.to_string()));
                    if deployment.is_some() {
                        wants.remove(DOMAIN);
                    }
                }
                for address in &wants {
                    let has = after.owners.get(address.as_str()) == Some(id);
                    let had = before.get(address.as_str()) == Some(id);
                    prop_assert!(has || !had, "`{}` lost `{}`: {:?}", id, address, after.owners);
                    let is_told = after.conflicts.contains_key(id) || site.is_none();
                    prop_assert!(has || is_told, "`{}` is not told of `{}`", id, address);
                }
                let is_told = |address: &str| wants.contains(address) || site.is_none();
                let has_more = after.owners.iter().find(|(address, owner)| *owner == id && !is_told(address));
                prop_assert_eq!(has_more, None, "`{}` does not want it", id);
            }
            let again = give(&after.owners);
            prop_assert_eq!(&again.addresses, &after.addresses);
            prop_assert_eq!(&again.owners, &after.owners);
            if is_folder && !last.owners.is_empty() {
                check_changed(&last, &after, &last_tenants, &tenants, deployment.as_ref());
            }
            before.clone_from(&after.owners);
            last = after;
            last_tenants.clone_from(&tenants);
        }
    }
}
