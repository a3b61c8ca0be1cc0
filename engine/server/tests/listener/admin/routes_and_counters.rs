//! The admin listener's routes, and its counters of visitors' requests.

use crate::sample;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use crate::admin_listener::AdminListener;
use crate::wire::{Server, get, request};
use server::admin::status::{
    Availability, DeploymentStatus, RemovedTenant, StateStatus, StoreStatus, TenantStatus, by_id,
};
use server::metrics::process_memory::ProcessMemory;
use server::settings::Limits;

fn tenant(state: Availability) -> TenantStatus {
    TenantStatus {
        id: "bluedoor".into(),
        state,
        since: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
        pages: 2,
        hosts: ["bluedoor.example".to_owned()].into(),
        compiled_in: Duration::from_millis(250),
        is_in_flight: false,
        pinned: None,
        unreadable_pin: None,
        receiving: Vec::new(),
        preview: None,
        errors: vec!["tenants/bluedoor/tenant.yaml:1:1: no".to_owned()],
    }
}

#[test]
fn removed_tenant_is_named_for_a_day() {
    let admin = AdminListener::open(&Server::start().snapshots);
    let removed = |id: &str, age| RemovedTenant {
        id: id.into(),
        at: SystemTime::now() - age,
        is_persisted: true,
        was_valid: true,
    };
    let hour = Duration::from_secs(3_600);
    admin.board.replace(DeploymentStatus {
        complete: true,
        removed: [removed("bluedoor", hour), removed("verses", 25 * hour)].into(),
        ..DeploymentStatus::default()
    });
    let ready = "ready\nbluedoor: removed\n".to_owned();
    assert_eq!(admin.ask("/readyz"), (200, ready));
    let tenants: serde_json::Value = serde_json::from_str(&admin.ask("/tenants").1).unwrap();
    assert_eq!(tenants.as_array().map(Vec::len), Some(1), "{tenants}");
    assert_eq!(
        (&tenants[0]["id"], &tenants[0]["state"]),
        (&"bluedoor".into(), &"removed".into())
    );
    let (_, metrics) = admin.ask("/metrics");
    assert!(
        metrics.contains("rowhouse_tenants{state=\"removed\"} 1\n"),
        "{metrics}"
    );
}

#[test]
fn degraded_tenant_is_named_and_process_stays_ready() {
    let admin = AdminListener::open(&Server::start().snapshots);
    assert_eq!(admin.ask("/livez").0, 200);
    assert_eq!(admin.ask("/readyz").0, 503);
    admin.board.replace(DeploymentStatus {
        complete: true,
        tenants: by_id([tenant(Availability::Degraded)]),
        ..DeploymentStatus::default()
    });
    assert_eq!(
        admin.ask("/readyz"),
        (200, "ready\nbluedoor: degraded\n".to_owned())
    );
    let (_, text) = admin.ask("/tenants");
    let tenants: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        tenants,
        serde_json::json!([{
            "id": "bluedoor", "state": "degraded", "since": 7, "pages": 2, "hosts": ["bluedoor.example"],
            "compiled_in_ms": 250, "errors": ["tenants/bluedoor/tenant.yaml:1:1: no"],
        }])
    );
    admin.board.drain();
    assert_eq!(admin.ask("/readyz").0, 503);
    // Later reports do not undo draining.
    admin.board.replace(DeploymentStatus {
        complete: true,
        ..DeploymentStatus::default()
    });
    admin.board.reloaded(Duration::ZERO, Some("no".to_owned()));
    assert_eq!(
        admin.ask("/readyz"),
        (503, "not ready\nalarm: no\n".to_owned())
    );
}

#[test]
fn listener_answers_only_to_its_own_names() {
    let admin = AdminListener::open(&Server::start().snapshots);
    for (host, status) in [
        ("localhost", 200),
        ("LOCALHOST:9000", 200),
        ("127.0.0.1:9000", 200),
        ("[::1]", 200),
        ("monitoring.example", 200),
        ("rebound.example", 421),
        ("localhost.rebound.example", 421),
        ("bluedoor.example", 421),
        ("a b", 421),
    ] {
        for path in ["/livez", "/nothing"] {
            let reply = admin.send(&get(path, host));
            let expected = if path == "/nothing" && status == 200 {
                404
            } else {
                status
            };
            assert_eq!(reply.status, expected, "{path} as {host}");
        }
    }
}

#[test]
fn responses_are_not_cached_and_content_is_refused() {
    let admin = AdminListener::open(&Server::start().snapshots);
    for (fields, status) in [("", 200), ("content-length: 1\r\n", 413)] {
        let reply = admin.send(&request("GET", "/livez", "localhost", fields));
        assert_eq!(
            (
                reply.status,
                reply.header("cache-control"),
                reply.header("x-content-type-options"),
            ),
            (status, Some("no-store"), Some("nosniff"))
        );
    }
}

#[test]
fn tls_ask_allows_only_hosts_of_tenants() {
    let admin = AdminListener::open(&Server::start().snapshots);
    for (domain, status) in [
        ("bluedoor.example", 200),
        ("Bluedoor.example.", 200),
        ("nobody.example", 404),
        ("", 404),
    ] {
        let path = format!("/tls/ask?domain={domain}");
        assert_eq!(admin.ask(&path).0, status, "{domain}");
    }
    assert_eq!(admin.ask("/tls/ask").0, 400);
}

#[test]
fn clients_cannot_create_metric_series() {
    let server = Server::start();
    let admin = AdminListener::open(&server.snapshots);
    let fields = "accept-encoding: br\r\n";
    server.ask(&request("GET", "/terms", "bluedoor.example", fields));
    let before = admin.counters();
    for number in 0..20 {
        server.ask(&get(&format!("/{number}"), &format!("{number}.example")));
    }
    server.ask(&get("/assets/site.css", "studio.example"));
    let text = admin.counters();
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
    // Two owners without responses before: requests, bytes and a histogram each.
    assert!(more <= 2 * (2 + 14), "{more} more lines in {text}");
}

#[test]
fn panic_of_state_writer_is_an_alarm() {
    let admin = AdminListener::open(&Server::start().snapshots);
    admin.board.replace(DeploymentStatus {
        complete: true,
        ..DeploymentStatus::default()
    });
    let store = |panics, is_failing| StoreStatus {
        panics,
        is_failing,
        ..StoreStatus::default()
    };
    admin.board.set_store(store(1, true));
    let (status, text) = admin.ask("/readyz");
    assert_eq!(status, 200);
    assert!(
        text.contains("alarm: part of the state is not written"),
        "{text}"
    );
    let metrics = admin.counters();
    assert!(
        metrics.contains("rowhouse_store_writer_panics_total 1\n"),
        "{metrics}"
    );
    admin.board.set_store(store(1, false));
    assert_eq!(admin.ask("/readyz").1, "ready\n");
}

#[test]
fn state_that_cannot_be_written_is_an_alarm() {
    let admin = AdminListener::open(&Server::start().snapshots);
    admin.board.replace(DeploymentStatus {
        complete: true,
        ..DeploymentStatus::default()
    });
    assert!(
        !admin.counters().contains("rowhouse_state_"),
        "no `--state`"
    );
    let store = |problem: Option<&str>| StoreStatus {
        state: Some(StateStatus {
            problem: problem.map(ToOwned::to_owned),
            failures: 3,
            queued_bytes: 70,
        }),
        ..StoreStatus::default()
    };
    admin.board.set_store(store(Some("no space")));
    let (status, text) = admin.ask("/readyz");
    assert_eq!(status, 200, "visitors are served");
    assert!(
        text.contains("alarm: the state cannot be written: no space; "),
        "{text}"
    );
    let metrics = admin.counters();
    for line in [
        "rowhouse_state_writable 0",
        "rowhouse_state_write_failures_total 3",
        "rowhouse_state_queued_bytes 70",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{metrics}");
    }
    admin.board.set_store(store(None));
    assert_eq!(admin.ask("/readyz").1, "ready\n");
    assert!(admin.counters().contains("rowhouse_state_writable 1\n"));
}

#[test]
fn pinned_release_that_cannot_be_served_is_an_alarm() {
    let admin = AdminListener::open(&Server::start().snapshots);
    let status = |unreadable_pin| DeploymentStatus {
        complete: true,
        tenants: by_id([TenantStatus {
            unreadable_pin,
            ..tenant(Availability::Live)
        }]),
        ..DeploymentStatus::default()
    };
    admin.board.replace(status(Some(2)));
    let (code, text) = admin.ask("/readyz");
    assert_eq!(code, 200, "other tenants are served");
    assert!(
        text.contains("alarm: the pinned release 2 of bluedoor cannot be served"),
        "{text}"
    );
    assert!(
        admin
            .counters()
            .contains("rowhouse_tenants_pin_unreadable 1\n")
    );
    assert!(admin.ask("/tenants").1.contains("\"unreadable_pin\":2"));
    admin.board.replace(status(None));
    assert_eq!(admin.ask("/readyz").1, "ready\n");
}

#[test]
fn reloads_and_their_failures_are_reported() {
    let server = Server::start();
    let admin = AdminListener::open(&server.snapshots);
    admin.board.replace(DeploymentStatus {
        complete: true,
        tenants: by_id([tenant(Availability::Live)]),
        ..DeploymentStatus::default()
    });
    admin.board.reloaded(Duration::from_millis(50), None);
    let has = |line: &str| {
        let text = admin.counters();
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    };
    has("rowhouse_reload_duration_seconds_count 1");
    has(r#"rowhouse_reload_duration_seconds_bucket{le="0.1"} 1"#);
    has(r#"rowhouse_tenant_compilation_seconds{tenant="bluedoor"} 0.25"#);
    has(r#"rowhouse_tenants{state="live"} 1"#);
    has("rowhouse_snapshot_age_seconds 0");
    has("rowhouse_reload_alarm 0");
    admin
        .board
        .reloaded(Duration::ZERO, Some("the folder is gone".to_owned()));
    has("rowhouse_reload_alarm 1");
    has("rowhouse_reload_duration_seconds_count 1");
    assert_eq!(
        admin.ask("/readyz"),
        (200, "ready\nalarm: the folder is gone\n".to_owned())
    );
    admin.board.reloaded(Duration::ZERO, None);
    has("rowhouse_reload_alarm 0");
}

#[test]
fn open_connections_are_counted() {
    let server = Server::start();
    let admin = AdminListener::open(&server.snapshots);
    let open = |count: usize| {
        let line = format!("rowhouse_connections_open {count}");
        admin.counters().lines().any(|known| known == line)
    };
    assert!(open(0));
    let start = Instant::now();
    let wait_for = |count: usize| {
        while !open(count) {
            assert!(start.elapsed() < Duration::from_secs(30), "not {count}");
            std::thread::yield_now();
        }
    };
    let sockets = [server.connect(), server.connect()];
    wait_for(2);
    // The limit is set once the server's own thread has started.
    assert!(admin.counters().contains(&format!(
        "\nrowhouse_connections_limit {}\n",
        Limits::default().connections
    )));
    drop(sockets);
    wait_for(0);
}

#[test]
fn incomplete_requests_do_not_block_operators() {
    const MANY: usize = 200;
    let admin = AdminListener::open(&Server::start().snapshots);
    let mut half: Vec<_> = (0..MANY)
        .map(|_| {
            let mut socket = TcpStream::connect(admin.address).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            socket.write_all(b"GET /livez HTTP/1.1\r\n").unwrap();
            socket
        })
        .collect();
    assert_eq!(admin.ask("/livez").0, 200);
    // The first connections were closed to make room, and the last ones have a timeout.
    for number in [0, MANY - 1] {
        let ended = half[number].read_to_end(&mut Vec::new());
        let is_open = ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(!is_open, "{number} of {MANY} is still open");
    }
}

#[test]
fn removed_tenants_have_no_series() {
    let server = Server::start();
    let admin = AdminListener::open(&server.snapshots);
    server.ask(&get("/terms", "bluedoor.example"));
    assert!(admin.counters().contains(r#"tenant="bluedoor""#));
    let mut next = sample::snapshot();
    next.hosts.clear();
    next.traffic.clear();
    server.snapshots.replace(next);
    let text = admin.counters();
    assert!(!text.contains(r#"tenant="bluedoor""#), "{text}");
    server.snapshots.replace(sample::snapshot());
    server.ask(&get("/terms", "bluedoor.example"));
    let line =
        r#"rowhouse_http_requests_total{tenant="bluedoor",status="2xx",coding="identity"} 1"#;
    let text = admin.counters();
    assert!(text.lines().any(|known| known == line), "{line} in {text}");
}

#[test]
fn memory_near_its_limit_is_an_alarm() {
    let snapshots = &Server::start().snapshots;
    for (limit, is_alarm) in [(1, true), (u64::MAX, false)] {
        let admin = AdminListener::with(snapshots, |admin| {
            admin.memory = ProcessMemory {
                limit: Some(limit),
                allocated: Some(|| Some(77)),
            };
        });
        let (_, text) = admin.ask("/readyz");
        assert_eq!(
            text.contains(" % of its memory limit; "),
            is_alarm,
            "{text}"
        );
        let metrics = admin.counters();
        assert!(
            metrics.contains("rowhouse_memory_allocated_bytes 77\n"),
            "{metrics}"
        );
        let resident = metrics
            .lines()
            .find_map(|line| line.strip_prefix("rowhouse_memory_resident_bytes "))
            .and_then(|value| value.parse::<u64>().ok());
        assert!(resident.is_some_and(|bytes| bytes > 1 << 20), "{metrics}");
    }
}

#[test]
fn certificate_is_renewed_only_by_permitted_commands() {
    let admin = AdminListener::open(&Server::start().snapshots);
    let renew = |fields: &str| {
        let path = "/certificates/own.example/renew";
        let request =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
        let reply = admin.send(&request);
        (reply.status, reply.text())
    };
    let (status, text) = renew("x-rowhouse-command: 1\r\n");
    assert_eq!(status, 409);
    assert!(text.contains("HTTPS is off"), "{text}");
    assert_eq!(renew("").0, 403);
    let foreign = "x-rowhouse-command: 1\r\norigin: http://evil.example\r\n";
    assert_eq!(renew(foreign).0, 403);
}
