//! The log and the limits of the real program.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, binary, fixture, reserved_address};

#[test]
fn invalid_flag_is_reported_with_valid_form() {
    for (flags, wanted) in [
        (&["--trusted-proxy", "localhost"], "`10.0.0.0/8`"),
        (&["--idle-timeout", "never"], "such as 200ms"),
        (&["--max-connections", "0"], "--max-connections"),
    ] {
        let output = Command::new(binary())
            .arg("serve")
            .args(flags)
            .output()
            .expect("rowhouse");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn flags_and_variables_reach_the_listener() {
    let server = TestServer::start(
        &fixture("sites"),
        &[
            "--max-uri-length",
            "30",
            "--trusted-proxy",
            "127.0.0.0/8,::1",
        ],
    );
    let named = [("x-request-id", "proxy-1")];
    let answer = server.request("GET", &server.domain(), "/about", &named);
    assert_eq!(
        (answer.status, answer.header("x-request-id")),
        (200, "proxy-1")
    );
    let long = format!("/{}", "a".repeat(30));
    assert_eq!(server.get(&server.domain(), &long).status, 414);
}

#[test]
fn unread_log_delays_no_response() {
    let mut server =
        TestServer::start_with_unread_log(&fixture("sites"), &["--access-log", "json"]);
    let mut socket = TcpStream::connect(server.visitors).expect("a connection");
    let request = format!("HEAD /about HTTP/1.1\r\nhost: {}\r\n\r\n", server.domain());
    // Each line has about 200 bytes, so these fill the pipe and the queue many times over.
    let hundred = request.repeat(100);
    let begin = Instant::now();
    for _ in 0..300 {
        socket.write_all(hundred.as_bytes()).expect("requests");
        read_heads(&mut socket, 100);
    }
    assert!(begin.elapsed() < Duration::from_secs(60));
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "nor the end");
}

#[test]
fn log_level_can_be_chosen() {
    let logged = |chosen: &str| {
        let mut server = Command::new(binary());
        let address = reserved_address().to_string();
        server
            .args(["serve", "--listen", &address, "--admin", "127.0.0.1:0"])
            .current_dir(fixture("sites"))
            .env("RUST_LOG", chosen)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut server = server.spawn().expect("a started program");
        let begin = Instant::now();
        while !answers(&address) {
            assert!(begin.elapsed() < Duration::from_secs(120), "timeout");
            std::thread::sleep(Duration::from_millis(20));
        }
        end(&mut server);
        let mut log = String::new();
        let mut stderr = server.stderr.take().expect("a log");
        stderr.read_to_string(&mut log).expect("text");
        log
    };
    let usual = logged("info");
    let levels = |log: &str, level: &str| log.matches(&format!("\"level\":\"{level}\"")).count();
    assert!(
        levels(&usual, "INFO") > 0 && levels(&usual, "DEBUG") == 0,
        "{usual}"
    );
    let quiet = logged("error");
    assert_eq!(quiet, "", "an ordinary life has no errors");
    let much = logged("server=debug,rowhouse=debug");
    assert!(levels(&much, "DEBUG") > 0, "{much}");
}

#[test]
fn access_log_is_text_and_has_address_if_flag_is_set() {
    for (flags, visitor) in [(&[][..], false), (&["--log-addresses"], true)] {
        let flags = [&["--access-log", "text"], flags].concat();
        let mut server = TestServer::start(&fixture("sites"), &flags);
        let answer = server.get(&server.domain(), "/app/terms");
        assert_eq!(answer.status, 200);
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
        let log = server.log();
        let id = answer.header("x-request-id");
        let line = log.lines().find(|line| line.contains(id)).expect("a line");
        for word in ["app", "GET", "/app/terms", "200"] {
            assert!(
                line.split_whitespace().any(|part| part == word),
                "{word} in {line}"
            );
        }
        assert_eq!(line.contains("127.0.0.1"), visitor, "{line}");
    }
}

/// Whether a page is served, and a connection that sends no HTTP ends.
fn answers(address: &str) -> bool {
    let asked = |request: &str| {
        let mut socket = TcpStream::connect(address).ok()?;
        socket.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    asked("GET /about HTTP/1.0\r\nhost: localhost\r\n\r\n")
        .is_some_and(|answer| answer.contains(" 200 OK"))
        && asked("no HTTP\r\n\r\n").is_some()
}

fn end(server: &mut Child) {
    let told = Command::new("kill").arg(server.id().to_string()).status();
    assert!(told.expect("kill").success());
    assert!(server.wait().expect("an end").success());
}

#[test]
fn terminal_gets_text_and_pipe_gets_json() {
    // An unwritable state is reported; missing folders then end the program.
    let serve = format!(
        "{} serve --tenants /dev/null/none --state /dev/null/none --listen 127.0.0.1:0 --admin 127.0.0.1:0",
        binary().display()
    );
    let told = "nothing is persisted for the next startup";
    // `script` (bsdutils) runs the program on a terminal.
    let terminal = Command::new("script")
        .args(["--quiet", "--command", &serve, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("script");
    let words = String::from_utf8_lossy(&terminal.stdout);
    assert!(words.contains(told) && !words.contains("{\""), "{words}");

    let output = Command::new("sh").args(["-c", &serve]).output();
    let output = output.expect("sh");
    let log = String::from_utf8_lossy(&output.stderr);
    let line = log
        .lines()
        .find(|line| line.contains(told))
        .expect("a line");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["level"], "WARN");
}

/// Reads `count` responses without a body.
fn read_heads(socket: &mut TcpStream, count: usize) {
    let (mut ends, mut last, mut part) = (0, [0; 4], [0; 8192]);
    while ends < count {
        let length = socket.read(&mut part).expect("responses");
        assert!(length > 0, "the connection was closed");
        for byte in &part[..length] {
            last.rotate_left(1);
            last[3] = *byte;
            ends += usize::from(last == *b"\r\n\r\n");
        }
    }
}

/// Returns the first request to a collector.
fn one_export(collector: &TcpListener) -> Vec<u8> {
    let (mut socket, _) = collector.accept().expect("a connection");
    let mut all = Vec::new();
    let mut part = [0; 4096];
    loop {
        let length = socket.read(&mut part).expect("a request");
        all.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&all).to_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let (_, size) = head.split_once("content-length: ").expect("a length");
            let size: usize = size.lines().next().unwrap_or("").parse().expect("a number");
            if all.len() >= head.len() + 4 + size {
                break;
            }
        }
        assert!(length > 0, "{text}");
    }
    write!(socket, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("an answer");
    all
}

#[test]
fn spans_continue_trace_of_trusted_proxy() {
    let collector = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let url = format!("http://{}", collector.local_addr().expect("an address"));
    let flags = ["--otlp", &url, "--trusted-proxy", "127.0.0.1"];
    let mut server = TestServer::start(&fixture("sites"), &flags);
    let named = [(
        "traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )];
    let answer = server.request("GET", &server.domain(), "/app/terms", &named);
    assert_eq!(answer.status, 200);
    let exported = std::thread::spawn(move || one_export(&collector));
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let export = exported.join().expect("an export");
    assert!(export.starts_with(b"POST /v1/traces "));
    let has = |bytes: &[u8]| export.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(
        &0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes()
    ));
    assert!(has(&0xb7ad_6b71_6920_3331_u64.to_be_bytes()));
    assert!(has(b"GET /app/terms") && has(b"rowhouse.tenant"));
}

#[test]
fn missing_collector_delays_nothing() {
    let flags = ["--otlp", "http://127.0.0.1:9"];
    let mut server = TestServer::start(&fixture("sites"), &flags);
    assert_eq!(server.get(&server.domain(), "/about").status, 200);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}
