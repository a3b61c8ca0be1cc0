//! A deployment whose folders are watched, and waits for its changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rowhouse_tests::TestServer;
use tempfile::TempDir;

/// Far more than a change takes, since the tests share their machine. A benchmark measures the time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A served deployment with one tenant, `home`.
pub(crate) struct WatchedDeployment {
    pub(crate) folder: TempDir,
    pub(crate) server: TestServer,
}

impl WatchedDeployment {
    pub(crate) fn start(more: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        write_tenant(&folder.path().join("tenants/home"), "Home");
        fs::write(
            folder.path().join("tenants/home/tenant.yaml"),
            "name: Home\nroot: true\n",
        )
        .expect("a file");
        let server = TestServer::start(folder.path(), more);
        Self { folder, server }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn title(&self, path: &str) -> Option<String> {
        let answer = self.server.get(&self.server.domain(), path);
        let text = answer.text();
        let title = text.split_once("<h1>")?.1.split_once("</h1>")?.0.to_owned();
        (answer.status == 200).then_some(title)
    }

    pub(crate) fn wait_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !done() {
            assert!(
                begin.elapsed() < TIMEOUT,
                "timeout: {what}: {}\n{}",
                self.server.get_admin("/readyz").text(),
                self.server.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a path shows a title, or no page.
    pub(crate) fn wait_for_title(&self, path: &str, title: Option<&str>) {
        let begin = Instant::now();
        while self.title(path).as_deref() != title {
            assert!(
                begin.elapsed() < TIMEOUT,
                "{path} shows {:?} and not {title:?}; {}",
                self.title(path),
                self.server.get_admin("/tenants").text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Writes a small tenant whose landing page has a title.
pub(crate) fn write_tenant(folder: &Path, title: &str) {
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    fs::write(folder.join("tenant.yaml"), format!("name: {title}\n")).expect("a file");
    write_page(folder, title);
}

pub(crate) fn write_page(folder: &Path, title: &str) {
    fs::write(
        folder.join("pages/index.md"),
        format!("---\ntitle: {title}\n---\n"),
    )
    .expect("a file");
}
