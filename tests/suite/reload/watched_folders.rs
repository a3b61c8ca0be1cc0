//! Every way to add, change and remove a folder, seen by visitors.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rowhouse_tests::TestServer;
use tempfile::TempDir;

use crate::reload::watched_deployment::{WatchedDeployment, write_page, write_tenant};

/// Far more than a change takes, since the tests share their machine. A benchmark measures the time.
const TIMEOUT: Duration = Duration::from_secs(20);

fn run(program: &str, arguments: &[&Path]) {
    let status = Command::new(program)
        .args(arguments)
        .status()
        .expect(program);
    assert!(status.success(), "{program} failed");
}

#[test]
fn copied_moved_changed_and_removed_folders_are_noticed() {
    let deployment = WatchedDeployment::start(&[]);
    let outside = TempDir::new().expect("a folder");
    write_tenant(&outside.path().join("one"), "One");

    run(
        "cp",
        &[
            Path::new("-r"),
            &outside.path().join("one"),
            &deployment.path("tenants/one"),
        ],
    );
    deployment.wait_for_title("/one", Some("One"));
    run(
        "mv",
        &[
            &deployment.path("tenants/one"),
            &deployment.path("tenants/two"),
        ],
    );
    deployment.wait_for_title("/two", Some("One"));
    deployment.wait_for_title("/one", None);
    write_page(&deployment.path("tenants/two"), "Two");
    deployment.wait_for_title("/two", Some("Two"));
    fs::remove_dir_all(deployment.path("tenants/two")).expect("a removed folder");
    deployment.wait_for_title("/two", None);
    deployment.wait_for_title("/", Some("Home"));
}

#[test]
fn atomic_save_is_noticed() {
    let deployment = WatchedDeployment::start(&[]);
    let target = deployment.path("tenants/home/pages/index.md");
    fs::write(target.with_extension("tmp"), "---\ntitle: Saved\n---\n").expect("a file");
    fs::rename(target.with_extension("tmp"), &target).expect("a renamed file");
    deployment.wait_for_title("/", Some("Saved"));
}

#[test]
fn unpacked_archive_is_noticed() {
    let deployment = WatchedDeployment::start(&[]);
    let outside = TempDir::new().expect("a folder");
    write_tenant(&outside.path().join("packed"), "Packed");
    let archive = outside.path().join("packed.tar");
    run(
        "tar",
        &[
            Path::new("-cf"),
            &archive,
            Path::new("-C"),
            outside.path(),
            Path::new("packed"),
        ],
    );
    run(
        "tar",
        &[
            Path::new("-xf"),
            &archive,
            Path::new("-C"),
            &deployment.path("tenants"),
        ],
    );
    deployment.wait_for_title("/packed", Some("Packed"));
}

#[test]
fn link_to_other_release_is_noticed() {
    let deployment = WatchedDeployment::start(&[]);
    let releases = TempDir::new().expect("a folder");
    for release in ["1", "2"] {
        write_tenant(
            &releases.path().join(release),
            &format!("Release {release}"),
        );
    }
    let link = deployment.path("tenants/app");
    symlink(releases.path().join("1"), &link).expect("a link");
    deployment.wait_for_title("/app", Some("Release 1"));
    symlink(releases.path().join("2"), deployment.path("tenants/.next")).expect("a link");
    fs::rename(deployment.path("tenants/.next"), &link).expect("a flipped link");
    deployment.wait_for_title("/app", Some("Release 2"));
    write_page(&releases.path().join("2"), "Patched");
    deployment.wait_for_title("/app", Some("Patched"));
}

#[test]
fn config_map_swap_is_noticed() {
    let deployment = WatchedDeployment::start(&[]);
    let folder = deployment.path("tenants/app");
    write_tenant(&folder.join("..2026_1"), "First");
    symlink("..2026_1", folder.join("..data")).expect("a link");
    for name in ["tenant.yaml", "pages"] {
        symlink(Path::new("..data").join(name), folder.join(name)).expect("a link");
    }
    deployment.wait_for_title("/app", Some("First"));
    write_tenant(&folder.join("..2026_2"), "Second");
    symlink("..2026_2", folder.join("..data_tmp")).expect("a link");
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("a swapped link");
    fs::remove_dir_all(folder.join("..2026_1")).expect("a removed folder");
    deployment.wait_for_title("/app", Some("Second"));
}

#[test]
fn slow_copy_is_never_served_in_parts() {
    let deployment = WatchedDeployment::start(&[]);
    let folder = deployment.path("tenants/slow");
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    fs::write(folder.join("tenant.yaml"), "name: Slow\n").expect("a file");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(deployment.title("/slow"), None, "no pages yet");
    fs::write(
        folder.join("pages/index.md"),
        "---\ntitle: Slow\nsections:\n  - ki",
    )
    .expect("a file");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(deployment.title("/slow"), None, "the page is cut short");
    write_page(&folder, "Slow");
    deployment.wait_for_title("/slow", Some("Slow"));
}

#[test]
fn invalid_tenant_keeps_last_valid_state_and_reports_it() {
    let deployment = WatchedDeployment::start(&[]);
    write_tenant(&deployment.path("tenants/app"), "App");
    deployment.wait_for_title("/app", Some("App"));
    fs::write(
        deployment.path("tenants/app/pages/index.md"),
        "---\ntitel: App\n---\n",
    )
    .expect("a file");
    let begin = Instant::now();
    let tenants = loop {
        let text = deployment.server.get_admin("/tenants").text();
        if text.contains("degraded") {
            break text;
        }
        assert!(begin.elapsed() < TIMEOUT, "{text}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(
        tenants.contains("index.md:2:1: unknown key `titel`"),
        "{tenants}"
    );
    assert_eq!(deployment.title("/app").as_deref(), Some("App"));
    let ready = deployment.server.get_admin("/readyz");
    assert_eq!(
        ready.status, 200,
        "one tenant's error does not make the program unready"
    );
    assert!(ready.text().contains("app: degraded"), "{}", ready.text());
    write_page(&deployment.path("tenants/app"), "Repaired");
    deployment.wait_for_title("/app", Some("Repaired"));
}

#[test]
fn vanished_or_empty_folder_of_tenants_removes_nothing_and_raises_alarm() {
    let deployment = WatchedDeployment::start(&[]);
    let alarm = |wanted: bool| {
        deployment.wait_until("the alarm", || {
            deployment
                .server
                .get_admin("/readyz")
                .text()
                .contains("alarm: ")
                == wanted
        });
        let gauge = format!("rowhouse_reload_alarm {}\n", u8::from(wanted));
        assert!(
            deployment
                .server
                .get_admin("/metrics")
                .text()
                .contains(&gauge)
        );
    };
    alarm(false);
    fs::rename(deployment.path("tenants"), deployment.path("away")).expect("a renamed folder");
    alarm(true);
    assert_eq!(deployment.title("/").as_deref(), Some("Home"));
    fs::create_dir(deployment.path("tenants")).expect("a folder");
    deployment.wait_until("an empty folder", || {
        deployment
            .server
            .get_admin("/readyz")
            .text()
            .contains("become empty")
    });
    assert_eq!(deployment.title("/").as_deref(), Some("Home"));
    assert_eq!(deployment.server.get_admin("/readyz").status, 200);

    fs::remove_dir(deployment.path("tenants")).expect("an empty folder");
    write_page(&deployment.path("away/home"), "Back");
    fs::rename(deployment.path("away"), deployment.path("tenants")).expect("a renamed folder");
    deployment.wait_for_title("/", Some("Back"));
    alarm(false);
    write_page(&deployment.path("tenants/home"), "Watched again");
    deployment.wait_for_title("/", Some("Watched again"));
}

#[test]
fn changed_link_of_folder_of_tenants_is_noticed() {
    let folder = TempDir::new().expect("a folder");
    for release in ["1", "2"] {
        let home = folder.path().join(release).join("home");
        write_tenant(&home, &format!("Release {release}"));
        fs::write(home.join("tenant.yaml"), "name: Home\nroot: true\n").expect("a file");
    }
    symlink("1", folder.path().join("tenants")).expect("a link");
    let server = TestServer::start(folder.path(), &[]);
    let deployment = WatchedDeployment { folder, server };
    deployment.wait_for_title("/", Some("Release 1"));
    symlink("2", deployment.path("next")).expect("a link");
    fs::rename(deployment.path("next"), deployment.path("tenants")).expect("a flipped link");
    deployment.wait_for_title("/", Some("Release 2"));
    write_page(&deployment.path("2/home"), "Patched");
    deployment.wait_for_title("/", Some("Patched"));
}

#[test]
fn renamed_temporary_files_are_noticed() {
    let deployment = WatchedDeployment::start(&[]);
    let folder = deployment.path("tenants/synced");
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    for (name, text) in [
        ("tenant.yaml", "name: Synced\n"),
        ("pages/index.md", "---\ntitle: Synced\n---\n"),
    ] {
        let target = folder.join(name);
        let file = target.file_name().expect("a name").to_string_lossy();
        let hidden = target.with_file_name(format!(".{file}.Xy12Zz"));
        fs::write(&hidden, text).expect("a file");
        fs::rename(hidden, target).expect("a renamed file");
    }
    deployment.wait_for_title("/synced", Some("Synced"));
}

#[test]
fn checkout_of_working_copy_is_noticed() {
    let deployment = WatchedDeployment::start(&[]);
    let folder = deployment.path("tenants/kept");
    write_tenant(&folder, "First");
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
        let output = Command::new("git")
            .arg("-C")
            .arg(&folder)
            .args(who)
            .args(arguments)
            .output()
            .expect("git");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "one"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "one"]);
    git(&["checkout", "--quiet", "-b", "two"]);
    write_page(&folder, "Second");
    fs::write(folder.join("pages/more.md"), "---\ntitle: More\n---\n").expect("a file");
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "two"]);
    deployment.wait_for_title("/kept/more", Some("More"));
    git(&["checkout", "--quiet", "one"]);
    deployment.wait_for_title("/kept", Some("First"));
    deployment.wait_for_title("/kept/more", None);
    git(&["checkout", "--quiet", "two"]);
    deployment.wait_for_title("/kept", Some("Second"));
    deployment.wait_for_title("/kept/more", Some("More"));
}

#[test]
fn ten_second_copy_is_live_after_last_write() {
    let deployment = WatchedDeployment::start(&[]);
    let folder = deployment.path("tenants/slow");
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    fs::write(folder.join("tenant.yaml"), "name: Slow\n").expect("a file");
    let text = "---\ntitle: Slow\ndescription: Words that arrive one after the other.\n---\n";
    // The copy itself takes this time.
    for end in (1..=20).map(|part| text.len() * part / 20) {
        assert_eq!(deployment.title("/slow"), None, "half a page is shown");
        std::thread::sleep(Duration::from_millis(500));
        fs::write(folder.join("pages/index.md"), &text[..end]).expect("a file");
    }
    deployment.wait_for_title("/slow", Some("Slow"));
}

#[test]
fn changed_theme_and_changed_link_of_theme_are_noticed() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("tenants/home");
    write_tenant(&home, "Home");
    fs::write(home.join("tenant.yaml"), "name: Home\nroot: true\n").expect("a file");
    let themes = rowhouse_tests::fixture("sites").join("themes");
    run(
        "cp",
        &[Path::new("-r"), &themes, &folder.path().join("themes")],
    );
    let server = TestServer::start(folder.path(), &[]);
    let deployment = WatchedDeployment { folder, server };
    let layout = "themes/base/layouts/page.html";
    let change = |path: &Path, words: &str| {
        let text = fs::read_to_string(path).expect("a file");
        let (head, rest) = text.split_once("{{ head }}").expect("a head");
        fs::write(path, format!("{head}{{{{ head }}}}<!-- {words} -->{rest}")).expect("a file");
    };
    let wait_for_title = |words: &str| {
        deployment.wait_until(words, || {
            let answer = deployment.server.get(&deployment.server.domain(), "/");
            answer.text().contains(words)
        });
    };
    change(&deployment.path(layout), "changed in place");
    wait_for_title("changed in place");
    run(
        "cp",
        &[
            Path::new("-r"),
            &deployment.path("themes/base"),
            &deployment.path("other"),
        ],
    );
    change(
        &deployment.path("other/layouts/page.html"),
        "another release",
    );
    fs::rename(deployment.path("themes/base"), deployment.path("before"))
        .expect("a renamed folder");
    symlink(deployment.path("other"), deployment.path("themes/base")).expect("a link");
    wait_for_title("another release");
}

#[test]
fn identical_content_renders_nothing() {
    let deployment = WatchedDeployment::start(&[]);
    write_tenant(&deployment.path("tenants/app"), "App");
    deployment.wait_for_title("/app", Some("App"));
    let told = |words: &str| deployment.server.log().matches(words).count();
    let reloads = told("\"reloaded\"");
    let tag = |path: &str| {
        let answer = deployment.server.get(&deployment.server.domain(), path);
        answer.header("etag").to_owned()
    };
    let before = tag("/app");
    // Every way to write the same bytes: again, renamed into place, copied over, touched.
    let page_file = deployment.path("tenants/app/pages/index.md");
    write_page(&deployment.path("tenants/app"), "App");
    fs::copy(&page_file, page_file.with_extension("tmp")).expect("a copy");
    fs::rename(page_file.with_extension("tmp"), &page_file).expect("a renamed file");
    run("touch", &[&page_file]);
    deployment.wait_until("a reload", || told("\"reloaded\"") > reloads);
    write_page(&deployment.path("tenants/home"), "Other words");
    deployment.wait_for_title("/", Some("Other words"));
    assert_eq!(tag("/app"), before);
    let live = told("\"live\"");
    assert_eq!(
        live,
        2,
        "each tenant became live once: {}",
        deployment.server.log()
    );
}

#[test]
fn polling_notices_links_and_swaps() {
    let deployment = WatchedDeployment::start(&["--watch", "poll"]);
    let folder = deployment.path("tenants/app");
    write_tenant(&folder.join("..2026_1"), "First");
    symlink("..2026_1", folder.join("..data")).expect("a link");
    for name in ["tenant.yaml", "pages"] {
        symlink(Path::new("..data").join(name), folder.join(name)).expect("a link");
    }
    deployment.wait_for_title("/app", Some("First"));
    write_tenant(&folder.join("..2026_2"), "Second");
    symlink("..2026_2", folder.join("..data_tmp")).expect("a link");
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("a swapped link");
    deployment.wait_for_title("/app", Some("Second"));
    fs::remove_dir_all(&folder).expect("a removed folder");
    deployment.wait_for_title("/app", None);
}

#[test]
fn polling_notices_changes_without_notifications() {
    let deployment = WatchedDeployment::start(&["--watch", "poll"]);
    write_tenant(&deployment.path("tenants/app"), "App");
    deployment.wait_for_title("/app", Some("App"));
    write_page(&deployment.path("tenants/app"), "Changed and longer");
    deployment.wait_for_title("/app", Some("Changed and longer"));
}
