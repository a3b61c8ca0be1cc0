//! Folders with circular, outgoing or endless links: other tenants are served and watched as before, and `check` reports the cause.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, binary};
use tempfile::TempDir;

use crate::reload::watched_deployment::{WatchedDeployment, write_page, write_tenant};

/// Far more than the program takes, and far less than following the links would take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Writes a valid tenant with bad links: three to the folder of the link, and one to the root of the file system.
fn add_circular_links(folder: &Path) {
    write_tenant(folder, "Bad");
    fs::create_dir_all(folder.join("assets")).expect("a folder");
    for name in ["l1", "l2", "l3"] {
        symlink(".", folder.join("assets").join(name)).expect("a link");
    }
    symlink("/", folder.join("assets/root")).expect("a link");
}

/// Serves a deployment with `home` and the tenants that `prepare` adds before startup.
fn serve_with(more: &[&str], prepare: impl Fn(&Path)) -> WatchedDeployment {
    let folder = TempDir::new().expect("a folder");
    let tenants = folder.path().join("tenants");
    write_tenant(&tenants.join("home"), "Home");
    fs::write(tenants.join("home/tenant.yaml"), "name: Home\nroot: true\n").expect("a file");
    prepare(&tenants);
    let server = TestServer::start(folder.path(), more);
    WatchedDeployment { folder, server }
}

/// Changes the other tenant, and waits for the change.
fn change_other_tenant(deployment: &WatchedDeployment, title: &str) {
    write_page(&deployment.path("tenants/home"), title);
    deployment.wait_for_title("/", Some(title));
}

/// Returns the output of `rowhouse check`, which must find errors in time.
pub(super) fn check(folder: &Path) -> String {
    let mut child = Command::new(binary())
        .current_dir(folder)
        .arg("check")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a check");
    let mut out = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).expect("UTF-8");
        text
    });
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begin.elapsed() > TIMEOUT {
            child.kill().expect("a killed child");
            panic!("the check does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = reader.join().expect("the reader");
    assert_eq!(status.code(), Some(1), "{text}");
    text
}

#[test]
fn added_circular_links_affect_no_other_tenant() {
    let deployment = WatchedDeployment::start(&[]);
    add_circular_links(&deployment.path("tenants/bad"));
    deployment.wait_until("the error", || {
        let text = deployment.server.get_admin("/tenants").text();
        text.contains("assets/l3: the symbolic link points to a folder that is already read")
    });
    change_other_tenant(&deployment, "Second");
    for name in ["l1", "l2", "l3", "root"] {
        fs::remove_file(deployment.path("tenants/bad/assets").join(name)).expect("a removed link");
    }
    deployment.wait_for_title("/bad", Some("Bad"));
}

#[test]
fn circular_links_at_startup_affect_no_other_tenant() {
    for more in [&[][..], &["--watch", "poll"]] {
        let deployment = serve_with(more, |tenants| add_circular_links(&tenants.join("bad")));
        change_other_tenant(&deployment, "Second");
        assert_eq!(deployment.title("/bad"), None);
    }
}

#[test]
fn check_ends_and_names_circular_links() {
    let folder = TempDir::new().expect("a folder");
    add_circular_links(&folder.path().join("tenants/bad"));
    let text = check(folder.path());
    assert_eq!(text.matches("[folder-twice]").count(), 3, "{text}");
    assert_eq!(text.matches("[foreign-symlink]").count(), 1, "{text}");
}

#[test]
fn links_to_root_or_missing_folder_affect_no_other_tenant() {
    for more in [&[][..], &["--watch", "poll"]] {
        let deployment = serve_with(more, |tenants| {
            for (name, target) in [
                ("root", "/"),
                ("self", "."),
                ("up", ".."),
                ("gone", "gone/x"),
            ] {
                symlink(target, tenants.join(name)).expect("a link");
            }
        });
        change_other_tenant(&deployment, "Second");
        let text = check(deployment.folder.path());
        assert_eq!(text.matches("[folder-twice]").count(), 3, "{text}");
        assert!(text.contains("tenants/gone"), "{text}");
        assert!(!text.contains("[missing-manifest]"), "{text}");
        fs::remove_file(deployment.path("tenants/root")).expect("a removed link");
        write_tenant(&deployment.path("tenants/root"), "Root");
        deployment.wait_for_title("/root", Some("Root"));
        change_other_tenant(&deployment, "Third");
    }
}

#[test]
fn removed_link_target_leaves_last_valid_pages() {
    let deployment = WatchedDeployment::start(&[]);
    let releases = TempDir::new().expect("a folder");
    write_tenant(&releases.path().join("1"), "Release 1");
    symlink(releases.path().join("1"), deployment.path("tenants/app")).expect("a link");
    deployment.wait_for_title("/app", Some("Release 1"));
    fs::rename(releases.path().join("1"), releases.path().join("2")).expect("a renamed folder");
    change_other_tenant(&deployment, "Second");
    assert_eq!(deployment.title("/app").as_deref(), Some("Release 1"));
    write_tenant(&releases.path().join("1"), "Again");
    deployment.wait_for_title("/app", Some("Again"));
}

#[test]
fn two_links_to_one_folder_are_both_reloaded() {
    let deployment = WatchedDeployment::start(&[]);
    let releases = TempDir::new().expect("a folder");
    write_tenant(&releases.path().join("1"), "One");
    for name in ["a", "b"] {
        symlink(
            releases.path().join("1"),
            deployment.path("tenants").join(name),
        )
        .expect("a link");
    }
    write_tenant(&deployment.path("tenants/c"), "One");
    symlink("c", deployment.path("tenants/twin")).expect("a link");
    for path in ["/a", "/b", "/c", "/twin"] {
        deployment.wait_for_title(path, Some("One"));
    }
    write_page(&releases.path().join("1"), "Two");
    for path in ["/a", "/b"] {
        deployment.wait_for_title(path, Some("Two"));
    }
    write_page(&deployment.path("tenants/c"), "Three");
    for path in ["/c", "/twin"] {
        deployment.wait_for_title(path, Some("Three"));
    }
    change_other_tenant(&deployment, "Second");
}

#[test]
fn endless_folders_are_refused_at_once() {
    let deployment = WatchedDeployment::start(&[]);
    let bad = deployment.path("tenants/bad");
    write_tenant(&bad, "Bad");
    deployment.wait_for_title("/bad", Some("Bad"));
    for number in 0..5_000 {
        fs::create_dir_all(bad.join(format!("assets/{number}"))).expect("a folder");
    }
    deployment.wait_until("the error", || {
        let text = deployment.server.get_admin("/tenants").text();
        text.contains("more than 4096 folders")
    });
    change_other_tenant(&deployment, "Second");
    assert_eq!(deployment.title("/bad").as_deref(), Some("Bad"));
    fs::remove_dir_all(bad.join("assets")).expect("a removed folder");
    write_page(&bad, "Good again");
    deployment.wait_for_title("/bad", Some("Good again"));
}

#[test]
fn unreadable_folder_keeps_notifications_of_others() {
    let deployment = serve_with(&[], |tenants| {
        let closed = tenants.join("bad/assets/closed");
        write_tenant(&tenants.join("bad"), "Bad");
        fs::create_dir_all(&closed).expect("a folder");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("no permission");
    });
    let closed = deployment.path("tenants/bad/assets/closed");
    let is_root = fs::read_dir(&closed).is_ok();
    if is_root {
        println!("SKIPPED: who runs this test may read every folder");
    } else {
        let text = deployment.server.get_admin("/tenants").text();
        assert!(
            text.contains("assets/closed: the file or folder cannot be read"),
            "{text}"
        );
        let log = deployment.server.log();
        assert!(!log.contains("no notifications from the system"), "{log}");
        change_other_tenant(&deployment, "Second");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("a permission");
        deployment.wait_for_title("/bad", Some("Bad"));
    }
    // Allows the removal of the folder.
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("a permission");
}
