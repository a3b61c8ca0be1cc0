//! A deployment with `--state`, and the content of its state.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use release::store::RetentionLimits;
use rowhouse_tests::{TestServer, fixture, state};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const RETENTION_LIMITS: RetentionLimits = RetentionLimits {
    releases: 10,
    bytes: 1 << 30,
};

/// A deployment with its state beside it.
pub(crate) struct StatefulDeployment(TempDir);

impl StatefulDeployment {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        for part in ["tenants", "themes"] {
            let from = fixture("sites").join(part);
            let done = Command::new("cp")
                .arg("-r")
                .args([&from, &folder.path().join(part)])
                .status();
            assert!(done.expect("cp").success());
        }
        Self(folder)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn serve(&self) -> TestServer {
        TestServer::start(self.0.path(), &["--state", "state"])
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).expect("a file");
    }

    /// Returns the names of the tables of the state.
    pub(crate) fn tables(&self) -> Vec<String> {
        state::tables(&self.path("state"))
    }

    /// Waits until a table exists and contains some words.
    pub(crate) fn wait_for_table(&self, table: &str, words: &str) {
        let begin = Instant::now();
        while !state::has_words(&self.path("state"), table, words) {
            assert!(begin.elapsed() < TIMEOUT, "timeout: {table} with `{words}`");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
