//! `--alert-webhook`: messages to a real receiver on this machine that fails, hangs, refuses and recovers.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rowhouse_tests::{TestServer, binary, state};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use server::admin::conditions::ConditionKind;

use crate::state::rollback::wait;
use crate::state::stateful_deployment::StatefulDeployment;

/// The reply to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Accept,
    /// A status line and fields.
    Refuse(&'static str),
    /// No reply until the client gives up.
    Hang,
}

/// A message that the receiver got.
#[derive(Debug, Clone)]
struct Message {
    at: Instant,
    reply: Reply,
    /// The request line and the header fields.
    head: String,
    body: Value,
}

/// A receiver of alerts. It replies as planned, and then accepts every message.
struct Receiver {
    address: SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
    is_over: Arc<AtomicBool>,
}

impl Receiver {
    fn new(replies: &[Reply]) -> Self {
        Self::with_tls(replies.to_vec(), None)
    }

    fn with_tls(replies: Vec<Reply>, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let receiver = Self {
            address: listener.local_addr().expect("an address"),
            messages: Arc::default(),
            is_over: Arc::default(),
        };
        let mut replies = replies.into_iter();
        let (messages, is_over) = (receiver.messages.clone(), receiver.is_over.clone());
        thread::spawn(move || {
            for socket in listener.incoming() {
                if is_over.load(Relaxed) {
                    return;
                }
                let socket = socket.expect("a connection");
                let limit = Some(Duration::from_secs(60));
                socket.set_read_timeout(limit).expect("a socket");
                match &tls {
                    None => serve(socket, &mut replies, &messages),
                    Some(tls) => {
                        let tls = ServerConnection::new(Arc::clone(tls)).expect("TLS");
                        serve(StreamOwned::new(tls, socket), &mut replies, &messages);
                    }
                }
            }
        });
        receiver
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn messages(&self) -> Vec<Message> {
        let messages = self.messages.lock();
        messages.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn accepted(&self) -> Vec<Message> {
        let messages = self.messages().into_iter();
        messages.filter(|one| one.reply == Reply::Accept).collect()
    }

    /// Returns each accepted alert as `status name subject`, sorted.
    fn alerts(&self) -> Vec<String> {
        let mut alerts: Vec<String> = self.accepted().iter().flat_map(alerts_of).collect();
        alerts.sort_unstable();
        alerts
    }

    /// Waits until the receiver has accepted exactly these alerts.
    fn wait_for(&self, expected: &[&str]) {
        wait(&format!("{expected:?}"), || {
            let alerts = self.alerts();
            assert!(alerts.len() <= expected.len(), "{alerts:?}");
            alerts == expected
        });
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        let _ = std::net::TcpStream::connect(self.address);
    }
}

fn alerts_of(message: &Message) -> Vec<String> {
    let alerts = message.body["alerts"].as_array().expect("a list");
    let words = |alert: &Value| {
        let word = |name: &str| alert[name].as_str().unwrap_or_default().to_owned();
        let subject = [word("tenant"), word("host")].concat();
        [word("status"), word("name"), subject].join(" ")
    };
    alerts
        .iter()
        .map(|alert| words(alert).trim_end().to_owned())
        .collect()
}

/// Reads one message, and replies.
fn serve(
    socket: impl Read + Write,
    replies: &mut impl Iterator<Item = Reply>,
    messages: &Mutex<Vec<Message>>,
) {
    let mut reader = BufReader::new(socket);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        // A client that does not trust the certificate ends the connection.
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let reply = replies.next().unwrap_or(Reply::Accept);
    let message = Message {
        at: Instant::now(),
        reply,
        head,
        body: serde_json::from_slice(&body).expect("JSON"),
    };
    let lock = messages.lock();
    lock.unwrap_or_else(PoisonError::into_inner).push(message);
    let status = match reply {
        Reply::Accept => "200 OK\r\n",
        Reply::Refuse(status) => status,
        Reply::Hang => {
            // Ends when the client closes the connection.
            let _ = reader.read(&mut [0]);
            return;
        }
    };
    let end = "content-length: 0\r\nconnection: close\r\n\r\n";
    let socket = reader.get_mut();
    let _ = write!(socket, "HTTP/1.1 {status}{end}");
    let _ = socket.flush();
}

fn start(deployment: &StatefulDeployment, url: &str, more: &[&str]) -> TestServer {
    let flags = ["--alert-webhook", url, "--alert-delay", "0s"];
    TestServer::start(&deployment.path(""), &[&flags[..], more].concat())
}

fn break_tenant(deployment: &StatefulDeployment, id: &str) {
    deployment.write(
        &format!("tenants/{id}/pages/terms.md"),
        "---\ntitle: [\n---\n",
    );
}

fn repair_tenant(deployment: &StatefulDeployment, id: &str) {
    let text = "---\ntitle: Terms\ndescription: The terms.\n---\nWords.\n";
    deployment.write(&format!("tenants/{id}/pages/terms.md"), text);
}

fn has_metric(server: &TestServer, line: &str) -> bool {
    let text = server.get_admin("/metrics").text();
    text.lines().any(|known| known == line)
}

#[test]
fn alert_arrives_once_although_receiver_fails_hangs_and_recovers() {
    let deployment = StatefulDeployment::new();
    let receiver = Receiver::new(&[
        Reply::Refuse("500 Internal Server Error\r\n"),
        Reply::Refuse("429 Too Many Requests\r\nretry-after: 4\r\n"),
        Reply::Hang,
    ]);
    let url = receiver.url("/hook/secret?key=secret");
    let server = start(&deployment, &url, &[]);
    break_tenant(&deployment, "app");
    let alarm = format!(
        "alarm: alerts cannot be sent to http://{}",
        receiver.address
    );
    wait("the alarm", || {
        server.get_admin("/readyz").text().contains(&alarm)
    });
    receiver.wait_for(&["firing RowhouseTenantDegraded app"]);
    let all = receiver.messages();
    let waited = all[2].at - all[1].at;
    assert!(waited >= Duration::from_secs(4), "{waited:?}");
    assert!(
        all[0]
            .head
            .starts_with("POST /hook/secret?key=secret HTTP/1.1\r\n")
    );
    let text = all[3].body["text"].as_str().expect("text");
    assert!(
        text.contains("app has errors") && text.contains("terms.md"),
        "{text}"
    );
    wait("the end of the alarm", || {
        !server.get_admin("/readyz").text().contains("alarm")
    });
    for line in [
        "rowhouse_alert_failures_total 3",
        "rowhouse_alerts_sent_total 1",
        "rowhouse_alerts_unsent 0",
    ] {
        assert!(has_metric(&server, line), "{line}");
    }
    repair_tenant(&deployment, "app");
    let both = [
        "firing RowhouseTenantDegraded app",
        "resolved RowhouseTenantDegraded app",
    ];
    receiver.wait_for(&both);
    break_tenant(&deployment, "home");
    receiver.wait_for(&[both[0], "firing RowhouseTenantDegraded home", both[1]]);
    let shown = format!("Alerts go to http://{}", receiver.address);
    let console = server.get_admin("/").text();
    assert!(console.contains(&shown), "{console}");
    let log = server.log();
    assert!(log.contains("alerts cannot be sent"), "{log}");
    for text in [log, console, server.get_admin("/readyz").text()] {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn restart_sends_no_alert_again_and_resolves_what_ended_meanwhile() {
    let deployment = StatefulDeployment::new();
    let receiver = Receiver::new(&[]);
    let url = receiver.url("/hook");
    let mut server = start(&deployment, &url, &["--state", "state"]);
    break_tenant(&deployment, "app");
    receiver.wait_for(&["firing RowhouseTenantDegraded app"]);
    deployment.wait_for_table("alerts", "RowhouseTenantDegraded");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    break_tenant(&deployment, "home");
    let mut server = start(&deployment, &url, &["--state", "state"]);
    receiver.wait_for(&[
        "firing RowhouseTenantDegraded app",
        "firing RowhouseTenantDegraded home",
    ]);
    wait("the state", || {
        state::has_words(&deployment.path("state"), "alerts", "\"home\"")
    });
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    repair_tenant(&deployment, "app");
    let _server = start(&deployment, &url, &["--state", "state"]);
    receiver.wait_for(&[
        "firing RowhouseTenantDegraded app",
        "firing RowhouseTenantDegraded home",
        "resolved RowhouseTenantDegraded app",
    ]);
}

#[test]
fn unwritable_state_and_removed_tenant_are_told_with_their_ends() {
    let deployment = StatefulDeployment::new();
    let receiver = Receiver::new(&[]);
    let server = start(&deployment, &receiver.url("/hook"), &["--state", "state"]);
    deployment.wait_for_table("good.tenant.app", "");
    fs::rename(deployment.path("tenants/app"), deployment.path("app")).expect("a folder");
    receiver.wait_for(&["firing RowhouseTenantRemoved app"]);
    fs::rename(deployment.path("app"), deployment.path("tenants/app")).expect("a folder");
    let removed = [
        "firing RowhouseTenantRemoved app",
        "resolved RowhouseTenantRemoved app",
    ];
    receiver.wait_for(&removed);
    let folder = state::deployments(&deployment.path("state")).remove(0);
    fs::rename(&folder, deployment.path("away")).expect("a folder");
    // Not even root can write below a file.
    fs::write(&folder, "").expect("a file");
    repair_tenant(&deployment, "app");
    receiver.wait_for(&["firing RowhouseStateNotWritable", removed[0], removed[1]]);
    fs::remove_file(&folder).expect("a file");
    fs::rename(deployment.path("away"), &folder).expect("a folder");
    receiver.wait_for(&[
        "firing RowhouseStateNotWritable",
        removed[0],
        "resolved RowhouseStateNotWritable",
        removed[1],
    ]);
    drop(server);
}

#[test]
fn slack_ntfy_and_alertmanager_get_their_own_formats() {
    let deployment = StatefulDeployment::new();
    break_tenant(&deployment, "app");
    for (format, path, requested, pointer, expected) in [
        (
            "slack",
            "/services/T0/B0/x",
            "/services/T0/B0/x",
            "/text",
            "localhost: 1 problem",
        ),
        ("ntfy", "/ops", "/", "/topic", "ops"),
        (
            "alertmanager",
            "/api/v2/alerts",
            "/api/v2/alerts",
            "/0/labels/alertname",
            "RowhouseTenantAbsent",
        ),
    ] {
        let receiver = Receiver::new(&[]);
        let url = receiver.url(path).replace("://", "://user:word@");
        let _server = start(&deployment, &url, &["--alert-format", format]);
        wait(format, || !receiver.accepted().is_empty());
        let Message { head, body, .. } = receiver.accepted().remove(0);
        assert!(
            head.starts_with(&format!("POST {requested} HTTP/1.1\r\n")),
            "{head}"
        );
        let head = head.to_lowercase();
        assert!(
            head.contains("authorization: basic dxnlcjp3b3jk\r\n"),
            "{head}"
        );
        assert!(
            head.contains("content-type: application/json\r\n"),
            "{head}"
        );
        let value = body.pointer(pointer).and_then(Value::as_str);
        let value = value.expect("a value");
        assert!(value.starts_with(expected), "{value}");
    }
}

/// Returns a certificate for this machine that ends in five days, and its key.
fn certificate() -> (String, rcgen::KeyPair) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let in_five_days = SystemTime::now() + Duration::from_secs(5 * 24 * 60 * 60);
    parameters.not_after = in_five_days.into();
    let certificate = parameters.self_signed(&key).expect("a certificate");
    (certificate.pem(), key)
}

#[test]
fn certificates_are_told_to_a_receiver_whose_own_certificate_is_checked() {
    let deployment = StatefulDeployment::new();
    let (pem, key) = certificate();
    deployment.write("certificate.pem", &pem);
    deployment.write("key.pem", &key.serialize_pem());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes());
    let chain = chain.map(|one| one.expect("a certificate")).collect();
    let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .expect("a certificate");
    let receiver = Receiver::with_tls(Vec::new(), Some(Arc::new(tls)));
    let url = format!("https://localhost:{}/hook", receiver.address.port());
    let https = [
        ["--https", "127.0.0.1:0"],
        ["--origin", "https://localhost"],
        ["--certificate", "certificate.pem"],
        ["--certificate-key", "key.pem"],
    ];
    let https = https.as_flattened();
    let server = start(&deployment, &url, https);
    wait("the refusal", || {
        let text = server.get_admin("/readyz").text();
        text.contains("alarm: alerts cannot be sent to https://localhost:")
            && text.contains("invalid peer certificate")
    });
    assert!(receiver.messages().is_empty());
    drop(server);
    let trusted = [https, &["--alert-root", "certificate.pem"]].concat();
    let _server = start(&deployment, &url, &trusted);
    wait("the certificates", || {
        let alerts = receiver.alerts();
        let has = |alert: &str| alerts.iter().any(|known| known == alert);
        has("firing RowhouseCertificateEnds localhost")
            && has("firing RowhouseCertificateMissing app.localhost")
    });
}

#[test]
fn bad_url_is_refused_without_being_quoted() {
    let deployment = StatefulDeployment::new();
    let output = Command::new("timeout")
        .arg("120")
        .arg(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .env("ROWHOUSE_ALERT_WEBHOOK", "hooks.example/c0ffee")
        .current_dir(deployment.path(""))
        .output()
        .expect("rowhouse");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("cannot use the URL of `--alert-webhook`"),
        "{text}"
    );
    assert!(text.contains("write a URL with scheme and host"), "{text}");
    let help = Command::new(binary())
        .args(["serve", "--help"])
        .env("ROWHOUSE_ALERT_WEBHOOK", "https://hooks.example/c0ffee")
        .output()
        .expect("rowhouse");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for text in [text, help] {
        assert!(!text.contains("c0ffee"), "{text}");
    }
}

#[test]
fn manual_says_what_to_do_for_each_alert() {
    let pages = crate::manual::reference::pages();
    let at_night = &pages["guides/at-night.md"];
    let guide = &pages["guides/alerts.md"];
    for kind in ConditionKind::ALL {
        let name = kind.name();
        assert!(at_night.contains(&format!("\n### {name}\n")), "{name}");
        let is_sent = kind != ConditionKind::AlertsNotSent;
        assert_eq!(guide.contains(&format!("`{name}`")), is_sent, "{name}");
    }
}
