//! Each limit over real sockets: input beyond the limit is refused or ended, and nothing else.

use crate::sample;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::wire::{self, Reply, Server, get, request};
use server::settings::{Limits, ServeSettings};

fn limited(change: impl FnOnce(&mut Limits)) -> Server {
    let mut limits = Limits::default();
    change(&mut limits);
    Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    })
}

fn eventually(counter: &AtomicU64, expected: u64) {
    let start = Instant::now();
    while counter.load(Relaxed) != expected {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{} instead of {expected}",
            counter.load(Relaxed)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn header_fields_are_limited_in_number_and_size() {
    let server = limited(|limits| {
        limits.header_fields = 10;
        limits.header_bytes = 1024;
    });
    let ask = |fields: &str| {
        server
            .ask(&request("GET", "/about", "studio.example", fields))
            .status
    };
    // `Host` is the tenth.
    assert_eq!(ask(&"x: y\r\n".repeat(9)), 200);
    assert_eq!(ask(&"x: y\r\n".repeat(10)), 431);
    assert_eq!(ask(&format!("x: {}\r\n", "y".repeat(900))), 200);
    assert_eq!(ask(&format!("x: {}\r\n", "y".repeat(1024))), 431);
    eventually(&server.snapshots.connections.malformed, 2);
}

#[test]
fn request_target_is_limited_in_length() {
    let server = limited(|limits| limits.uri_bytes = 20);
    let ask = |path: &str| server.ask(&get(path, "studio.example")).status;
    assert_eq!(ask("/about?aaaaaaaaaaaaa"), 200);
    assert_eq!(ask("/about?aaaaaaaaaaaaaa"), 414);
    // The request line also counts towards the limit of the header fields.
    assert_eq!(ask(&format!("/{}", "a".repeat(70_000))), 431);
}

#[test]
fn endless_header_is_not_buffered() {
    let server = Server::start();
    let mut socket = server.connect();
    socket
        .write_all(b"GET / HTTP/1.1\r\nhost: studio.example\r\n")
        .unwrap();
    let mut sent = 0;
    // Refused long before the socket's buffers are full.
    while sent < 64 * 1024 * 1024 {
        match socket.write(&[b'x'; 16 * 1024]) {
            Ok(length) => sent += length,
            Err(_) => break,
        }
    }
    assert!(sent < 64 * 1024 * 1024);
}

#[test]
fn connections_beyond_the_limit_wait_for_a_permit() {
    let server = limited(|limits| limits.connections = 1);
    let mut first = server.connect();
    let ask = get("/about", "studio.example");
    // Until the client reads it, the response is in flight.
    first
        .write_all(get("/assets/large.bin", "studio.example").as_bytes())
        .unwrap();
    first.read_exact(&mut [0; 1024]).unwrap();
    let mut second = server.connect();
    second.write_all(ask.as_bytes()).unwrap();
    second
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert_eq!(
        second.read(&mut [0]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    drop(first);
    second
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    assert_eq!(Reply::read(&mut second).status, 200);
}

#[test]
fn trusted_proxy_is_exempt_from_the_limit_per_address() {
    let server = Server::with(ServeSettings {
        limits: Limits {
            connections_per_address: 2,
            ..Limits::default()
        },
        ..wire::behind_a_proxy()
    });
    let mut sockets: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for socket in &mut sockets {
        socket
            .write_all(get("/about", "studio.example").as_bytes())
            .unwrap();
        assert_eq!(Reply::read(socket).status, 200);
    }
}

#[test]
fn slow_reader_reaches_the_request_timeout() {
    let server = limited(|limits| limits.request = Duration::from_millis(1200));
    let mut socket = server.connect();
    socket
        .write_all(get("/assets/large.bin", "studio.example").as_bytes())
        .unwrap();
    let mut part = vec![0; 64 * 1024];
    let counter = &server.snapshots.connections.slow_requests;
    let start = Instant::now();
    while counter.load(Relaxed) == 0 {
        assert!(start.elapsed() < Duration::from_secs(10));
        socket.read_exact(&mut part).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    assert!(rest.len() < sample::LARGE / 2, "{}", rest.len());
}

#[test]
fn header_sent_byte_by_byte_times_out() {
    let server = limited(|limits| limits.header_read = Duration::from_millis(800));
    let mut socket = server.connect();
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let start = Instant::now();
    for byte in get("/about", "studio.example").bytes().cycle() {
        assert!(start.elapsed() < Duration::from_secs(5), "still open");
        let closed = match socket.read(&mut [0]) {
            Ok(length) => length == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        if closed || socket.write_all(&[byte.max(b'a')]).is_err() {
            break;
        }
    }
    eventually(&server.snapshots.connections.slow_heads, 1);
}

#[test]
fn content_sent_byte_by_byte_is_not_awaited() {
    let server = Server::start();
    let mut socket = server.connect();
    socket
        .write_all(
            request(
                "POST",
                "/about",
                "studio.example",
                "content-length: 1000000\r\n",
            )
            .as_bytes(),
        )
        .unwrap();
    assert_eq!(Reply::read(&mut socket).status, 405);
    let start = Instant::now();
    while socket.write_all(b"x").is_ok() {
        assert!(start.elapsed() < Duration::from_secs(8), "still open");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn garbage_ends_only_its_own_connection() {
    let server = Server::start();
    let mut other = server.connect();
    let mut seed = 1_u64;
    for _ in 0..50 {
        let garbage: Vec<u8> = (0..2000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed.to_be_bytes()[0]
            })
            .collect();
        let mut socket = server.connect();
        // The server may close the connection before all bytes are sent.
        let _ = socket.write_all(&garbage);
        let mut all = Vec::new();
        let _ = socket.read_to_end(&mut all);
        assert!(
            all.is_empty() || all.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&all)
        );
        other
            .write_all(get("/about", "studio.example").as_bytes())
            .unwrap();
        assert_eq!(Reply::read(&mut other).status, 200);
    }
}
