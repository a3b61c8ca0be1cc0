//! The real binary on free ports, and a small client that can send requests that browsers never send.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::bad_disk::BadDisk;
use crate::visitor::read_head;

/// The timeout of startup: a debug build needs long to render every page.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The time to wait for pending tenants.
const PENDING_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs a program with the socket of its standard input as descriptor 3 (`sd_listen_fds(3)`).
const HAND_OVER: &str = r#"exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@""#;

/// A running `rowhouse serve`.
#[derive(Debug)]
pub struct TestServer {
    child: Child,
    log: NamedTempFile,
    /// The address for visitors.
    pub visitors: SocketAddr,
    /// The address of the admin listener.
    pub admin: SocketAddr,
}

/// Returns the binary that cargo builds, once for each test run.
#[must_use]
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("this test");
        // target/debug/deps/suite-0123: the same profile and folder, so that no crate is built twice.
        let folder = test.ancestors().nth(2).expect("a profile's folder");
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        escargot::CargoBuild::new()
            .args(["--profile", profile])
            .manifest_path(crate::workspace().join("engine/rowhouse/Cargo.toml"))
            .bin("rowhouse")
            // Tests use every feature that is cheap to build. Benchmarks use the allocator of deployments.
            .features(match profile {
                "dev" => "bucket,otlp",
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
    /// Serves a folder with `tenants` and optionally `themes`, and waits until all tenants are rendered.
    #[must_use]
    pub fn start(folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self::start_with(folder, more, &[], log, stderr)
    }

    /// Serves a folder. Freed memory goes back to the system at once and not after a second, so that a peak is memory in use.
    #[must_use]
    pub fn start_without_retained_memory(folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        let environment = [("MIMALLOC_PURGE_DELAY", Path::new("0"))];
        Self::start_with(folder, more, &environment, log, stderr)
    }

    /// Serves a folder, and returns as soon as the server is ready. Tenants may be pending.
    #[must_use]
    pub fn start_at_once(folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self::spawn(shell(), folder, more, &[], log, stderr, Duration::ZERO)
    }

    /// Serves a folder, and fails at the points that the lines of the file `faults` name (`content::report::guard::inject`). The file may change while the server runs.
    /// The log is a file `*.log` in the folder, which can be read before the server is ready.
    #[must_use]
    pub fn start_with_faults(folder: &Path, more: &[&str], faults: &Path) -> Self {
        let log = tempfile::Builder::new().suffix(".log").tempfile_in(folder);
        let log = log.expect("a file");
        let stderr = log.reopen().expect("a file").into();
        let environment = [("ROWHOUSE_FAULTS", faults)];
        Self::start_with(folder, more, &environment, log, stderr)
    }

    /// Serves a folder with a log that goes to a pipe without a reader.
    #[must_use]
    pub fn start_with_unread_log(folder: &Path, more: &[&str]) -> Self {
        Self::start_with(
            folder,
            more,
            &[],
            NamedTempFile::new().expect("a file"),
            Stdio::piped(),
        )
    }

    /// Serves a folder with a bad disk.
    #[must_use]
    pub fn start_on(disk: &BadDisk, folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self::spawn(
            disk.command("sh"),
            folder,
            more,
            &[],
            log,
            stderr,
            PENDING_TIMEOUT,
        )
    }

    fn start_with(
        folder: &Path,
        more: &[&str],
        environment: &[(&str, &Path)],
        log: NamedTempFile,
        stderr: Stdio,
    ) -> Self {
        Self::spawn(
            shell(),
            folder,
            more,
            environment,
            log,
            stderr,
            PENDING_TIMEOUT,
        )
    }

    /// `command`: a shell. `pending_timeout`: the time to wait for pending tenants.
    fn spawn(
        mut command: Command,
        folder: &Path,
        more: &[&str],
        environment: &[(&str, &Path)],
        log: NamedTempFile,
        stderr: Stdio,
        pending_timeout: Duration,
    ) -> Self {
        // Opened before the program starts, as a supervisor does: the origin names the port, and no other program can take it.
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
            .envs(environment.iter().copied())
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::null())
            .stderr(stderr);
        if !more.contains(&"--origin") {
            command.args(["--origin", &format!("http://localhost:{}", visitors.port())]);
        }
        let child = command.spawn().expect("a started server");
        // The command also holds the socket. Connections would wait there after the program has ended.
        drop(command);
        let mut server = Self {
            child,
            log,
            visitors,
            admin: anywhere,
        };
        server.wait_until_ready(pending_timeout);
        server
    }

    fn wait_until_ready(&mut self, pending_timeout: Duration) {
        // Reads only the first lines of a log in a pipe.
        if let Some(pipe) = self.child.stderr.as_mut() {
            let mut lines = BufReader::with_capacity(1, pipe).lines();
            let address = lines.find_map(|line| address_in(&line.expect("a line"), "admin"));
            self.admin = address.expect("the address of the admin listener");
        }
        let begin = Instant::now();
        while begin.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child") {
                panic!("the server ended at once: {status}\n{}", self.log());
            }
            if self.admin.port() == 0 {
                let address = self
                    .log()
                    .lines()
                    .find_map(|line| address_in(line, "admin"));
                self.admin = address.unwrap_or(self.admin);
            } else if let Some(answer) = send_request(self.admin, "GET", "/readyz", &[])
                && answer.status == 200
                // The server is ready while tenants are pending; most tests need all of them.
                && (!answer.text().contains("pending") || begin.elapsed() > pending_timeout)
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

    /// Returns the log so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("a file")
    }

    /// Returns the domain with its port: `localhost:43210`.
    #[must_use]
    pub fn domain(&self) -> String {
        format!("localhost:{}", self.visitors.port())
    }

    /// Returns the response for a browser.
    #[must_use]
    pub fn get(&self, host: &str, path: &str) -> Answer {
        self.request("GET", host, path, &[])
    }

    /// Returns the response for any client.
    #[must_use]
    pub fn request(
        &self,
        method: &str,
        host: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut all = vec![("host", host)];
        all.extend(headers);
        send_request(self.visitors, method, path, &all).expect("an answer")
    }

    /// Returns the response of the admin listener.
    #[must_use]
    pub fn get_admin(&self, path: &str) -> Answer {
        self.get_admin_as("localhost", path)
    }

    /// Returns the response of the admin listener for a `Host`.
    #[must_use]
    pub fn get_admin_as(&self, host: &str, path: &str) -> Answer {
        send_request(self.admin, "GET", path, &[("host", host)]).expect("an answer")
    }

    /// Returns the response to a form of the console, from a browser with these header fields.
    #[must_use]
    pub fn submit(&self, path: &str, form: &str, fields: &[(&str, &str)]) -> Answer {
        let length = form.len().to_string();
        let mut all = vec![
            ("host", "localhost"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", &*length),
        ];
        all.extend(fields);
        send_request_with_body(self.admin, "POST", path, &all, form).expect("an answer")
    }

    /// Returns the process id, for `/proc`.
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

    /// Waits for the end, and returns the exit code; `None` if a signal ended the process, or after a timeout.
    pub fn wait(&mut self) -> Option<i32> {
        self.wait_for_status()?.code()
    }

    /// Waits for the end, and returns the status; `None` after a timeout.
    pub fn wait_for_status(&mut self) -> Option<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // The program may have ended by itself, as some tests expect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the value of a header field, or an empty string.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Returns the address of a listener (`listen` or `admin`) from a line of the log.
#[must_use]
pub fn address_in(line: &str, listener: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    line[listener].as_str()?.parse().ok()
}

/// Returns an address for a program that cannot report its port, or that starts again at the same one.
///
/// The port is below those that the system assigns (`ip_local_port_range`), so no other program gets it by chance. Parallel test programs begin at different ports.
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

fn send_request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Option<Answer> {
    send_request_with_body(address, method, path, headers, "")
}

fn send_request_with_body(
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
