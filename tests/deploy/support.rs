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

/// The longest that anything may take: a debug build on a busy machine compiles every page.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A file or folder of `deploy/`.
pub(crate) fn place(path: &str) -> PathBuf {
    workspace().join("deploy").join(path)
}

/// The text of a file of `deploy/`.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(place(path)).unwrap_or_else(|error| panic!("deploy/{path}: {error}"))
}

/// Every file below a folder of `deploy/`, by its path from there.
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

/// The documents of a YAML file of `deploy/`.
pub(crate) fn yaml(path: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&text(path))
        .unwrap_or_else(|error| panic!("deploy/{path}: {error}"))
}

/// Whether a program is there: see [`one_of`].
pub(crate) fn is_there(program: &str) -> bool {
    one_of(&[program]).is_some()
}

/// The first of these programs that is on the PATH, where any of them will do.
///
/// Without one nothing is tested: on CI (the variable `CI` is set, and not to nothing) that is a failure, elsewhere a line that says so.
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

/// What a program prints, to both outputs, and whether it is content.
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

/// Looks again and again until there is something to see.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    wait_until(|| look().ok_or_else(|| what.to_owned()))
}

/// The same, where each look says what is missing.
pub(crate) fn wait_until<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let begin = Instant::now();
    loop {
        match look() {
            Ok(seen) => return seen,
            Err(missing) => assert!(begin.elapsed() < TIMEOUT, "waited in vain for {missing}"),
        }
        sleep(Duration::from_millis(20));
    }
}

/// A running program. It ends with the test.
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

    /// The same with sockets at its standard input and output; its log is what it says to standard error.
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

    /// Its process, for `/proc`.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log.path()).expect("a file")
    }

    /// Fails if it has ended.
    pub(crate) fn must_run(&mut self) {
        if let Some(status) = self.child.try_wait().expect("a child") {
            panic!("ended early: {status}\n{}", self.log());
        }
    }

    /// Asks it to end and waits until it has: the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let (sent, said) = run(Command::new("kill").arg(self.child.id().to_string()));
        assert!(sent, "{said}");
        wait_for("the end of a program", || {
            self.child.try_wait().expect("a child")
        })
        .code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself, which is what some tests are about.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `rowhouse serve`, told everything by its environment, as every unit and manifest here does.
#[derive(Debug)]
pub(crate) struct Rowhouse {
    pub(crate) program: Program,
    pub(crate) visitors: SocketAddr,
    pub(crate) operators: SocketAddr,
}

impl Rowhouse {
    /// Serves a folder of tenants and waits until it is ready.
    pub(crate) fn start(tenants: &Path, origin: &str) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_at(tenants, origin, anywhere, anywhere)
    }

    /// The same at addresses that it had before.
    pub(crate) fn start_at(
        tenants: &Path,
        origin: &str,
        visitors: SocketAddr,
        operators: SocketAddr,
    ) -> Self {
        Self::start_with(
            Command::new(binary())
                .arg("serve")
                .current_dir(tenants)
                .env("ROWHOUSE_TENANTS", tenants)
                .env("ROWHOUSE_ORIGIN", origin)
                .env("ROWHOUSE_LISTEN", visitors.to_string())
                .env("ROWHOUSE_ADMIN", operators.to_string())
                .env("ROWHOUSE_TRUSTED_PROXY", "127.0.0.1")
                .env("ROWHOUSE_ACCESS_LOG", "json"),
        )
    }

    /// The same by a command of one's own, which names free ports.
    pub(crate) fn start_with(command: &mut Command) -> Self {
        let program = Program::start(command);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let (visitors, operators) = (nowhere, nowhere);
        let mut server = Self {
            program,
            visitors,
            operators,
        };
        wait_for("a ready rowhouse", || {
            server.program.must_run();
            let log = server.program.log();
            let told = |name: &str| log.lines().find_map(|line| address_in(line, name));
            (server.visitors, server.operators) = (told("listen")?, told("admin")?);
            let ready = server.operator("/readyz");
            // It serves while tenants are still to be rendered; the tests want them all.
            ready.filter(|(status, said)| *status == 200 && !said.contains("pending"))
        });
        server
    }

    /// The status and body that an operator gets; nothing when nobody answers.
    pub(crate) fn operator(&self, path: &str) -> Option<(u16, String)> {
        http::ask(self.operators, "localhost", path)
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

/// The words between two others, each time they stand in a text.
pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.match_indices(start)
        .filter_map(|(at, _)| text[at + start.len()..].split_once(end))
        .map(|(inner, _)| inner)
        .collect()
}

/// Every word of a text that begins in some way and goes on with letters, digits and underscores.
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
