//! Floods of connections leave no memory behind in the real program, and take little while they last.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rowhouse_tests::{Process, TestServer, fixture};

/// As many connections as one address may have, but for a few.
const CONNECTIONS: usize = 240;
/// What a connection may take while it is open: its buffers for a head and for a response, twice over.
const EACH: u64 = 64 << 10;
/// What the allocator may keep.
const SLACK: u64 = 8 << 20;

/// Opens connections that bring heads without end, garbage, and requests whose answers nobody reads.
fn flood(address: SocketAddr, host: &str) -> Vec<TcpStream> {
    let heads = format!(
        "GET / HTTP/1.1\r\nhost: {host}\r\nx: {}",
        "x".repeat(15_000)
    );
    let garbage = "\u{1}\u{7f}garbage".repeat(2_000);
    let unread = format!("GET /about HTTP/1.1\r\nhost: {host}\r\n\r\n").repeat(200);
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned();
    let kinds = [heads, garbage, unread, preface];
    let sockets = (0..CONNECTIONS).map(|number| {
        let mut socket = TcpStream::connect(address).expect("a connection");
        socket.set_nonblocking(true).expect("a socket");
        // What does not fit is not waited for, and what is refused may be cut.
        let _ = socket.write(kinds[number % kinds.len()].as_bytes());
        socket
    });
    sockets.collect()
}

/// Waits until no connection is open but the one that asks.
fn wait_for_the_end(server: &TestServer) {
    let begin = Instant::now();
    while !server
        .operator("/metrics")
        .text()
        .contains("\nrowhouse_connections_open 0\n")
    {
        assert!(begin.elapsed() < Duration::from_secs(60), "some stay open");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn floods_of_connections_leave_no_memory_behind() {
    let server = TestServer::start(&fixture("street"), &[]);
    let memory = || Process(server.id()).memory();
    let domain = server.domain();
    // The first one fills what is kept for later.
    drop(flood(server.visitors, &domain));
    wait_for_the_end(&server);
    let before = memory();
    for _ in 0..10 {
        let mut sockets = flood(server.visitors, &domain);
        let answer = server.get(&domain, "/about");
        assert_eq!(answer.status, 200, "a neighbour is served");
        let most = before + EACH * CONNECTIONS as u64 + SLACK;
        assert!(memory() < most, "{} of {most} bytes", memory());
        for socket in &mut sockets {
            let _ = socket.read(&mut [0; 4096]);
        }
        drop(sockets);
        wait_for_the_end(&server);
    }
    let after = memory();
    assert!(after < before + SLACK, "{before} bytes became {after}");
}
