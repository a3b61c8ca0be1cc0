//! Operators' view of requests: request ids, traces, the access log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use crate::wire::{self, Server, get, request};
use server::access_log::spans::{AccessEntry, RequestSpans, Trace};
use server::access_log::{AccessLog, LogFormat};
use server::settings::ServeSettings;
use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};

const NAMED: &str = "x-request-id: proxy-1\r\n\
    traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\
    x-forwarded-for: 192.0.2.9, 198.51.100.7\r\n";

/// A log that can be read after the server has ended.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn open(&self, addresses: bool) -> (Option<AccessLog>, WorkerGuard) {
        let (writer, guard) = NonBlocking::new(self.clone());
        let log = AccessLog {
            format: LogFormat::Json,
            addresses,
            writer,
        };
        (Some(log), guard)
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        let bytes = self.0.lock().unwrap();
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }
}

/// Sends one request to a server with these settings. Returns the log line and the request id of the response.
fn line_of(settings: ServeSettings, addresses: bool, fields: &str) -> (serde_json::Value, String) {
    let log = Log::default();
    let (access_log, guard) = log.open(addresses);
    let mut server = Server::with(ServeSettings {
        access_log,
        ..settings
    });
    let reply = server.ask(&request("GET", "/about", "studio.example", fields));
    server.stop();
    server.ended();
    drop(guard);
    let [line] = &log.lines()[..] else {
        panic!("one line: {:?}", log.lines());
    };
    let id = reply.header("x-request-id").unwrap().to_owned();
    (line.clone(), id)
}

#[test]
fn log_line_has_no_text_of_the_client() {
    let log = Log::default();
    let (access_log, guard) = log.open(false);
    let mut server = Server::with(ServeSettings {
        access_log,
        ..ServeSettings::default()
    });
    let secret = format!("accept-encoding: br\r\nreferer: secret\r\n{NAMED}");
    let first = server.ask(&request(
        "GET",
        "/bluedoor/terms?secret",
        "studio.example",
        &secret,
    ));
    for (path, host) in [
        ("/blog/secret", "studio.example"),
        ("/assets/site.css", "studio.example"),
        ("/secret", "secret.example"),
        ("/bluedoor/", "studio.example"),
        ("/%", "studio.example"),
    ] {
        server.ask(&get(path, host));
    }
    server.ask(&request("SECRET", "/about", "studio.example", ""));
    server.stop();
    server.ended();
    drop(guard);

    let lines = log.lines();
    let summary = |index: usize| {
        let line = &lines[index];
        (
            line["tenant"].as_str().unwrap(),
            line["route"].as_str().unwrap(),
            line["status"].as_u64().unwrap(),
        )
    };
    let mut all: Vec<_> = (0..lines.len()).map(summary).collect();
    all.sort_unstable();
    assert_eq!(
        all,
        [
            ("_shared", "/assets/site.css", 200),
            ("_unknown", "", 400),
            ("_unknown", "", 421),
            ("bluedoor", "/bluedoor//", 308),
            ("bluedoor", "/bluedoor/terms", 200),
            ("studio", "/*", 405),
            ("studio", "/blog/*", 404),
        ]
    );
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for invented in ["secret", "SECRET", "proxy-1", "0af7", "192.0.2", "127.0.0"] {
        assert!(!text.contains(invented), "{invented} in {text}");
    }
    let line = lines
        .iter()
        .find(|line| line["route"] == "/bluedoor/terms")
        .unwrap();
    assert_eq!(
        (&line["method"], &line["encoding"]),
        (&"GET".into(), &"br".into())
    );
    assert_eq!(line["bytes"], first.body.len());
    assert_eq!(line["request_id"].as_str(), first.header("x-request-id"));
    assert!(line["duration_us"].is_u64() && line["timestamp"].is_string());
}

#[test]
fn trusted_proxy_names_request_and_trace() {
    let (line, id) = line_of(wire::behind_a_proxy(), false, NAMED);
    assert_eq!((&*id, &line["request_id"]), ("proxy-1", &"proxy-1".into()));
    assert_eq!(line["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(line.get("visitor"), None);

    let bad = "x-request-id: a b\r\ntraceparent: 00-0-0-00\r\n";
    let (line, id) = line_of(wire::behind_a_proxy(), false, bad);
    assert_eq!(
        (line["request_id"].as_str(), id.len() > 16),
        (Some(&*id), true)
    );
    assert_eq!(line.get("trace_id"), None);
    let two = "x-request-id: client\r\nx-request-id: proxy-1\r\n";
    let (_, id) = line_of(wire::behind_a_proxy(), false, two);
    assert!(!["client", "proxy-1"].contains(&&*id), "{id}");
    let long = format!("x-request-id: {}\r\n", "a".repeat(65));
    assert!(line_of(wire::behind_a_proxy(), false, &long).1.len() < 65);
}

#[test]
fn ids_of_untrusted_peers_are_ignored() {
    let (line, id) = line_of(ServeSettings::default(), true, NAMED);
    assert_eq!(line["request_id"].as_str(), Some(&*id));
    assert_ne!(id, "proxy-1");
    assert_eq!(line.get("trace_id"), None);
    assert_eq!(line["visitor"], "127.0.0.1");
}

#[test]
fn address_is_logged_if_configured() {
    let (line, _) = line_of(wire::behind_a_proxy(), true, NAMED);
    assert_eq!(line["visitor"], "198.51.100.7");
}

#[test]
fn visitors_cannot_reach_routes_of_the_admin_listener() {
    let server = Server::start();
    for path in [
        "/livez",
        "/readyz",
        "/metrics",
        "/tenants",
        "/tls/ask?domain=studio.example",
    ] {
        let reply = server.ask(&get(path, "studio.example"));
        assert_eq!(
            (reply.status, &*reply.text()),
            (404, "no page of studio"),
            "{path}"
        );
    }
}

#[test]
fn every_response_has_its_own_request_id() {
    let server = Server::start();
    let mut names: Vec<String> = ["/about", "/nothing", "/%", "/about/", "/assets/site.css"]
        .iter()
        .map(|path| server.ask(&get(path, "studio.example")))
        .map(|reply| reply.header("x-request-id").unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5);
}

/// Records the entries from which spans would be made.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl RequestSpans for Recorder {
    fn record(&self, entry: &AccessEntry<'_>) -> Trace {
        self.0.lock().unwrap().push(format!(
            "{} {} {} {} {:?}",
            entry.method_name(),
            entry.route_name(),
            entry.status.as_u16(),
            entry.tenant,
            entry.trace.map(|trace| trace.to_string()),
        ));
        Trace {
            id: 10,
            parent: 1,
            sampled: true,
        }
    }
}

#[test]
fn each_request_is_recorded_as_a_span_whose_trace_is_logged() {
    for (settings, trace) in [
        (ServeSettings::default(), "None"),
        (
            wire::behind_a_proxy(),
            "Some(\"0af7651916cd43dd8448eb211c80319c\")",
        ),
    ] {
        let recorder = Arc::new(Recorder::default());
        let settings = ServeSettings {
            spans: Some(Arc::clone(&recorder) as Arc<dyn RequestSpans>),
            ..settings
        };
        let (line, _) = line_of(settings, false, NAMED);
        assert_eq!(line["trace_id"], "0000000000000000000000000000000a");
        let made = recorder.0.lock().unwrap();
        assert_eq!(*made, [format!("GET /about 200 studio {trace}")]);
    }
}
