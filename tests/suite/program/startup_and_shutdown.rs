//! Startup and shutdown: inherited sockets, messages to the supervisor, signals, restarts under load.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, TestSite, address_in, binary, fixture};

/// A supervisor like systemd: it holds the listening socket, and gets the program's messages.
struct Supervisor {
    socket: TcpListener,
    told: UnixDatagram,
    _folder: tempfile::TempDir,
    notify: std::path::PathBuf,
}

impl Supervisor {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let notify = folder.path().join("notify");
        let told = UnixDatagram::bind(&notify).expect("a socket");
        told.set_read_timeout(Some(Duration::from_secs(120)))
            .expect("a timeout");
        Self {
            socket: TcpListener::bind("127.0.0.1:0").expect("a socket"),
            told,
            _folder: folder,
            notify,
        }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("an address")
    }

    /// Starts the program with the socket as descriptor 3 (`sd_listen_fds(3)`).
    fn start(&self, folder: &Path, more: &[&str]) -> Child {
        let socket: OwnedFd = self.socket.try_clone().expect("a socket").into();
        Command::new("sh")
            .args([
                "-c",
                r#"exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@""#,
                "sh",
            ])
            .arg(binary())
            .args(["serve", "--admin", "127.0.0.1:0"])
            .args([
                "--origin",
                &format!("http://localhost:{}", self.address().port()),
            ])
            .args(more)
            .env("NOTIFY_SOCKET", &self.notify)
            .current_dir(folder)
            .stdin(socket)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a started server")
    }

    /// Waits until the program sends a message that begins with `line`.
    fn wait_for_message(&self, line: &str) -> String {
        let mut message = [0; 1024];
        loop {
            let length = self.told.recv(&mut message).expect("a message in time");
            let text = String::from_utf8_lossy(&message[..length]).into_owned();
            if text.lines().any(|told| told.starts_with(line)) {
                return text;
            }
        }
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .expect("kill");
    assert!(status.success());
}

fn status_of(address: SocketAddr, path: &str) -> std::io::Result<u16> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let port = address.port();
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n"
    )?;
    let mut line = String::new();
    let mut reader = BufReader::new(socket);
    reader.read_line(&mut line)?;
    reader.read_to_end(&mut Vec::new())?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other(format!("no status: `{line}`")))
}

#[test]
fn restart_under_load_fails_no_request() {
    let state = tempfile::tempdir().expect("a folder");
    let state = state.path().to_str().expect("a path");
    for flags in [&["--state", state][..], &[]] {
        restart_under_load(flags);
    }
}

fn restart_under_load(flags: &[&str]) {
    let supervisor = Supervisor::new();
    let folder = fixture("sites");
    let mut running = supervisor.start(&folder, flags);
    supervisor.wait_for_message("READY=1");
    let (address, over, answered) = (
        supervisor.address(),
        AtomicBool::new(false),
        AtomicUsize::new(0),
    );
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let status = status_of(address, "/about");
                    assert_eq!(status.expect("an answer"), 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..2 {
            let so_far = answered.load(Ordering::Relaxed);
            while answered.load(Ordering::Relaxed) < so_far + 200 {
                std::thread::yield_now();
            }
            signal(&running, "TERM");
            supervisor.wait_for_message("STOPPING=1");
            assert_eq!(running.wait().expect("an end").code(), Some(0));
            running = supervisor.start(&folder, flags);
            supervisor.wait_for_message("READY=1");
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 400);
    signal(&running, "TERM");
    assert_eq!(running.wait().expect("an end").code(), Some(0));
}

#[test]
fn supervisor_is_notified_of_reloads_and_shutdown() {
    let supervisor = Supervisor::new();
    let mut running = supervisor.start(&fixture("sites"), &[]);
    assert!(supervisor.wait_for_message("READY=1").contains("STATUS="));
    signal(&running, "HUP");
    assert!(
        supervisor
            .wait_for_message("RELOADING=1")
            .contains("MONOTONIC_USEC=")
    );
    supervisor.wait_for_message("READY=1");
    assert_eq!(
        status_of(supervisor.address(), "/about").expect("an answer"),
        200
    );
    signal(&running, "TERM");
    supervisor.wait_for_message("STOPPING=1");
    assert_eq!(running.wait().expect("an end").code(), Some(0));
}

/// Opens a request whose head is incomplete, so it is in flight as long as the socket is open.
fn unfinished(server: &TestServer) -> TcpStream {
    let mut socket = TcpStream::connect(server.visitors).expect("a connection");
    write!(socket, "GET /about HTTP/1.1\r\n").expect("half a request");
    let counted = || {
        let metrics = server.get_admin("/metrics").text();
        metrics.contains("\nrowhouse_connections_open 1\n")
    };
    wait_until(counted);
    socket
}

fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(30), "timeout");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn shutdown_logs_what_it_waited_for() {
    let mut server = TestServer::start(&fixture("sites"), &["--grace", "1"]);
    let _open = unfinished(&server);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let log = server.log();
    let drained = log
        .lines()
        .find(|line| line.contains("\"drained\""))
        .expect("a line");
    for told in [
        r#""waited_for":"1 incomplete request""#,
        r#""cut":"1 incomplete request""#,
    ] {
        assert!(drained.contains(told), "{told} in {drained}");
    }
}

#[test]
fn second_signal_ends_process_at_once_with_exit_code_2() {
    let mut server = TestServer::start(&fixture("sites"), &["--grace", "100"]);
    let _open = unfinished(&server);
    server.signal("TERM");
    wait_until(|| server.log().contains("\"draining\""));
    let begin = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait(), Some(2));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn address_in_use_ends_process_with_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("an address").to_string();
    let output = Command::new(binary())
        .args(["serve", "--listen", &address])
        .current_dir(fixture("sites"))
        .output()
        .expect("rowhouse");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(&address) && text.contains("`--listen`"),
        "{text}"
    );
}

#[test]
fn emptied_folder_raises_alarm_until_restored() {
    let site = TestSite::fixture("sites");
    let server = TestServer::start(site.folder(), &[]);
    let alarm = |value: u8| {
        let line = format!("\nrowhouse_reload_alarm {value}\n");
        server.get_admin("/metrics").text().contains(&line)
    };
    assert!(alarm(0));
    let (here, away) = (site.folder().join("tenants"), site.folder().join("away"));
    std::fs::rename(&here, &away).expect("moved");
    server.signal("HUP");
    wait_until(|| alarm(1));
    let ready = server.get_admin("/readyz");
    assert_eq!(ready.status, 200, "the last state is served");
    assert!(
        ready.text().contains("cannot read the folder"),
        "{}",
        ready.text()
    );
    std::fs::rename(&away, &here).expect("moved");
    server.signal("HUP");
    wait_until(|| alarm(0));
}

#[test]
fn reload_during_drain_does_not_make_ready() {
    let mut server = TestServer::start(&fixture("sites"), &["--grace", "100"]);
    let _open = unfinished(&server);
    server.signal("TERM");
    wait_until(|| server.get_admin("/readyz").status == 503);
    server.signal("HUP");
    wait_until(|| server.log().contains("\"reloaded\""));
    let ready = server.get_admin("/readyz");
    assert_eq!(
        (ready.status, ready.text().lines().next()),
        (503, Some("not ready"))
    );
    server.signal("TERM");
    assert_eq!(server.wait(), Some(2));
}

/// The program with a limit of descriptors (`ulimit -n`), and its addresses from its log.
struct LimitedServer {
    child: Child,
    log: tempfile::NamedTempFile,
    visitors: SocketAddr,
    admin: SocketAddr,
}

impl LimitedServer {
    fn start(folder: &Path, descriptors: &str, flags: &[&str]) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let child = Command::new("sh")
            .args(["-c", &format!(r#"ulimit {descriptors} && exec "$@""#), "sh"])
            .arg(binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(flags)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(log.reopen().expect("a file"))
            .spawn()
            .expect("a started server");
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self {
            child,
            log,
            visitors: anywhere,
            admin: anywhere,
        };
        wait_until(|| server.said("\"serving\"").is_some());
        let line = server.said("\"serving\"").expect("a line");
        let address = |name: &str| address_in(&line, name).expect("an address");
        (server.visitors, server.admin) = (address("listen"), address("admin"));
        server
    }

    fn said(&self, text: &str) -> Option<String> {
        let log = std::fs::read_to_string(self.log.path()).expect("a file");
        let line = log.lines().find(|line| line.contains(text));
        line.map(ToOwned::to_owned)
    }

    /// Returns the value of a metric without labels.
    fn metric(&self, name: &str) -> u64 {
        let mut socket = TcpStream::connect(self.admin).expect("a connection");
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout");
        let ask = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        socket.write_all(ask).expect("a question");
        let mut text = String::new();
        socket.read_to_string(&mut text).expect("an answer");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.expect("a metric").trim();
        value.parse().expect("a number")
    }
}

impl Drop for LimitedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn descriptors_are_reserved_for_admin_listener_and_folders() {
    let mut site = TestSite::fixture("sites");
    let flags = ["--max-connections-per-address", "5000"];
    let server = LimitedServer::start(site.folder(), "-n 384", &flags);
    let told = server.said("LimitNOFILE").expect("a warning");
    assert!(
        told.contains("WARN") && told.contains("ulimit -n"),
        "{told}"
    );
    let limit = server.metric("rowhouse_connections_limit ");
    assert!((1..=128).contains(&limit), "{limit}");
    let _idle: Vec<_> = (0..400)
        .map(|_| TcpStream::connect(server.visitors).expect("a connection"))
        .collect();
    wait_until(|| server.metric("rowhouse_connections_total ") >= 400);
    assert!(status_of(server.visitors, "/about").expect("an answer") > 0);
    site.write("tenants/new/tenant.yaml", "name: New\n");
    site.write("tenants/new/pages/index.md", "---\ntitle: New\ndescription: A page that came while all connections were taken.\n---\n# New\n");
    wait_until(|| status_of(server.visitors, "/new").is_ok_and(|status| status == 200));
}

#[test]
fn soft_limit_of_descriptors_is_raised_to_hard_limit() {
    let server = LimitedServer::start(&fixture("sites"), "-Sn 300 && ulimit -Hn 8000", &[]);
    assert!(server.said("LimitNOFILE").is_none());
    assert_eq!(server.metric("rowhouse_connections_limit "), 4096);
    let limits = format!("/proc/{}/limits", server.child.id());
    let limits = std::fs::read_to_string(limits).expect("the process");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    assert_eq!(soft, Some("8000"), "{limits}");
}
