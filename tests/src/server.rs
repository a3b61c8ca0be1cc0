//! The real binary on free ports, and a small client that can say what browsers never would.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::bad_disk::BadDisk;
use crate::client::read_head;

/// The longest that a server may take to answer at first: a debug build compiles every page.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// How long tenants may take that are waited for.
const LONG: Duration = Duration::from_secs(15);

/// Runs a program with the socket at its standard input as the third descriptor, as `sd_listen_fds(3)` has it.
const HAND_OVER: &str = r#"exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@""#;

/// A running `rowhouse serve`.
#[derive(Debug)]
pub struct TestServer {
    child: Child,
    log: NamedTempFile,
    /// Where visitors come.
    pub visitors: SocketAddr,
    /// Where operators ask.
    pub operators: SocketAddr,
}

/// The binary as cargo builds it, built once a test run.
#[must_use]
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("this test");
        // target/debug/deps/suite-0123: the same profile in the same folder, so that nothing is built twice.
        let folder = test.ancestors().nth(2).expect("a profile's folder");
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        escargot::CargoBuild::new()
            .args(["--profile", profile])
            .manifest_path(crate::workspace().join("engine/rowhouse/Cargo.toml"))
            .bin("rowhouse")
            // What is tested has every feature that costs little to build, and what is measured the allocator of what is deployed.
            .features(match profile {
                "dev" => "otlp",
                _ => "otlp,jemalloc",
            })
            .target_dir(folder.parent().expect("a target folder"))
            .run()
            .expect("`cargo build --bin rowhouse`")
            .path()
            .to_owned()
    })
}

fn shell() -> Command {
    Command::new("sh")
}

impl TestServer {
    /// Serves a folder that has `tenants`, and perhaps `themes`, in it.
    #[must_use]
    pub fn start(folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self::start_with(folder, more, &[], log, stderr)
    }

    /// The same, as soon as it serves: tenants may still have to be rendered.
    #[must_use]
    pub fn start_at_once(folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self::spawn(shell(), folder, more, &[], log, stderr, Duration::ZERO)
    }

    /// The same, failing where the lines of the file `faults` say so (`content::report::guard::inject`); the file may change while the server runs.
    /// Its log is a file `*.log` in the folder, which can be read before the server is ready.
    #[must_use]
    pub fn start_failing(folder: &Path, more: &[&str], faults: &Path) -> Self {
        let log = tempfile::Builder::new().suffix(".log").tempfile_in(folder);
        let log = log.expect("a file");
        let stderr = log.reopen().expect("a file").into();
        let environment = [("ROWHOUSE_FAULTS", faults)];
        Self::start_with(folder, more, &environment, log, stderr)
    }

    /// The same, with a log that goes into a pipe whose other end nobody reads.
    #[must_use]
    pub fn start_unread(folder: &Path, more: &[&str]) -> Self {
        Self::start_with(
            folder,
            more,
            &[],
            NamedTempFile::new().expect("a file"),
            Stdio::piped(),
        )
    }

    /// The same on a disk that takes nothing.
    #[must_use]
    pub fn start_on(disk: &BadDisk, folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self::spawn(disk.begin("sh"), folder, more, &[], log, stderr, LONG)
    }

    fn start_with(
        folder: &Path,
        more: &[&str],
        environment: &[(&str, &Path)],
        log: NamedTempFile,
        stderr: Stdio,
    ) -> Self {
        Self::spawn(shell(), folder, more, environment, log, stderr, LONG)
    }

    /// `command`: a shell. `long`: how long tenants may take that are waited for.
    fn spawn(
        mut command: Command,
        folder: &Path,
        more: &[&str],
        environment: &[(&str, &Path)],
        log: NamedTempFile,
        stderr: Stdio,
        long: Duration,
    ) -> Self {
        // Open before the program is there, as a supervisor holds it: the origin names its port, and nobody else can get it.
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let socket = server::listen::bind(anywhere).expect("a socket");
        let visitors = socket.local_addr().expect("an address");
        command
            .current_dir(folder)
            .args(["-c", HAND_OVER, "sh"])
            .arg(binary())
            .args(["serve", "--admin", "127.0.0.1:0"])
            .args(more)
            .env_remove("RUST_LOG")
            // As `deploy/` has it: what the allocator keeps for each thread is not what tests of memory look for.
            .env("MALLOC_ARENA_MAX", "1")
            .envs(environment.iter().copied())
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::null())
            .stderr(stderr);
        if !more.contains(&"--origin") {
            command.args(["--origin", &format!("http://localhost:{}", visitors.port())]);
        }
        let child = command.spawn().expect("a started server");
        // The command holds the socket, too, and connections would wait there for a program that has ended.
        drop(command);
        let mut server = Self {
            child,
            log,
            visitors,
            operators: anywhere,
        };
        server.wait_until_ready(long);
        server
    }

    fn wait_until_ready(&mut self, long: Duration) {
        // Of a log that goes into a pipe only the beginning is read.
        if let Some(pipe) = self.child.stderr.as_mut() {
            let mut lines = BufReader::with_capacity(1, pipe).lines();
            let told = lines.find_map(|line| address_in(&line.expect("a line"), "admin"));
            self.operators = told.expect("a server that says where it serves");
        }
        let begin = Instant::now();
        while begin.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child") {
                panic!("the server ended at once: {status}\n{}", self.log());
            }
            if self.operators.port() == 0 {
                let told = self
                    .log()
                    .lines()
                    .find_map(|line| address_in(line, "admin"));
                self.operators = told.unwrap_or(self.operators);
            } else if let Some(answer) = ask(self.operators, "GET", "/readyz", &[])
                && answer.status == 200
                // It serves while tenants are still to be rendered; most tests want them all.
                && (!answer.text().contains("pending") || begin.elapsed() > long)
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!(
            "the server was not ready within {START_TIMEOUT:?}\n{}",
            self.log()
        );
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("a file")
    }

    /// The domain with its port: `localhost:43210`.
    #[must_use]
    pub fn domain(&self) -> String {
        format!("localhost:{}", self.visitors.port())
    }

    /// What a browser would get for a path of a host.
    #[must_use]
    pub fn get(&self, host: &str, path: &str) -> Answer {
        self.ask("GET", host, path, &[])
    }

    /// What any client would get.
    #[must_use]
    pub fn ask(&self, method: &str, host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut all = vec![("host", host)];
        all.extend(headers);
        ask(self.visitors, method, path, &all).expect("an answer")
    }

    /// What an operator would get.
    #[must_use]
    pub fn operator(&self, path: &str) -> Answer {
        self.operator_as("localhost", path)
    }

    /// What an operator would get who names the admin listener like this.
    #[must_use]
    pub fn operator_as(&self, host: &str, path: &str) -> Answer {
        ask(self.operators, "GET", path, &[("host", host)]).expect("an answer")
    }

    /// What a form of the console would get, from a browser that names itself with these fields.
    #[must_use]
    pub fn submit(&self, path: &str, form: &str, fields: &[(&str, &str)]) -> Answer {
        let length = form.len().to_string();
        let mut all = vec![
            ("host", "localhost"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", &*length),
        ];
        all.extend(fields);
        ask_with(self.operators, "POST", path, &all, form).expect("an answer")
    }

    /// The process, for `/proc`.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, `TERM` or `HUP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .expect("kill");
        assert!(status.success());
    }

    /// Waits for the end: the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let begin = Instant::now();
        while begin.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // It may have ended by itself, which is what some tests are about.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The fields by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A field, or nothing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The address of a listener, if this is the line of a log that says where the program serves: `listen` or `admin`.
#[must_use]
pub fn address_in(line: &str, listener: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    line[listener].as_str()?.parse().ok()
}

/// An address for a program that cannot say which one it was given, or that comes back at the same one.
///
/// Its port is below those that the system gives out by itself (`ip_local_port_range`), so that nobody gets it by chance before the program takes it. Test programs that run at once begin at different ports.
#[must_use]
pub fn reserved_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 1_000) as u16 * 20;
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}

fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Option<Answer> {
    ask_with(address, method, path, headers, "")
}

fn ask_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    content: &str,
) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .ok()?;
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.push_str(content);
    stream.write_all(request.as_bytes()).ok()?;
    let mut reader = BufReader::new(stream);
    let (status, headers) = read_head(&mut reader).ok()?;
    let mut body = Vec::new();
    reader.read_to_end(&mut body).ok()?;
    Some(Answer {
        status,
        headers,
        body,
    })
}
