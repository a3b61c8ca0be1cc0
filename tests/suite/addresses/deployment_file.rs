//! `deployment.yaml`: an unlisted address is not assigned, and an error in the file releases no address.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use release::snapshot::Resource;
use release::store::Store;
use rowhouse_tests::{Answer, TestServer, TestSite, binary, copy, fixture, state, workspace};
use tempfile::TempDir;

use crate::state::stateful_deployment::RETENTION_LIMITS;

const FILE: &str = "tenants/deployment.yaml";

/// The claims of the fixture.
const DEPLOYMENT: &str = "root: home
tenants:
  app:
    aliases: [/apps/app]
";

const GREEDY: &str = "name: Greedy
root: true
aliases: [/greed]
hosts: [greedy.example]
";

fn owner(site: &TestSite, host: &str, prefix: &str) -> String {
    let mount = site.mount(host, prefix);
    mount.map_or_else(|| "nobody".to_owned(), |mount| mount.tenant.to_string())
}

fn add_greedy(site: &mut TestSite) {
    site.write("tenants/aaa/tenant.yaml", GREEDY);
    site.write("tenants/aaa/pages/index.md", "---\ntitle: Home\n---\n");
}

#[test]
fn unlisted_claim_is_refused_with_line_to_add() {
    let mut site = TestSite::fixture("sites");
    let before = site.page("studio.example", "/apps/app", "/terms");
    site.write(FILE, DEPLOYMENT);
    add_greedy(&mut site);
    site.reload();
    let get = |site: &TestSite| {
        [
            owner(site, "studio.example", ""),
            owner(site, "studio.example", "/greed"),
            owner(site, "greedy.example", ""),
            owner(site, "studio.example", "/apps/app"),
            owner(site, "studio.example", "/aaa"),
            owner(site, "aaa.studio.example", ""),
        ]
    };
    assert_eq!(
        get(&site),
        ["home", "nobody", "nobody", "app", "aaa", "aaa"]
    );
    assert_eq!(site.page("studio.example", "/apps/app", "/terms"), before);
    let text = site.report_text();
    for (place, words) in [
        (
            "2:1",
            "write `root: aaa` in `[ROOT]/tenants/deployment.yaml`, line 1",
        ),
        (
            "3:11",
            "add `aaa: {aliases: [/greed]}` below `tenants:` in `[ROOT]/tenants/deployment.yaml`, line 2",
        ),
        (
            "4:9",
            "add `aaa: {hosts: [greedy.example]}` below `tenants:` in `[ROOT]/tenants/deployment.yaml`, line 2",
        ),
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
        assert!(
            text.contains(&format!("tenants/aaa/tenant.yaml:{place}")),
            "{text}"
        );
    }
    assert_eq!(text.matches("error[address-refused]").count(), 3, "{text}");

    // The lines in the hints suffice, and take effect at this reload.
    site.write(FILE, format!("{DEPLOYMENT}  aaa: {{aliases: [/greed]}}\n"));
    site.reload();
    assert_eq!(owner(&site, "studio.example", "/greed"), "aaa");
    let text = site.report_text();
    assert!(
        text.contains("add `hosts: [greedy.example]` below `aaa:`"),
        "{text}"
    );
    site.write(
        FILE,
        DEPLOYMENT.replace("home", "aaa") + "  aaa: {aliases: [/greed], hosts: [greedy.example]}\n",
    );
    site.reload();
    assert_eq!(get(&site)[..3], ["aaa", "nobody", "aaa"]);
    assert_eq!(owner(&site, "studio.example", "/home"), "home");
    let text = site.report_text();
    assert!(text.contains("write `root: home` in"), "{text}");
    assert!(text.contains("is at the domain's root"), "{text}");
}

#[test]
fn deployment_file_overrides_root_of_manifests() {
    let mut site = TestSite::fixture("sites");
    let home = site.page("studio.example", "", "/");
    site.write(FILE, DEPLOYMENT);
    site.edit("tenants/home/tenant.yaml", "root: true\n", "")
        .reload();
    assert_eq!(site.page("studio.example", "", "/"), home);
    site.write(FILE, DEPLOYMENT.replace("root: home\n", ""))
        .reload();
    assert_eq!(owner(&site, "studio.example", ""), "nobody");
}

#[test]
fn error_in_deployment_file_changes_only_report() {
    for (text, place, code) in [
        ("root: home\ntenant: {}\n", ":2:1", "unknown-key"),
        ("root: [\n", ":", "bad-yaml"),
        ("tenants: {app: {aliases: [apps]}}\n", ":1:27", "bad-value"),
        (
            "tenants: {app: {aliases: [/assets]}}\n",
            ":1:27",
            "bad-value",
        ),
        (
            "tenants:\n  app: {hosts: [a.example]}\n  home: {hosts: [a.example]}\n",
            ":3:18",
            "address-taken",
        ),
        ("", "", "empty-file"),
    ] {
        let mut site = TestSite::fixture("sites");
        site.write(FILE, DEPLOYMENT);
        add_greedy(&mut site);
        site.reload();
        site.write(FILE, text).reload();
        assert_eq!(owner(&site, "studio.example", ""), "home", "{text}");
        assert_eq!(owner(&site, "studio.example", "/apps/app"), "app", "{text}");
        assert_eq!(owner(&site, "greedy.example", ""), "nobody", "{text}");
        let report = site.report_text();
        let at = format!("{FILE}{place}");
        assert!(report.contains(&format!("error[{code}]")), "{report}");
        assert!(report.contains(&at), "{at}: {report}");
        let alarm = site.registry().alarm().expect("an alarm");
        assert!(
            alarm.contains("the last valid file stays in force"),
            "{alarm}"
        );
        site.write(FILE, DEPLOYMENT).reload();
        assert_eq!(site.registry().alarm(), None);
    }
    // Removing the file releases no address either.
    let mut site = TestSite::fixture("sites");
    site.write(FILE, DEPLOYMENT);
    add_greedy(&mut site);
    site.reload();
    site.remove(FILE).reload();
    assert_eq!(owner(&site, "greedy.example", ""), "nobody");
    assert!(
        site.report_text()
            .contains("error[unreadable]: the file does not exist")
    );
}

#[test]
fn invalid_deployment_file_at_startup_assigns_names_only() {
    let folder = TempDir::new().expect("a folder");
    copy(&fixture("sites"), folder.path());
    fs::write(folder.path().join(FILE), "root: [home]\n").expect("a file");
    let site = TestSite::copy_of(folder.path());
    assert_eq!(owner(&site, "studio.example", ""), "nobody");
    assert_eq!(owner(&site, "studio.example", "/apps/app"), "nobody");
    for tenant in ["app", "home"] {
        assert_eq!(
            owner(&site, "studio.example", &format!("/{tenant}")),
            tenant
        );
    }
    let alarm = site.registry().alarm().expect("an alarm");
    assert!(
        alarm.contains("only the host and path of its id"),
        "{alarm}"
    );
}

#[test]
fn first_invalid_deployment_file_and_its_removal_change_nothing() {
    let mut site = TestSite::fixture("sites");
    assert_eq!(owner(&site, "studio.example", ""), "home");
    site.write(FILE, "rot: home\n").reload();
    assert_eq!(owner(&site, "studio.example", ""), "home");
    assert_eq!(owner(&site, "studio.example", "/apps/app"), "app");
    let alarm = site.registry().alarm().expect("an alarm");
    assert!(
        alarm.contains("manifests may claim any free address"),
        "{alarm}"
    );
    site.remove(FILE).reload();
    assert_eq!(owner(&site, "studio.example", ""), "home");
    assert_eq!(site.registry().alarm(), None);
}

#[test]
fn unknown_tenant_in_deployment_file_is_warning() {
    let mut site = TestSite::fixture("sites");
    let text = format!("{DEPLOYMENT}  ap: {{hosts: [b.example]}}\n").replace("home", "hme");
    site.write(FILE, text).reload();
    let text = site.report_text();
    for words in [
        "warning[unknown-tenant]: unknown tenant `hme`\n --> tenants/deployment.yaml:1:7",
        "warning[unknown-tenant]: unknown tenant `ap`\n --> tenants/deployment.yaml:5:3",
        "did you mean `app`?",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn deployment_file_of_six_sites_changes_nothing_and_refuses_other_claims() {
    let with = TestSite::copy_of(&workspace());
    let mut without = TestSite::copy_of(&workspace());
    without.remove(FILE);
    let without = TestSite::copy_of(without.folder());
    let everything = |site: &TestSite| {
        let all = crate::authoring::dev_mode::everything(&site.snapshot).into_iter();
        all.map(|(name, resource)| (name, text_or_target(resource)))
            .collect::<BTreeMap<_, _>>()
    };
    assert_eq!(everything(&with), everything(&without));

    let mut site = with;
    assert_eq!(site.report_text().matches("error[").count(), 0);
    add_greedy(&mut site);
    site.reload();
    assert_eq!(owner(&site, "studio.example", ""), "studio");
    assert_eq!(owner(&site, "studio.example", "/greed"), "nobody");
    assert_eq!(owner(&site, "greedy.example", ""), "nobody");
    assert_eq!(owner(&site, "aaa.studio.example", ""), "aaa");
}

fn text_or_target(resource: &Resource) -> Vec<u8> {
    match resource {
        Resource::Body(body) => {
            let identity = body.variants.identity().expect("a form");
            identity.bytes.to_bytes().expect("bytes").to_vec()
        }
        Resource::Redirect(target) => target.as_bytes().to_vec(),
    }
}

/// Creates a deployment for a running process.
fn create_deployment() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for part in ["tenants", "themes"] {
        copy(&fixture("sites").join(part), &folder.path().join(part));
    }
    folder
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn wait(server: &TestServer, what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "timeout: {what}: {}",
            server.log()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn status(server: &TestServer, host: &str, path: &str) -> u16 {
    server.get(host, path).status
}

#[test]
fn changed_deployment_file_is_reloaded_at_every_place() {
    for (file, flags) in [
        (FILE, vec![]),
        ("ops/who.yaml", vec!["--deployment", "ops/who.yaml"]),
        (
            "ops/who.yaml",
            vec!["--deployment", "ops/who.yaml", "--watch", "poll"],
        ),
    ] {
        let deployment = create_deployment();
        write(deployment.path(), file, DEPLOYMENT);
        let server = TestServer::start(deployment.path(), &flags);
        assert_eq!(status(&server, "localhost", "/apps/app"), 200);
        write(deployment.path(), file, "root: home\n");
        wait(&server, "the loss of the alias", || {
            status(&server, "localhost", "/apps/app") == 404
        });
        // As editors do: another file replaces it.
        write(deployment.path(), "next.yaml", DEPLOYMENT);
        fs::rename(
            deployment.path().join("next.yaml"),
            deployment.path().join(file),
        )
        .expect("a file");
        wait(&server, "the alias", || {
            status(&server, "localhost", "/apps/app") == 200
        });

        write(deployment.path(), file, "root: home\ntenant: {}\n");
        let ready = || -> Answer { server.get_admin("/readyz") };
        let alarm = format!("alarm: {file}:2:1: unknown key `tenant`");
        wait(&server, "the alarm", || ready().text().contains(&alarm));
        assert_eq!(ready().status, 200, "the server stays ready");
        assert_eq!(status(&server, "localhost", "/apps/app"), 200);
        wait(&server, "the line in the log", || {
            server.log().contains("unknown key `tenant`")
        });
    }
}

#[test]
fn addresses_keep_owners_over_restart_with_state() {
    let deployment = create_deployment();
    write(
        deployment.path(),
        "tenants/app/tenant.yaml",
        "name: App\nhosts: [app.example]\naliases: [/shop]\n",
    );
    let flags = ["--state", "state"];
    let wait_for_entry = |entry: &str, words: &str| {
        let begin = Instant::now();
        let state = deployment.path().join("state");
        let is_there = || state::has_words(&state, entry, words);
        while !is_there() {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "timeout: {entry}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let server = TestServer::start(deployment.path(), &flags);
    wait_for_entry("addresses", "app.example");
    drop(server);

    let greedy = GREEDY
        .replace("/greed", "/shop")
        .replace("greedy.example", "app.example");
    write(deployment.path(), "tenants/aaa/tenant.yaml", &greedy);
    write(
        deployment.path(),
        "tenants/aaa/pages/index.md",
        "---\ntitle: Greedy\n---\n",
    );
    // The owner's folder has errors, and it has no valid copy.
    for folder in state::deployments(&deployment.path().join("state")) {
        Store::open(folder, RETENTION_LIMITS).remove_table("good.tenant.app".to_owned());
    }
    let good =
        fs::read_to_string(deployment.path().join("tenants/app/tenant.yaml")).expect("a file");
    write(deployment.path(), "tenants/app/tenant.yaml", "nam: App\n");
    let server = TestServer::start(deployment.path(), &flags);
    let title = |host: &str, path: &str| server.get(host, path).text();
    assert!(!title("app.example", "/").contains("Greedy"));
    assert!(!title("localhost", "/shop").contains("<h1>Greedy"));
    assert!(!title("localhost", "/").contains("<h1>Greedy"));
    write(deployment.path(), "tenants/app/tenant.yaml", &good);
    wait(&server, "its owner", || {
        status(&server, "app.example", "/") == 200
    });
    assert!(!title("app.example", "/").contains("Greedy"));

    // The last content of the file stays in force after a restart.
    write(deployment.path(), FILE, DEPLOYMENT);
    wait_for_entry("good.deployment", "/apps/app");
    drop(server);
    write(deployment.path(), FILE, "root: [");
    let server = TestServer::start(deployment.path(), &flags);
    assert_eq!(status(&server, "localhost", "/"), 200);
    assert_eq!(status(&server, "app.example", "/"), 421);
    let ready = server.get_admin("/readyz").text();
    assert!(
        ready.contains("the last valid file stays in force"),
        "{ready}"
    );
}

fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(binary())
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn check_routes_and_new_read_deployment_file() {
    let deployment = create_deployment();
    write(deployment.path(), FILE, DEPLOYMENT);
    write(deployment.path(), "tenants/aaa/tenant.yaml", GREEDY);
    write(
        deployment.path(),
        "tenants/aaa/pages/index.md",
        "---\ntitle: Greedy\n---\n",
    );
    let (well, text) = run(deployment.path(), &["check", "aaa"]);
    assert!(!well && text.contains("error[address-refused]"), "{text}");
    let (well, text) = run(deployment.path(), &["routes"]);
    assert!(
        well && text.contains("/aaa") && !text.contains("/greed"),
        "{text}"
    );
    assert!(!text.contains("greedy.example"), "{text}");

    // A page below a longer prefix of another tenant does not belong to its tenant's addresses.
    write(
        deployment.path(),
        "tenants/aaa/tenant.yaml",
        "name: A\naliases: [/apps]\n",
    );
    write(
        deployment.path(),
        "tenants/aaa/pages/app/terms.md",
        "---\ntitle: Terms\n---\n",
    );
    fs::remove_file(deployment.path().join(FILE)).expect("a file");
    let (_, text) = run(deployment.path(), &["routes"]);
    let line = |path: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with("localhost "));
        lines.find(|line| line.split_whitespace().nth(1) == Some(path))
    };
    assert!(
        line("/apps/app/terms").is_some_and(|line| line.contains(" app ")),
        "{text}"
    );
    assert!(line("/aaa/app/terms").is_some(), "{text}");
    assert_eq!(text.matches(" /apps/app/terms ").count(), 1, "{text}");

    let deployment = TempDir::new().expect("a folder");
    copy(
        &workspace().join("tenants"),
        &deployment.path().join("tenants"),
    );
    assert!(run(deployment.path(), &["new", "corner"]).0);
    let (well, text) = run(deployment.path(), &["check", "corner"]);
    assert!(well, "{text}");
    write(deployment.path(), FILE, "roof: home\n");
    let (well, text) = run(deployment.path(), &["check", "corner"]);
    assert!(
        !well
            && text.contains("tenants/deployment.yaml:1:1")
            && text.contains("did you mean `root`?"),
        "{text}"
    );
    let (_, text) = run(deployment.path(), &["schema"]);
    assert!(
        text.contains("\"Addresses that tenants may claim\""),
        "{text}"
    );
}
