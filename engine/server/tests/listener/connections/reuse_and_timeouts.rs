//! Connections from start to end: reuse, timeouts, limits, draining, replaced snapshots.

use crate::sample;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use crate::wire::{self, Server, get};
use server::settings::{Limits, ServeSettings};

#[test]
fn connection_is_reused() {
    let server = Server::start();
    let mut socket = server.connect();
    for _ in 0..3 {
        socket
            .write_all(get("/about", "studio.example").as_bytes())
            .unwrap();
        assert_eq!(wire::Reply::read(&mut socket).status, 200);
    }
    let pipelined = [
        get("/about", "studio.example"),
        get("/terms", "bluedoor.example"),
    ]
    .concat();
    socket.write_all(pipelined.as_bytes()).unwrap();
    assert_eq!(
        wire::Reply::read(&mut socket).text(),
        sample::text("studio", "", "/about")
    );
    assert_eq!(
        wire::Reply::read(&mut socket).text(),
        sample::text("bluedoor", "", "/terms")
    );
}

#[test]
fn slow_header_fields_time_out() {
    let limits = Limits {
        header_read: Duration::from_millis(600),
        ..Limits::default()
    };
    let server = Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    });
    for begun in ["", "G", "PRI * ", "GET / HTTP/1.1\r\nhost: studio"] {
        let mut socket = server.connect();
        socket.write_all(begun.as_bytes()).unwrap();
        let start = Instant::now();
        assert_eq!(
            socket.read_to_end(&mut Vec::new()).unwrap_or(0),
            0,
            "{begun}"
        );
        assert!(start.elapsed() < Duration::from_secs(4), "{begun}");
    }
    let counted = server
        .snapshots
        .connections
        .slow_heads
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(counted, 4);
}

#[test]
fn unused_connections_time_out() {
    let limits = Limits {
        idle: Duration::from_millis(600),
        ..Limits::default()
    };
    let server = Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    });
    let mut socket = server.connect();
    socket
        .write_all(get("/about", "studio.example").as_bytes())
        .unwrap();
    assert_eq!(wire::Reply::read(&mut socket).status, 200);
    assert_eq!(socket.read_to_end(&mut Vec::new()).unwrap(), 0);
}

#[test]
fn clients_that_do_not_read_time_out() {
    let limits = Limits {
        write: Duration::from_millis(600),
        ..Limits::default()
    };
    let server = Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    });
    let mut socket = server.connect();
    socket
        .write_all(get("/assets/large.bin", "studio.example").as_bytes())
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let mut all = Vec::new();
    let _ = socket.read_to_end(&mut all);
    assert!(all.len() < sample::LARGE, "{}", all.len());
}

#[test]
fn connections_per_address_are_limited() {
    let limits = Limits {
        connections_per_address: 2,
        ..Limits::default()
    };
    let server = Server::with(ServeSettings {
        limits,
        trusted_proxies: vec![],
        ..ServeSettings::default()
    });
    let mut sockets: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for socket in &mut sockets {
        let _ = socket.write_all(get("/about", "studio.example").as_bytes());
    }
    let answered = sockets.iter_mut().filter_map(wire::Reply::try_read).count();
    assert_eq!(answered, 2);
    drop(sockets);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.ask(&get("/about", "studio.example")).status, 200);
}

#[test]
fn shutdown_drains_connections() {
    let mut server = Server::with(ServeSettings {
        grace: Duration::from_secs(5),
        ..ServeSettings::default()
    });
    let mut idle = server.connect();
    idle.write_all(get("/about", "studio.example").as_bytes())
        .unwrap();
    assert_eq!(wire::Reply::read(&mut idle).status, 200);
    let mut slow = server.connect();
    slow.write_all(get("/assets/large.bin", "studio.example").as_bytes())
        .unwrap();
    let mut half = server.connect();
    half.write_all(b"GET /about HTTP/1.1\r\nhost: studio")
        .unwrap();
    let mut old = server.connect();
    old.write_all(b"GET /about HTTP/1.0\r\nconnection: keep-alive\r\nhost: studio")
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));

    server.stop();
    assert_eq!(
        idle.read_to_end(&mut Vec::new()).unwrap(),
        0,
        "idle connections end at once"
    );
    for unfinished in [&mut half, &mut old] {
        unfinished.write_all(b".example\r\n\r\n").unwrap();
        let reply = wire::Reply::read(unfinished);
        assert_eq!(
            (reply.status, reply.header("connection")),
            (200, Some("close"))
        );
    }
    let reply = wire::Reply::read(&mut slow);
    assert_eq!((reply.status, reply.body.len()), (200, sample::LARGE));
    assert_eq!(server.ended().cut.connections(), 0);
    assert!(std::net::TcpStream::connect(server.address).is_err());
}

#[test]
fn lingering_connection_gets_one_more_response_before_it_ends() {
    let mut server = Server::start();
    let ask = |socket: &mut std::net::TcpStream| {
        let request = get("/about", "studio.example");
        socket.write_all(request.as_bytes()).unwrap();
        wire::Reply::read(socket)
    };
    let mut used = server.connect();
    let mut unused = server.connect();
    for socket in [&mut used, &mut unused] {
        let reply = ask(socket);
        assert_eq!((reply.status, reply.header("connection")), (200, None));
    }
    server.stop_with_linger(Duration::from_secs(3));
    while std::net::TcpStream::connect(server.address).is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let reply = ask(&mut used);
    let announced = (reply.status, reply.header("connection"));
    assert_eq!(announced, (200, Some("close")));
    for socket in [&mut used, &mut unused] {
        assert_eq!(socket.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
    assert_eq!(server.ended().cut.connections(), 0);
}

#[test]
fn grace_period_ends_open_connections() {
    let mut server = Server::with(ServeSettings {
        grace: Duration::from_millis(700),
        ..ServeSettings::default()
    });
    let mut stuck = server.connect();
    stuck.write_all(b"GET /about HTTP/1.1\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    server.stop();
    assert_eq!(server.ended().cut.connections(), 1);
}

#[test]
fn replaced_snapshot_is_used_from_the_next_request_on() {
    let server = Server::start();
    let mut socket = server.connect();
    socket
        .write_all(get("/terms", "bluedoor.example").as_bytes())
        .unwrap();
    assert_eq!(wire::Reply::read(&mut socket).status, 200);
    server
        .snapshots
        .replace(release::snapshot::Snapshot::default());
    socket
        .write_all(get("/terms", "bluedoor.example").as_bytes())
        .unwrap();
    assert_eq!(wire::Reply::read(&mut socket).status, 421);
}

/// Starts a server with a connection limit, and timeouts too long to end a connection within a test.
fn room_for(connections: usize) -> Server {
    let limits = Limits {
        connections,
        header_read: Duration::from_secs(120),
        ..Limits::default()
    };
    Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    })
}

/// Opens a connection that has had a response and stays open.
fn open_idle_connection(server: &Server) -> TcpStream {
    let mut socket = server.connect();
    socket
        .write_all(get("/about", "studio.example").as_bytes())
        .unwrap();
    assert_eq!(wire::Reply::read(&mut socket).status, 200);
    socket
}

#[test]
fn idle_connections_make_room_for_a_visitor() {
    const ROOM: usize = 8;
    for begun in [None, Some(""), Some("GET /about HT"), Some("PRI * HT")] {
        let server = room_for(ROOM);
        let _idle: Vec<_> = (0..ROOM)
            .map(|_| match begun {
                None => open_idle_connection(&server),
                Some(begun) => {
                    let mut socket = server.connect();
                    socket.write_all(begun.as_bytes()).unwrap();
                    socket
                }
            })
            .collect();
        for _ in 0..2 * ROOM {
            assert_eq!(
                server.ask(&get("/about", "studio.example")).status,
                200,
                "behind {begun:?}"
            );
        }
    }
}

#[test]
fn longest_idle_connection_makes_room() {
    let server = Server::with(ServeSettings {
        limits: Limits {
            connections: 3,
            ..Limits::default()
        },
        workers: NonZeroUsize::MIN,
        ..ServeSettings::default()
    });
    let mut busy = server.connect();
    busy.write_all(get("/assets/large.bin", "studio.example").as_bytes())
        .unwrap();
    let mut first = open_idle_connection(&server);
    std::thread::sleep(Duration::from_millis(1200));
    let mut second = open_idle_connection(&server);
    let _visitor = open_idle_connection(&server);
    assert_eq!(first.read_to_end(&mut Vec::new()).unwrap(), 0);
    second
        .write_all(get("/about", "studio.example").as_bytes())
        .unwrap();
    assert_eq!(wire::Reply::read(&mut second).status, 200);
    assert_eq!(wire::Reply::read(&mut busy).body.len(), sample::LARGE);
}

#[test]
fn incomplete_preface_ends_with_its_connection() {
    let server = room_for(8);
    let mut half = server.connect();
    half.write_all(b"PRI * HT").unwrap();
    // The server waits for the rest before the client closes.
    std::thread::sleep(Duration::from_millis(300));
    half.shutdown(Shutdown::Write).unwrap();
    half.read_to_end(&mut Vec::new()).unwrap();
    let mut at_once = server.connect();
    at_once.write_all(b"PRI * HT").unwrap();
    at_once.shutdown(Shutdown::Write).unwrap();
    at_once.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn preface_may_arrive_in_pieces() {
    let server = Server::start();
    let mut socket = server.connect();
    for piece in [
        &b"PRI * HT"[..],
        b"TP/2.0\r\n\r\nSM\r\n",
        b"\r\n\0\0\0\x04\0\0\0\0\0",
    ] {
        socket.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    // The first frame is the server's SETTINGS (RFC 9113, section 3.4).
    let mut frame = [0; 9];
    socket.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4);
}

#[test]
fn idle_http2_connection_makes_room_with_a_goaway() {
    let server = room_for(1);
    let mut idle = server.connect();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    idle.write_all(preface).unwrap();
    // The server's SETTINGS.
    let mut frame = [0; 9];
    idle.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4);
    assert_eq!(server.ask(&get("/about", "studio.example")).status, 200);
    let mut rest = vec![0; usize::from(frame[2])];
    idle.read_exact(&mut rest).unwrap();
    // The remaining frames by type (RFC 9113, section 4.1).
    let mut types = Vec::new();
    while idle.read_exact(&mut frame).is_ok() {
        let mut payload = vec![0; usize::from(frame[2])];
        idle.read_exact(&mut payload).unwrap();
        types.push(frame[3]);
    }
    assert!(types.contains(&7), "no GOAWAY among {types:?}");
}
