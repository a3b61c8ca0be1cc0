//! Programs that a test starts and ends, and the files of `deploy/`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rowhouse_tests::{address_in, binary, skip, workspace};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::http;

/// The timeout of every wait: a debug build on a busy machine needs long to render every page.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the path of a file or folder of `deploy/`.
pub(crate) fn place(path: &str) -> PathBuf {
    workspace().join("deploy").join(path)
}

/// Returns the text of a file of `deploy/`.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(place(path)).unwrap_or_else(|error| panic!("deploy/{path}: {error}"))
}

/// Returns every file below a folder of `deploy/`, by its path from that folder.
pub(crate) fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("UTF-8");
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        if entry.path().is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the documents of a YAML file of `deploy/`.
pub(crate) fn yaml(path: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&text(path))
        .unwrap_or_else(|error| panic!("deploy/{path}: {error}"))
}

/// Whether a program is installed: see [`one_of`].
pub(crate) fn is_there(program: &str) -> bool {
    one_of(&[program]).is_some()
}

/// Returns the first of these programs that is on the PATH.
///
/// Without one, the test is skipped: this is a failure with the variable `CI` (set and not empty), and otherwise prints a line.
pub(crate) fn one_of<'a>(programs: &[&'a str]) -> Option<&'a str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_there = |program: &&&str| folders.iter().any(|folder| folder.join(program).is_file());
    let found = programs.iter().find(is_there).copied();
    if found.is_none() {
        let names = programs.join("` or `");
        let why = format!(
            "`{names}` is not on the PATH; `.ci/tools` fetches it, then: PATH=\"$PWD/target/tools/bin:$PATH\" cargo test"
        );
        skip(&why, true);
    }
    found
}

/// Runs a program, and returns whether it succeeded, and the text of both outputs.
pub(crate) fn run(command: &mut Command) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    (status.success(), said.into_owned())
}

/// Polls until `look` returns a value.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    wait_until(|| look().ok_or_else(|| what.to_owned()))
}

/// Polls until `look` succeeds. Its error says what is missing.
pub(crate) fn wait_until<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let begin = Instant::now();
    loop {
        match look() {
            Ok(seen) => return seen,
            Err(missing) => assert!(begin.elapsed() < TIMEOUT, "timeout: {missing}"),
        }
        sleep(Duration::from_millis(20));
    }
}

/// A running program, which ends with the test.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    log: NamedTempFile,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let child = command
            .stdin(Stdio::null())
            .stdout(log.reopen().expect("a file"))
            .stderr(log.reopen().expect("a file"))
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log }
    }

    /// Starts a program with sockets at its standard input and output. Its log is its standard error.
    pub(crate) fn start_between(command: &mut Command, input: OwnedFd, output: OwnedFd) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let child = command
            .stdin(input)
            .stdout(output)
            .stderr(log.reopen().expect("a file"))
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log }
    }

    /// Returns the process id, for `/proc`.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log.path()).expect("a file")
    }

    /// Panics if the program has ended.
    pub(crate) fn must_run(&mut self) {
        if let Some(status) = self.child.try_wait().expect("a child") {
            panic!("ended early: {status}\n{}", self.log());
        }
    }

    /// Sends SIGTERM, waits for the end, and returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let (sent, said) = run(Command::new("kill").arg(self.child.id().to_string()));
        assert!(sent, "{said}");
        self.wait()
    }

    /// Kills the program, which may have ended by itself.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end, and returns the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        wait_for("the end of a program", || {
            self.child.try_wait().expect("a child")
        })
        .code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `rowhouse serve`, configured by variables only, like the units and manifests.
#[derive(Debug)]
pub(crate) struct Rowhouse {
    pub(crate) program: Program,
    pub(crate) visitors: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Rowhouse {
    /// Serves a folder of tenants, and waits until the server is ready.
    pub(crate) fn start(tenants: &Path, origin: &str) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_at(tenants, origin, anywhere, anywhere)
    }

    /// Serves at addresses that an earlier server had.
    pub(crate) fn start_at(
        tenants: &Path,
        origin: &str,
        visitors: SocketAddr,
        admin: SocketAddr,
    ) -> Self {
        Self::start_with(
            Command::new(binary())
                .arg("serve")
                .current_dir(tenants)
                .env("ROWHOUSE_TENANTS", tenants)
                .env("ROWHOUSE_ORIGIN", origin)
                .env("ROWHOUSE_LISTEN", visitors.to_string())
                .env("ROWHOUSE_ADMIN", admin.to_string())
                .env("ROWHOUSE_TRUSTED_PROXY", "127.0.0.1")
                .env("ROWHOUSE_ACCESS_LOG", "json"),
        )
    }

    /// Starts a server by a command, which names free ports.
    pub(crate) fn start_with(command: &mut Command) -> Self {
        let program = Program::start(command);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let (visitors, admin) = (nowhere, nowhere);
        let mut server = Self {
            program,
            visitors,
            admin,
        };
        wait_for("a ready rowhouse", || {
            server.program.must_run();
            let log = server.program.log();
            let told = |name: &str| log.lines().find_map(|line| address_in(line, name));
            (server.visitors, server.admin) = (told("listen")?, told("admin")?);
            let ready = server.get_admin("/readyz");
            // The server is ready while tenants are pending; the tests need all of them.
            ready.filter(|(status, said)| *status == 200 && !said.contains("pending"))
        });
        server
    }

    /// Returns the status and the body at the admin listener, or `None` without a response.
    pub(crate) fn get_admin(&self, path: &str) -> Option<(u16, String)> {
        http::ask(self.admin, "localhost", path)
    }
}

/// Writes a small tenant.
pub(crate) fn tenant(folder: &Path, name: &str, more: &str) {
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    fs::write(folder.join("tenant.yaml"), format!("name: {name}\n{more}")).expect("a file");
    fs::write(
        folder.join("pages/index.md"),
        format!("---\ntitle: {name}\n---\nThis is the house of {name}.\n"),
    )
    .expect("a file");
}

/// Returns each text between `start` and `end`.
pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.match_indices(start)
        .filter_map(|(at, _)| text[at + start.len()..].split_once(end))
        .map(|(inner, _)| inner)
        .collect()
}

/// Returns every word that begins with `beginning` and continues with letters, digits and underscores.
pub(crate) fn words(text: &str, beginning: &str) -> BTreeSet<String> {
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| word.starts_with(beginning) && word.len() > beginning.len())
        .map(ToOwned::to_owned)
        .collect()
}

/// Runs a program with arguments, in `deploy/`.
pub(crate) fn tool<I: AsRef<OsStr>>(program: &str, arguments: &[I]) -> (bool, String) {
    run(Command::new(program).args(arguments).current_dir(place("")))
}
