//! Failures in every step: each concerns one tenant or one theme, and ends when its cause is corrected.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, binary, copy, fixture};
use tempfile::TempDir;

/// Far more than any step takes, since the tests share their machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A deployment with failures at chosen points.
struct FailingDeployment(TempDir);

impl FailingDeployment {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        for part in ["tenants", "themes"] {
            copy(&fixture("sites").join(part), &folder.path().join(part));
        }
        let deployment = Self(folder);
        deployment.fail(&[]);
        deployment
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Makes exactly these points fail from now on.
    fn fail(&self, points: &[&str]) {
        fs::write(self.path("faults"), points.join("\n")).expect("a file");
    }

    fn serve(&self, more: &[&str]) -> TestServer {
        TestServer::start_with_faults(self.0.path(), more, &self.path("faults"))
    }

    /// Writes a page of a tenant.
    fn page(&self, tenant: &str, words: &str) {
        let path = self.path(&format!("tenants/{tenant}/pages/extra.md"));
        fs::write(path, format!("---\ntitle: Extra\n---\n{words}\n")).expect("a file");
    }

    fn check(&self) -> (Option<i32>, String) {
        let output = Command::new(binary())
            .arg("check")
            .current_dir(self.0.path())
            .env("ROWHOUSE_FAULTS", self.path("faults"))
            .output()
            .expect("rowhouse");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    }
}

fn wait(server: &TestServer, what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < TIMEOUT,
            "timeout: {what}\n{}\n{}",
            server.get_admin("/readyz").text(),
            server.log()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

fn page_contains(server: &TestServer, path: &str, words: &str) -> bool {
    let text = server.get(&server.domain(), path).text();
    text.contains(words)
}

fn get_readiness(server: &TestServer) -> String {
    let answer = server.get_admin("/readyz");
    assert_eq!(answer.status, 200);
    answer.text()
}

#[test]
fn panic_for_tenant_is_its_error_and_last_valid_state_stays() {
    let deployment = FailingDeployment::new();
    deployment.page("app", "Good words.");
    let server = deployment.serve(&[]);
    for step in ["read", "check", "compile"] {
        deployment.fail(&[&format!("{step}:app")]);
        deployment.page("app", &format!("Words after {step}."));
        wait(&server, step, || {
            let tenants = server.get_admin("/tenants").text();
            tenants.contains("program-failed") && tenants.contains(&format!("the step `{step}`"))
        });
        assert!(page_contains(&server, "/app/extra", "Good words."));
        assert!(get_readiness(&server).contains("app: degraded"));
        deployment.page("home", &format!("A neighbour after {step}."));
        wait(&server, "the other tenant", || {
            page_contains(&server, "/extra", &format!("A neighbour after {step}."))
        });
        deployment.fail(&[]);
        deployment.page("app", "Good words.");
        wait(&server, "the end of the error", || {
            !get_readiness(&server).contains("app")
        });
    }
}

#[test]
fn panic_at_startup_affects_one_tenant() {
    for step in ["read", "check", "compile"] {
        let deployment = FailingDeployment::new();
        deployment.fail(&[&format!("{step}:app")]);
        let server = deployment.serve(&[]);
        wait(&server, "the other tenant", || {
            server.get(&server.domain(), "/about").status == 200
        });
        assert!(get_readiness(&server).contains("app: absent"));
        deployment.fail(&[]);
        deployment.page("app", "Good words.");
        wait(&server, step, || {
            page_contains(&server, "/app/extra", "Good words.")
        });
    }
}

#[test]
fn panic_for_theme_is_its_error_and_last_valid_state_stays() {
    let deployment = FailingDeployment::new();
    let server = deployment.serve(&[]);
    let layout = deployment.path("themes/base/layouts/page.html");
    let text = fs::read_to_string(&layout).expect("a layout");
    for (number, step) in ["read theme", "theme", "templates", "fonts"]
        .into_iter()
        .enumerate()
    {
        deployment.fail(&[&format!("{step}:base")]);
        let mark = format!("<!-- mark {number} -->");
        fs::write(&layout, format!("{text}{mark}")).expect("a file");
        wait(&server, step, || {
            server.log().matches("program-failed").count() > number
        });
        assert!(!page_contains(&server, "/app/terms", &mark));
        deployment.page("home", &format!("After {number}."));
        wait(&server, "a tenant's change", || {
            page_contains(&server, "/extra", &format!("After {number}."))
        });
        deployment.fail(&[]);
        fs::write(&layout, format!("{text}{mark} ")).expect("a file");
        wait(&server, "the theme", || {
            page_contains(&server, "/app/terms", &mark)
        });
    }
}

#[test]
fn panic_in_shared_step_is_reported_as_failure_of_program() {
    let deployment = FailingDeployment::new();
    for step in [
        "host:app.localhost",
        "shared files:all",
        "neighbour links:all",
        "orphans:all",
    ] {
        deployment.fail(&[step]);
        let (code, text) = deployment.check();
        assert_eq!(code, Some(1), "{step}");
        assert!(text.contains("program-failed"), "{step}: {text}");
    }
    deployment.fail(&[]);
    let (_, text) = deployment.check();
    assert!(!text.contains("program-failed"), "{text}");
    // The server continues without the files of that host.
    deployment.fail(&["host:app.localhost", "shared files:all"]);
    let server = deployment.serve(&[]);
    assert_eq!(server.get(&server.domain(), "/about").status, 200);
    // Each line of the log is an event, also for panics. The last line may be incomplete.
    let log = server.log();
    let (lines, _) = log.rsplit_once('\n').expect("a line");
    let events = lines.lines().map(|line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|_| panic!("{line}"))
    });
    let panics = events.filter(|event| {
        event["panic.payload"] == "injected at shared files:all"
            && event["panic.location"]
                .as_str()
                .is_some_and(|place| place.contains("guard.rs"))
    });
    assert!(panics.count() > 0, "{log}");
}

#[test]
fn failed_reload_loop_reports_restarts_and_reads_next_change() {
    let deployment = FailingDeployment::new();
    let server = deployment.serve(&[]);
    let restarts = || {
        let metrics = server.get_admin("/metrics").text();
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("rowhouse_reload_loop_restarts_total "));
        line.and_then(|count| count.parse::<u64>().ok())
            .expect("a counter")
    };
    let steps = [
        "loop:wait",
        "loop:reload",
        "addresses:all",
        "loop:snapshot",
        "loop:report",
        "loop:take",
        "loop:pictures",
        "loop:persist",
    ];
    for (number, step) in steps.into_iter().enumerate() {
        let before = restarts();
        deployment.fail(&[step]);
        let words = format!("Words {number}.");
        deployment.page("app", &words);
        wait(&server, step, || {
            get_readiness(&server).contains("alarm: internal error") && restarts() > before
        });
        assert_eq!(server.get(&server.domain(), "/about").status, 200);
        deployment.fail(&[]);
        wait(&server, step, || {
            page_contains(&server, "/app/extra", &words)
        });
        wait(&server, step, || !get_readiness(&server).contains("alarm"));
    }
}

#[test]
fn panic_of_reload_loop_at_startup_keeps_process_unready() {
    let deployment = FailingDeployment::new();
    deployment.fail(&["addresses:all"]);
    let has_failed = || {
        let entries = fs::read_dir(deployment.0.path()).expect("a folder");
        let mut paths = entries.map(|entry| entry.expect("an entry").path());
        let log = paths.find(|path| path.extension().is_some_and(|end| end == "log"));
        let log = log.and_then(|log| fs::read_to_string(log).ok());
        log.is_some_and(|log| log.contains("internal error"))
    };
    let server = thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            while !has_failed() && begin.elapsed() < TIMEOUT {
                thread::sleep(Duration::from_millis(50));
            }
            deployment.fail(&[]);
        });
        deployment.serve(&[])
    });
    assert!(server.log().contains("internal error"), "{}", server.log());
    assert_eq!(server.get(&server.domain(), "/about").status, 200);
    assert!(!get_readiness(&server).contains("alarm"));
}

#[test]
fn endless_step_of_tenant_delays_no_startup_and_no_other_tenant() {
    for step in ["read", "compile"] {
        let deployment = FailingDeployment::new();
        for number in 0..8 {
            let name = format!("slow{number}");
            fs::create_dir_all(deployment.path(&format!("tenants/{name}/pages")))
                .expect("a folder");
            fs::write(
                deployment.path(&format!("tenants/{name}/tenant.yaml")),
                "name: Slow\n",
            )
            .expect("a file");
            deployment.page(&name, "Slow words.");
        }
        let points: Vec<String> = (0..8)
            .map(|number| format!("{step}:slow{number}:sleep"))
            .collect();
        let points: Vec<&str> = points.iter().map(String::as_str).collect();
        deployment.fail(&points);
        let server = deployment.serve(&[]);
        assert_eq!(server.get(&server.domain(), "/about").status, 200);
        let expected = match step {
            "read" => "slow0: absent, being rendered",
            _ => "pending: 8 of 10 tenants",
        };
        assert!(
            get_readiness(&server).contains(expected),
            "{}",
            get_readiness(&server)
        );
        let tenants = server.get_admin("/tenants").text();
        assert!(tenants.contains(r#""doing":"being rendered""#), "{tenants}");
        let begin = Instant::now();
        deployment.page("app", "In no time.");
        wait(&server, "the other tenant", || {
            page_contains(&server, "/app/extra", "In no time.")
        });
        assert!(begin.elapsed() < Duration::from_secs(20), "{step}");
        // The correction does not wait for the failed step.
        deployment.fail(&[]);
        deployment.page("slow0", "Corrected.");
        wait(&server, "the correction", || {
            page_contains(&server, "/slow0/extra", "Corrected.")
        });
        assert!(begin.elapsed() < Duration::from_secs(45), "{step}");
    }
}

/// Makes a named pipe, which cannot be read as a file.
fn pipe(path: &std::path::Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo").success());
}

#[test]
fn read_error_ends_with_its_cause_without_changed_bytes() {
    let deployment = FailingDeployment::new();
    let server = deployment.serve(&[]);
    let fifo = deployment.path("tenants/app/assets/ff");
    pipe(&fifo);
    wait(&server, "the error", || {
        get_readiness(&server).contains("app: degraded")
    });
    fs::remove_file(&fifo).expect("a file");
    wait(&server, "its end", || {
        !get_readiness(&server).contains("app")
    });
}

#[test]
fn unreadable_folder_is_retried_until_read() {
    let deployment = FailingDeployment::new();
    // Without watching, no change is noticed.
    let server = deployment.serve(&["--watch", "off"]);
    let fifo = deployment.path("tenants/app/assets/ff");
    pipe(&fifo);
    deployment.page("app", "New words.");
    server.signal("HUP");
    wait(&server, "the error", || {
        get_readiness(&server).contains("app: degraded")
    });
    fs::remove_file(&fifo).expect("a file");
    wait(&server, "the words", || {
        page_contains(&server, "/app/extra", "New words.")
    });
    wait(&server, "the end of the error", || {
        !get_readiness(&server).contains("app")
    });
}

#[test]
fn alarm_lasts_as_long_as_its_cause() {
    let deployment = FailingDeployment::new();
    let server = deployment.serve(&["--watch", "off"]);
    for folder in ["themes", "tenants"] {
        let away = deployment.path("away");
        fs::rename(deployment.path(folder), &away).expect("a folder");
        let words = format!("While {folder} were away.");
        server.signal("HUP");
        wait(&server, "the alarm", || {
            get_readiness(&server).contains("alarm: ")
        });
        fs::rename(&away, deployment.path(folder)).expect("a folder");
        deployment.page("app", &words);
        wait(&server, "the words", || {
            page_contains(&server, "/app/extra", &words)
        });
        wait(&server, "the end of the alarm", || {
            !get_readiness(&server).contains("alarm")
        });
    }
}

#[test]
fn tenant_with_lost_job_is_rendered_again() {
    let deployment = FailingDeployment::new();
    let server = deployment.serve(&[]);
    deployment.page("app", "Before.");
    wait(&server, "the page", || {
        page_contains(&server, "/app/extra", "Before.")
    });
    // The panic happens after the folder was read and its rendering has begun.
    deployment.fail(&["loop:hand over"]);
    deployment.page("app", "After.");
    wait(&server, "the panic", || {
        server.log().contains("internal error")
    });
    deployment.fail(&[]);
    wait(&server, "the page", || {
        page_contains(&server, "/app/extra", "After.")
    });
}

#[test]
fn folder_on_hanging_mount_delays_no_other_tenant() {
    let deployment = FailingDeployment::new();
    let server = deployment.serve(&[]);
    let app = deployment.path("tenants/app");
    let hanging = format!(
        "walk:{}:sleep",
        app.strip_prefix(deployment.0.path())
            .expect("a path")
            .display()
    );
    deployment.fail(&[&hanging]);
    deployment.page("app", "Not yet.");
    wait(&server, "the report", || {
        let tenants = server.get_admin("/tenants").text();
        tenants.contains("does not respond")
    });
    assert!(
        page_contains(&server, "/app/terms", "</html>"),
        "its pages stay"
    );
    deployment.page("home", "Home.");
    wait(&server, "another tenant", || {
        page_contains(&server, "/extra", "Home.")
    });
    deployment.fail(&[]);
    wait(&server, "the page", || {
        page_contains(&server, "/app/extra", "Not yet.")
    });
}

#[test]
fn watch_that_hangs_delays_no_command() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let deployment = FailingDeployment::new();
    fs::write(deployment.path("token"), TOKEN).expect("a file");
    // The watch hangs for a minute before its first listing.
    deployment.fail(&["watch:begin:sleep"]);
    let begin = Instant::now();
    let server = deployment.serve(&["--admin-token-file", "token"]);
    deployment.page("app", "Words that the watch does not notice.");
    let headers = [
        ("origin", "http://localhost"),
        ("sec-fetch-site", "same-origin"),
    ];
    let token = format!("token={TOKEN}");
    let answer = server.submit("/tenants/app/read", &token, &headers);
    assert_eq!(answer.status, 200, "{}", answer.text());
    wait(&server, "the new words", || {
        page_contains(&server, "/app/extra", "does not notice")
    });
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(50), "only after {took:?}");
}

#[test]
fn panic_of_watch_reloads_all_folders() {
    let deployment = FailingDeployment::new();
    deployment.fail(&["watch:begin"]);
    let server = deployment.serve(&[]);
    deployment.page("app", "Words before the watch.");
    deployment.fail(&[]);
    wait(&server, "the words before the watch", || {
        page_contains(&server, "/app/extra", "before the watch")
    });
    deployment.page("app", "Words after the watch.");
    wait(&server, "the words after the watch", || {
        page_contains(&server, "/app/extra", "after the watch")
    });
}
