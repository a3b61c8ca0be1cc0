//! The real binary on free ports, and a small client that can say what browsers never would.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::client::read_head;

/// The longest that a server may take to answer at first: a debug build compiles every page.
const PATIENCE: Duration = Duration::from_secs(120);

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
        let build = escargot::CargoBuild::new();
        // A benchmark measures what is released.
        let build = if cfg!(debug_assertions) {
            build
        } else {
            build.release()
        };
        build
            .manifest_path(crate::workspace().join("engine/rowhouse/Cargo.toml"))
            .bin("rowhouse")
            // Whatever is a feature is tested, too.
            .features("otlp")
            .target_dir(target_directory())
            .run()
            .expect("`cargo build --bin rowhouse`")
            .path()
            .to_owned()
    })
}

/// The folder that this test was built into, so that nothing is built twice.
fn target_directory() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    // target/debug/deps/suite-0123
    test.ancestors().nth(3).expect("a target folder").to_owned()
}

impl TestServer {
    /// Serves a folder that has `tenants`, and perhaps `themes`, in it.
    #[must_use]
    pub fn start(folder: &Path, more: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self::start_with(folder, more, &[], log, stderr)
    }

    /// The same, failing where the lines of the file `faults` say so (`content::report::guard::inject`); the file may change while the server runs.
    #[must_use]
    pub fn start_failing(folder: &Path, more: &[&str], faults: &Path) -> Self {
        let log = NamedTempFile::new().expect("a file");
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

    fn start_with(
        folder: &Path,
        more: &[&str],
        environment: &[(&str, &Path)],
        log: NamedTempFile,
        stderr: Stdio,
    ) -> Self {
        let (visitors, operators) = (free_address(), free_address());
        let mut command = Command::new(binary());
        command
            .current_dir(folder)
            .arg("serve")
            .args(["--listen", &visitors.to_string()])
            .args(["--admin", &operators.to_string()])
            .args(["--origin", &format!("http://localhost:{}", visitors.port())])
            .args(more)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(stderr);
        let child = command.spawn().expect("a started server");
        let mut server = Self {
            child,
            log,
            visitors,
            operators,
        };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&mut self) {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("a child") {
                panic!("the server ended at once: {status}\n{}", self.log());
            }
            if ask(self.operators, "GET", "/readyz", &[]).is_some_and(|answer| answer.status == 200)
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server was not ready within {PATIENCE:?}");
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
        while begin.elapsed() < PATIENCE {
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

/// An address of this machine that nobody listens on.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
}

fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .ok()?;
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
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
