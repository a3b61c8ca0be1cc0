//! The admin listener, and what its counters say of what visitors did.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/sample.rs"]
mod sample;
#[path = "support/wire.rs"]
mod wire;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use server::admin::{self, Admin};
use server::listen;
use server::settings::Limits;
use server::snapshot_store::SnapshotStore;
use server::status::{State, Status, StatusBoard, TenantStatus};
use wire::{Server, get, request};

struct Desk {
    address: SocketAddr,
    board: Arc<StatusBoard>,
}

impl Desk {
    fn open(snapshots: &Arc<SnapshotStore>) -> Self {
        let listener = listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let board = Arc::new(StatusBoard::default());
        let admin = Admin {
            snapshots: Arc::clone(snapshots),
            board: Arc::clone(&board),
            access_log: None,
            hosts: Vec::new(),
        };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(admin::run(listener, admin)).unwrap();
        });
        Self { address, board }
    }

    fn ask(&self, path: &str) -> (u16, String) {
        let mut socket = std::net::TcpStream::connect(self.address).unwrap();
        socket.write_all(get(path, "localhost").as_bytes()).unwrap();
        let reply = wire::Reply::read(&mut socket);
        (reply.status, reply.text())
    }

    fn counters(&self) -> String {
        let (status, text) = self.ask("/metrics");
        assert_eq!(status, 200);
        assert!(text.ends_with("# EOF\n"), "{text}");
        text
    }
}

fn tenant(state: State) -> TenantStatus {
    TenantStatus {
        id: "bluedoor".into(),
        state,
        since: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
        pages: 2,
        hosts: vec!["bluedoor.example".to_owned()],
        compiled_in: Duration::from_millis(250),
        is_under_way: false,
        errors: vec!["tenants/bluedoor/tenant.yaml:1:1: no".to_owned()],
    }
}

#[test]
fn a_degraded_tenant_is_named_and_makes_nothing_unready() {
    let desk = Desk::open(&Server::start().snapshots);
    assert_eq!(desk.ask("/livez").0, 200);
    assert_eq!(desk.ask("/readyz").0, 503);
    desk.board.replace(Status {
        complete: true,
        tenants: vec![tenant(State::Degraded)],
        alarm: None,
        polling: false,
    });
    assert_eq!(
        desk.ask("/readyz"),
        (200, "ready\nbluedoor: degraded\n".to_owned())
    );
    let (_, text) = desk.ask("/tenants");
    let tenants: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        tenants,
        serde_json::json!([{
            "id": "bluedoor", "state": "degraded", "since": 7, "pages": 2, "hosts": ["bluedoor.example"],
            "compiled_in_ms": 250, "errors": ["tenants/bluedoor/tenant.yaml:1:1: no"],
        }])
    );
    desk.board.drain();
    assert_eq!(desk.ask("/readyz").0, 503);
    // Whatever the owner of the tenants says after that.
    desk.board.replace(Status {
        complete: true,
        ..Status::default()
    });
    desk.board.reloaded(Duration::ZERO, Some("no".to_owned()));
    assert_eq!(
        desk.ask("/readyz"),
        (503, "not ready\nalarm: no\n".to_owned())
    );
}

#[test]
fn certificates_are_for_hosts_that_a_tenant_has() {
    let desk = Desk::open(&Server::start().snapshots);
    for (domain, status) in [
        ("bluedoor.example", 200),
        ("Bluedoor.example.", 200),
        ("nobody.example", 404),
        ("", 404),
    ] {
        let path = format!("/tls/ask?domain={domain}");
        assert_eq!(desk.ask(&path).0, status, "{domain}");
    }
    assert_eq!(desk.ask("/tls/ask").0, 400);
}

#[test]
fn no_client_makes_a_series() {
    let server = Server::start();
    let desk = Desk::open(&server.snapshots);
    let fields = "accept-encoding: br\r\n";
    server.ask(&request("GET", "/terms", "bluedoor.example", fields));
    let before = desk.counters();
    for number in 0..20 {
        server.ask(&get(&format!("/{number}"), &format!("{number}.example")));
    }
    server.ask(&get("/assets/site.css", "studio.example"));
    let text = desk.counters();
    for line in [
        r#"rowhouse_http_requests_total{tenant="bluedoor",status="2xx",coding="br"} 1"#,
        r#"rowhouse_http_requests_total{tenant="_unknown",status="4xx",coding="identity"} 20"#,
        r#"rowhouse_http_requests_total{tenant="_shared",status="2xx",coding="identity"} 1"#,
        r#"rowhouse_http_request_duration_seconds_count{tenant="_unknown"} 20"#,
        "rowhouse_connections_total 22",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }
    assert!(!text.contains("7.example"));
    let more = text.lines().count() - before.lines().count();
    // Two parties that had answered nothing: requests, bytes and a histogram each.
    assert!(more <= 2 * (2 + 14), "{more} more lines in {text}");
}

#[test]
fn reloads_and_their_failures_are_told() {
    let server = Server::start();
    let desk = Desk::open(&server.snapshots);
    desk.board.replace(Status {
        complete: true,
        tenants: vec![tenant(State::Live)],
        alarm: None,
        polling: false,
    });
    desk.board.reloaded(Duration::from_millis(50), None);
    let has = |line: &str| {
        let text = desk.counters();
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    };
    has("rowhouse_reload_duration_seconds_count 1");
    has(r#"rowhouse_reload_duration_seconds_bucket{le="0.1"} 1"#);
    has(r#"rowhouse_tenant_compilation_seconds{tenant="bluedoor"} 0.25"#);
    has(r#"rowhouse_tenants{state="live"} 1"#);
    has("rowhouse_snapshot_age_seconds 0");
    has("rowhouse_reload_alarm 0");
    desk.board
        .reloaded(Duration::ZERO, Some("the folder is gone".to_owned()));
    has("rowhouse_reload_alarm 1");
    has("rowhouse_reload_duration_seconds_count 1");
    assert_eq!(
        desk.ask("/readyz"),
        (200, "ready\nalarm: the folder is gone\n".to_owned())
    );
    desk.board.reloaded(Duration::ZERO, None);
    has("rowhouse_reload_alarm 0");
}

#[test]
fn open_connections_are_counted() {
    let server = Server::start();
    let desk = Desk::open(&server.snapshots);
    let open = |count: usize| {
        let line = format!("rowhouse_connections_open {count}");
        let begin = Instant::now();
        while !desk.counters().lines().any(|known| known == line) {
            assert!(begin.elapsed() < Duration::from_secs(60), "never {line}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    open(0);
    let sockets = [server.connect(), server.connect()];
    open(2);
    // Known once the server, which has a thread of its own, has begun.
    assert!(desk.counters().contains(&format!(
        "\nrowhouse_connections_limit {}\n",
        Limits::default().connections
    )));
    drop(sockets);
    open(0);
}

#[test]
fn half_heads_take_no_room_from_operators() {
    const MANY: usize = 200;
    let desk = Desk::open(&Server::start().snapshots);
    let mut half: Vec<_> = (0..MANY)
        .map(|_| {
            let mut socket = TcpStream::connect(desk.address).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            socket.write_all(b"GET /livez HTTP/1.1\r\n").unwrap();
            socket
        })
        .collect();
    assert_eq!(desk.ask("/livez").0, 200);
    // The first have made room for the last, and the last have a time to be whole.
    for number in [0, MANY - 1] {
        let ended = half[number].read_to_end(&mut Vec::new());
        let is_open = ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(!is_open, "{number} of {MANY} is still open");
    }
}

#[test]
fn tenants_that_are_gone_have_no_series() {
    let server = Server::start();
    let desk = Desk::open(&server.snapshots);
    server.ask(&get("/terms", "bluedoor.example"));
    assert!(desk.counters().contains(r#"tenant="bluedoor""#));
    let mut next = sample::snapshot();
    next.hosts.clear();
    server.snapshots.replace(next);
    let text = desk.counters();
    assert!(!text.contains(r#"tenant="bluedoor""#), "{text}");
    server.snapshots.replace(sample::snapshot());
    server.ask(&get("/terms", "bluedoor.example"));
    let line =
        r#"rowhouse_http_requests_total{tenant="bluedoor",status="2xx",coding="identity"} 1"#;
    let text = desk.counters();
    assert!(text.lines().any(|known| known == line), "{line} in {text}");
}
