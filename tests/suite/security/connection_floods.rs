//! Floods of connections to the real program: little memory during a flood, and no growth after it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rowhouse_tests::{Process, TestServer, fixture, is_long};

/// Slightly fewer connections than one address may have.
const CONNECTIONS: usize = 240;
/// The number of measured floods in short runs.
const FLOODS: usize = 10;
/// The memory of an open connection: twice its buffers for a head and for a response.
const CONNECTION_BYTES: u64 = 64 << 10;
/// The memory that the allocator may retain.
const RETAINED_BYTES: u64 = 4 << 20;

/// Returns requests over HTTP/2 that are reset at once (RFC 9113, sections 6.2 and 6.4).
fn resets() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for stream in (1_u32..1000).step_by(2) {
        // `:method: GET`, `:scheme: http` and `:path: /` of the static table (RFC 7541, appendix A).
        bytes.extend(*b"\0\0\x03\x01\x05");
        bytes.extend(stream.to_be_bytes());
        bytes.extend([0x82, 0x86, 0x84]);
        bytes.extend(*b"\0\0\x04\x03\0");
        bytes.extend(stream.to_be_bytes());
        bytes.extend(8_u32.to_be_bytes());
    }
    bytes
}

/// Opens connections with endless heads, garbage, requests whose responses are not read, and reset requests.
fn flood(address: SocketAddr, host: &str) -> Vec<TcpStream> {
    let heads = format!(
        "GET / HTTP/1.1\r\nhost: {host}\r\nx: {}",
        "x".repeat(15_000)
    );
    let garbage = "\u{1}\u{7f}garbage".repeat(2_000);
    let unread = format!("GET /about HTTP/1.1\r\nhost: {host}\r\n\r\n").repeat(200);
    let kinds = [
        heads.into_bytes(),
        garbage.into_bytes(),
        unread.into_bytes(),
        resets(),
    ];
    let sockets = (0..CONNECTIONS).map(|number| {
        let mut socket = TcpStream::connect(address).expect("a connection");
        socket.set_nonblocking(true).expect("a socket");
        // Sends without waiting for space. A refused connection may be reset.
        let _ = socket.write(&kinds[number % kinds.len()]);
        socket
    });
    sockets.collect()
}

/// Waits until only the connection of this request is open.
fn wait_for_the_end(server: &TestServer) {
    let begin = Instant::now();
    while !server
        .get_admin("/metrics")
        .text()
        .contains("\nrowhouse_connections_open 0\n")
    {
        assert!(begin.elapsed() < Duration::from_secs(60), "some stay open");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn floods_of_connections_leak_no_memory() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let memory = || Process(server.id()).memory();
    let domain = server.domain();
    let flooded = || {
        let mut sockets = flood(server.visitors, &domain);
        let answer = server.get(&domain, "/about");
        assert_eq!(answer.status, 200, "other visitors are served");
        let meanwhile = memory();
        for socket in &mut sockets {
            let _ = socket.read(&mut [0; 4096]);
        }
        drop(sockets);
        wait_for_the_end(&server);
        meanwhile
    };
    // The first request starts background work for images and encodings, which also needs memory.
    assert_eq!(server.get(&domain, "/about").status, 200);
    Process(server.id()).wait_until_quiet();
    // The first floods fill the memory that the allocator retains.
    for _ in 0..8 {
        flooded();
    }
    let before = memory();
    let most = before + CONNECTION_BYTES * CONNECTIONS as u64;
    for _ in 0..if is_long() { 200 } else { FLOODS } {
        let meanwhile = flooded();
        assert!(meanwhile < most, "{meanwhile} of {most} bytes");
    }
    let after = memory();
    assert!(
        after < before + RETAINED_BYTES,
        "{before} bytes became {after}"
    );
}
