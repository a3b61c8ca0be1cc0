//! Upgrades without a service manager: a new process takes over the sockets of the running server (`serve --takeover`).

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::{ResponseFuture, SendRequest};
use http::Request;
use rowhouse_tests::{TestServer, address_in, binary};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tempfile::TempDir;
use tokio_rustls::TlsConnector;

use crate::http::{Visitor, ask};
use crate::support::{Program, Rowhouse, run, tenant, wait_for};
use crate::tls::{DOMAIN, Files, Signer};

/// The number of responses between two steps.
const RESPONSES_PER_STEP: usize = 200;

/// The number of streams at a time on one connection of HTTP/2.
const STREAMS: usize = 20;

/// The pause between two requests of a kept connection, in which the connection is idle.
const THINK_TIME: Duration = Duration::from_millis(2);

trait Channel: Read + Write {}

impl<T: Read + Write> Channel for T {}

/// A visitor of one listener.
struct Client {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    keeps: bool,
    open: Option<Visitor<Box<dyn Channel>>>,
}

impl Client {
    fn connect(&self) -> io::Result<Visitor<Box<dyn Channel>>> {
        let socket = TcpStream::connect(self.address)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        let channel: Box<dyn Channel> = match &self.tls {
            None => Box::new(socket),
            Some(config) => {
                let name = ServerName::try_from(DOMAIN).map_err(io::Error::other)?;
                let session = ClientConnection::new(Arc::clone(config), name);
                Box::new(StreamOwned::new(session.map_err(io::Error::other)?, socket))
            }
        };
        Ok(Visitor::over(channel))
    }

    fn visit(&mut self) -> io::Result<()> {
        let mut visitor = self.open.take().map_or_else(|| self.connect(), Ok)?;
        let more = if self.keeps {
            ""
        } else {
            "connection: close\r\n"
        };
        let (status, is_kept, body) = visitor.get(DOMAIN, "/", more)?;
        if self.keeps && is_kept {
            self.open = Some(visitor);
            thread::sleep(THINK_TIME);
        }
        match status == 200 && body.trim_ascii_end().ends_with(b"</html>") {
            true => Ok(()),
            false => Err(io::Error::other(format!("{status}, {} bytes", body.len()))),
        }
    }
}

/// The load: the number of responses, and whether the load has ended.
#[derive(Debug, Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicUsize,
}

impl Load {
    /// Sends requests until the load ends, and returns the failures.
    fn run(&self, mut client: Client) -> Vec<String> {
        let mut failures = Vec::new();
        while !self.over.load(Relaxed) && failures.len() < 10 {
            match client.visit() {
                Ok(()) => drop(self.answered.fetch_add(1, Relaxed)),
                Err(error) => failures.push(format!(
                    "tls: {}, kept: {}: {error}",
                    client.tls.is_some(),
                    client.keeps
                )),
            }
        }
        failures
    }

    fn wait_for_responses(&self) {
        let until = self.answered.load(Relaxed) + RESPONSES_PER_STEP;
        wait_for("some more responses", || {
            (self.answered.load(Relaxed) >= until).then_some(())
        });
    }
}

/// Sends requests over HTTP/2, with several streams at a time on a kept connection, until the load ends. Returns the failures.
fn run_http2(load: &Load, address: SocketAddr, config: &ClientConfig) -> Vec<String> {
    let mut config = config.clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("an event loop").block_on(async {
        let mut failures = Vec::new();
        while !load.over.load(Relaxed) && failures.len() < 10 {
            if let Err(error) = http2_connection(load, address, &config).await {
                failures.push(format!("HTTP/2: {error}"));
            }
        }
        failures
    })
}

/// Sends requests on one connection until the server ends the connection or the load ends.
async fn http2_connection(
    load: &Load,
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> io::Result<()> {
    let socket = tokio::net::TcpStream::connect(address).await?;
    let name = ServerName::try_from(DOMAIN).map_err(io::Error::other)?;
    let connector = TlsConnector::from(Arc::clone(config));
    let failed = |step: &str, error: &dyn std::fmt::Display| {
        io::Error::other(format!("cannot {step}: {error}"))
    };
    let socket = connector.connect(name, socket).await;
    let socket = socket.map_err(|error| failed("open a TLS session", &error))?;
    let handshake = h2::client::handshake(socket).await;
    let (client, connection) = handshake.map_err(|error| failed("begin HTTP/2", &error))?;
    tokio::spawn(connection);
    while !load.over.load(Relaxed) {
        let mut responses = Vec::new();
        for _ in 0..STREAMS {
            match send(&client).await {
                // Read at the same time, since the streams share a window.
                Ok(response) => responses.push(tokio::spawn(page(response))),
                Err(error) if is_not_handled(&error) => break,
                Err(error) => return Err(failed("send a request", &error)),
            }
        }
        let has_all = responses.len() == STREAMS;
        for response in responses {
            match response.await.map_err(io::Error::other)? {
                Ok(true) => drop(load.answered.fetch_add(1, Relaxed)),
                Ok(false) => return Err(io::Error::other("an incomplete page")),
                // The visitor's browser sends the request again.
                Err(error) if is_not_handled(&error) => {}
                Err(error) => return Err(failed("read a response", &error)),
            }
        }
        if !has_all {
            return Ok(());
        }
        tokio::time::sleep(THINK_TIME).await;
    }
    Ok(())
}

async fn send(client: &SendRequest<Bytes>) -> Result<ResponseFuture, h2::Error> {
    let mut client = client.clone().ready().await?;
    let request = Request::get(format!("https://{DOMAIN}/")).body(());
    let (response, _) = client.send_request(request.expect("a request"), true)?;
    Ok(response)
}

/// Reads a response. Returns whether it is a complete page.
async fn page(response: ResponseFuture) -> Result<bool, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok(head.status == 200 && body.trim_ascii_end().ends_with(b"</html>"))
}

/// Returns whether the server has not handled the stream of the error, so that a client may send the request again (RFC 9113, section 8.7).
fn is_not_handled(error: &h2::Error) -> bool {
    error.reason() == Some(Reason::REFUSED_STREAM)
        || (error.is_go_away() && error.reason() == Some(Reason::NO_ERROR))
}

/// Ends the load when dropped, also after a failure; otherwise the visitors could not be joined.
struct EndOnDrop<'a>(&'a Load);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}

/// The folders of a server that opens its sockets itself.
struct Deployment {
    folder: TempDir,
}

impl Deployment {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        tenant(&folder.path().join("tenants/home"), "Home", "root: true\n");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("serve")
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(more)
            // Variables, so that a flag can replace them.
            .env("ROWHOUSE_TENANTS", "tenants")
            .env("ROWHOUSE_STATE", "state")
            .env_remove("RUST_LOG")
            .current_dir(self.folder.path());
        command
    }

    /// Starts a server, with the commands of operators.
    fn start(&self, more: &[&str]) -> Rowhouse {
        Rowhouse::start_with(&mut self.command(more))
    }

    fn control_socket(&self) -> PathBuf {
        self.path("state/control/0.sock")
    }
}

fn wait_for_line(program: &Program, line: &str) {
    wait_for(line, || program.log().contains(line).then_some(()));
}

/// Returns the mode of a file, without its type.
fn mode(path: &Path) -> u32 {
    let metadata = std::fs::metadata(path).expect("a file");
    metadata.permissions().mode() & 0o777
}

#[test]
fn takeover_under_load_fails_no_request() {
    let deployment = Deployment::new();
    let folder = deployment.folder.path();
    let signer = Signer::new();
    let files: Files = signer.write(folder);
    let start = |more: &[&str]| {
        let mut command = files.serve(&deployment.path("tenants"));
        command
            .args(["--listen", "127.0.0.1:0", "--https", "127.0.0.1:0"])
            .args(["--admin", "127.0.0.1:0", "--state", "state"])
            .args(more)
            .current_dir(folder);
        Rowhouse::start_with(&mut command)
    };
    let mut running = start(&[]);
    assert_eq!(mode(&deployment.path("state/control")), 0o700);
    assert_eq!(mode(&deployment.control_socket()), 0o600);
    let log = running.program.log();
    let secure = log.lines().find_map(|line| address_in(line, "https"));
    let (clear, secure) = (running.visitors, secure.expect("an address"));
    let config = signer.visitor();

    let load = Load::default();
    let failures: Vec<String> = thread::scope(|scope| {
        let _ending = EndOnDrop(&load);
        let clients = [(false, false), (false, true), (true, false), (true, true)];
        let mut visitors: Vec<_> = clients
            .into_iter()
            .map(|(is_secure, keeps)| {
                let client = move |config| Client {
                    address: if is_secure { secure } else { clear },
                    tls: is_secure.then_some(config),
                    keeps,
                    open: None,
                };
                let (load, config) = (&load, Arc::clone(&config));
                scope.spawn(move || load.run(client(config)))
            })
            .collect();
        let (load_of_http2, config) = (&load, Arc::clone(&config));
        visitors.push(scope.spawn(move || run_http2(load_of_http2, secure, &config)));
        load.wait_for_responses();
        // The second takeover is from a process that has taken over itself.
        for _ in 0..2 {
            let next = start(&["--takeover"]);
            assert_eq!((next.visitors, next.admin), (clear, running.admin));
            wait_for_line(&next.program, "took over");
            let code = running.program.wait();
            assert_eq!(code, Some(0), "{}", running.program.log());
            wait_for_line(&next.program, "state can be written now");
            running = next;
            // Only the new process serves these.
            load.wait_for_responses();
        }
        load.over.store(true, Relaxed);
        visitors
            .into_iter()
            .flat_map(|visitor| visitor.join().expect("a visitor"))
            .collect()
    });
    assert!(failures.is_empty(), "{failures:?}");
    let ready = running.get_admin("/readyz").expect("a response");
    assert_eq!(ready.0, 200, "{}", ready.1);
    assert_eq!(running.program.end(), Some(0));
    assert!(TcpStream::connect(clear).is_err(), "a socket is left open");
}

#[test]
fn running_server_serves_on_if_new_process_does_not_become_ready() {
    let deployment = Deployment::new();
    let mut running = deployment.start(&[]);
    let serves = |running: &mut Rowhouse| {
        running.program.must_run();
        let page = ask(running.visitors, "localhost:8080", "/");
        assert!(page.is_some_and(|(status, _)| status == 200));
        let ready = running.get_admin("/readyz").expect("a response");
        assert_eq!(ready.0, 200, "{}", ready.1);
    };
    let failed = "takeover failed; serving as before";

    // Flags that are refused before the takeover, and folders that cannot be read after it.
    for flags in [["--memory", "much"], ["--tenants", "missing"]] {
        let mut wrong = deployment.command(&["--takeover"]);
        let (is_done, said) = run(wrong.args(flags));
        assert!(!is_done, "{said}");
        serves(&mut running);
    }
    wait_for_line(&running.program, failed);
    assert_eq!(running.program.log().matches(failed).count(), 1);

    // A new process with a fault, and a new process that is killed.
    let faults = deployment.path("faults");
    std::fs::write(&faults, "start:all\n").expect("a file");
    let mut faulty = deployment.command(&["--takeover"]);
    let (is_done, said) = run(faulty.env("ROWHOUSE_FAULTS", &faults));
    assert!(!is_done && said.contains("not ready"), "{said}");
    assert!(
        said.contains("the running server serves as before"),
        "{said}"
    );
    serves(&mut running);

    std::fs::write(&faults, "start:all:sleep\n").expect("a file");
    let mut slow = deployment.command(&["--takeover"]);
    let slow = Program::start(slow.env("ROWHOUSE_FAULTS", &faults));
    wait_for_line(&slow, "taking over from the running server");
    let resume = || {
        let admin = running.admin.to_string();
        run(Command::new(binary()).args(["resume", "home", "--admin", &admin]))
    };
    let (is_done, said) = resume();
    assert!(
        !is_done && said.contains("a new process is taking over"),
        "{said}"
    );
    drop(slow);
    wait_for("a takeover that has failed", || {
        (running.program.log().matches(failed).count() == 3).then_some(())
    });
    let (is_done, said) = resume();
    assert!(is_done, "{said}");
    serves(&mut running);

    // The socket still works.
    let mut next = deployment.start(&["--takeover"]);
    assert_eq!(running.program.wait(), Some(0));
    serves(&mut next);
}

#[test]
fn alarm_of_a_misspelt_tenant_does_not_stop_a_takeover() {
    let deployment = Deployment::new();
    let hash = "0".repeat(64);
    let rules = format!(
        "root: home\naccess: {{client: {{user: a, token_sha256: \"{hash}\"}}}}\ntenants: {{hom: {{access: [client]}}}}\n"
    );
    std::fs::write(deployment.path("tenants/deployment.yaml"), rules).expect("a file");
    let mut running = deployment.start(&[]);
    let alarm = running.get_admin("/readyz").expect("a response");
    assert!(alarm.1.contains("unknown tenant `hom`"), "{}", alarm.1);
    let mut next = deployment.start(&["--takeover"]);
    assert_eq!(running.program.wait(), Some(0));
    next.program.must_run();
}

#[test]
fn takeover_without_running_server_starts_normally() {
    let deployment = Deployment::new();
    // A process that has ended leaves its socket.
    let killed = deployment.start(&[]);
    drop(killed);
    assert!(deployment.control_socket().exists());
    let mut server = deployment.start(&["--takeover"]);
    wait_for_line(
        &server.program,
        "no running server to take over from; starting normally",
    );
    assert_eq!(server.program.end(), Some(0));

    let mut without_path = Command::new(binary());
    let (is_done, said) = run(without_path
        .args(["serve", "--takeover"])
        .current_dir(deployment.folder.path()));
    assert!(!is_done && said.contains("--control-socket FILE"), "{said}");
}

#[test]
fn file_at_path_of_control_socket_stays() {
    let deployment = Deployment::new();
    let file = deployment.path("notes.txt");
    std::fs::write(&file, "precious").expect("a file");
    let (is_done, said) = run(&mut deployment.command(&["--control-socket", "notes.txt"]));
    assert!(!is_done && said.contains("not a socket"), "{said}");
    assert_eq!(std::fs::read(&file).ok().as_deref(), Some(&b"precious"[..]));
}

#[test]
fn sockets_of_service_manager_are_not_handed_over() {
    let deployment = Deployment::new();
    let state = deployment.path("state");
    let state = state.to_str().expect("a path");
    let server = TestServer::start(deployment.folder.path(), &["--state", state]);
    let (is_done, said) = run(&mut deployment.command(&["--takeover"]));
    assert!(!is_done && said.contains("restart the service"), "{said}");
    assert_eq!(server.get(&server.domain(), "/").status, 200);
}

/// Starts a receiver of alerts. Returns its URL, and the received messages.
fn receiver() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address");
    let messages = Arc::<Mutex<Vec<String>>>::default();
    let received = Arc::clone(&messages);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut reader = BufReader::new(socket.expect("a connection"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a number");
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let body = String::from_utf8(body).expect("text");
            received.lock().expect("no panic").push(body);
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            reader.get_mut().write_all(response).expect("a response");
        }
    });
    (format!("http://{address}/"), messages)
}

#[test]
fn problem_during_takeover_is_sent_once() {
    let deployment = Deployment::new();
    let (url, messages) = receiver();
    let flags = ["--alert-webhook", &url, "--alert-delay", "0s"];
    let mut running = deployment.start(&flags);
    // The running server drains until this connection has been idle for some seconds.
    let socket = TcpStream::connect(running.visitors).expect("a connection");
    let mut visitor = Visitor::over(socket);
    let page = visitor.get("localhost:8080", "/", "").expect("a page");
    assert_eq!(page.0, 200);
    let next = deployment.start(&[&["--takeover"], &flags[..]].concat());
    wait_for_line(&next.program, "took over");
    let page = deployment.path("tenants/home/pages/index.md");
    std::fs::write(page, "---\ntitle: [\n---\n").expect("a file");
    let code = running.program.wait();
    assert_eq!(code, Some(0), "{}", running.program.log());
    assert!(
        running.program.log().contains("degraded"),
        "{}",
        running.program.log()
    );
    wait_for_line(&next.program, "alerts sent");
    let messages = messages.lock().expect("no panic").clone();
    let degraded = messages
        .iter()
        .filter(|message| message.contains("RowhouseTenantDegraded"));
    assert_eq!(degraded.count(), 1, "{messages:?}");
}
