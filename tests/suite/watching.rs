//! Every way in which a folder arrives, changes and goes, seen from outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rowhouse_tests::TestServer;
use tempfile::TempDir;

/// Far more than a change takes, since the tests share their machine; the time itself is a benchmark's business.
const PATIENCE: Duration = Duration::from_secs(20);

/// A street with one tenant, `home`, being served.
struct Street {
    folder: TempDir,
    server: TestServer,
}

impl Street {
    fn start(more: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        tenant(&folder.path().join("tenants/home"), "Home");
        fs::write(
            folder.path().join("tenants/home/tenant.yaml"),
            "name: Home\nroot: true\n",
        )
        .expect("a file");
        let server = TestServer::start(folder.path(), more);
        Self { folder, server }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn title(&self, path: &str) -> Option<String> {
        let answer = self.server.get(&self.server.domain(), path);
        let text = answer.text();
        let title = text.split_once("<h1>")?.1.split_once("</h1>")?.0.to_owned();
        (answer.status == 200).then_some(title)
    }

    /// Waits until a path shows a title, or nothing.
    fn shows(&self, path: &str, title: Option<&str>) {
        let begin = Instant::now();
        while self.title(path).as_deref() != title {
            assert!(
                begin.elapsed() < PATIENCE,
                "{path} shows {:?} and not {title:?}; {}",
                self.title(path),
                self.server.operator("/tenants").text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Writes a small tenant whose landing page has a title.
fn tenant(folder: &Path, title: &str) {
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    fs::write(folder.join("tenant.yaml"), format!("name: {title}\n")).expect("a file");
    page(folder, title);
}

fn page(folder: &Path, title: &str) {
    fs::write(
        folder.join("pages/index.md"),
        format!("---\ntitle: {title}\n---\n"),
    )
    .expect("a file");
}

fn run(program: &str, arguments: &[&Path]) {
    let status = Command::new(program)
        .args(arguments)
        .status()
        .expect(program);
    assert!(status.success(), "{program} failed");
}

#[test]
fn a_folder_is_copied_moved_changed_and_removed() {
    let street = Street::start(&[]);
    let outside = TempDir::new().expect("a folder");
    tenant(&outside.path().join("one"), "One");

    run(
        "cp",
        &[
            Path::new("-r"),
            &outside.path().join("one"),
            &street.path("tenants/one"),
        ],
    );
    street.shows("/one", Some("One"));
    run(
        "mv",
        &[&street.path("tenants/one"), &street.path("tenants/two")],
    );
    street.shows("/two", Some("One"));
    street.shows("/one", None);
    page(&street.path("tenants/two"), "Two");
    street.shows("/two", Some("Two"));
    fs::remove_dir_all(street.path("tenants/two")).expect("a removed folder");
    street.shows("/two", None);
    street.shows("/", Some("Home"));
}

#[test]
fn an_editor_saves_atomically() {
    let street = Street::start(&[]);
    let target = street.path("tenants/home/pages/index.md");
    fs::write(target.with_extension("tmp"), "---\ntitle: Saved\n---\n").expect("a file");
    fs::rename(target.with_extension("tmp"), &target).expect("a renamed file");
    street.shows("/", Some("Saved"));
}

#[test]
fn an_archive_is_unpacked() {
    let street = Street::start(&[]);
    let outside = TempDir::new().expect("a folder");
    tenant(&outside.path().join("packed"), "Packed");
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
            &street.path("tenants"),
        ],
    );
    street.shows("/packed", Some("Packed"));
}

#[test]
fn a_link_is_flipped_to_another_release() {
    let street = Street::start(&[]);
    let releases = TempDir::new().expect("a folder");
    for release in ["1", "2"] {
        tenant(
            &releases.path().join(release),
            &format!("Release {release}"),
        );
    }
    let link = street.path("tenants/app");
    symlink(releases.path().join("1"), &link).expect("a link");
    street.shows("/app", Some("Release 1"));
    symlink(releases.path().join("2"), street.path("tenants/.next")).expect("a link");
    fs::rename(street.path("tenants/.next"), &link).expect("a flipped link");
    street.shows("/app", Some("Release 2"));
    page(&releases.path().join("2"), "Patched");
    street.shows("/app", Some("Patched"));
}

#[test]
fn a_config_map_swaps_its_data() {
    let street = Street::start(&[]);
    let folder = street.path("tenants/app");
    tenant(&folder.join("..2026_1"), "First");
    symlink("..2026_1", folder.join("..data")).expect("a link");
    for name in ["tenant.yaml", "pages"] {
        symlink(Path::new("..data").join(name), folder.join(name)).expect("a link");
    }
    street.shows("/app", Some("First"));
    tenant(&folder.join("..2026_2"), "Second");
    symlink("..2026_2", folder.join("..data_tmp")).expect("a link");
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("a swapped link");
    fs::remove_dir_all(folder.join("..2026_1")).expect("a removed folder");
    street.shows("/app", Some("Second"));
}

#[test]
fn a_slow_copy_is_never_half_there() {
    let street = Street::start(&[]);
    let folder = street.path("tenants/slow");
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    fs::write(folder.join("tenant.yaml"), "name: Slow\n").expect("a file");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(street.title("/slow"), None, "no pages yet");
    fs::write(
        folder.join("pages/index.md"),
        "---\ntitle: Slow\nsections:\n  - ki",
    )
    .expect("a file");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(street.title("/slow"), None, "the page is cut short");
    page(&folder, "Slow");
    street.shows("/slow", Some("Slow"));
}

#[test]
fn a_broken_tenant_keeps_its_last_good_state_and_says_so() {
    let street = Street::start(&[]);
    tenant(&street.path("tenants/app"), "App");
    street.shows("/app", Some("App"));
    fs::write(
        street.path("tenants/app/pages/index.md"),
        "---\ntitel: App\n---\n",
    )
    .expect("a file");
    let begin = Instant::now();
    let tenants = loop {
        let text = street.server.operator("/tenants").text();
        if text.contains("degraded") {
            break text;
        }
        assert!(begin.elapsed() < PATIENCE, "{text}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(
        tenants.contains("index.md:2:1: unknown key `titel`"),
        "{tenants}"
    );
    assert_eq!(street.title("/app").as_deref(), Some("App"));
    let ready = street.server.operator("/readyz");
    assert_eq!(
        ready.status, 200,
        "one tenant's mistake does not make the program unready"
    );
    assert!(ready.text().contains("app: degraded"), "{}", ready.text());
    page(&street.path("tenants/app"), "Repaired");
    street.shows("/app", Some("Repaired"));
}

#[test]
fn a_folder_of_tenants_that_vanishes_or_empties_removes_nothing() {
    let street = Street::start(&[]);
    fs::rename(street.path("tenants"), street.path("away")).expect("a renamed folder");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(street.title("/").as_deref(), Some("Home"));
    fs::create_dir(street.path("tenants")).expect("a folder");
    street.server.signal("HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(street.title("/").as_deref(), Some("Home"));
}

#[test]
fn polling_sees_what_notifications_do_not() {
    let street = Street::start(&["--watch", "poll"]);
    tenant(&street.path("tenants/app"), "App");
    street.shows("/app", Some("App"));
    page(&street.path("tenants/app"), "Changed and longer");
    street.shows("/app", Some("Changed and longer"));
}
