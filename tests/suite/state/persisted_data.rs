//! `--state DIR`: the data that survives a restart, and its effect on startup.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rowhouse_tests::{BadDisk, TestServer, state};

use crate::state::stateful_deployment::StatefulDeployment;

const TIMEOUT: Duration = Duration::from_secs(30);

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn title(server: &TestServer, path: &str) -> String {
    let text = server.get("localhost", path).text();
    let title = text
        .split_once("<h1>")
        .and_then(|(_, rest)| rest.split_once("</h1>"));
    title.map(|(title, _)| title.to_owned()).unwrap_or_default()
}

fn terms(title: &str) -> String {
    format!("---\ntitle: {title}\n---\n")
}

#[test]
fn invalid_folder_at_startup_is_served_from_last_valid_state() {
    let deployment = StatefulDeployment::new();
    deployment.write("tenants/app/pages/extra.md", &terms("Good words"));
    let server = deployment.serve();
    deployment.wait_for_table("good.tenant.app", "Good words");
    drop(server);

    for broken in [
        "---\ntitel: Bad\n---\n",
        "---\ntitle: Bad\n---\n[nowhere](/nowhere)\n",
    ] {
        deployment.write("tenants/app/pages/extra.md", broken);
        let server = deployment.serve();
        assert_eq!(title(&server, "/app/extra"), "Good words", "{broken}");
        let ready = server.get_admin("/readyz").text();
        assert!(ready.contains("app: degraded"), "{ready}");
        assert!(!ready.contains("home"), "the other tenant is live: {ready}");
        // An invalid copy never replaces a valid one.
        deployment.write("tenants/app/pages/extra.md", &terms("Repaired"));
        wait("the repaired page", || {
            title(&server, "/app/extra") == "Repaired"
        });
        deployment.write("tenants/app/pages/extra.md", &terms("Good words"));
        wait("the first page", || {
            title(&server, "/app/extra") == "Good words"
        });
        deployment.wait_for_table("good.tenant.app", "Good words");
    }
}

#[test]
fn unchanged_folder_is_not_persisted_again() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    deployment.wait_for_table("good.tenant.app", "tenant.yaml");
    drop(server);
    let written = || state::versions(&deployment.path("state"), "good.tenant.app");
    let before = written();
    let server = deployment.serve();
    // Once another tenant's later page is persisted, all earlier changes are, too.
    deployment.write("tenants/home/pages/new.md", &terms("New words"));
    deployment.wait_for_table("good.tenant.home", "New words");
    drop(server);
    assert_eq!(written(), before);
    deployment.write("tenants/app/pages/terms.md", &terms("Other words"));
    let server = deployment.serve();
    deployment.wait_for_table("good.tenant.app", "Other words");
    drop(server);
    assert_ne!(written(), before);
}

#[test]
fn broken_theme_at_startup_is_read_from_last_valid_state() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    deployment.wait_for_table("good.theme.base", "{{ head }}");
    let drawing = |server: &TestServer| {
        let text = server.get("localhost", "/app/terms").text();
        let (_, rest) = text.split_once("url(\"").expect("an address");
        rest.split('"').next().expect("an end").to_owned()
    };
    let before = drawing(&server);
    drop(server);
    let layout = fs::read_dir(deployment.path("themes/base/layouts"))
        .expect("layouts")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("{{ head }}")))
        .expect("a layout");
    let whole = fs::read_to_string(&layout).expect("a file");
    for broken in [
        "{{ head }}{{ x | nowhere }}",
        "{{ head }}{{ nothing.at.all }}",
    ] {
        fs::write(&layout, whole.replace("{{ head }}", broken)).expect("a file");
        let server = deployment.serve();
        let page = server.get("localhost", "/app/terms");
        assert_eq!(page.status, 200, "{broken}\n{}", server.log());
        assert_eq!(drawing(&server), before);
        assert_eq!(
            server.get("localhost", &before).status,
            200,
            "its files, too"
        );
    }
}

#[test]
fn empty_folder_at_startup_removes_nothing_and_raises_alarm() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    deployment.wait_for_table("good.tenant.app", "tenant.yaml");
    deployment.wait_for_table("good.tenant.home", "tenant.yaml");
    drop(server);
    fs::rename(deployment.path("tenants"), deployment.path("away")).expect("a folder");
    for exists in [false, true] {
        if exists {
            fs::create_dir(deployment.path("tenants")).expect("a folder");
        }
        let server = deployment.serve();
        assert_eq!(server.get("localhost", "/app/terms").status, 200);
        let ready = server.get_admin("/readyz").text();
        assert!(ready.contains("alarm: "), "{ready}");
        assert!(
            server
                .get_admin("/metrics")
                .text()
                .contains("rowhouse_reload_alarm 1")
        );
    }
    fs::remove_dir(deployment.path("tenants")).expect("an empty folder");
    let server = deployment.serve();
    fs::rename(deployment.path("away"), deployment.path("tenants")).expect("a folder");
    wait("the end of the alarm", || {
        !server.get_admin("/readyz").text().contains("alarm")
    });
    wait("the tenants", || {
        !server.get_admin("/readyz").text().contains("degraded")
    });
}

#[test]
fn data_of_removed_tenant_is_deleted_after_its_time() {
    let deployment = StatefulDeployment::new();
    let serve = || {
        let flags = ["--state", "state", "--keep-removed", "1s"];
        TestServer::start(&deployment.path(""), &flags)
    };
    let server = serve();
    deployment.wait_for_table("good.tenant.app", "tenant.yaml");
    fs::remove_dir_all(deployment.path("tenants/app")).expect("a removed folder");
    let names = || deployment.tables();
    wait("the end of its entries", || {
        !names().iter().any(|name| name.ends_with(".app"))
    });
    drop(server);
    fs::create_dir(deployment.path("tenants/app")).expect("a folder");
    let server = serve();
    assert_eq!(server.get("localhost", "/app/terms").status, 404);
    drop(server);

    // A tenant is removed while the process is down.
    fs::remove_dir(deployment.path("tenants/app")).expect("a folder");
    deployment.write("tenants/home/pages/index.md", &terms("Home"));
    let server = serve();
    wait("the end of its entries", || {
        !names().iter().any(|name| name.ends_with(".app"))
    });
    drop(server);
}

#[test]
fn damaged_and_foreign_entries_are_ignored_and_logged() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    deployment.wait_for_table("good.tenant.app", "tenant.yaml");
    wait("the memos", || {
        let tables = deployment.tables();
        tables.iter().any(|table| table == "made.tenant.app")
    });
    let page = |server: &TestServer| {
        let text = server.get("localhost", "/app/terms").text();
        text.replace(&server.domain(), "localhost")
    };
    let whole = page(&server);
    drop(server);
    let damages: [fn(&Path); 4] = [
        |path| {
            let bytes = fs::read(path).expect("a file");
            fs::write(path, &bytes[..bytes.len() / 2]).expect("a file");
        },
        |path| fs::write(path, "").expect("a file"),
        |path| fs::write(path, [0xff; 9999]).expect("a file"),
        |path| {
            fs::remove_file(path).expect("a file");
            fs::create_dir(path).expect("a folder");
        },
    ];
    for damage in damages {
        let tables = deployment.tables();
        let is_file = |path: &PathBuf| path.is_file();
        let mut records = state::records(&deployment.path("state"));
        records.retain(is_file);
        assert!(tables.is_empty() || !records.is_empty(), "{tables:?}");
        records.iter().for_each(|path| damage(path));
        let server = deployment.serve();
        assert!(page(&server) == whole, "{}", server.log());
        let log = server.log();
        assert!(log.contains("of the state"), "{log}");
        assert!(!log.contains("panicked"), "{log}");
        wait("new entries", || {
            let log = server.log();
            log.contains("state cannot be written; further failures")
                || deployment
                    .tables()
                    .iter()
                    .any(|table| table == "good.tenant.app")
        });
    }
}

#[test]
fn kill_during_write_loses_nothing() {
    let deployment = StatefulDeployment::new();
    for round in 0..5 {
        let server = deployment.serve();
        for number in 0..20 {
            let big = "words and words ".repeat(20_000);
            deployment.write(
                "tenants/app/pages/extra.md",
                &format!("{}{number} {big}", terms("Big")),
            );
            std::thread::sleep(Duration::from_millis(7 * round));
        }
        server.signal("KILL");
        drop(server);
    }
    deployment.write("tenants/app/pages/extra.md", "---\ntitel: Bad\n---\n");
    let server = deployment.serve();
    // On a busy machine, startup does not wait for the large page.
    wait("the last valid state", || {
        server.get("localhost", "/app/terms").status == 200
    });
    assert!(!server.log().contains("damaged"), "{}", server.log());
}

#[test]
fn two_processes_share_state_and_read_only_state_is_warning() {
    let deployment = StatefulDeployment::new();
    let (one, other) = (deployment.serve(), deployment.serve());
    deployment.wait_for_table("good.tenant.app", "tenant.yaml");
    deployment.write("tenants/app/pages/extra.md", &terms("Both"));
    for server in [&one, &other] {
        wait("the page", || title(server, "/app/extra") == "Both");
        assert!(!server.log().contains("damaged"), "{}", server.log());
    }
    deployment.wait_for_table("good.tenant.app", "Both");
    // The first process has written the state and does not repeat it. The second process writes its changes as soon as it may.
    for records in state::records(&deployment.path("state")) {
        fs::remove_file(records).expect("removed");
    }
    drop(one);
    deployment.wait_for_table("good.tenant.app", "Both");
    drop(other);

    fs::remove_dir_all(deployment.path("state")).expect("a removed folder");
    deployment.write("state", "a file where a folder should be");
    let flags = ["--state", "state", "--state-optional"];
    let server = TestServer::start(&deployment.path(""), &flags);
    assert_eq!(title(&server, "/app/extra"), "Both");
    assert!(
        server
            .log()
            .contains("nothing is persisted for the next startup"),
        "{}",
        server.log()
    );
}

#[test]
fn full_or_read_only_disk_changes_no_byte() {
    let deployment = StatefulDeployment::new();
    deployment.write("tenants/app/pages/extra.md", &terms("Before"));
    let pages = |server: &TestServer| {
        let routes = ["/", "/app", "/app/terms", "/app/extra"];
        let answers = routes.map(|path| server.get("localhost", path));
        for answer in &answers {
            assert_eq!(answer.status, 200, "{}", server.log());
        }
        let texts = answers.map(|answer| answer.text());
        texts.map(|text| text.replace(&server.domain(), "localhost"))
    };
    let server = deployment.serve();
    deployment.wait_for_table("good.tenant.app", "Before");
    let before = pages(&server);
    drop(server);
    let state = deployment.path("state");
    for (disk, told) in [
        (BadDisk::full(&state), "No space left on device"),
        (BadDisk::read_only(&state), "Read-only file system"),
    ] {
        let Some(disk) = disk else {
            return;
        };
        let flags = ["--state", "state", "--state-optional"];
        let serve = || TestServer::start_on(&disk, &deployment.path(""), &flags);
        deployment.write("tenants/app/pages/extra.md", &terms("Before"));
        let server = serve();
        assert_eq!(pages(&server), before, "{told}");
        // Changes are served repeatedly, but cannot be persisted.
        for number in 0..3 {
            let title_now = format!("Now {number}");
            deployment.write("tenants/app/pages/extra.md", &terms(&title_now));
            wait("the changed page", || {
                title(&server, "/app/extra") == title_now
            });
        }
        wait("the error of the disk", || server.log().contains(told));
        let log = server.log();
        assert!(log.contains("cannot be written"), "{log}");
        assert!(!log.contains("panicked"), "{log}");
        drop(server);
        // The last valid state is the earlier one, and complete.
        deployment.write("tenants/app/pages/extra.md", "---\ntitel: Bad\n---\n");
        let server = serve();
        assert_eq!(pages(&server), before, "{told}");
    }
    // A later startup with free space uses it.
    let server = deployment.serve();
    assert_eq!(pages(&server), before);
    drop(server);

    // A first startup without any readable state.
    fs::remove_dir_all(&state).expect("a removed folder");
    fs::create_dir(&state).expect("a folder");
    deployment.write("tenants/app/pages/extra.md", &terms("Before"));
    for disk in [BadDisk::full(&state), BadDisk::read_only(&state)] {
        let disk = disk.expect("as before");
        let flags = ["--state", "state", "--state-optional"];
        let server = TestServer::start_on(&disk, &deployment.path(""), &flags);
        assert_eq!(pages(&server), before, "{disk:?}");
    }
}

#[test]
fn rendered_images_are_persisted_while_used() {
    let deployment = StatefulDeployment::new();
    let server = deployment.serve();
    // Images are rendered for requested tenants.
    assert_eq!(server.get("localhost", "/app").status, 200);
    deployment.wait_for_table("made.tenant.app", "IHDR");
    deployment.write("tenants/app/pages/extra.md", &terms("Another page"));
    deployment.wait_for_table("good.tenant.app", "Another page");
    deployment.wait_for_table("made.tenant.app", "IHDR");
}
